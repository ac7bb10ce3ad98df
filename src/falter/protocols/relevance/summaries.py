"""Summaries of a part: their scores, their source sentences, and the effect of rewording."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.table import STATUSES
from falter.measures.drops import accuracy
from falter.measures.relevance import (
    PositionDistribution,
    PositionShift,
    arm_difference,
    position_shift,
    score_change,
)
from falter.protocols.protocol import PartResult
from falter.protocols.relevance.parts import MEASURES
from falter.protocols.tables import figures_of
from falter.records.errors import FalterError
from falter.records.figures import Curve, Curves, Figure, Forest, ForestRow, Grid, Value
from falter.records.interfaces import Case
from falter.records.types import Estimate, Recipe, Variant
from falter.scorers.judging import allowed_sentences, summary_sentences
from falter.scorers.similarity import TokenMatch, bertscore
from falter.text.relevance import relevance_map
from falter.text.words import sentences

Floats = NDArray[np.float64]
ORIGINAL, REPEATED, EXPECTED = "original", "same article again", "expected summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summary of the article of `variant` by one model.

    `sentences` are the sentences that count: at most the first `wanted` of the `written` ones.
    `key` is the request's key. `repeat` counts the draws from 0.
    """

    model: str
    task: str
    variant: Variant
    arm: str
    repeat: int
    key: str
    sentences: tuple[str, ...]
    written: int
    wanted: int

    @property
    def item(self) -> str:
        return self.variant.item.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of one model on one data set by one measure.

    `values` has shape (articles, arms), with draws averaged; NaN if the arm did not change the
    article. `left_out` counts for each arm the articles without a usable rewrite.
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
        """Return the scores in one arm, shape (articles,); None if the arm was not run."""
        return self.values[:, self.arms.index(arm)] if arm in self.arms else None

    def signed(self, estimate: Estimate) -> Estimate:
        """Return the estimate with model, task and measure in its group, and the signature."""
        group = {"model": self.model, "task": self.task, "scorer": self.measure}
        return replace(estimate, group={**estimate.group, **group}, signature=self.signature)


def _arm_of(recipe: Recipe) -> str:
    """Return the name of a recipe's arm, such as `relevant sentences, top 3`."""
    if not recipe.steps:
        return REPEATED if recipe.repeat else ORIGINAL
    step = recipe.steps[0]
    which = step.name.removeprefix("paraphrase_")
    if which not in ("relevant", "irrelevant") or len(recipe.steps) > 1:
        return recipe.label
    top, method = int(step.params.get("top", 1)), step.params.get("method", "tfidf")
    how = f", top {top}" if top > 1 else ""
    return f"{which} sentences{how}" + (f", by {method}" if method != "tfidf" else "")


def arms_of(result: PartResult) -> tuple[str, ...]:
    """Return the names of a part's arms, the original first."""
    return tuple(_arm_of(recipe) for recipe in result.run.recipes)


def scores_of(result: PartResult) -> tuple[Scores, ...]:
    """Return the scores of each model, data set and measure, in the order of the run."""
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
    """Yield the summaries of all articles that their arm changed, and of the original articles.

    A summary that several scorers score is yielded once. Empty responses are left out.
    """
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
        written, requested = summary_sentences(cell.response.text or ""), allowed_sentences(case)
        if written:
            yield Summary(
                model=model,
                task=task,
                variant=variant,
                arm=_arm_of(recipe),
                repeat=repeat,
                key=cell.key,
                sentences=tuple(written[:requested]),
                written=len(written),
                wanted=requested,
            )


def article_of(variant: Variant) -> str:
    """Return the text of a prompt's documents and input, after the recipe's changes."""
    sections = variant.prompt.sections
    return "\n\n".join(s.text for s in sections if s.kind in ("document", "input")).strip()


# Sources: the article sentences that the summaries draw on, before and after rewording


declaration = figures_of("relevance")

BINS = 10
Sources = tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A reworded range of sentences: its half-open range in the old and in the new article."""

    old: tuple[int, int]
    new: tuple[int, int]


def changes_between(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """Return the ranges in which two lists of sentences differ, in order."""
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return [
        Change(old=(a, b), new=(c, d))
        for kind, a, b, c, d in matcher.get_opcodes()
        if kind != "equal"
    ]


def place_in_original(place: int, changes: Sequence[Change], length: int) -> int:
    """Return the place in the original article of the sentence at `place` in the reworded article.

    A rewrite may have more sentences than its original range. A surplus sentence maps to the last
    sentence of the range. A sentence between two unchanged ones maps to the second of them. A
    sentence after the unchanged last one of the `length` original sentences maps to that one.
    """
    shift = 0
    for change in changes:
        (a, b), (c, d) = change.old, change.new
        if place < c:
            break
        if place < d:
            return min(a + max(0, min(place - c, b - a - 1)), length - 1)
        shift = b - d
    return place + shift


def source_figures(result: PartResult, level: float, seed: int) -> Iterator[Figure]:
    """Yield figures of the article positions that summaries draw on, and of their shifts.

    Only first draws are used. Nothing is yielded if no arm can be compared with the original.
    """
    by_panel: dict[tuple[str, str], dict[str, dict[str, Summary]]] = {}
    for summary in summaries_of(result):
        if summary.repeat == 0:
            arms = by_panel.setdefault((summary.model, summary.task), {})
            arms.setdefault(summary.arm, {})[summary.item] = summary
    curves: list[Curve] = []
    shift_rows: list[ForestRow] = []
    rows: list[tuple[Value, ...]] = []
    for (model, task), arms in by_panel.items():
        originals = arms.get(ORIGINAL, {})
        for arm, shift in _shifts_by_arm(originals, arms, level, seed):
            facet = f"{model} · {task}"
            if arm == EXPECTED:
                curves.append(_position_curve(ORIGINAL, shift.before, facet))
            curves.append(_position_curve(arm, shift.after, facet))
            group = {"model": model, "task": task, "arm": arm}
            numbers = (shift.tv, shift.jsd, shift.wasserstein, shift.changed, shift.jaccard)
            tv, jsd, wasserstein, changed, jaccard = (
                replace(estimate, group={**estimate.group, **group}) for estimate in numbers
            )
            label = f"{arm} · {facet}" if len(by_panel) > 1 else arm
            shift_rows.append(ForestRow(label=label, kind="member", estimate=changed))
            rows.append(
                (
                    model, task, arm, shift.tv.items, tv, shift.tv.p_value, jsd, wasserstein,
                    changed, jaccard,
                )
            )  # fmt: skip
    if rows:
        yield Curves(curves=tuple(curves), **declaration("source-positions"))
        yield Forest(rows=tuple(shift_rows), **declaration("source-changes"))
        yield Grid(rows=tuple(rows), **declaration("source-shift"))


def _position_curve(arm: str, side: PositionDistribution, facet: str) -> Curve:
    """Return a curve of the share of summary sentences from each tenth of the article."""
    points = tuple(
        (
            100.0 * (at + 0.5) / BINS,
            Estimate(measure="source_position", value=share, method="none: a share of sentences"),
        )
        for at, share in enumerate(side.shares or ())
    )
    return Curve(label=arm, points=points, facet=facet)


def _shifts_by_arm(
    originals: dict[str, Summary],
    arms: dict[str, dict[str, Summary]],
    level: float,
    seed: int,
) -> Iterator[tuple[str, PositionShift]]:
    """Yield the shift of every arm from the summaries of the original articles.

    The expected summaries come first, if there are any.
    """
    articles = {item: _sentences(article_of(s.variant)) for item, s in originals.items()}
    before = {item: _source_places(s.sentences, articles[item]) for item, s in originals.items()}
    expected = {}
    for item, summary in originals.items():
        target = summary.variant.prompt.target
        if isinstance(target, str):
            expected[item] = _source_places(summary_sentences(target), articles[item])
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
    """Return a summary's source sentences as places in the original article."""
    article = _sentences(article_of(summary.variant))
    changes = changes_between(original, article)
    found = _source_places(summary.sentences, article)
    return tuple(None if j is None else place_in_original(j, changes, len(original)) for j in found)


def _source_places(summary: Sequence[str], article: Sequence[str]) -> Sources:
    return tuple(None if row is None else row[0] for row in relevance_map(summary, article))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


# Changes of the scores, and their controls


RELEVANT, IRRELEVANT = "relevant sentences", "irrelevant sentences"


def change_figures(panels: Sequence[Scores], level: float) -> tuple[Grid, ...]:
    """Return the table of changes by arm, and the table of paired arms, if there are any."""
    rows = tuple(row for panel in panels for row in _change_rows(panel, level))
    controls = tuple(row for panel in panels for row in _control_rows(panel, level))
    changes = Grid(rows=rows, **declaration("relative-change"))
    return (changes, Grid(rows=controls, **declaration("controls"))) if controls else (changes,)


def _change_rows(panel: Scores, level: float) -> Iterator[tuple[Value, ...]]:
    old, again = panel.values[:, 0], panel.of(REPEATED)
    for place, arm in enumerate(panel.arms):
        if arm == ORIGINAL:
            continue
        new = panel.values[:, place]
        both = ~np.isnan(old) & ~np.isnan(new)
        net = None
        if again is not None and arm != REPEATED:
            net = arm_difference(new, again, clusters=panel.clusters, level=level).difference
        means = (
            accuracy(np.where(both, x, np.nan), clusters=panel.clusters, level=level)
            for x in (old, new)
        )
        yield (
            *_labels_of(panel),
            arm,
            int(both.sum()),
            panel.left_out[place],
            *(panel.signed(mean) for mean in means),
            panel.signed(score_change(old, new, clusters=panel.clusters, level=level)),
            net and panel.signed(net),
        )


def _control_rows(panel: Scores, level: float) -> Iterator[tuple[Value, ...]]:
    """Yield differences between two arms over the same articles, for `_compared_arms`."""
    for one, other in _compared_arms(panel.arms):
        first, second = panel.of(one), panel.of(other)
        if first is not None and second is not None:
            found = arm_difference(first, second, clusters=panel.clusters, level=level)
            net = panel.signed(found.difference)
            yield (*_labels_of(panel), one, other, net.items, found.differ, net, net.p_value)


def _compared_arms(arms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each arm of relevant sentences with its control, or with the arm of one sentence.

    The control rewords irrelevant sentences in the same way. An arm with `top 3` and no control is
    compared with the same arm without `top`.
    """
    for arm in arms:
        if arm.startswith("relevant"):
            control, fewer = f"ir{arm}", re.sub(", top [0-9]+", "", arm)
            if control in arms:
                yield arm, control
            elif fewer != arm and fewer in arms:
                yield arm, fewer


def _labels_of(panel: Scores) -> tuple[str, str, str]:
    measure, _, encoder = panel.measure.partition(":")
    named = f" ({PurePath(encoder).name})" if encoder else ""
    return panel.model, panel.task, MEASURES.get(measure, measure) + named


# Rewrites: their similarity to the originals, and their statuses


REWRITE_STORE = "sentence"
Pair = tuple[str, str]


def rewrite_figures(result: PartResult, level: float) -> tuple[Figure, ...]:
    """Return the BERTScore of reworded ranges against their originals, and counts by status."""
    pairs, sources = _pairs(result)
    return *_meaning(pairs, level), *_status_table(result, sources)


def _pairs(result: PartResult) -> tuple[dict[tuple[str, str], dict[str, list[Pair]]], set[str]]:
    """Return old and new text of reworded ranges by (data set, arm) and item; all sentences.

    The second result is the set of sentences of all original articles. Models share prompts, so
    each prompt is read once.
    """
    originals: dict[tuple[str, str], list[str]] = {}
    pairs: dict[tuple[str, str], dict[str, list[Pair]]] = {}
    for variant, task in _changed_variants(result):
        item = variant.item.key
        text = article_of(variant)
        shown = [text[start:end] for start, end in sentences(text)]
        if not variant.recipe.perturbs:
            originals[task, item] = shown
        elif (task, item) in originals and variant.status == "changed":
            before = originals[task, item]
            pairs.setdefault((task, _arm_of(variant.recipe)), {})[item] = [
                (" ".join(before[slice(*c.old)]), " ".join(shown[slice(*c.new)]))
                for c in changes_between(before, shown)
            ]
    return pairs, {sentence for article in originals.values() for sentence in article}


def _changed_variants(result: PartResult) -> Iterator[tuple[Variant, str]]:
    seen = set()
    for answered in result.cells():
        variant = answered.cell.variant
        place = answered.panel.task, variant.item.key, variant.recipe.id, variant.draw
        if place not in seen and not variant.draw:
            seen.add(place)
            yield variant, answered.panel.task


def _meaning(pairs: dict[tuple[str, str], dict[str, list[Pair]]], level: float) -> Iterator[Figure]:
    rows: list[tuple[Value, ...]] = []
    encoder = ""
    for (task, arm), articles in pairs.items():
        means = []
        for stretches in articles.values():
            found = [match for old, new in stretches if (match := _match(old, new)) is not None]
            encoder = found[0].encoder if found else encoder
            means.append(float(np.mean([m.f1 for m in found])) if found else np.nan)
        score = accuracy(means, level=level) if means else None
        if score is not None:
            score = replace(score, measure="rewrite_bertscore", group={"task": task, "arm": arm})
        rows.append((task, arm, len(articles), sum(map(len, articles.values())), score))
    if rows:
        named = f"with {encoder}" if encoder else "not computed: no encoder is installed"
        yield Grid(rows=tuple(rows), **declaration("rewrite-meaning", named=named))


def _match(old: str, new: str) -> TokenMatch | None:
    try:
        return bertscore(new, old)
    except FalterError:  # no encoder
        return None


def _status_table(result: PartResult, sources: set[str]) -> Iterator[Figure]:
    """Yield the table of rewrites by author and status, for sentences of these articles."""
    by_author: dict[str, Counter[str]] = {}
    for rewrite in result.rewrites():
        if rewrite.perturbation == REWRITE_STORE and rewrite.source in sources:
            by_author.setdefault(rewrite.author, Counter())[rewrite.status] += 1
    rows: list[tuple[Value, ...]] = []
    for author, statuses in by_author.items():
        asked = statuses.total()
        same = accuracy([1.0] * statuses["identical"] + [0.0] * (asked - statuses["identical"]))
        other = asked - statuses["ok"] - statuses["identical"]
        rows.append((author, asked, statuses["ok"], statuses["identical"], other, same))
    if rows:
        yield Grid(rows=tuple(rows), **declaration("rewriters"))
