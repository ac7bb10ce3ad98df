"""The lines of a gate: which there are, how many items each has, and their numbers in a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis import OUTCOMES, UNREADABLE, Table
from falter.core.errors import UnknownName, UsageError
from falter.core.records import Recipe
from falter.experiment._baseline import Baseline
from falter.experiment._gate_settings import GateSpec
from falter.gate import Line, LineKind, PlannedLine

__all__ = ["AVERAGE", "CLEAN", "Requirement", "gate_lines", "planned_lines", "requirements"]

Floats = NDArray[np.float64]
AVERAGE = "average"
CLEAN = "clean prompt"
USUAL = 0.1
SAME = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One line as it was asked for: of which recipe (None: all of them, or the clean prompt)."""

    kind: LineKind
    margin: float
    recipe: Recipe | None = None

    @property
    def label(self) -> str:
        """What the line is about."""
        if self.recipe is not None:
            return self.recipe.label
        return AVERAGE if self.kind == "average" else CLEAN

    @property
    def name(self) -> str:
        """Its name among all lines: `typos`, `typos, unread`, `clean prompt, score`."""
        return self.label if self.kind in ("drop", "average") else f"{self.label}, {self.kind}"


def requirements(
    spec: GateSpec, recipes: Sequence[Recipe], *, compared: Sequence[Recipe]
) -> tuple[Requirement, ...]:
    """Every line that the settings ask for; `compared` are the recipes that a baseline has too."""
    changing = [recipe for recipe in recipes if recipe.perturbs]
    lines = list(_drops(spec, changing))
    if spec.max_regression is not None:
        margin = spec.max_regression / 100.0
        lines += [
            Requirement(kind="regression", margin=margin, recipe=r if r.perturbs else None)
            for r in compared
        ]
    if spec.max_unread is not None:
        margin = spec.max_unread / 100.0
        lines += [Requirement(kind="unread", margin=margin, recipe=r) for r in changing]
    if spec.min_score is not None:
        lines.append(Requirement(kind="score", margin=spec.min_score / 100.0))
    if not lines:
        raise UsageError(
            "The gate has no line to hold",
            hint="set max_drop, min_score or max_unread; max_regression goes with --against",
        )
    return tuple(lines)


def _drops(spec: GateSpec, changing: Sequence[Recipe]) -> Iterator[Requirement]:
    margins = spec.max_drop
    if margins is None:
        return
    if not isinstance(margins, Mapping):
        for recipe in changing:
            yield Requirement(kind="drop", margin=margins / 100.0, recipe=recipe)
        return
    by_label = {recipe.label: recipe for recipe in changing}
    for name, points in margins.items():
        if name == AVERAGE:
            yield Requirement(kind="average", margin=points / 100.0)
        elif name in by_label:
            yield Requirement(kind="drop", margin=points / 100.0, recipe=by_label[name])
        else:
            raise UnknownName("recipe of max_drop", name, [*by_label, AVERAGE])


# Before anything is asked


def planned_lines(
    lines: Sequence[Requirement],
    spec: GateSpec,
    *,
    items: int,
    changed: Mapping[str, int],
    baseline: Baseline | None,
    strict: bool,
) -> list[PlannedLine]:
    """Every line with the items that it has and the share of answers that flip by themselves.

    `changed` says how many items each recipe changes, by its id. The share is the user's, else the
    baseline file's, else 10 %. Nobody knows it of unreadable answers without a file: then none.
    """
    return [_planned(line, spec, items, changed, baseline, strict) for line in lines]


def _planned(
    line: Requirement,
    spec: GateSpec,
    items: int,
    changed: Mapping[str, int],
    baseline: Baseline | None,
    strict: bool,
) -> PlannedLine:
    count = items if line.recipe is None else changed.get(line.recipe.id, 0)
    share, source = _flips(line, baseline, strict)
    if spec.discordance is not None and line.kind != "unread":
        share, source = spec.discordance, "the gate's settings"
    score = None
    if line.kind == "score" and baseline is not None:
        known = baseline.scores(list(baseline.rows), 0, strict=strict)
        known = known[~np.isnan(known)]
        score, source = (float(known.mean()), "the baseline file") if len(known) else (None, "")
    return PlannedLine(
        name=line.name,
        kind=line.kind,
        margin=line.margin,
        items=count,
        discordance=share,
        source=source,
        conditions=max(1, len(changed)) if line.kind == "average" else 1,
        score=score,
    )


def _flips(line: Requirement, baseline: Baseline | None, strict: bool) -> tuple[float, str]:
    """The share of answers that flip where nothing changed, and who says so."""
    said = "the baseline file"
    if line.kind == "score":
        return 0.0, "every answer right"
    if line.kind == "regression":
        if baseline is not None and baseline.flips is not None and baseline.flips[1]:
            return baseline.flips[0] / baseline.flips[1], said
        return USUAL, "assumed"
    columns = _columns(line, baseline)
    if baseline is not None and columns:
        shares = [
            _unread_share(baseline, n)
            if line.kind == "unread"
            else baseline.discordance(n, strict=strict)
            for n in columns
        ]
        known = [share for share in shares if share is not None]
        if known:
            return sum(known) / len(known), said
    return (0.0, "none unread") if line.kind == "unread" else (USUAL, "assumed")


def _columns(line: Requirement, baseline: Baseline | None) -> list[int]:
    """The conditions of the baseline file that a line is about."""
    if baseline is None:
        return []
    if line.recipe is None:
        return list(range(1, len(baseline.conditions)))
    column = baseline.column(line.recipe)
    return [] if column is None else [column]


def _unread_share(baseline: Baseline, column: int) -> float | None:
    """The share of items that are unreadable in a condition and not in the clean one, or so."""
    pairs = [(row[0][:1], row[column][:1]) for row in baseline.rows.values()]
    pairs = [(a, b) for a, b in pairs if a not in "-." and b not in "-."]
    differing = sum((a in "utr") != (b in "utr") for a, b in pairs)
    return differing / len(pairs) if pairs else None


# After a look


def gate_lines(
    lines: Sequence[Requirement],
    table: Table,
    order: Sequence[str],
    *,
    strict: bool,
    other: Mapping[str, Floats],
    held: str,
) -> list[Line]:
    """The lines with a number for each item, in the order in which the items were drawn.

    `other` has the scores of the baseline's version, by recipe id, in that same order.
    """
    place = {key: n for n, key in enumerate(table.items)}
    rows = np.array([place[key] for key in order if key in place], dtype=np.intp)
    here = np.array([key in place for key in order])
    scores, changed = table.matrix(strict=strict)[rows], table.changed()[rows]
    unread = _unread(table)[rows]
    by_id = {recipe.id: n for n, recipe in enumerate(table.recipes)}

    def of(line: Requirement) -> Line:
        column = 0 if line.recipe is None else by_id[line.recipe.id]
        clean = scores[:, 0] if line.kind == "average" else None
        if line.kind == "average":
            drops = np.where(changed, scores[:, :1] - scores, np.nan)
            values = drops[:, [n for n, recipe in enumerate(table.recipes) if recipe.perturbs]]
        elif line.kind == "score":
            values = scores[:, 0]
        elif line.kind == "regression":
            values = other[table.recipes[column].id][here] - scores[:, column]
        else:
            measured = unread[:, column] - unread[:, 0]
            values = measured if line.kind == "unread" else scores[:, 0] - scores[:, column]
        if line.recipe is not None:
            values = np.where(changed[:, column], values, np.nan)
        made = Line(name=line.name, kind=line.kind, margin=line.margin, values=values, clean=clean)
        return replace(made, held=held) if line.kind == "regression" else made

    return [of(line) for line in lines]


def _unread(table: Table) -> Floats:
    """Items x recipes: the share of realisations that cannot be read; NaN where none came."""
    came = table.outcome < OUTCOMES.index("failed")
    count = came.sum(axis=2)
    lost = (np.isin(table.outcome, UNREADABLE) & came).sum(axis=2)
    return np.asarray(np.where(count > 0, lost / np.maximum(count, 1), np.nan))
