"""Whether the reworded sentences still say the same, and what the rewriter did not manage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from falter.core.errors import FalterError
from falter.core.records import Variant
from falter.figures import Column, Figure, Grid, Value
from falter.measures import accuracy
from falter.protocols._protocol import PartResult
from falter.protocols.relevance._replies import arm_of, article_of
from falter.protocols.relevance._sources import changes_between
from falter.scorers import TokenMatch, bertscore
from falter.text import sentences

__all__ = ["rewrite_figures"]

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
        yield Grid(
            name="rewrite-meaning",
            title="Do the reworded sentences say the same?",
            columns=(
                Column(name="Data set"),
                Column(name="Reworded"),
                Column(name="Articles", unit="count"),
                Column(
                    name="Stretches", unit="count", about="sentences next to each other are one"
                ),
                Column(name="BERTScore with the original", unit="score"),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                f"F1 of each reworded stretch against the one it replaces, {named}; the mean over "
                "articles. It describes and proves nothing: an inserted 'not' costs it little.",
            ),
        )


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
        yield Grid(
            name="rewriters",
            title="What became of the sentences that were to be reworded",
            columns=(
                Column(name="Rewriter"),
                Column(name="Sentences", unit="count"),
                Column(name="reworded", unit="count"),
                Column(name="came back identical", unit="count"),
                Column(name="refused, cut or broken", unit="count"),
                Column(name="Identical, %", unit="percent"),
            ),
            rows=tuple(rows),
            text=(
                "All rewrites of sentences of these articles that are in the store. One that came "
                "back identical tells about the rewriter; its article leaves both sides.",
            ),
        )
