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
    """Stamps every estimate of a panel with what it is about and how it was made."""

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
    """The results of one table. Examples are added by whoever has the prompts."""
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
            baseline_counts=_counts(table, (0,)) if table.has_baseline else None,
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
        if not self.table.has_baseline or not has_subjects(self.table):
            return None
        mean = subject_mean(self.table, strict=self.settings.strict, level=self.level)
        return self.sign(mean, recipe="baseline", **mean.group)

    def _accuracy(self, scores: Floats) -> Estimate:
        return accuracy(scores, clusters=self.table.clusters, level=self.level)

    def _drop(self, before: Floats, after: Floats) -> Estimate:
        if not self.table.has_baseline:
            return self._without_baseline("accuracy_drop")
        return accuracy_drop(before, after, clusters=self.table.clusters, level=self.level)

    def _without_baseline(self, measure: str) -> Estimate:
        return Estimate(
            measure=measure,
            value=None,
            status="not_identified",
            level=self.level,
            method=NO_BASELINE,
            items=len(self.table.items),
        )

    def _baseline(self, values: Floats, **about: str) -> Estimate:
        if self.table.has_baseline:
            mean = self._accuracy(values[:, 0])
        else:
            mean = self._without_baseline("accuracy")
        return self.sign(mean, recipe="baseline", **about)

    def _recipes(self) -> tuple[RecipeResult, ...]:
        carried = self.table.carry(self.values)
        results = [self._recipe(n, carried) for n in self.columns]
        adjusted = holm([r.drop.p_value for r in results])
        return tuple(replace(r, p_holm=p) for r, p in zip(results, adjusted, strict=True))

    def _recipe(self, n: int, carried: Floats) -> RecipeResult:
        recipe, has_baseline = self.table.recipes[n], self.table.has_baseline
        changed = self.changed[:, n]
        # A drop is over the items that the recipe changed: the others would dilute it.
        after = np.where(changed, self.values[:, n], np.nan)
        after_valid = np.where(changed, self.valid[:, n], np.nan)
        before, about = self.values[:, 0], {"recipe": recipe.label}
        real = self.table.status[:, n] == STATUSES.index("changed")
        edits = None if self.table.edits is None else self.table.edits[:, n][real]
        return RecipeResult(
            label=recipe.label,
            group=recipe.group,
            accuracy=self.sign(self._accuracy(after), **about),
            drop=self.sign(self._drop(before, after), **about),
            drop_valid=self.sign(self._drop(self.valid[:, 0], after_valid), **about, rule="valid"),
            drop_all=self.sign(self._drop(before, carried[:, n]), **about, rule="all items"),
            p_holm=None,
            lost=int(np.sum(before - after > 0.5)) if has_baseline else None,
            gained=int(np.sum(after - before > 0.5)) if has_baseline else None,
            edits_mean=None if edits is None or not len(edits) else float(edits.mean()),
            counts=_counts(self.table, [n]),
        )

    def _averages(self) -> dict[str, Any]:
        """The micro-average, the macro-average, and those of the groups."""
        labels = [self.table.recipes[n].group for n in self.columns]
        members = {g: [n for n in self.columns if self.table.recipes[n].group == g] for g in labels}
        if not self.columns or not self.table.has_baseline:
            absent = {name: self.sign(self._without_baseline(f"{name}_average"))
                      for name in ("micro", "macro", "group")}  # fmt: skip
            if self.table.has_baseline:
                absent = {name: Estimate(measure=e.measure, value=None, status="insufficient_data")
                          for name, e in absent.items()}  # fmt: skip
            groups = [self._group(g, columns, absent["group"]) for g, columns in members.items()]
            return {"micro": absent["micro"], "macro": absent["macro"], "groups": tuple(groups)}
        drops: Floats = np.where(self.changed, self.values[:, :1] - self.values, np.nan)
        options: dict[str, Any] = {"clusters": self.table.clusters, "level": self.level}
        return {
            "micro": self.sign(micro_average(drops[:, self.columns], **options)),
            "macro": self.sign(macro_average(drops[:, self.columns], labels, **options)),
            "groups": tuple(
                self._group(g, columns, group_average(drops[:, columns], **options))
                for g, columns in members.items()
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
        baseline = [0] if self.table.has_baseline else []
        cube = self.table.cube([*baseline, *self.columns], strict=self.settings.strict)
        by_method: dict[str, dict[str, Estimate]] = {}
        for method in ("plugin", "crossed"):
            components: Any = variance_components(cube, method, level=self.level)
            by_method[method] = {
                field.name: self.sign(getattr(components, field.name), method=method)
                for field in fields(components)
            }
        return by_method

    def _noise(self) -> Estimate | None:
        """From the identity condition, else from the baseline's own repeats."""
        table, values = self.table, self.valid
        if not table.has_baseline:
            return None
        recipes = enumerate(table.recipes)
        identity = next((n for n, r in recipes if r.repeat and not r.perturbs), None)
        if identity is not None:
            floor = noise_floor(values[:, 0], values[:, identity], level=self.level)
            return self.sign(floor, recipe=table.recipes[identity].label)
        if table.repeats > 1 and table.in_plan[:, 0, 1].any():
            first, second = table.value[:, 0, 0], table.value[:, 0, 1]
            floor = noise_floor(first, second, level=self.level)
            return self.sign(floor, recipe="baseline repeated")
        return None


def _counts(table: Table, columns: Sequence[int] | range) -> Counts:
    planned = table.in_plan[:, list(columns)]
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
    if table.has_baseline and table.chance is not None and len(present):
        low = accuracy(present).low
        if low is not None and low <= table.chance:
            notes.append(
                f"The baseline cannot be told from chance ({100 * table.chance:.0f} %), so "
                "drops from it say little about robustness."
            )
    if table.repeats == 1:
        notes.append(
            "Every request was asked once, so variance between runs cannot be told apart: it is "
            "part of the perturbation (plug-in) and interaction (crossed) components."
        )
    changed = [bool(column.any()) for column in table.changed().T]
    idle = [r.label for n, r in enumerate(table.recipes) if r.perturbs and not changed[n]]
    if idle:
        notes.append(f"Recipes that changed no item: {', '.join(idle)}.")
    if len(table.served_by) > 1:
        notes.append(
            f"Answers came from {len(table.served_by)} different servers or model versions: "
            f"{', '.join(table.served_by[:5])}."
        )
    return tuple(notes)
