"""Summaries of a part: their scores, where they come from, and what rewording does to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.table import STATUSES
from falter.measures.drops import accuracy, net_relative_change, relative_change
from falter.measures.relevance import PositionShift, position_shift
from falter.protocols.protocol import PartResult
from falter.protocols.relevance.parts import MEASURES
from falter.protocols.tables import figures_of
from falter.records.errors import FalterError
from falter.records.figures import Column, Figure, Grid, Value
from falter.records.interfaces import Case
from falter.records.types import Estimate, Recipe, Variant
from falter.scorers.judging import allowed_sentences, summary_sentences
from falter.scorers.similarity import TokenMatch, bertscore
from falter.text.relevance import relevance_map
from falter.text.words import sentences

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


def _arm_of(recipe: Recipe) -> str:
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
    return tuple(_arm_of(recipe) for recipe in result.run.recipes)


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
                arm=_arm_of(recipe),
                repeat=repeat,
                key=cell.key,
                sentences=tuple(kept),
            )


def article_of(variant: Variant) -> str:
    """The documents of a prompt and what its template puts in, as the recipe left them."""
    sections = variant.prompt.sections
    return "\n\n".join(s.text for s in sections if s.kind in ("document", "input")).strip()


# Sources: the sentences that summaries are taken from, before and after rewording


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


# Changes of the scores, beside the controls


RELEVANT, IRRELEVANT, TOP = (
    "relevant sentences",
    "irrelevant sentences",
    "relevant sentences, top 3",
)
COMPARED = ((RELEVANT, IRRELEVANT), (TOP, RELEVANT))
PANEL = (Column(name="Model"), Column(name="Data set"), Column(name="Measure"))


def change_figures(panels: Sequence[Scores], level: float, seed: int) -> tuple[Figure, ...]:
    """The change of every corpus mean, and what the controls leave of it."""
    return _changes(panels, level, seed), *_controls(panels, level, seed)


def _changes(panels: Sequence[Scores], level: float, seed: int) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        old, again = panel.values[:, 0], panel.of(AGAIN)
        for place, arm in enumerate(panel.arms):
            if arm == ORIGINAL:
                continue
            new = panel.values[:, place]
            both = ~np.isnan(old) & ~np.isnan(new)
            net = None
            if again is not None and arm != AGAIN:
                net = _net(panel, old, new, again, level, seed)
            rows.append(
                (
                    *_names(panel),
                    arm,
                    int(both.sum()),
                    panel.left_out[place],
                    panel.signed(_mean(panel, old, both, level)),
                    panel.signed(_mean(panel, new, both, level)),
                    _change(panel, old, new, level, seed),
                    net,
                )
            )
    return Grid(rows=tuple(rows), **declared("relative-change"))


def _controls(panels: Sequence[Scores], level: float, seed: int) -> tuple[Grid, ...]:
    """Relevant against irrelevant sentences, and three against one, over the same articles."""
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        old = panel.values[:, 0]
        for one, other in COMPARED:
            first, second = panel.of(one), panel.of(other)
            if first is None or second is None:
                continue
            net = _net(panel, old, first, second, level, seed)
            rows.append((*_names(panel), one, other, net.items, net))
    if not rows:
        return ()
    return (Grid(rows=tuple(rows), **declared("controls")),)


def _names(panel: Scores) -> tuple[str, str, str]:
    return panel.model, panel.task, MEASURES.get(panel.measure, panel.measure)


def _mean(panel: Scores, values: Floats, both: np.ndarray, level: float) -> Estimate:
    return accuracy(np.where(both, values, np.nan), clusters=panel.clusters, level=level)


def _change(panel: Scores, old: Floats, new: Floats, level: float, seed: int) -> Estimate:
    return panel.signed(relative_change(old, new, clusters=panel.clusters, level=level, seed=seed))


def _net(
    panel: Scores, old: Floats, new: Floats, other: Floats, level: float, seed: int
) -> Estimate:
    return panel.signed(
        net_relative_change(old, new, other, clusters=panel.clusters, level=level, seed=seed)
    )


# Rewrites: do they say the same, and what did the rewriter not manage?


BANK = "sentence"
Pair = tuple[str, str]


def rewrite_figures(result: PartResult, level: float) -> tuple[Figure, ...]:
    """BERTScore of every reworded stretch against what it replaces; rewrites by their status."""
    pairs, sources = _pairs(result)
    return *_meaning(pairs, level), *_statuses(result, sources)


def _pairs(result: PartResult) -> tuple[dict[tuple[str, str], dict[str, list[Pair]]], set[str]]:
    """Old and new stretches by (data set, arm) and item; the sentences of all articles.

    Models share their prompts, so each is looked at once.
    """
    originals: dict[tuple[str, str], list[str]] = {}
    pairs: dict[tuple[str, str], dict[str, list[Pair]]] = {}
    for variant, task in _variants(result):
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


def _variants(result: PartResult) -> Iterator[tuple[Variant, str]]:
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
        yield Grid(rows=tuple(rows), **declared("rewrite-meaning", named=named))


def _match(old: str, new: str) -> TokenMatch | None:
    try:
        return bertscore(new, old)
    except FalterError:  # no encoder
        return None


def _statuses(result: PartResult, sources: set[str]) -> Iterator[Figure]:
    """By author, where a rewriter was asked for sentences of these articles."""
    by_author: dict[str, Counter[str]] = {}
    for rewrite in result.rewrites():
        if rewrite.perturbation == BANK and rewrite.source in sources:
            by_author.setdefault(rewrite.author, Counter())[rewrite.status] += 1
    rows: list[tuple[Value, ...]] = []
    for author, statuses in by_author.items():
        asked = statuses.total()
        same = accuracy([1.0] * statuses["identical"] + [0.0] * (asked - statuses["identical"]))
        other = asked - statuses["ok"] - statuses["identical"]
        rows.append((author, asked, statuses["ok"], statuses["identical"], other, same))
    if rows:
        yield Grid(rows=tuple(rows), **declared("rewriters"))
