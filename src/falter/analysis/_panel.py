"""One table to its results: drops, averages, variance components, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis._results import Counts, GroupResult, PanelResult, RecipeResult
from falter.analysis._settings import Settings
from falter.analysis._subjects import has_subjects, subject_mean
from falter.analysis._table import OUTCOMES, STATUSES, Table
from falter.core.ids import short
from falter.core.records import Estimate
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

__all__ = ["Signer", "panel_of"]

Floats = NDArray[np.float64]
NO_BASELINE = "none: no condition is named as the baseline"


class Signer:
    """Stamps every estimate of a panel with what it is about and how it came to be."""

    def __init__(self, table: Table, settings: Settings) -> None:
        panel = table.panel
        self.seed = settings.seed
        self.about = {"task": panel.task, "model": panel.model.label}
        self.signature = " | ".join(
            (
                f"falter {settings.version}",
                f"{panel.task}@{short(panel.revision, 8)}",
                panel.model.label + (f"@{short(panel.model.id, 8)}"),
                panel.scorer,
                f"items {len(table.items)}",
                f"recipes {len(table.recipes)}",
                f"draws {table.draws}",
                f"repeats {table.repeats}",
                f"unparsed {settings.unparsed}",
                f"level {settings.level:g}",
                f"seed {settings.seed}",
            )
        )

    def __call__(self, estimate: Estimate, **group: str) -> Estimate:
        return replace(
            estimate, group={**self.about, **group}, seed=self.seed, signature=self.signature
        )


def panel_of(table: Table, settings: Settings) -> PanelResult:
    """Everything that a table says by itself. Examples are added by whoever has the prompts."""
    return _Panel(table, settings).result()


class _Panel:
    """A table with what all of its numbers share."""

    def __init__(self, table: Table, settings: Settings) -> None:
        self.table, self.settings, self.level = table, settings, settings.level
        self.sign = Signer(table, settings)
        self.values = table.matrix(strict=settings.strict)
        self.valid = table.matrix(strict=False)
        self.changed = table.changed()
        self.columns = table.columns

    def result(self) -> PanelResult:
        table, components = self.table, self._components()
        return PanelResult(
            panel=table.panel,
            model=table.panel.model.label,
            signature=self.sign.signature,
            items=len(table.items),
            counts=_counts(table, range(len(table.recipes))),
            baseline=self._baseline(self.values),
            baseline_valid=self._baseline(self.valid, rule="valid"),
            recipes=self._recipes(),
            **self._averages(),
            noise_floor=self._noise(),
            brittleness=components["plugin"]["brittleness"],
            components=components,
            served_by=table.served_by,
            failures=table.failures,
            notes=_notes(table, self.values),
            subjects=self._subjects(),
        )

    def _subjects(self) -> Estimate | None:
        """The baseline's mean over subjects, where items have them."""
        if not self.table.based or not has_subjects(self.table):
            return None
        found = subject_mean(self.table, strict=self.settings.strict, level=self.level)
        return self.sign(found, recipe="baseline", **found.group)

    def _accuracy(self, scores: Floats) -> Estimate:
        return accuracy(scores, clusters=self.table.clusters, level=self.level)

    def _drop(self, before: Floats, after: Floats) -> Estimate:
        if not self.table.based:
            return self._none("accuracy_drop")
        return accuracy_drop(before, after, clusters=self.table.clusters, level=self.level)

    def _none(self, measure: str) -> Estimate:
        return Estimate(
            measure=measure,
            value=None,
            status="not_identified",
            level=self.level,
            method=NO_BASELINE,
            items=len(self.table.items),
        )

    def _baseline(self, values: Floats, **about: str) -> Estimate:
        based = self.table.based
        found = self._accuracy(values[:, 0]) if based else self._none("accuracy")
        return self.sign(found, recipe="baseline", **about)

    def _recipes(self) -> tuple[RecipeResult, ...]:
        carried = self.table.carry(self.values)
        results = [self._recipe(n, carried) for n in self.columns]
        adjusted = holm([r.drop.p_value for r in results])
        return tuple(replace(r, p_holm=p) for r, p in zip(results, adjusted, strict=True))

    def _recipe(self, n: int, carried: Floats) -> RecipeResult:
        recipe, based = self.table.recipes[n], self.table.based
        changed = self.changed[:, n]
        seen = np.where(changed, self.values[:, n], np.nan)
        clear = np.where(changed, self.valid[:, n], np.nan)
        before, about = self.values[:, 0], {"recipe": recipe.label}
        return RecipeResult(
            label=recipe.label,
            group=recipe.group,
            accuracy=self.sign(self._accuracy(seen), **about),
            drop=self.sign(self._drop(before, seen), **about),
            drop_valid=self.sign(self._drop(self.valid[:, 0], clear), **about, rule="valid"),
            drop_all=self.sign(self._drop(before, carried[:, n]), **about, rule="all items"),
            p_holm=None,
            lost=int(np.sum(before - seen > 0.5)) if based else None,
            gained=int(np.sum(seen - before > 0.5)) if based else None,
            edits_mean=_edits(self.table, n),
            counts=_counts(self.table, [n]),
        )

    def _averages(self) -> dict[str, Any]:
        """The micro-average, the macro-average, and those of the groups."""
        labels = [self.table.recipes[n].group for n in self.columns]
        members = {g: [n for n in self.columns if self.table.recipes[n].group == g] for g in labels}
        if not self.columns or not self.table.based:
            none = {name: self.sign(self._none(f"{name}_average"))
                    for name in ("micro", "macro", "group")}  # fmt: skip
            if self.table.based:
                none = {name: Estimate(measure=e.measure, value=None, status="insufficient_data")
                        for name, e in none.items()}  # fmt: skip
            groups = [self._group(g, own, none["group"]) for g, own in members.items()]
            return {"micro": none["micro"], "macro": none["macro"], "groups": tuple(groups)}
        drops: Floats = np.where(self.changed, self.values[:, :1] - self.values, np.nan)
        given: dict[str, Any] = {"clusters": self.table.clusters, "level": self.level}
        return {
            "micro": self.sign(micro_average(drops[:, self.columns], **given)),
            "macro": self.sign(macro_average(drops[:, self.columns], labels, **given)),
            "groups": tuple(
                self._group(g, own, group_average(drops[:, own], **given))
                for g, own in members.items()
            ),
        }

    def _group(self, group: str, columns: Sequence[int], drop: Estimate) -> GroupResult:
        return GroupResult(
            group=group,
            recipes=tuple(self.table.recipes[n].label for n in columns),
            drop=self.sign(drop, group=group),
        )

    def _components(self) -> dict[str, dict[str, Estimate]]:
        """Over the baseline and every recipe that perturbs; idle cells carry the baseline's."""
        first = [0] if self.table.based else []
        cube = self.table.cube([*first, *self.columns], strict=self.settings.strict)
        out: dict[str, dict[str, Estimate]] = {}
        for method in ("plugin", "crossed"):
            found: Any = variance_components(cube, method, level=self.level)
            out[method] = {
                field.name: self.sign(getattr(found, field.name), method=method)
                for field in fields(found)
            }
        return out

    def _noise(self) -> Estimate | None:
        """From the identity condition, else from the baseline's own repeats."""
        table, values = self.table, self.valid
        if not table.based:
            return None
        again = next((n for n, r in enumerate(table.recipes) if r.repeat and not r.perturbs), None)
        if again is not None:
            found = noise_floor(values[:, 0], values[:, again], level=self.level)
            return self.sign(found, recipe="identity")
        if table.repeats > 1 and table.seen[:, 0, 1].any():
            first, second = table.value[:, 0, 0], table.value[:, 0, 1]
            found = noise_floor(first, second, level=self.level)
            return self.sign(found, recipe="baseline repeated")
        return None


def _edits(table: Table, column: int) -> float | None:
    real = table.status[:, column] == STATUSES.index("changed")
    if table.edits is None or not real.any():
        return None
    return float(table.edits[:, column][real].mean())


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


def _notes(table: Table, values: Floats) -> tuple[str, ...]:
    notes = []
    present = values[:, 0][~np.isnan(values[:, 0])]
    if table.based and table.chance is not None and len(present):
        low = accuracy(present).low
        if low is not None and low <= table.chance:
            notes.append(
                f"The baseline is not above chance level ({100 * table.chance:.0f} %): drops from "
                "it say little about robustness."
            )
    if table.repeats == 1:
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
