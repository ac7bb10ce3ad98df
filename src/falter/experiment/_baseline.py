"""The baseline file: every outcome of a run as one character, to be kept and reviewed like code."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis import OUTCOMES, STATUSES, Table
from falter.core.codec import from_json, to_json
from falter.core.errors import UsageError, printable
from falter.core.ids import digest
from falter.core.records import Item, Model, Recipe, Run

__all__ = [
    "Baseline",
    "baseline_of",
    "manifest_hash",
    "outcome_characters",
    "read_baseline",
    "write_baseline",
]

Floats = NDArray[np.float64]
FORMAT = 1
HEAD = (
    "# falter baseline: written by 'falter baseline save', read by 'falter gate --against'.",
    "# Every line below the dashes is an item, every character the outcome of one condition:",
    "# 1 right, 0 wrong, A to Y a score between, u unreadable, t cut off, r refused, - missing,",
    "# . the recipe did not change this prompt.",
)
RULE = "---"
UNREAD = {"unparsed": "u", "truncated": "t", "refused": "r"}
MISSING, IDLE = "-", "."
STEPS = 26
"""A score between 0 and 1 is kept to a 26th."""
_PLAIN_KEY = re.compile(r"[^\s\"#\-][^\s\"]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a version answered. `rows` has, for each item's key, the characters of each condition.

    `manifest` hashes items, recipes, seed and draws: with another one the variants are others.
    `flips` are how many of how many outcomes asking again turned, where that is known.
    """

    version: str
    task: str
    scorer: str
    model: Model
    seed: int
    draws: int
    repeats: int
    manifest: str
    served_by: tuple[str, ...]
    conditions: tuple[tuple[str, str], ...]
    rows: Mapping[str, tuple[str, ...]]
    flips: tuple[int, int] | None = None
    path: str = field(default="", compare=False)

    def column(self, recipe: Recipe) -> int | None:
        """Which condition is this recipe; None where it is none."""
        return next((n for n, (_, id) in enumerate(self.conditions) if id == recipe.id), None)

    def scores(self, keys: Sequence[str], column: int, *, strict: bool) -> Floats:
        """The mean score of each item in a condition, NaN where it has none."""
        rows = [self.rows.get(key) for key in keys]
        return np.array([math.nan if row is None else _score(row[column], strict) for row in rows])

    def discordance(self, column: int, *, strict: bool) -> float | None:
        """The share of items whose outcome is not that of the clean prompt."""
        keys = list(self.rows)
        before, after = (self.scores(keys, n, strict=strict) for n in (0, column))
        both = ~np.isnan(before - after)
        return float((before != after)[both].mean()) if both.any() else None


def outcome_characters(table: Table) -> tuple[tuple[str, ...], ...]:
    """For every item of a table the characters of each recipe, one for each realisation."""
    idle = [STATUSES.index(name) for name in ("unchanged", "not_applicable", "no_rewrite")]
    planned = np.broadcast_to(table.in_plan, table.value.shape)
    rows = []
    for i in range(len(table.items)):
        rows.append(
            tuple(
                "".join(
                    IDLE
                    if not planned[i, j, k] or table.status[i, j, k] in idle
                    else _character(OUTCOMES[table.outcome[i, j, k]], table.value[i, j, k])
                    for k in range(table.value.shape[2])
                )
                for j in range(table.value.shape[1])
            )
        )
    return tuple(rows)


def _character(outcome: str, value: float) -> str:
    if outcome != "scored":
        return UNREAD.get(outcome, MISSING)
    if value in (0.0, 1.0):
        return str(int(value))
    return chr(ord("A") + min(max(round(value * STEPS), 1), STEPS - 1) - 1)


def _score(characters: str, strict: bool) -> float:
    """The mean over realisations; unreadable ones are wrong if `strict`, else left out."""
    known = []
    for c in characters:
        if c in "01":
            known.append(float(c))
        elif "A" <= c <= "Z":
            known.append((ord(c) - ord("A") + 1) / STEPS)
        elif strict and c in UNREAD.values():
            known.append(0.0)
    return sum(known) / len(known) if known else math.nan


def baseline_of(
    run: Run, table: Table, items: Mapping[str, Item], flips: tuple[int, int] | None
) -> Baseline:
    """The baseline of a run's only panel; `items` are those of its table, by key."""
    rows = dict(zip(table.items, outcome_characters(table), strict=True))
    return Baseline(
        version=run.version,
        task=table.panel.task,
        scorer=table.panel.scorer,
        model=table.panel.model,
        seed=run.seed,
        draws=run.draws,
        repeats=run.repeats,
        manifest=manifest_hash(items, [r.id for r in run.recipes], run.seed, run.draws),
        served_by=tuple(sorted(table.served_by)),
        conditions=tuple((recipe.label, recipe.id) for recipe in run.recipes),
        rows=rows,
        flips=flips,
    )


def manifest_hash(items: Mapping[str, Item], recipes: Sequence[str], seed: int, draws: int) -> str:
    """A hash of what makes the variants: items, recipes (their ids), seed, draws; no template."""
    ids = sorted(item.id for item in items.values())
    return digest("baseline", ids, list(recipes), seed, draws)


# The file


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write the file, items in the order of their keys so that a change is a changed line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*HEAD, *_lines(baseline)]) + "\n", "utf-8")


def _lines(baseline: Baseline) -> Iterator[str]:
    yield f"format: {FORMAT}"
    yield f"version: {baseline.version}"
    yield f"task: {_text(baseline.task)}"
    yield f"scorer: {_text(baseline.scorer)}"
    yield f"model: {_text(to_json(baseline.model))}"
    yield f"served by: {_text(list(baseline.served_by))}"
    yield f"seed: {baseline.seed}"
    yield f"draws: {baseline.draws}"
    yield f"repeats: {baseline.repeats}"
    if baseline.flips is not None:
        yield f"asked again: {_text(list(baseline.flips))}"
    yield f"manifest: {baseline.manifest}"
    for n, (label, identity) in enumerate(baseline.conditions, 1):
        yield f"condition {n}: {_text([label, identity, *_share(baseline, n - 1)])}"
    yield f"items: {len(baseline.rows)}"
    yield RULE
    between = "" if baseline.draws * baseline.repeats == 1 else " "
    for key in sorted(baseline.rows):
        name = key if _PLAIN_KEY.fullmatch(key) and key.isprintable() else json.dumps(key)
        yield f"{name} {between.join(baseline.rows[key])}"


def _share(baseline: Baseline, column: int) -> list[str]:
    """The accuracy of a condition, for whoever reads the file; nothing is computed from it."""
    scores = baseline.scores(list(baseline.rows), column, strict=True)
    known = scores[~np.isnan(scores)]
    return [f"{100 * float(known.mean()):.1f} % of {len(known)}"] if len(known) else []


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file. What is damaged is named with its line."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise UsageError(
            f"The baseline file {path} does not exist",
            hint="write one with 'falter baseline save RUN -o FILE'",
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The baseline file {path} cannot be read: {error}") from error
    lines = text.splitlines()
    if RULE not in lines or not any(line.startswith("format: ") for line in lines):
        raise UsageError(
            f"{path} is not a baseline file",
            hint="'falter baseline save RUN -o FILE' writes one; an experiment file ends in .yaml",
        )
    split = lines.index(RULE)
    try:
        return _parsed(path, _head(lines[:split]), lines[split + 1 :], split + 2)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise UsageError(
            f"The baseline file {path} is damaged: {printable(str(error))[:200]}",
            hint="save it again, or take it from version control",
        ) from error


def _head(lines: Sequence[str]) -> dict[str, Any]:
    head: dict[str, Any] = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            name, _, value = line.partition(": ")
            bare = name in ("version", "manifest")
            head[name] = value if bare else json.loads(value)
    if head["format"] != FORMAT:
        raise ValueError(f"its format is {head['format']}; this falter reads {FORMAT}")
    return head


def _parsed(path: Path, head: dict[str, Any], lines: Sequence[str], first: int) -> Baseline:
    conditions: list[tuple[str, str]] = []
    while f"condition {len(conditions) + 1}" in head:
        label, identity, *_ = head[f"condition {len(conditions) + 1}"]
        conditions.append((str(label), str(identity)))
    depth = int(head["draws"]) * int(head["repeats"])
    rows: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        key, characters = _row(line, number)
        parts = tuple(characters) if depth == 1 else tuple(characters.split(" "))
        if len(parts) != len(conditions) or any(
            not re.fullmatch(rf"[01A-Yutr.\-]{{{depth}}}", part) for part in parts
        ):
            raise ValueError(f"line {number} has not one outcome for each condition")
        if key in rows:
            raise ValueError(f"line {number} names an item twice")
        rows[key] = parts
    if len(rows) != head["items"]:
        raise ValueError(f"it has {len(rows)} items and says {head['items']}")
    flips = head.get("asked again")
    return Baseline(
        version=str(head["version"]),
        task=str(head["task"]),
        scorer=str(head["scorer"]),
        model=from_json(Model, head["model"]),
        seed=int(head["seed"]),
        draws=int(head["draws"]),
        repeats=int(head["repeats"]),
        manifest=str(head["manifest"]),
        served_by=tuple(map(str, head["served by"])),
        conditions=tuple(conditions),
        rows=rows,
        flips=None if flips is None else (int(flips[0]), int(flips[1])),
        path=str(path),
    )


def _row(line: str, number: int) -> tuple[str, str]:
    if line.startswith('"'):
        key, end = json.JSONDecoder().raw_decode(line)
        rest = line[end:]
    else:
        key, space, after = line.partition(" ")
        rest = space + after
    if not isinstance(key, str) or not rest.startswith(" "):
        raise ValueError(f"line {number} is no item with its outcomes")
    return key, rest[1:]
