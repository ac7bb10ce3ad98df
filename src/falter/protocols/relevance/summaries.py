"""The summaries of a part, one by one, and the panels of their scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from falter.analysis import STATUSES, model_names
from falter.core.interfaces import Case
from falter.core.records import Estimate, Recipe, Variant
from falter.figures import Column, Figure, Grid, Value
from falter.measures import PositionShift, position_shift
from falter.protocols.protocol import PartResult
from falter.protocols.tables import figures_of
from falter.scorers.summaries import allowed_sentences, summary_sentences
from falter.text import relevance_map, sentences

Floats = NDArray[np.float64]
ORIGINAL, AGAIN, EXPECTED = "original", "same article again", "expected summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One reply: which model wrote it, about which article as it stood in the prompt.

    `sentences` are those that count. `key` is the request's.
    """

    model: str
    task: str
    variant: Variant
    arm: str
    repeat: int
    key: str
    sentences: tuple[str, ...]

    @property
    def item(self) -> str:
        return self.variant.item.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One model on one data set, by one measure: articles × arms, draws averaged.

    A score is NaN where the arm did not change the article. `left_out` counts the articles of
    each arm that lack a usable rewrite.
    """

    model: str
    task: str
    measure: str
    items: tuple[str, ...]
    arms: tuple[str, ...]
    values: Floats
    left_out: tuple[int, ...]
    clusters: tuple[str, ...] | None
    signature: str

    def of(self, arm: str) -> Floats | None:
        """The scores in one arm; None where it was not asked."""
        return self.values[:, self.arms.index(arm)] if arm in self.arms else None

    def signed(self, estimate: Estimate) -> Estimate:
        """The estimate with what it is about."""
        group = {"model": self.model, "task": self.task, "scorer": self.measure}
        return replace(estimate, group={**estimate.group, **group}, signature=self.signature)


def arm_of(recipe: Recipe) -> str:
    """What was done to the article, in words."""
    if not recipe.steps:
        return AGAIN if recipe.repeat else ORIGINAL
    step = recipe.steps[0]
    which = step.name.removeprefix("paraphrase_")
    if which not in ("relevant", "irrelevant") or len(recipe.steps) > 1:
        return recipe.label
    top = int(step.params.get("top", 1))
    return f"{which} sentences" + (f", top {top}" if top > 1 else "")


def arms_of(result: PartResult) -> tuple[str, ...]:
    """The arms of a part, the original first."""
    return tuple(arm_of(recipe) for recipe in result.run.recipes)


def scores_of(result: PartResult) -> tuple[Scores, ...]:
    """One for each model, data set and measure, in the order of the run."""
    names = model_names(result.tables)
    strict = result.analysis.unparsed == "wrong"
    recipes = result.run.recipes
    panels = []
    for table, panel in zip(result.tables, result.analysis.panels, strict=True):
        idle = ~table.changed()
        idle[:, [not recipe.perturbs for recipe in recipes]] = False
        lacking = (table.status == STATUSES.index("no_rewrite")).any(axis=2)
        panels.append(
            Scores(
                model=names[table.panel.model.id],
                task=result.run.panels[table.place].task,
                measure=table.panel.scorer,
                items=table.items,
                arms=arms_of(result),
                values=np.where(idle, np.nan, table.matrix(strict=strict)),
                left_out=tuple(int(count) for count in lacking.sum(axis=0)),
                clusters=table.clusters,
                signature=panel.signature,
            )
        )
    return tuple(panels)


def summaries_of(result: PartResult) -> Iterator[Summary]:
    """Every summary of an article that its arm really changed, each once however it was scored."""
    names = model_names(result.tables)
    seen: set[tuple[str, str, str, str, int]] = set()
    for answered in result.cells():
        cell = answered.cell
        variant, recipe = cell.variant, cell.variant.recipe
        if cell.response is None or (recipe.perturbs and variant.status != "changed"):
            continue
        model, task = names[answered.panel.model.id], answered.panel.task
        repeat = cell.repeat - recipe.repeat * result.run.repeats
        place = model, task, variant.item.key, recipe.id, repeat
        if place in seen:
            continue
        seen.add(place)
        case = Case(variant=variant, response=cell.response)
        kept = summary_sentences(cell.response.text or "")[: allowed_sentences(case)]
        if kept:
            yield Summary(
                model=model,
                task=task,
                variant=variant,
                arm=arm_of(recipe),
                repeat=repeat,
                key=cell.key,
                sentences=tuple(kept),
            )


def article_of(variant: Variant) -> str:
    """The documents of a prompt and what its template puts in, as the recipe left them."""
    sections = variant.prompt.sections
    return "\n\n".join(s.text for s in sections if s.kind in ("document", "input")).strip()


# From which sentences of the article the summaries are taken, before and after rewording.


declared = figures_of("relevance")

BINS = 10
Sources = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A stretch of sentences that was reworded: where it was, and where it is now."""

    old: tuple[int, int]
    new: tuple[int, int]


def changes_between(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The stretches in which two lists of sentences differ."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        Change(old=(a, b), new=(c, d))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def place_in_original(place: int, changes: Sequence[Change]) -> int:
    """Where a sentence of the reworded article stood in the original one.

    A rewrite may have more or fewer sentences; one beyond the last original belongs to that.
    """
    shift = 0
    for change in changes:
        (a, b), (c, d) = change.old, change.new
        if place < c:
            break
        if place < d:
            return a + max(0, min(place - c, b - a - 1))
        shift = b - d
    return place + shift


def source_figures(result: PartResult, level: float, seed: int) -> tuple[Figure, ...]:
    """Where summaries come from, and how far that moves; the first draw of each."""
    by_panel: dict[tuple[str, str], dict[str, dict[str, Summary]]] = {}
    for summary in summaries_of(result):
        if summary.repeat == 0:
            arms = by_panel.setdefault((summary.model, summary.task), {})
            arms.setdefault(summary.arm, {})[summary.item] = summary
    shares: list[tuple[Value, ...]] = []
    shifts: list[tuple[Value, ...]] = []
    for (model, task), arms in by_panel.items():
        originals = arms.get(ORIGINAL, {})
        for arm, shift in _shifts(originals, arms, level, seed):
            if arm == EXPECTED:
                shares.append((model, task, EXPECTED, *_shares(shift, after=True)))
                shares.append((model, task, ORIGINAL, *_shares(shift, after=False)))
            else:
                shares.append((model, task, arm, *_shares(shift, after=True)))
            group = {"model": model, "task": task, "arm": arm}
            numbers = (shift.tv, shift.jsd, shift.wasserstein, shift.changed, shift.jaccard)
            tv, jsd, wasserstein, changed, jaccard = (_signed(n, group) for n in numbers)
            shifts.append(
                (
                    model, task, arm, shift.tv.items, tv, shift.tv.p_value, jsd, wasserstein,
                    changed, jaccard,
                )
            )  # fmt: skip
    return (_shift_grid(shifts), _share_grid(shares)) if shifts else ()


def _shifts(
    originals: dict[str, Summary],
    arms: dict[str, dict[str, Summary]],
    level: float,
    seed: int,
) -> Iterator[tuple[str, PositionShift]]:
    """Every arm against the summaries of the original articles, the expected ones first."""
    articles = {item: _sentences(article_of(s.variant)) for item, s in originals.items()}
    before = {item: _sources(s.sentences, articles[item]) for item, s in originals.items()}
    expected = {}
    for item, summary in originals.items():
        target = summary.variant.prompt.target
        if isinstance(target, str):
            expected[item] = _sources(summary_sentences(target), articles[item])
    after = {EXPECTED: expected} if expected else {}
    for arm, summaries in arms.items():
        if arm != ORIGINAL:
            after[arm] = {
                item: _original_sources(summary, articles[item])
                for item, summary in summaries.items()
                if item in articles
            }
    for arm, sources in after.items():
        items = [item for item in before if item in sources]
        if items:
            yield (
                arm,
                position_shift(
                    [before[item] for item in items],
                    [sources[item] for item in items],
                    [len(articles[item]) for item in items],
                    bins=BINS,
                    level=level,
                    seed=seed,
                ),
            )


def _original_sources(summary: Summary, original: Sequence[str]) -> Sources:
    """The sources in the reworded article, as places in the original one."""
    article = _sentences(article_of(summary.variant))
    changes = changes_between(original, article)
    found = _sources(summary.sentences, article)
    return tuple(None if j is None else place_in_original(j, changes) for j in found)


def _sources(summary: Sequence[str], article: Sequence[str]) -> Sources:
    return tuple(None if row is None else row[0] for row in relevance_map(summary, article))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def _shares(shift: PositionShift, *, after: bool) -> list[Value]:
    side = shift.after if after else shift.before
    return [side.articles, side.excluded, *(side.shares or (None,) * BINS)]


def _signed(estimate: Estimate, group: dict[str, str]) -> Estimate:
    return replace(estimate, group={**estimate.group, **group})


def _shift_grid(rows: list[tuple[Value, ...]]) -> Grid:
    over = "Distance of the positions"
    return Grid(rows=tuple(rows), **declared("source-shift"))


def _share_grid(rows: list[tuple[Value, ...]]) -> Grid:
    tenths = [f"{10 * n}–{10 * (n + 1)} %" for n in range(BINS)]
    return Grid(
        rows=tuple(rows),
        **declared(
            "source-positions",
            columns=(
                Column(name=tenth, unit="percent", over="Position in the article")
                for tenth in tenths
            ),
        ),
    )
