"""How much the scores change when the article is reworded, beside the controls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from falter.core.errors import FalterError
from falter.core.records import Estimate, Variant
from falter.figures import Column, Figure, Grid, Value
from falter.measures import accuracy, net_relative_change, relative_change
from falter.protocols.protocol import PartResult
from falter.protocols.relevance.parts import MEASURES
from falter.protocols.relevance.summaries import (
    AGAIN,
    ORIGINAL,
    Floats,
    Scores,
    arm_of,
    article_of,
    changes_between,
)
from falter.protocols.tables import figures_of
from falter.scorers import TokenMatch, bertscore
from falter.text import sentences

declared = figures_of("relevance")

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


# Whether the reworded sentences still say the same, and what the rewriter did not manage.


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
            pairs.setdefault((task, arm_of(variant.recipe)), {})[item] = [
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
