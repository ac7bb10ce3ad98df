"""Analysis of all tables of a run, or of another tool's results: by panel and across panels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cache import Cosine
from falter.analysis.cells import Stack, model_names, stacks
from falter.analysis.drop_parts import Evidence, parts_of, second_reading, tables_with_evidence
from falter.analysis.examples import examples
from falter.analysis.meaning_checks import meaning_of_run
from falter.analysis.notes import MIN_RANKED_MODELS, notes_of
from falter.analysis.panel import panel_of
from falter.analysis.results import (
    MARGIN,
    Across,
    Analysis,
    Consistency,
    RankRange,
    RecipeRanking,
    Settings,
    Survival,
    map_estimates,
)
from falter.analysis.sentences import sentence
from falter.analysis.table import FAILED, MISSING, OUTCOMES, SCORED, UNREADABLE, Table, run_tables
from falter.measures.averages import mean_score
from falter.measures.brittleness import PooledBrittleness, brittleness_by_model, brittleness_by_task
from falter.measures.comparison import Answers, PairComparison, compare_family
from falter.measures.consistency import item_std, output_consistency
from falter.measures.drops import differential_failure, paired_drops
from falter.measures.estimates import of_result
from falter.measures.keeps_and_reads import LINES
from falter.measures.rankings import rank_agreement, rank_sets, ranking_changed, ranking_survival
from falter.records.errors import StoreError, refusal
from falter.records.ids import short
from falter.records.interfaces import ConstrainedScorer, Scorer
from falter.records.types import Estimate, Recipe, Run
from falter.scorers.reading.reading import READER_VERSION
from falter.stats.agreement import kendall_w
from falter.stats.paired import cochran_q
from falter.store.store import Store, StoredRun

Floats = NDArray[np.float64]


def analyse(
    store: Store,
    stored: StoredRun,
    scorers: Mapping[str, Scorer],
    *,
    partial: bool = False,
    encoder: Cosine | None = None,
    tables: Sequence[Table] | None = None,
    evidence: Sequence[Evidence] | None = None,
    everyday: Callable[[Recipe], str] = lambda recipe: "",
    notes: tuple[str, ...] = (),
    reader: str = "",
) -> Analysis:
    """Analyse a stored run without calling a model; an encoder adds cosines of prompts.

    Raise StoreError if responses are missing, unless `partial` is set: cells that were never sent
    would look like a smaller experiment. `tables` and `evidence` are those of the run, if they are
    known. `everyday` returns a recipe's plain name. `notes` and `reader` are fields of `Settings`.
    """
    run = stored.run
    if tables is None:
        tables, evidence = tables_with_evidence(store, run, scorers)
    _require_complete(tables, stored, partial)
    settings = Settings(
        run=run.id,
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
        everyday=everyday,
        notes=notes,
        reader=reader,
        store=store.path,
        # Runs of earlier versions could set a margin in points.
        lines=(
            run.experiment.get("keep_line", 100.0 * LINES[0]) / 100.0,
            run.experiment.get("read_line", 100.0 * LINES[1]) / 100.0,
        ),
        margin=run.experiment.get("decide", 100.0 * MARGIN) / 100.0,
    )
    analysis = analyse_tables(tables, settings)
    if evidence is None:
        evidence = tables_with_evidence(store, run, scorers)[1]
    parts = [
        () if panel.counts.mostly_failed else parts_of(table, beside, settings)
        for panel, table, beside in zip(analysis.panels, tables, evidence, strict=True)
    ]
    second_readings = [
        second_reading(t, beside, settings) for t, beside in zip(tables, evidence, strict=True)
    ]
    return replace(
        analysis,
        panels=tuple(
            replace(
                panel,
                notes=(*_scorer_notes(scorers[table.panel.scorer], run), *panel.notes),
                examples=examples(table, store, run, scorers[table.panel.scorer]),
                parts=split,
                second_reading=second,
            )
            for panel, table, split, second in zip(
                analysis.panels, tables, parts, second_readings, strict=True
            )
        ),
        meaning=meaning_of_run(store, run, tables, encoder),
    )


def _scorer_notes(scorer: Scorer, run: Run) -> Iterator[str]:
    """Yield notes on responses that the server constrained, and on an older answer extraction."""
    if isinstance(scorer, ConstrainedScorer) and scorer.constrains:
        yield sentence("notes.constrained")
    if (
        not scorer.needs_scores
        and (stored := run.experiment.get("reader_version", 1)) != READER_VERSION
    ):
        yield sentence("notes.reader", stored=str(stored), now=str(READER_VERSION))


def analyse_tables(tables: Sequence[Table], settings: Settings) -> Analysis:
    """Analyse tables one by one and across tables, without a store."""
    panels = tuple(panel_of(table, settings) for table in tables)
    usable_tables = [t for t, p in zip(tables, panels, strict=True) if not p.counts.mostly_failed]
    setting_values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    return Analysis(**setting_values, panels=panels, across=across_of(usable_tables, settings))


def _require_complete(tables: Sequence[Table], stored: StoredRun, partial: bool) -> None:
    answered = sum(int((t.outcome != OUTCOMES.index("missing")).sum()) for t in tables)
    planned = sum(t.planned for t in tables)
    planned = max(planned, int(stored.run.origin.get("cells", 0)))  # all, if it was interrupted
    if not any((t.outcome < OUTCOMES.index("failed")).any() for t in tables):
        raise refusal(StoreError, "analysis.no_response", run=short(stored.run.id))
    if not partial and (not stored.planned or answered < planned):
        raise StoreError(
            f"The run {short(stored.run.id)} is not finished: {answered:,} of {planned:,} "
            "responses are stored",
            hint="run the same command again to finish it, or report the responses so far with "
            "--partial",
        )


# Interim drops of a run in progress, computed from the responses stored so far.


REPLICATIONS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSoFar:
    """Interim results of one panel: its counts, and a drop for each recipe.

    The intervals are simultaneous over the panel's recipes, for one interim analysis. Stopping at
    whichever interim analysis looks favourable finds differences that do not exist.
    """

    model: str
    task: str
    planned: int
    answered: int
    failed: int
    drops: tuple[tuple[str, Estimate], ...]


def drops_so_far(store: Store, run: Run, scorers: Mapping[str, Scorer]) -> list[PanelSoFar]:
    """Return every panel of a run with its drops over the items that have both responses."""
    return [_panel_so_far(table, run) for table in run_tables(store, run, scorers)]


def _panel_so_far(table: Table, run: Run) -> PanelSoFar:
    planned = table.outcome[table.in_plan]
    failed = int((planned == FAILED).sum())
    missing = int((planned == MISSING).sum())
    return PanelSoFar(
        model=table.panel.model.label,
        task=table.panel.task,
        planned=table.planned,
        answered=table.planned - failed - missing,
        failed=failed,
        drops=_recipe_drops(table, run),
    )


def _recipe_drops(table: Table, run: Run) -> tuple[tuple[str, Estimate], ...]:
    columns = [0, *table.columns]
    if not table.columns or not len(table.items):
        return ()
    values = table.matrix(strict=run.experiment.get("unparsed") == "wrong")
    values = np.where(table.changed() | (np.arange(values.shape[1]) == 0), values, np.nan)
    drops = paired_drops(
        values[:, columns],
        level=run.experiment.get("level", 0.95),
        replications=REPLICATIONS,
        seed=run.seed,
    )
    labels = [table.recipes[column].label for column in table.columns]
    return tuple(zip(labels, drops, strict=True))


# Effects of the recipes on the ranking of the models.


def ranking_of(by_task: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """Return the fields of `Across` about rankings; none with a single model."""
    compared = [stack for stack in by_task if len(stack.models) > 1]
    if not compared:
        return {}
    results: dict[str, Any] = {
        "ranks": tuple(r for stack in compared for r in _rank_ranges(stack, settings)),
        "concordance": tuple(_concordance(stack) for stack in compared),
        "neighbours": _share_of_differing_neighbours(compared),
    }
    if all(stack.has_baseline for stack in compared):
        results["survival"] = tuple(s for stack in compared for s in _survivals(stack, settings))
        results |= _rankings_over_tasks(compared, settings)
    return results


def _rankings_over_tasks(compared: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """Return `rankings` and `changed`, over the tasks of all models and their common recipes."""
    models = reduce(lambda a, b: a | b, (set(stack.models) for stack in compared))
    complete = [stack for stack in compared if set(stack.models) == models]
    if not complete:
        return {}
    shared = reduce(lambda a, b: a & b, (set(stack.labels) for stack in complete))
    labels = [label for label in complete[0].labels if label in shared]
    if len(labels) < 2:
        return {}
    order = sorted(models)
    outcomes = {
        stack.task: stack.values[:, [stack.models.index(m) for m in order]][
            :, :, [stack.labels.index(label) for label in labels]
        ]
        for stack in complete
    }
    repeated = [complete[0].labels[n] for n in complete[0].repeated]
    repeats = tuple(labels.index(label) for label in repeated if label in labels)
    return {
        "rankings": _recipe_rankings(outcomes, labels, settings)
        if len(order) >= MIN_RANKED_MODELS
        else (),
        "changed": ranking_changed(outcomes, repeats=repeats, **settings.bootstrap),
    }


def _recipe_rankings(
    outcomes: Mapping[str, Floats], labels: Sequence[str], settings: Settings
) -> tuple[RecipeRanking, ...]:
    """Return the rank correlation of every recipe's ranking with the baseline's."""
    ranks = rank_agreement(outcomes, **settings.bootstrap)
    return tuple(
        RecipeRanking(recipe=labels[place], agreement=agreement, noise=noise)
        for place, agreement, noise in zip(
            ranks.conditions, ranks.agreement, ranks.noise, strict=True
        )
    )


def _scores_without_repeats(stack: Stack) -> Floats:
    """Return the scores of a stack without the columns that repeat the baseline."""
    columns = [n for n in range(len(stack.recipes)) if n not in stack.repeated]
    return np.asarray(stack.values[:, :, columns])


def _survivals(stack: Stack, settings: Settings) -> list[Survival]:
    table = _scores_without_repeats(stack)
    if table.shape[2] < 2:
        return []
    result = ranking_survival(table, clusters=stack.clusters, **settings.bootstrap)
    return [
        Survival(
            task=stack.task,
            better=stack.models[pair.better],
            worse=stack.models[pair.worse],
            survival=replace(pair.survival, group={"task": stack.task}),
            tied=pair.tied,
        )
        for pair in result.pairs
    ]


def _rank_ranges(stack: Stack, settings: Settings) -> list[RankRange]:
    """Return the rank ranges of the models by their mean over all conditions.

    Only items count that have all conditions for every model.
    """
    table = _scores_without_repeats(stack)
    means = np.where(np.isnan(table).any(axis=2), np.nan, table.mean(axis=2))
    ranges = []
    for ranks in rank_sets(means, clusters=stack.clusters, **settings.bootstrap):
        subject = {"task": stack.task, "model": stack.models[ranks.model]}
        average = mean_score(table[:, ranks.model], clusters=stack.clusters, level=settings.level)
        mean = replace(
            average,
            measure="capability",
            estimand="mean score over these conditions, items like these",
            group=subject,
        )
        ranges.append(RankRange(**subject, mean=mean, best=ranks.best, worst=ranks.worst))
    return ranges


def _accuracies(stack: Stack) -> Floats:
    """Return accuracies (models, conditions), over the items that every model has there."""
    table = _scores_without_repeats(stack)
    complete = ~np.isnan(table).any(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(complete, table, 0.0).sum(axis=0) / complete.sum(axis=0)
    # Rounded so that two models with the same scores tie, whatever the order of summation.
    return np.asarray(np.round(means, 12))


def _concordance(stack: Stack) -> Estimate:
    """Return Kendall's W: agreement of the conditions' rankings of the models, from 0 to 1."""
    result = kendall_w(_accuracies(stack))
    return of_result(
        "kendall_w",
        result,
        group={"task": stack.task},
        estimand="concordance of these conditions' rankings of these models, these items",
        method=f"none: exact for these rankings; p: Friedman, {result.freedom} degrees of freedom",
        items=len(stack.values),
    )


def _share_of_differing_neighbours(compared: Sequence[Stack]) -> Estimate:
    """Return the share of cells in which models with adjacent ranks differ, averaged over tasks."""
    shares = []
    for stack in compared:
        table = _scores_without_repeats(stack)
        order = np.argsort(-np.nan_to_num(_accuracies(stack).mean(axis=1)), kind="stable")
        gaps = np.abs(np.diff(table[:, order], axis=1))
        both_known = ~np.isnan(gaps)
        if both_known.any():
            shares.append(float((gaps[both_known] > 0.5).mean()))
    return Estimate(
        measure="neighbour_discordance",
        value=float(np.mean(shares)) if shares else None,
        status="ok" if shares else "insufficient_data",
        estimand="share of cells in which models that follow each other in rank differ",
        method="none: a plan needs no interval",
        items=sum(len(stack.values) for stack in compared),
    )


MAX_COMPARED_MODELS = 6  # models of a task: 15 pairs
MIN_INFORMATIVE_CELLS = 24  # informative items times conditions


def across_of(tables: Sequence[Table], settings: Settings) -> Across:
    """Return results across recipes, panels, tasks and models, with notes on missing results."""
    scored_first = [table for table in tables if not table.rescored]
    by_task = stacks(scored_first, strict=settings.strict) if scored_first else ()
    names = model_names(tables)
    views = [_RecipeComparison(table, names[table.panel.model.id], settings) for table in tables]
    across = Across(
        omnibus=tuple(o for view in views for o in view.omnibus()),
        failures=tuple(f for view in views for f in view.failures()),
        consistency=tuple(c for view in views for c in view.consistency()),
        pairs=tuple(_model_pairs(by_task, settings)),
        **_pooled_brittleness(by_task, settings),
        **ranking_of(by_task, settings),
        notes=notes_of(tables, by_task, settings),
    )
    return map_estimates(
        across, lambda e: replace(e, signature=settings.signature, seed=settings.seed)
    )


def _model_pairs(by_task: Sequence[Stack], settings: Settings) -> Iterator[PairComparison]:
    """Yield a comparison of every pair of a task's models, over their common items and recipes."""
    for stack in by_task:
        columns = [n for n, recipe in enumerate(stack.recipes) if recipe.perturbs]
        if (
            not stack.has_baseline
            or not columns
            or not 1 < len(stack.models) <= MAX_COMPARED_MODELS
        ):
            continue
        answers = {
            model: Answers(
                baseline=stack.values[:, n, 0],
                perturbed=stack.values[:, n, columns],
                changed=stack.changed[:, columns],
            )
            for n, model in enumerate(stack.models)
        }
        for pair in compare_family(
            answers,
            clusters=stack.clusters,
            **settings.bootstrap,
        ):
            subject = {"task": stack.task, "model": f"{pair.first} − {pair.second}"}
            yield map_estimates(pair, partial(replace, group=subject))


class _RecipeComparison:
    """Computation of results that compare the recipes of one table."""

    def __init__(self, table: Table, model: str, settings: Settings) -> None:
        self.table, self.settings = table, settings
        self.about: dict[str, Any] = {"model": model, "task": table.panel.task}
        self.options: dict[str, Any] = {"clusters": table.clusters, "level": settings.level}
        self.recipes = [(n, table.recipes[n].label) for n in table.columns]

    @property
    def conditions(self) -> list[int]:
        """Columns of the baseline, if there is one, and of every recipe that perturbs."""
        return [*([0] if self.table.has_baseline else []), *self.table.columns]

    def first_run(self) -> Floats:
        """Return scores of the first realisation, of shape (items, conditions).

        Where nothing was changed, the score is the baseline's.
        """
        table = self.table
        values = table.carry(table.scores(strict=self.settings.strict)[:, :, 0])
        return np.asarray(values[:, self.conditions])

    def omnibus(self) -> list[Estimate]:
        """Return Cochran's Q of 0/1 scores, in a list; empty for other scores or one condition.

        With few informative items the p-value comes from permutations.
        """
        cells = self.first_run()
        if cells.shape[1] < 2 or not np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all():
            return []
        test = cochran_q(cells)
        # Below this number the chi-squared approximation to the distribution of Q is too rough.
        if test.status == "ok" and test.informative * test.conditions < MIN_INFORMATIVE_CELLS:
            test = cochran_q(cells, method="permutation", seed=self.settings.seed)
        q = of_result(
            "cochran_q",
            test,
            group=self.about,
            level=self.settings.level,
            method=f"none: a test; p: {test.method}, {test.freedom} degrees of freedom, "
            f"{test.informative} informative items",
        )
        return [q]

    def failures(self) -> list[Estimate]:
        """Return each recipe's share of unreadable responses minus the baseline's.

        Recipes without unreadable responses on either side are left out.
        """
        table = self.table
        outcome = table.outcome[:, :, 0]
        unread = np.isin(outcome, UNREADABLE)
        flags = np.where(outcome == SCORED, 0.0, np.where(unread, 1.0, np.nan))
        flags[:, 1:] = np.where(table.changed()[:, 1:], flags[:, 1:], np.nan)
        if not table.has_baseline:
            return []
        shifts = []
        for n, label in self.recipes:
            if unread[:, 0].any() or unread[:, n].any():
                shift = differential_failure(flags[:, 0], flags[:, n], **self.options)
                shifts.append(replace(shift, group={**self.about, "recipe": label}))
        return shifts

    def consistency(self) -> list[Consistency]:
        """Return the agreement of answers and scores over conditions, in the first realisation."""
        cells = self.first_run()
        if cells.shape[1] < 2:
            return []
        same = None
        if self.table.output is not None:
            binary = bool(np.isin(cells[~np.isnan(cells)], (0.0, 1.0)).all())
            same = output_consistency(
                self.table.output[:, self.conditions, 0],
                cells if binary else None,
                missing=np.isin(self.table.outcome[:, self.conditions, 0], (FAILED, MISSING)),
                **self.options,
            )
        result = Consistency(
            **self.about,
            conditions=cells.shape[1],
            same=same,
            scores=item_std(cells, **self.options),
        )
        return [map_estimates(result, partial(replace, group=self.about))]


def _pooled_brittleness(by_task: Sequence[Stack], settings: Settings) -> dict[str, Any]:
    """Return pooled brittleness: by model with several tasks, and by task with several models."""
    tables: dict[str, dict[str, Floats]] = {}
    for stack in by_task:
        for model, cube in stack.cubes.items():
            tables.setdefault(model, {})[stack.task] = cube
    clusters = {stack.task: stack.clusters for stack in by_task if stack.clusters is not None}
    options: dict[str, Any] = {"clusters": clusters or None, "level": settings.level}
    pools: dict[str, Any] = {}
    if any(len(tasks) > 1 for tasks in tables.values()):
        pools["by_model"] = _pools_by_name(brittleness_by_model(tables, **options), "model")
    if any(len(stack.models) > 1 for stack in by_task):
        pools["by_task"] = _pools_by_name(brittleness_by_task(tables, **options), "task")
    return pools


def _pools_by_name(
    pools: Mapping[str, PooledBrittleness], kind: str
) -> dict[str, PooledBrittleness]:
    return {
        name: map_estimates(pool, partial(replace, group={kind: name}))
        for name, pool in pools.items()
    }
