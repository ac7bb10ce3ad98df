"""The manifest: one line for each variant of a set, so that others can check that theirs match."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from falter import __version__
from falter.core.codec import from_json, to_json
from falter.core.errors import UsageError
from falter.core.ids import digest
from falter.core.interfaces import RewriteBank
from falter.core.records import Prompt, Variant
from falter.experiment._config import Experiment
from falter.experiment._variants import VariantSet, variant_sets

__all__ = ["manifest_lines", "verify_manifest"]

FORMAT = 1


def manifest_lines(
    sets: Iterable[VariantSet], experiment: Experiment, *, prompts: bool = False
) -> Iterator[str]:
    """The manifest: a header line, a line for each variant, and a footer with the hash of all.

    With `prompts` every line has its prompt, so that the set can be used without falter.
    """
    header = {
        "falter_manifest": FORMAT,
        "version": __version__,
        "seed": experiment.seed,
        "draws": experiment.draws,
    }
    lines = [_dump(header)]
    yield lines[0]
    identities = [digest("line", lines[0])]
    for variant_set in sets:
        for variant in variant_set.variants():
            line = _dump(_row(variant_set, variant, prompts))
            identities.append(digest("line", line))
            yield line
    yield _dump({"variants": len(identities) - 1, "digest": digest("manifest", identities)})


def _row(variant_set: VariantSet, variant: Variant, prompts: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": variant_set.task.name,
        "scorer": variant_set.scorer.name,
        "item": variant.item.key,
        "item_id": variant.item.id,
        "recipe": variant.recipe.label,
        "recipe_id": variant.recipe.id,
        "draw": variant.draw,
        "status": variant.status,
        "id": variant.id,
    }
    return {**row, "prompt": to_json(variant.prompt)} if prompts else row


def _dump(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def verify_manifest(
    path: Path, experiment: Experiment | None, bank: RewriteBank | None
) -> list[str]:
    """What is wrong with a manifest, in words; nothing if all is well.

    Its own hash is recomputed, and the variant's identity for lines with a prompt. With an
    experiment, its variants are made again and compared one by one.
    """
    lines = _read(path)
    problems = list(_damage(lines))
    rows = [json.loads(line) for line in lines[1:-1]]
    problems += [
        f"{_name(row)}: its prompt does not match its id"
        for row in rows
        if "prompt" in row and not _has_its_id(row)
    ]
    if experiment is not None:
        problems += _differences(rows, experiment, bank)
    return problems


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8").splitlines()
        header = json.loads(lines[0])
    except (OSError, UnicodeDecodeError, ValueError, IndexError) as error:
        raise UsageError(
            f"The manifest {path} cannot be read: {error}",
            hint="give a file that 'falter variants export' wrote",
        ) from error
    if not isinstance(header, dict) or header.get("falter_manifest") != FORMAT or len(lines) < 2:
        raise UsageError(
            f"{path} is not a manifest of variants",
            hint="write one with: falter variants export EXPERIMENT.yaml -o FILE",
        )
    return lines


def _damage(lines: list[str]) -> Iterator[str]:
    """Whether the lines are those that were written, all of them and in their order."""
    try:
        footer = json.loads(lines[-1])
        rows = [json.loads(line) for line in lines[1:-1]]
        complete = footer["variants"] == len(rows) and all("id" in row for row in rows)
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        raise UsageError(
            "The manifest ends early, or one of its lines is damaged", hint="fetch the file again"
        )
    if digest("manifest", [digest("line", line) for line in lines[:-1]]) != footer["digest"]:
        yield "the manifest does not match its own hash: a line was changed"


def _has_its_id(row: Mapping[str, Any]) -> bool:
    prompt = from_json(Prompt, row["prompt"])
    parts = (row["item_id"], row["recipe_id"], row["draw"], row["status"], prompt.identity())
    return bool(digest("variant", *parts) == row["id"])


def _differences(
    rows: list[dict[str, Any]], experiment: Experiment, bank: RewriteBank | None
) -> Iterator[str]:
    theirs = {_key(row): row for row in rows}
    for variant_set in variant_sets(experiment, bank):
        for variant in variant_set.variants():
            row = _row(variant_set, variant, prompts=False)
            other = theirs.pop(_key(row), None)
            if other is None:
                yield f"{_name(row)}: not in the manifest"
            elif other["id"] != row["id"]:
                yield f"{_name(row)}: a different variant ({_reason(row, other)})"
    yield from (f"{_name(row)}: only in the manifest" for row in theirs.values())


def _reason(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    for name, what in (("item_id", "item"), ("recipe_id", "recipe"), ("status", "status")):
        if ours[name] != theirs.get(name):
            return f"a different {what}"
    return "the prompt differs"


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("task", "scorer", "item", "recipe", "draw"))


def _name(row: Mapping[str, Any]) -> str:
    return f"{row.get('task')} {row.get('item')} {row.get('recipe')} draw {row.get('draw')}"
