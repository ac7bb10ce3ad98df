"""Replies side by side: what is behind the numbers of each category."""

from __future__ import annotations

from collections.abc import Iterator

from falter.figures import Column, Figure, Grid, Value
from falter.protocols.enterprise._figures import title_of
from falter.protocols.enterprise._pairs import Pair, Reply
from falter.protocols.enterprise._parts import kind_of
from falter.protocols.enterprise._scores import Scores

__all__ = ["sample_figures"]

EACH = 3
LONGEST = 600


def sample_figures(scores: Scores) -> list[Figure]:
    """Up to three pairs of every category and model, those that differ most first."""
    rows = [row for model in scores.models for row in _rows(scores, model)]
    if not rows:
        return []
    return [
        Grid(
            name="samples",
            title="Samples",
            columns=(
                Column(name="Model"),
                Column(name="Category"),
                Column(name="Perturbation"),
                Column(name="Task"),
                Column(name="Item"),
                Column(name="Rating", unit="count"),
                Column(name="Measures"),
                Column(name="Clean", over="Reply"),
                Column(name="Perturbed", over="Reply"),
            ),
            rows=tuple(rows),
            labels=5,
            text=(
                f"Up to {EACH} of each category, the lowest ratings first; a reply that could not "
                "be read has no rating. Measures: of the clean reply, then of the perturbed one.",
            ),
            folded=True,
        )
    ]


def _rows(scores: Scores, model: str) -> Iterator[tuple[Value, ...]]:
    for name in scores.categories:
        rated = [
            (rating, pair)
            for pair in scores.of_model(model)
            if pair.category == name and (rating := scores.rating(pair)) is not None
        ]
        rated.sort(key=lambda both: (both[0] != both[0], both[0], both[1].recipe.label))
        for rating, pair in rated[:EACH]:
            yield (
                model,
                title_of(name),
                pair.recipe.label,
                pair.task,
                pair.item,
                int(rating) if rating == rating else None,
                _measures(scores, pair, rating),
                _text(pair.reference),
                _text(pair.candidate),
            )


def _measures(scores: Scores, pair: Pair, rating: float) -> str:
    """`faithfulness 3 → 2`, of pairs that differ."""
    if not rating < 3:
        return ""
    kind = kind_of(pair.task)
    names = (kind.judged if scores.ratings.judged else ()) or kind.counted
    values = zip(names, scores.metrics(pair), strict=True)
    return "; ".join(f"{name} {_number(a)} → {_number(b)}" for name, (a, b) in values)


def _number(value: float) -> str:
    return f"{value:.2g}" if value == value else "?"


def _text(reply: Reply | None) -> str:
    text = "" if reply is None else reply.text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
