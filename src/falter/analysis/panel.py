"""Results of one panel's table: drops, averages and variance components with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.keeping import keeping_of
from falter.analysis.notes import MAX_UNREAD_SHARE, at_chance, notes_of_panel
from falter.analysis.results import (
    AskedRecipe,
    Counts,
    GroupResult,
    NotAsked,
    PanelResult,
    RecipeResult,
    Settings,
    map_estimates,
)
from falter.analysis.table import (
    CHANGED,
    MISSING,
    OUTCOMES,
    SAME_PROMPT,
    SCORED,
    STATUSES,
    TIERS,
    TRUNCATED,
    UNPARSED,
    Table,
)
from falter.measures.averages import (
    drop_quantile,
    family_mean,
    group_average,
    macro_average,
    micro_average,
    random_conditions_average,
)
from falter.measures.drops import accuracy, accuracy_drop
from falter.measures.estimates import of_result
from falter.measures.flips import FlipRate, flip_rate, noise_floor, turn_threshold
from falter.measures.missing import MissingBounds, missing_bounds, missingness
from falter.measures.variance import PromptShare, prompt_share, variance_components
from falter.measures.verdicts import FamilyVerdicts, RecipeVerdict, recipe_verdicts
from falter.records.figures import Verdict
from falter.records.ids import short
from falter.records.types import Estimate
from falter.stats.layout import planned_half_widths
from falter.stats.multiplicity import average_level, panel_p, recipe_level
from falter.stats.subsample import SampleEstimate, masked_brittleness, masked_drop

Floats = NDArray[np.float64]
NO_BASELINE = "none: no condition is named as the baseline"


class Signer:
    """Function object that adds provenance to a panel's estimates: subject, seed and signature."""

    def __init__(self, table: Table, settings: Settings) -> None:
        panel = table.panel
        self.seed = settings.seed
        self.about = {"task": panel.task, "model": panel.model.label}
        self.signature = " | ".join(
            (
                f"falter {settings.version}",
                f"{panel.task}@{short(panel.revision, 8)}",
                panel.model.label + (f"@{short(panel.model.id, 8)}"),
                panel.scorer + (f" + {settings.reader}" if settings.reader else ""),
                f"items {len(table.items)}",
                f"recipes {len(table.recipes)}",
                f"draws {table.draws}",
                f"repeats {table.repeats}",
                *_plan_share(table),
                f"unparsed {settings.unparsed}",
                f"level {settings.level:g}",
                f"seed {settings.seed}",
            )
        )

    def __call__(self, estimate: Estimate, **group: str) -> Estimate:
        return replace(
            estimate, group={**self.about, **group}, seed=self.seed, signature=self.signature
        )


def _plan_share(table: Table) -> tuple[str, ...]:
    """Return the part of the plan that a budget left, in words."""
    layout = table.layout
    return () if layout is None else (f"asked {layout['requests']} of {layout['of']} cells",)


def panel_of(table: Table, settings: Settings) -> PanelResult:
    """Return the results of one table, without examples and parts.

    If responses arrived but none was scored, unparsed answers are excluded: nothing is estimated.
    """
    if _outcome_counts(table, range(len(table.recipes))).hold_no_answer:
        settings = replace(settings, unparsed="excluded")
    return _PanelAnalysis(table, settings).result()


def family_of(table: Table, settings: Settings) -> FamilyVerdicts | None:
    """Return the verdicts on all recipes of a table; None without a baseline or a recipe."""
    if not table.has_baseline or not table.distinct:
        return None
    values = table.matrix(strict=settings.strict)
    return recipe_verdicts(
        values[:, 0],
        np.where(table.changed(), values, np.nan)[:, table.distinct],
        names=[table.recipes[n].label for n in table.distinct],
        clusters=table.clusters,
        margin=settings.margin,
        **settings.bootstrap,
    )


def recipes_with_other_verdict(
    one: FamilyVerdicts | None, other: FamilyVerdicts | None, *, fewer: bool = False
) -> tuple[str, ...]:
    """Return the recipes whose verdicts differ between two families; none if a family is None.

    If `other` has `fewer` answers, an undecided verdict there counts as equal if its interval
    contains the drop of `one`.
    """
    if one is None or other is None:
        return ()
    pairs = zip(one.recipes, other.recipes, strict=True)
    return tuple(
        a.name
        for a, b in pairs
        if a.verdict != b.verdict
        and not (fewer and b.verdict == "undecided" and _drops_agree(a, b))
    )


def _drops_agree(one: RecipeVerdict, other: RecipeVerdict) -> bool:
    """Return True if the other drop's interval contains this drop."""
    value, low, high = one.together.value, other.together.low, other.together.high
    return value is not None and low is not None and high is not None and low <= value <= high


def _without_number(estimate: Estimate) -> Estimate:
    """Return the estimate without its number, because too many requests failed."""
    return replace(
        estimate, value=None, low=None, high=None, p_value=None, status="insufficient_data",
        method="none: too many requests failed",
    )  # fmt: skip


class _PanelAnalysis:
    """Computation of one panel's results from its table."""

    def __init__(self, table: Table, settings: Settings) -> None:
        self.table, self.settings, self.level = table, settings, settings.level
        self.sign = Signer(table, settings)
        self.values = table.matrix(strict=settings.strict)
        self.valid = table.matrix(strict=False)
        self.changed = table.changed()
        self.columns = table.distinct
        self.counts = _outcome_counts(table, range(len(table.recipes)))
        self.options: dict[str, Any] = {"clusters": table.clusters, "level": settings.level}
        identity = self._identity_column()
        moves = () if identity is None else self.values[:, identity] - self.values[:, 0]
        self.threshold = turn_threshold(self.values, moves)

    def result(self) -> PanelResult:
        table, components = self.table, self._components()
        family = family_of(table, self.settings)
        flips, averages = self._flips(), self._averages()
        recipes = self._results(family, () if flips is None else flips.conditions)
        result = PanelResult(
            panel=table.panel,
            model=table.panel.model.label,
            signature=self.sign.signature,
            items=len(table.items),
            counts=self.counts,
            baseline_counts=_outcome_counts(table, (0,)) if table.has_baseline else None,
            baseline=self._baseline(self.values),
            baseline_valid=self._baseline(self.valid, rule="valid"),
            recipes=recipes,
            **averages,
            noise_floor=self._noise_floor(),
            brittleness=components["plugin"]["brittleness"],
            prompt_share=self._prompt_share(),
            flips=flips,
            worst=None
            if family is None or family.worst_name is None
            else self.sign(family.worst, recipe=family.worst_name),
            margin=self.settings.margin,
            components=components,
            served_by=table.served_by,
            failures=table.failures,
            notes=notes_of_panel(table, self.values, recipes, self.settings),
            subjects=self._subject_average(),
            at_chance=at_chance(table, self.values),
            not_asked=not_asked(table, self.settings, self.sign),
            threshold=self.threshold,
            p_any=self._p_any(recipes, averages["micro"]),
            stated=recipes_with_other_verdict(
                family, self._verdicts_without_inferred(), fewer=True
            ),
            read=recipes_with_other_verdict(
                family, self._verdicts_by_other_rule(), fewer=self.settings.strict
            ),
            quantile=self._quantile(recipes),
            keeping=keeping_of(table, self.level, self.settings.lines),
        )
        return map_estimates(result, _without_number) if self.counts.mostly_failed else result

    def _quantile(self, recipes: Sequence[RecipeResult]) -> Estimate | None:
        """Return the drop that nine of ten prompts do not exceed; None without an upper limit."""
        found = drop_quantile([recipe.drop.value for recipe in recipes], level=self.level)
        return None if found.high is None else self.sign(found)

    def _p_any(self, recipes: Sequence[RecipeResult], average: Estimate) -> float | None:
        """Return the p-value of any change in the panel; None if too many requests failed.

        If missing answers matter, only decided recipes count, and the average does not.
        """
        if self.counts.mostly_failed:
            return None
        if any(recipe.bounds for recipe in recipes):
            kept = [r for r in recipes if r.verdict in ("degraded", "improved")]
            return panel_p([r.together.p_value for r in kept], None)
        return panel_p([recipe.together.p_value for recipe in recipes], average.p_value)

    def _verdicts_without_inferred(self) -> FamilyVerdicts | None:
        """Return the verdicts without inferred answers; None if there are none, or too many."""
        tier = self.table.tier
        inferred = None if tier is None else tier == TIERS.index("inferred")
        if inferred is None or not inferred.any():
            return None
        if 2 * self.counts.inferred > self.counts.answers:
            return None  # too few stated answers are left to contradict
        value = np.where(inferred, np.nan, self.table.value)
        outcome = np.where(inferred, np.uint8(MISSING), self.table.outcome)
        return family_of(replace(self.table, value=value, outcome=outcome), self.settings)

    def _verdicts_by_other_rule(self) -> FamilyVerdicts | None:
        """Return the verdicts under the other rule for unparsed and truncated answers; None if few.

        Refusals follow the run's rule in both families.
        """
        table = self.table
        if self.counts.unreadable <= MAX_UNREAD_SHARE * self.counts.answers:
            return None
        unreadable = np.isin(table.outcome, (UNPARSED, TRUNCATED))
        value, code = (np.nan, MISSING) if self.settings.strict else (0.0, SCORED)
        outcome = np.where(unreadable, np.uint8(code), table.outcome)
        values = np.where(unreadable, value, table.value)
        return family_of(replace(table, value=values, outcome=outcome), self.settings)

    def _subject_average(self) -> Estimate | None:
        """Return the baseline's mean over subjects with equal weights, if subjects share items."""
        families = self.table.families
        if not self.table.has_baseline or families is None:
            return None
        if not 1 < len(set(families)) < len(self.table.items):
            return None
        mean = family_mean(self.values[:, 0], families, **self.options)
        return self.sign(mean, recipe="baseline", **mean.group)

    def _accuracy(self, scores: Floats) -> Estimate:
        return accuracy(scores, **self.options)

    def _drop(self, before: Floats, after: Floats) -> Estimate:
        if not self.table.has_baseline:
            return self._without_baseline("accuracy_drop")
        return accuracy_drop(before, after, **self.options)

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

    def _results(
        self, family: FamilyVerdicts | None, flips: Sequence[Estimate]
    ) -> tuple[RecipeResult, ...]:
        """Return the results of all recipes; `flips` has a share for each, or is empty."""
        carried = self.table.carry(self.values)
        verdicts = [None] * len(self.columns) if family is None else list(family.recipes)
        rates: Sequence[Estimate | None] = flips or [None] * len(self.columns)
        return tuple(
            replace(self._result_of(n, verdict, carried), flips=rate)
            for n, verdict, rate in zip(self.columns, verdicts, rates, strict=True)
        )

    def _result_of(self, n: int, verdict: RecipeVerdict | None, carried: Floats) -> RecipeResult:
        recipe, has_baseline = self.table.recipes[n], self.table.has_baseline
        changed = self.changed[:, n]
        # A drop is over the items that the recipe changed: the others would dilute it.
        after = np.where(changed, self.values[:, n], np.nan)
        after_valid = np.where(changed, self.valid[:, n], np.nan)
        before, about = self.values[:, 0], {"recipe": recipe.label}
        edited = np.isin(self.table.status[:, n], (CHANGED, SAME_PROMPT))
        edits = None if self.table.edits is None else self.table.edits[:, n][edited]
        missing = self._worst_cases(before, after, changed)
        return RecipeResult(
            label=recipe.label,
            group=recipe.group,
            accuracy=self.sign(self._accuracy(after), **about),
            drop=self.sign(verdict.drop if verdict else self._drop(before, after), **about),
            together=self.sign(
                verdict.together if verdict else self._without_baseline("recipe_verdicts"), **about
            ),
            **self._verdict(verdict, missing),
            drop_valid=self.sign(self._drop(self.valid[:, 0], after_valid), **about, rule="valid"),
            drop_all=self.sign(self._drop(before, carried[:, n]), **about, rule="all items"),
            changed=int(changed.sum()),
            **missing,
            lost=int(np.sum(before - after > self.threshold)) if has_baseline else None,
            gained=int(np.sum(after - before > self.threshold)) if has_baseline else None,
            edits_mean=None if edits is None or not len(edits) else float(edits.mean()),
            counts=_outcome_counts(self.table, [n]),
            everyday=self.settings.everyday(recipe),
            same=tuple(
                self.table.recipes[b].label for b, a in self.table.doubles.items() if a == n
            ),
        )

    def _verdict(self, verdict: RecipeVerdict | None, missing: Mapping[str, Any]) -> dict[str, Any]:
        """Return the verdict as fields of `RecipeResult`.

        It is undecided if missing answers could change it, or if too many requests failed.
        """
        if verdict is None:
            return {"verdict": "undecided", "why_undecided": NO_BASELINE}
        word, why, bounds = verdict.verdict, verdict.why, missing.get("bounds")
        if bounds is not None and not _verdict_stands(word, bounds, self.settings.margin):
            word, why = "undecided", "the missing answers could change the verdict"
        if self.counts.mostly_failed:
            return {"verdict": "undecided", "why_undecided": "too many requests failed"}
        return {"verdict": word, "why_undecided": why, "p_equivalent": verdict.p_equivalent}

    def _worst_cases(
        self, before: Floats, after: Floats, changed: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """Return a drop's worst cases and the reasons; empty if too little is missing to matter."""
        if not self.table.has_baseline or not changed.any():
            return {}
        scores = self.values[~np.isnan(self.values)]
        planned: dict[str, Any] = {"planned": changed, **self.options}
        missing = missingness(before, after, **planned)
        if not missing.suspicious or not len(scores):
            return {}
        low, high = min(0.0, float(scores.min())), max(1.0, float(scores.max()))
        # Bonferroni over the panel's recipes: the family's other intervals are simultaneous too.
        planned["level"] = 1.0 - (1.0 - recipe_level(self.level)) / len(self.columns)
        bounds = missing_bounds(before, after, lowest=low, highest=high, **planned)
        return {"missing": missing.reasons, "bounds": bounds}

    def _flips(self) -> FlipRate | None:
        """Return the share of outcomes that change with the prompt, and when it is repeated."""
        table = self.table
        if not table.has_baseline or not self.columns:
            return None
        scores = table.scores(strict=self.settings.strict)
        identity = self._identity_column()
        rates = flip_rate(
            scores[:, 0, : table.repeats],
            scores[:, self.columns],
            changed=self.changed[:, self.columns],
            again=None if identity is None else scores[:, identity, : table.repeats],
            **self.options,
        )
        labels = [table.recipes[n].label for n in self.columns]
        conditions = tuple(
            self.sign(rate, recipe=label)
            for label, rate in zip(labels, rates.conditions, strict=True)
        )
        return replace(map_estimates(rates, self.sign), conditions=conditions)

    def _prompt_share(self) -> PromptShare:
        """Return the prompt's share of the variance; the baseline replaces unchanged cells."""
        table = self.table.once()  # two cells of one prompt are no pair of prompts
        scores = table.carry(table.scores(strict=self.settings.strict))
        baseline = [0] if table.has_baseline else []
        identity = self._identity_column()
        again = None
        if identity is not None and table.repeats == 1:
            again = scores[:, [0, identity], 0]
        share = prompt_share(
            scores[:, [*baseline, *self.columns]],
            repeats=table.repeats,
            again=again,
            idle=self._unchanged_cells([*baseline, *self.columns]),
            **self.options,
        )
        return map_estimates(share, self.sign)

    def _unchanged_cells(self, columns: Sequence[int]) -> NDArray[np.bool_] | None:
        """Return a mask (items, columns), True for planned cells where nothing was changed."""
        if not self.table.has_baseline:
            return None
        planned = self.table.in_plan.any(axis=2)
        idle: NDArray[np.bool_] = (~self.changed & planned)[:, list(columns)]
        idle[:, 0] = False
        return idle

    def _identity_column(self) -> int | None:
        """Return the column of the recipe that repeats the baseline's prompt, or None."""
        recipes = enumerate(self.table.recipes)
        return next((n for n, r in recipes if r.repeat and not r.perturbs), None)

    def _averages(self) -> dict[str, Any]:
        """Return the average drops as fields of `PanelResult`: micro, macro, like these, groups."""
        labels = [self.table.recipes[n].group for n in self.columns]
        members = {g: [n for n in self.columns if self.table.recipes[n].group == g] for g in labels}
        if not self.columns or not self.table.has_baseline:
            return {
                "micro": self._absent_average("micro_average"),
                "macro": self._absent_average("macro_average"),
                "like_these": self._absent_average("random_conditions_average"),
                "groups": tuple(
                    self._group_result(g, columns, self._absent_average("group_average"))
                    for g, columns in members.items()
                ),
            }
        drops: Floats = np.where(self.changed, self.values[:, :1] - self.values, np.nan)
        options: dict[str, Any] = {"baseline": self.values[:, 0], **self.options}
        like_these = random_conditions_average(drops[:, self.columns], **options)
        # The average is a member of the panel's family: it has a fifth of the error rate. Group
        # averages decide nothing. They use its level, so that the page has one interval for each.
        options["level"] = average_level(self.level)
        return {
            "like_these": self.sign(like_these),
            "micro": self.sign(micro_average(drops[:, self.columns], **options)),
            "macro": self.sign(macro_average(drops[:, self.columns], labels, **options)),
            "groups": tuple(
                self._group_result(g, columns, group_average(drops[:, columns], **options))
                for g, columns in members.items()
            ),
        }

    def _absent_average(self, measure: str) -> Estimate:
        """Return the estimate of an average that has no recipe or no baseline."""
        if self.table.has_baseline:
            return Estimate(measure=measure, value=None, status="insufficient_data")
        return self.sign(self._without_baseline(measure))

    def _group_result(self, group: str, columns: Sequence[int], drop: Estimate) -> GroupResult:
        return GroupResult(
            group=group,
            recipes=tuple(self.table.recipes[n].label for n in columns),
            drop=self.sign(drop, group=group),
        )

    def _components(self) -> dict[str, dict[str, Estimate]]:
        """Return variance components by method and name.

        Conditions are the baseline and all perturbing recipes. Unchanged cells have the baseline's
        scores.
        """
        baseline = [0] if self.table.has_baseline else []
        by_method: dict[str, dict[str, Estimate]] = {}
        for method in ("plugin", "crossed"):
            table = self.table if method == "plugin" else self.table.once()
            components: Any = variance_components(
                table.cube([*baseline, *self.columns], strict=self.settings.strict),
                method,
                draws=self.table.draws,
                **self.options,
            )
            by_method[method] = {
                field.name: self.sign(getattr(components, field.name), method=method)
                for field in fields(components)
            }
        return by_method

    def _noise_floor(self) -> Estimate | None:
        """Return the noise floor: from the identity recipe, otherwise from the baseline's repeats.

        None if the baseline was sent once.
        """
        table, values = self.table, self.values
        if not table.has_baseline:
            return None
        identity = self._identity_column()
        if identity is not None:
            floor = noise_floor(values[:, 0], values[:, identity], **self.options)
            return self.sign(floor, recipe=table.recipes[identity].label)
        if table.repeats > 1 and table.in_plan[:, 0, 1].any():
            scores = table.scores(strict=self.settings.strict)
            floor = noise_floor(scores[:, 0, : table.repeats], **self.options)
            return self.sign(floor, recipe="baseline repeated")
        return None


def _verdict_stands(verdict: Verdict, bounds: MissingBounds, margin: float) -> bool:
    """Return True if a verdict holds for any value of the missing answers."""
    low, high = bounds.low.low, bounds.high.high
    if low is None or high is None:
        return verdict == "undecided"
    holds = {
        "degraded": low > 0,
        "improved": high < 0,
        "equivalent": -margin < low <= high < margin,
    }
    return holds.get(verdict, True)


def _outcome_counts(table: Table, columns: Sequence[int] | range) -> Counts:
    planned = table.in_plan[:, list(columns)]
    outcome = table.outcome[:, list(columns)][planned]
    status = table.status[:, list(columns)][planned]
    by_outcome = [int((outcome == n).sum()) for n in range(len(OUTCOMES))]
    inferred = 0
    if table.tier is not None:
        tier = table.tier[:, list(columns)][planned]
        inferred = int((tier == TIERS.index("inferred")).sum())
    by_status = [int((status == n).sum()) for n in range(len(STATUSES))]
    return Counts(
        cells=int(planned.sum()),
        inferred=inferred,
        empty=0 if table.empty is None else int(table.empty[:, list(columns)][planned].sum()),
        **dict(zip(OUTCOMES, by_outcome, strict=True)),
        **dict(zip(STATUSES[1:], by_status[1:], strict=True)),
    )


# Cells that a budget left out, and estimates for all cells.


def not_asked(table: Table, settings: Settings, sign: Callable[..., Estimate]) -> NotAsked | None:
    """Return the cells that a budget left out, and estimates for exactly the items of the task.

    None without a budget, or if no cell was left out. The estimates follow from the design: the
    seed chose the sent cells at random. So they estimate the whole table, and their intervals
    include the chance of that choice. Where a recipe did not change a prompt, the clean prompt's
    outcome is used.
    """
    layout = table.layout
    if layout is None or layout["requests"] >= layout["of"] or not table.columns:
        return None
    population, columns = int(layout["items"]), [0, *table.columns]
    values = table.carry(table.matrix(strict=settings.strict))[:, columns]
    options: dict[str, Any] = {"population": population, "level": settings.level}
    asked: NDArray[np.bool_] = np.asarray(table.in_plan.any(axis=2))
    per_item = asked[:, table.columns].sum(axis=1)
    fewest = int(per_item.min(initial=len(table.columns)))

    def estimate(measure: str, sample: SampleEstimate, conditions: int, **group: str) -> Estimate:
        return sign(of_result(measure, sample, conditions=conditions), **group)

    def asked_recipe(place: int, column: int) -> AskedRecipe:
        label, count = table.recipes[column].label, int(asked[:, column].sum())
        drop = masked_drop(values[:, [0, place]], 0, **options)
        return AskedRecipe(
            label=label,
            asked=count,
            not_asked=population - count,
            drop=estimate("masked.drop", drop, 1, recipe=label),
        )

    return NotAsked(
        items=population,
        items_asked=len(table.items),
        cells=table.planned,
        of=int(layout["of"]),
        per_item=(fewest, int(per_item.max(initial=0))),
        brittleness=estimate(
            "masked.brittleness", masked_brittleness(values, baseline=0, **options), len(columns)
        ),
        average=estimate("masked.drop", masked_drop(values, 0, **options), len(columns) - 1),
        recipes=tuple(asked_recipe(n, column) for n, column in enumerate(table.columns, start=1)),
        promised=planned_half_widths(
            items=len(table.items),
            population=population,
            conditions=len(columns),
            per_item=max(1, fewest),
            level=settings.level,
        ),
    )
