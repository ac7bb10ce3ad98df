"""Baseline files: the outcomes of a stored run as text, saved by hand and reviewed like code.

Every outcome is one character.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.declared import Declared
from falter.analysis.table import OUTCOMES, STATUSES, Table, run_tables
from falter.engine.scoring import run_scorers
from falter.records import numbers as n
from falter.records.codec import from_json, to_json
from falter.records.errors import UsageError, printable, refusal
from falter.records.figures import Statement, Study
from falter.records.ids import digest, short
from falter.records.types import BASELINE, Model, Run
from falter.store.store import Store
from falter.store.studies import find_study

Floats = NDArray[np.float64]
FORMAT = 1
HEAD = (
    "# falter baseline: written by 'falter baseline save', read by 'falter gate --against'.",
    "# Every line below the dashes is an item, every character the outcome of one condition:",
    "# 1 right, 0 wrong, A to Y a score between, u unreadable, t cut off, r refused, - missing,",
    "# . the recipe did not change this prompt.",
)
HEAD_END = "---"
UNREAD = {"unparsed": "u", "truncated": "t", "refused": "r"}
MISSING, UNCHANGED = "-", "."
SCORE_STEPS = 26
"""Number of steps between 0 and 1 to which a score is rounded; a letter encodes the step."""
# Keys written without quotes: "ticket-17", "a#b"; not "#x", "-x", "a b".
_PLAIN_KEY = re.compile(r"[^\s\"#\-][^\s\"]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The outcomes of a version, as a baseline file holds them.

    - `rows` has, for each item's key, a text for each condition: one character a realisation.
    - `conditions` are pairs of label and recipe id, the clean prompt first.
    - `manifest` hashes items, recipes, seed and draws. With another hash, the variants differ.
    - `flips` is the number of outcomes that flipped when the clean prompt was repeated, and the
      number of repeated outcomes. It is None if nothing was repeated.
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

    def scores(self, keys: Sequence[str], column: int, *, strict: bool) -> Floats:
        """Return the mean score of each item in a condition; NaN for items without a score.

        With `strict`, outcomes without a usable answer count as 0. Otherwise they are left out.
        """
        rows = [self.rows.get(key) for key in keys]
        return np.array([math.nan if row is None else _score(row[column], strict) for row in rows])

    def accuracy(self, column: int, *, strict: bool) -> tuple[float | None, int]:
        """Return the mean score of a condition, or None, and the number of items with a score."""
        scores = self.scores(list(self.rows), column, strict=strict)
        known = scores[~np.isnan(scores)]
        return float(known.mean()) if len(known) else None, len(known)

    def discordance(self, column: int, *, strict: bool) -> float | None:
        """Return the share of items whose score differs from the clean score; None if unknown."""
        keys = list(self.rows)
        before, after = (self.scores(keys, n, strict=strict) for n in (0, column))
        both = ~np.isnan(before - after)
        return float((before != after)[both].mean()) if both.any() else None

    def unread_discordance(self, column: int) -> float | None:
        """Return the share of items that are unparsed in a condition or the clean prompt, not both.

        Truncated and refused responses count as unparsed. Only the first realisation is looked at.
        The result is None if no item has both outcomes.
        """
        pairs = [(row[0][:1], row[column][:1]) for row in self.rows.values()]
        pairs = [(a, b) for a, b in pairs if a not in "-." and b not in "-."]
        differing = sum((a in "utr") != (b in "utr") for a, b in pairs)
        return differing / len(pairs) if pairs else None


# From a stored run


def save_baseline(store_path: Path, name: str | None, path: Path) -> Baseline:
    """Write the outcomes of a stored run as a baseline file. Calls no model.

    Raises `UsageError` if the store does not exist or the run lacks responses.
    """
    if not store_path.exists():
        raise UsageError(f"The store {store_path} does not exist", hint="start a run first")
    with Store(store_path, writes=False) as store:
        run = _single_panel_run(store, name)
        (table,) = run_tables(store, run, run_scorers(run))
        missing = int((table.in_plan & np.isnan(table.scores(strict=True))).sum())
        if missing:
            raise refusal(
                UsageError,
                "gate.lacks_answers",
                id=short(run.id),
                missing=missing,
                planned=table.planned,
            )
        baseline = Baseline(
            version=run.version,
            task=table.panel.task,
            scorer=table.panel.scorer,
            model=table.panel.model,
            seed=run.seed,
            draws=run.draws,
            repeats=run.repeats,
            manifest=manifest_hash(
                table.item_ids, [r.id for r in run.recipes], run.seed, run.draws
            ),
            served_by=tuple(sorted(table.served_by)),
            conditions=tuple((recipe.label, recipe.id) for recipe in run.recipes),
            rows=dict(zip(table.items, _outcome_characters(table), strict=True)),
            flips=_repeat_flips(store, run, table),
        )
    write_baseline(baseline, path)
    return baseline


def _single_panel_run(store: Store, name: str | None) -> Run:
    """Return the stored run of that name; raise unless it has one panel and the clean prompt."""
    parts = find_study(store, name).parts
    if len(parts) != 1:
        raise refusal(UsageError, "gate.several_parts", count=len(parts))
    run = store.find_run(parts[0].run).run
    if len(run.panels) != 1:
        raise refusal(UsageError, "gate.several_panels", id=short(run.id), count=len(run.panels))
    if BASELINE.id not in {recipe.id for recipe in run.recipes}:
        raise UsageError(f"The run {short(run.id)} has no clean prompt")
    return run


def _repeat_flips(store: Store, run: Run, table: Table) -> tuple[int, int] | None:
    """Return the number of outcomes that flipped in a repeat, and the number repeated.

    The repeats of the clean prompt come from this run, otherwise from a run of the same panel and
    seed. The result is None if neither has any.
    """
    tables = [table]
    for stored in reversed(store.runs()):
        other = stored.run
        same_panels = [p.identity() for p in other.panels] == [p.identity() for p in run.panels]
        if same_panels and other.seed == run.seed and not any(r.perturbs for r in other.recipes):
            tables += run_tables(store, other, run_scorers(other))
    for candidate in tables:
        columns = [c for c, recipe in enumerate(candidate.recipes) if recipe.repeat]
        scores = candidate.scores(strict=True)[:, :, 0]
        if columns:
            pairs = scores[:, [0, columns[0]]]
            pairs = pairs[~np.isnan(pairs).any(axis=1)]
            return int((pairs[:, 0] != pairs[:, 1]).sum()), len(pairs)
    return None


def _outcome_characters(table: Table) -> list[tuple[str, ...]]:
    """Return for every item of a table a text for each recipe, one character a realisation."""
    idle = [STATUSES.index(name) for name in ("unchanged", "not_applicable", "no_rewrite")]
    planned = np.broadcast_to(table.in_plan, table.value.shape)
    unchanged = ~planned | np.isin(table.status, idle)
    return [
        tuple(
            "".join(
                UNCHANGED if is_idle else _character(OUTCOMES[outcome], value)
                for is_idle, outcome, value in zip(*cells, strict=True)
            )
            for cells in zip(unchanged[i], table.outcome[i], table.value[i], strict=True)
        )
        for i in range(len(table.items))
    ]


def _character(outcome: str, value: float) -> str:
    """Return the character of an outcome: 0, 1, a letter for a score between, u, t, r or -."""
    if outcome != "scored":
        return UNREAD.get(outcome, MISSING)
    if value in (0.0, 1.0):
        return str(int(value))
    return chr(ord("A") + min(max(round(value * SCORE_STEPS), 1), SCORE_STEPS - 1) - 1)


def _score(characters: str, strict: bool) -> float:
    """Return the mean score over realisations; NaN if there is none.

    Realisations without a usable answer count as 0 if `strict`, and are left out otherwise.
    """
    scores = []
    for c in characters:
        if c in "01":
            scores.append(float(c))
        elif "A" <= c <= "Z":
            scores.append((ord(c) - ord("A") + 1) / SCORE_STEPS)
        elif strict and c in UNREAD.values():
            scores.append(0.0)
    return sum(scores) / len(scores) if scores else math.nan


def manifest_hash(items: Iterable[str], recipes: Sequence[str], seed: int, draws: int) -> str:
    """Hash everything that determines the variants except the template.

    `items` and `recipes` are ids; the order of the items does not matter.
    """
    return digest("baseline", sorted(items), list(recipes), seed, draws)


# The file


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write the file with its items sorted by key, so that a change of an item is one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*HEAD, *_file_lines(baseline)]) + "\n", "utf-8")


def _file_lines(baseline: Baseline) -> Iterator[str]:
    yield f"format: {FORMAT}"
    yield f"version: {baseline.version}"
    head = {
        "task": baseline.task,
        "scorer": baseline.scorer,
        "model": to_json(baseline.model),
        "served by": baseline.served_by,
        "seed": baseline.seed,
        "draws": baseline.draws,
        "repeats": baseline.repeats,
    }
    if baseline.flips is not None:
        head["asked again"] = baseline.flips
    yield from (f"{key_text}: {json.dumps(value)}" for key_text, value in head.items())
    yield f"manifest: {baseline.manifest}"
    for column, (label, identity) in enumerate(baseline.conditions):
        # The accuracy is for people who read the file; falter does not read it back.
        share, count = baseline.accuracy(column, strict=True)
        shown = [] if share is None else [f"{100 * share:.1f} % of {count}"]
        yield f"condition {column + 1}: {json.dumps([label, identity, *shown])}"
    yield f"items: {len(baseline.rows)}"
    yield HEAD_END
    separator = "" if baseline.draws * baseline.repeats == 1 else " "
    for key in sorted(baseline.rows):
        key_text = key if _PLAIN_KEY.fullmatch(key) and key.isprintable() else json.dumps(key)
        yield f"{key_text} {separator.join(baseline.rows[key])}"


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file; raise `UsageError` for a damaged file, if possible with the line."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError as error:
        raise refusal(UsageError, "gate.no_such_baseline", path=path) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The baseline file {path} cannot be read: {error}") from error
    lines = text.splitlines()
    if HEAD_END not in lines or not any(line.startswith("format: ") for line in lines):
        raise refusal(UsageError, "gate.no_baseline_file", path=path)
    split = lines.index(HEAD_END)
    try:
        return _parse_baseline(path, _parse_head(lines[:split]), lines[split + 1 :], split + 2)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise refusal(
            UsageError, "gate.damaged_baseline", path=path, error=printable(str(error))[:200]
        ) from error


def _parse_head(lines: Sequence[str]) -> dict[str, Any]:
    """Return the fields above the dashes; raise `ValueError` for another format."""
    head: dict[str, Any] = {}
    for line in lines:
        if line.strip() and not line.startswith("#"):
            name, _, value = line.partition(": ")
            bare = name in ("version", "manifest")
            head[name] = value if bare else json.loads(value)
    if head["format"] != FORMAT:
        raise ValueError(f"its format is {head['format']}; this falter reads {FORMAT}")
    return head


def _parse_baseline(path: Path, head: dict[str, Any], lines: Sequence[str], first: int) -> Baseline:
    """Return the baseline of a file's header and lines; `first` is the number of the first line."""
    conditions: list[tuple[str, str]] = []
    while f"condition {len(conditions) + 1}" in head:
        label, identity, *_ = head[f"condition {len(conditions) + 1}"]
        conditions.append((str(label), str(identity)))
    depth = int(head["draws"]) * int(head["repeats"])
    rows: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        key, characters = _parse_row(line, number)
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


def _parse_row(line: str, number: int) -> tuple[str, str]:
    """Split a line into an item's key, plain or as a JSON text, and its outcomes."""
    if line.startswith('"'):
        key, end = json.JSONDecoder().raw_decode(line)
        rest = line[end:]
    else:
        key, space, after = line.partition(" ")
        rest = space + after
    if not isinstance(key, str) or not rest.startswith(" "):
        raise ValueError(f"line {number} is no item with its outcomes")
    return key, rest[1:]


# Figures of a baseline


def baseline_study(baseline: Baseline) -> Study:
    """Return a baseline as figures: the score and the share of flips of each condition."""
    rows = []
    for column, (label, _) in enumerate(baseline.conditions):
        score, count = baseline.accuracy(column, strict=True)
        turned = baseline.discordance(column, strict=True) if column else None
        rows.append({"condition": label, "score": score, "turned": turned, "items": count})
    flips = baseline.flips
    again = f"; sent again, {flips[0]} of {flips[1]} outcomes flipped" if flips else ""
    served = ", ".join(baseline.served_by) or "not known"
    about = (
        f"{baseline.model.label} on {baseline.task}, read by {baseline.scorer}: "
        f"{n.whole(len(baseline.rows))} items, seed {baseline.seed}, falter {baseline.version}; "
        f"served by {served}{again}."
    )
    grid = Declared("falter.gate").grid("baseline", rows)
    return Study(
        id=baseline.manifest,
        title="A baseline",
        version=baseline.version,
        created_at=Path(baseline.path).stat().st_mtime if baseline.path else 0.0,
        seed=baseline.seed,
        level=0.95,
        unparsed="wrong",
        models=(baseline.model.label,),
        figures=(Statement(name="about", text=(about,)), grid),
    )
