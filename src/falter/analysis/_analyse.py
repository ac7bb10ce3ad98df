"""Tables to results: drops, averages, variance components, each with its interval and signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from falter.analysis._examples import examples
from falter.analysis._meaning import Cosine, meaning_of_run
from falter.analysis._results import (
    Analysis,
    Counts,
    GroupResult,
    PanelResult,
    RecipeResult,
)
from falter.analysis._table import OUTCOMES, STATUSES, Table, tables
from falter.core.errors import StoreError
from falter.core.ids import short
from falter.core.interfaces import Scorer
from falter.core.records import Estimate, Run
from falter.measures import (
    accuracy,
    accuracy_drop,
    group_average,
    macro_average,
    micro_average,
    noise_floor,
    variance_components,
)
from falter.stats import holm
from falter.store import Store, StoredRun

__all__ = ["analyse"]

Floats = NDArray[np.float64]


def analyse(
    store: Store,
    stored: StoredRun,
    scorers: Mapping[str, Scorer],
    *,
    partial: bool = False,
    encoder: Cosine | None = None,
) -> Analysis:
    """Everything that a stored run says. Calls no model; an encoder adds cosines of prompts.

    A run that was interrupted is not reported unless `partial` is set: cells that were never
    asked would look like a smaller experiment.
    """
    run = stored.run
    found = tables(store, run, scorers)
    _require_complete(found, stored, partial)
    settings = run.experiment
    return Analysis(
        run=run.id,
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=settings["level"],
        unparsed=settings["unparsed"],
        panels=tuple(_panel(table, store, run, scorers) for table in found),
        meaning=meaning_of_run(store, run, found, encoder),
    )


def _require_complete(found: Sequence[Table], stored: StoredRun, partial: bool) -> None:
    answered = sum(int((t.outcome != OUTCOMES.index("missing")).sum()) for t in found)
    planned = sum(t.planned for t in found)
    if not any((t.outcome < OUTCOMES.index("failed")).any() for t in found):
        raise StoreError(
            f"The run {short(stored.run.id)} has no answer yet",
            hint="run the same command again to finish it",
        )
    if not partial and (not stored.planned or answered < planned):
        raise StoreError(
            f"The run {short(stored.run.id)} is not finished: {answered:,} of "
            f"{planned:,} planned cells so far",
            hint="run the same command again to finish it, or report it as it is with --partial",
        )


def _panel(table: Table, store: Store, run: Run, scorers: Mapping[str, Scorer]) -> PanelResult:
    level = cast(float, run.experiment["level"])
    strict = run.experiment["unparsed"] == "wrong"
    sign = _Signer(table, run)
    values, valid = table.matrix(strict=strict), table.matrix(strict=False)
    changed = table.changed()
    columns = [n for n, r in enumerate(table.recipes) if r.perturbs]
    drops = _drops(values, changed)
    results = _recipes(table, columns, values, valid, level, sign)
    groups = tuple(dict.fromkeys(table.recipes[n].group for n in columns))
    by_group = {g: [n for n in columns if table.recipes[n].group == g] for g in groups}
    components = _components(table, columns, strict, level, sign)
    nothing = Estimate(measure="micro_average", value=None, status="insufficient_data")
    return PanelResult(
        panel=table.panel,
        model=table.panel.model.label,
        signature=sign.signature,
        items=len(table.items),
        counts=_counts(table, range(len(table.recipes))),
        baseline=sign(accuracy(values[:, 0], level=level), recipe="baseline"),
        baseline_valid=sign(accuracy(valid[:, 0], level=level), recipe="baseline", rule="valid"),
        recipes=results,
        groups=tuple(
            GroupResult(
                group=group,
                recipes=tuple(table.recipes[n].label for n in members),
                drop=sign(group_average(drops[:, members], level=level), group=group),
            )
            for group, members in by_group.items()
        ),
        micro=sign(micro_average(drops[:, columns], level=level)) if columns else nothing,
        macro=sign(
            macro_average(drops[:, columns], [table.recipes[n].group for n in columns], level=level)
        )
        if columns
        else replace(nothing, measure="macro_average"),
        noise_floor=_noise(table, valid, level, sign),
        brittleness=components["plugin"]["brittleness"],
        components=components,
        examples=examples(table, store, run, scorers[table.panel.scorer], columns),
        served_by=table.served_by,
        failures=table.failures,
        notes=_notes(table, run, values[:, 0]),
    )


class _Signer:
    """Stamps every estimate of a panel with what it is about and how it came to be."""

    def __init__(self, table: Table, run: Run) -> None:
        panel, settings = table.panel, run.experiment
        self.seed = run.seed
        self.about = {"task": panel.task, "model": panel.model.label}
        self.signature = " | ".join(
            (
                f"falter {run.version}",
                f"{panel.task}@{short(panel.revision, 8)}",
                panel.model.label + (f"@{short(panel.model.id, 8)}"),
                panel.scorer,
                f"items {len(table.items)}",
                f"recipes {len(run.recipes)}",
                f"draws {run.draws}",
                f"repeats {run.repeats}",
                f"unparsed {settings['unparsed']}",
                f"level {settings['level']:g}",
                f"seed {run.seed}",
            )
        )

    def __call__(self, estimate: Estimate, **group: str) -> Estimate:
        return replace(
            estimate, group={**self.about, **group}, seed=self.seed, signature=self.signature
        )


def _drops(values: Floats, changed: NDArray[np.bool_]) -> Floats:
    """Baseline minus condition where the prompt really changed, NaN elsewhere."""
    drops: Floats = np.where(changed, values[:, :1] - values, np.nan)
    return drops


def _recipes(
    table: Table, columns: Sequence[int], values: Floats, valid: Floats, level: float, sign: _Signer
) -> tuple[RecipeResult, ...]:
    changed = table.changed()
    carried = table.carry(values)
    results = []
    for n in columns:
        recipe = table.recipes[n]
        seen = np.where(changed[:, n], values[:, n], np.nan)
        clear = np.where(changed[:, n], valid[:, n], np.nan)
        before, after = values[:, 0], seen
        about = {"recipe": recipe.label}
        results.append(
            RecipeResult(
                label=recipe.label,
                group=recipe.group,
                accuracy=sign(accuracy(seen, level=level), **about),
                drop=sign(accuracy_drop(before, seen, level=level), **about),
                drop_valid=sign(
                    accuracy_drop(valid[:, 0], clear, level=level), **about, rule="valid"
                ),
                drop_all=sign(
                    accuracy_drop(before, carried[:, n], level=level), **about, rule="all items"
                ),
                p_holm=None,
                lost=int(np.sum(before - after > 0.5)),
                gained=int(np.sum(after - before > 0.5)),
                edits_mean=_edits(table, n),
                counts=_counts(table, [n]),
            )
        )
    adjusted = holm([r.drop.p_value for r in results])
    return tuple(replace(r, p_holm=p) for r, p in zip(results, adjusted, strict=True))


def _edits(table: Table, column: int) -> float | None:
    real = table.status[:, column] == STATUSES.index("changed")
    return float(table.edits[:, column][real].mean()) if real.any() else None


def _components(
    table: Table, columns: Sequence[int], strict: bool, level: float, sign: _Signer
) -> dict[str, dict[str, Estimate]]:
    """Over the baseline and every recipe that perturbs; idle cells carry the baseline's outcome."""
    cube = table.cube([0, *columns], strict=strict)
    out: dict[str, dict[str, Estimate]] = {}
    for method in ("plugin", "crossed"):
        found: Any = variance_components(cube, method, level=level)
        out[method] = {
            field.name: sign(getattr(found, field.name), method=method) for field in fields(found)
        }
    return out


def _noise(table: Table, values: Floats, level: float, sign: _Signer) -> Estimate | None:
    """From the identity condition, else from the baseline's own repeats."""
    again = next((n for n, r in enumerate(table.recipes) if r.repeat and not r.perturbs), None)
    if again is not None:
        return sign(noise_floor(values[:, 0], values[:, again], level=level), recipe="identity")
    if table.repeats > 1:
        first, second = table.value[:, 0, 0], table.value[:, 0, 1]
        return sign(noise_floor(first, second, level=level), recipe="baseline repeated")
    return None


def _counts(table: Table, columns: Sequence[int] | range) -> Counts:
    planned = table.seen[:, list(columns)]
    outcome = table.outcome[:, list(columns)][planned]
    status = table.status[:, list(columns)][planned]
    by_outcome = [int((outcome == n).sum()) for n in range(len(OUTCOMES))]
    by_status = [int((status == n).sum()) for n in range(len(STATUSES))]
    return Counts(
        cells=int(planned.sum()),
        **dict(zip(OUTCOMES, by_outcome, strict=True)),
        **dict(zip(STATUSES[1:], by_status[1:], strict=True)),
    )


def _notes(table: Table, run: Run, baseline: Floats) -> tuple[str, ...]:
    notes = []
    present = baseline[~np.isnan(baseline)]
    if table.chance is not None and len(present):
        low = accuracy(present).low
        if low is not None and low <= table.chance:
            notes.append(
                f"The baseline is not above chance level ({100 * table.chance:.0f} %): drops from "
                "it say little about robustness."
            )
    if run.repeats == 1:
        notes.append(
            "Every request was asked once, so variance between runs is not identified; it is "
            "part of the perturbation (plug-in) and interaction (crossed) components."
        )
    moved = [bool(column.any()) for column in table.changed().T]
    idle = [r.label for n, r in enumerate(table.recipes) if r.perturbs and not moved[n]]
    if idle:
        notes.append(f"Changed no item: {', '.join(idle)}.")
    if len(table.served_by) > 1:
        notes.append(
            f"Answers came from {len(table.served_by)} different servers or model versions: "
            f"{', '.join(table.served_by[:5])}."
        )
    return tuple(notes)
