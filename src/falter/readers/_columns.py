"""The role of every column: as the user names it, else by the usual names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from falter.core.errors import UnknownName, UsageError

__all__ = ["FILE", "ROLES", "ColumnMap", "resolve"]

Layout = Literal["auto", "long", "wide"]
FILE = "@file"
# The roles that a wide table has columns for, beside its scores.
WIDE = ("model", "task", "item", "run", "cluster")
# The roles that hold results, which one fixed text (`=TEXT`) cannot stand for.
VALUES = ("score", "outcome", "output")

# The first of these that a table has; names are compared without case, spaces and dashes.
ROLES: dict[str, tuple[str, ...]] = {
    "model": ("model", "model_name", "model_id", "llm", "system", "evaluator", "judge"),
    "task": ("task", "task_name", "benchmark", "dataset", "subset"),
    "item": ("item", "item_id", "doc_id", "question_id", "sample_id", "example_id", "id", "qid",
             "idx", "index", "key"),
    "condition": ("condition", "recipe", "perturbation", "variant", "prompt_variant", "strategy",
                  "setting", "config", "configuration", "prompt_id", "template_id", "lang",
                  "language"),
    "run": ("run", "repeat", "epoch", "trial", "replicate", "seed"),
    "score": ("score", "correct", "is_correct", "acc", "accuracy", "exact_match", "right",
              "passed", "pass", "success", "value", "bleu_acc", "f1", "reward"),
    "outcome": ("outcome", "outcome_status"),
    "output": ("output", "extracted", "parsed", "prediction", "predicted", "winner", "response",
               "answer", "completion", "generation"),
    "cluster": ("cluster", "cluster_id", "passage", "passage_id", "document_id"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMap:
    """Which columns hold what, as the user says; empty roles are filled by the usual names.

    Each role takes a column, several (`strategy`, `swap` become one name), `=TEXT` for the same
    text everywhere, or `@file` for the name of the file. More than one `score` column makes a
    wide table: a row an item, a score column a condition.
    """

    model: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    item: tuple[str, ...] = ()
    condition: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    layout: Layout = "auto"

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """The roles that the user named columns for."""
        by_role = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layout"}
        return {role: columns for role, columns in by_role.items() if columns}


def resolve(columns: ColumnMap, names: Sequence[str], path: Path) -> dict[str, tuple[str, ...]]:
    """The columns of every role in a table. Wide tables have several score columns."""
    roles = {role: _named_columns(role, texts, names) for role, texts in columns.named.items()}
    used = {name for role_columns in roles.values() for name in role_columns}
    if "score" not in roles and columns.layout != "wide":
        _guess(roles, used, ("score",), names)
    wide = columns.layout == "wide" or len(roles.get("score", ())) != 1
    if wide and columns.layout == "long":
        raise UsageError("A long table has one column of scores", hint="name it with --score")
    _guess(roles, used, WIDE if wide else [r for r in ROLES if r != "score"], names)
    if "score" not in roles:
        _as_wide(roles, names, used, path)
    return roles


def _guess(
    resolved: dict[str, tuple[str, ...]], used: set[str], roles: Sequence[str], names: Sequence[str]
) -> None:
    """Columns with a usual name, for the roles that have none."""
    for role in roles:
        column = _usual(ROLES[role], [name for name in names if name not in used])
        if role not in resolved and column is not None:
            resolved[role] = (column,)
            used.add(column)


def _as_wide(
    found: dict[str, tuple[str, ...]], names: Sequence[str], taken: set[str], path: Path
) -> None:
    """Every column without a role is a condition."""
    rest = tuple(name for name in names if name not in taken)
    if not rest:
        raise UsageError(
            f"{path} has no column of scores", hint=f"its columns: {', '.join(names[:20])}"
        )
    found["score"] = rest


def _named_columns(role: str, texts: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The columns that were named; a comma stands between two, unless it is part of a name."""
    named: list[str] = []
    for text in texts:
        parts = [text] if text in names or text.startswith(("=", FILE)) else text.split(",")
        for part in parts:
            free = part.startswith("=") or part == FILE
            if part not in names and not (free and role not in VALUES):
                raise UnknownName(f"column for --{role}", part, names)
            named.append(part)
    return tuple(named)


def _usual(usual: Sequence[str], names: Sequence[str]) -> str | None:
    plain = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in names}
    return next((plain[name] for name in usual if name in plain), None)
