"""Deltas by format, language, task and perturbation; similarity, verdicts, judge agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from falter.measures.drops import accuracy
from falter.measures.enterprise import table_summary
from falter.protocols.enterprise.figures import split_grid, title_of
from falter.protocols.enterprise.pairs import Pair, Reply, ratings_by_judge, replies_to, verdicts_of
from falter.protocols.enterprise.parts import (
    BASELINE,
    COMPARING,
    CROSSLINGUAL,
    FORMAT,
    MULTILINGUAL,
    RATING,
    REFERENCE_FORM,
)
from falter.protocols.enterprise.scores import Scores, aligned_likeness, likeness
from falter.protocols.tables import figures_of
from falter.records.errors import FalterError
from falter.records.figures import Column, Figure, Grid, HeatMap, Value
from falter.records.types import Estimate
from falter.scorers.similarity import semantic_similarities
from falter.scorers.structured import json_similarity
from falter.stats.agreement import Agreement, krippendorff_alpha, weighted_kappa

# Agreement of judges


RATING_LABELS = (1.0, 2.0, 3.0)
_QUESTIONS = ((COMPARING, "Do two replies say the same?"), (RATING, "How good is it?"))


def _judges_figures(scores: Scores) -> list[Figure]:
    """Return the agreement of all judges and of each pair of judges; empty for a single judge."""
    judges = scores.ratings.judges
    if len(judges) < 2:
        return []
    rows = [
        row
        for stage, question in _QUESTIONS
        for row in _agreement_rows(scores, question, ratings_by_judge(scores.by_name, stage))
    ]
    two = len(judges) == 2
    settings = declaration("judges", two=two, more=not two, judge=judges[0])
    return [Grid(rows=tuple(rows), **settings)]


def _agreement_rows(
    scores: Scores, question: str, by_judge: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[Value, ...]]:
    """Yield a row for all judges together if there are more than two, then one for each pair."""
    judges = list(by_judge)
    groups = [judges] if len(judges) > 2 else []
    for group in [*groups, *map(list, combinations(judges, 2))]:
        table = _verdict_array([by_judge[judge] for judge in group])
        alpha = krippendorff_alpha(table, "ordinal", level=scores.level, seed=scores.seed)
        kappa = weighted_kappa(table, RATING_LABELS, level=scores.level, seed=scores.seed)
        name = " and ".join(group) if len(group) == 2 else f"all {len(group)}"
        about = {"question": question, "judges": name}
        yield (
            question,
            name,
            alpha.items,
            _agreement_estimate(scores, "krippendorff_alpha", alpha, **about),
            _agreement_estimate(scores, "weighted_kappa", kappa, **about),
        )


def _verdict_array(
    ratings: Sequence[Mapping[str, float]],
) -> NDArray[np.float64]:
    """Return the ratings as an array of shape (keys, judges); NaN for a missing verdict."""
    keys = sorted({key for own in ratings for key in own})
    rows = [[own.get(key, float("nan")) for own in ratings] for key in keys]
    return np.array(rows, dtype=float).reshape(len(keys), len(ratings))


def _agreement_estimate(scores: Scores, measure: str, found: Agreement, **group: str) -> Estimate:
    estimate = Estimate(
        measure=measure,
        value=found.value,
        low=found.interval.low,
        high=found.interval.high,
        level=found.interval.level,
        method=found.interval.method,
        status=found.status,
        items=found.items,
        excluded=found.excluded,
    )
    return scores.signed(estimate, **group)


declaration = figures_of("enterprise")

Key = Callable[[Pair], str]


def split_figures(scores: Scores) -> list[Figure]:
    """Return the tables by format, language, task and perturbation, and cross-lingual heat maps."""
    figures: list[Figure] = [*_format_figures(scores), *_languages(scores), *_heat_maps(scores)]
    figures.append(
        split_grid(
            scores,
            "tasks",
            "Task by task",
            ("Model", "Task"),
            _pairs_by_line(scores, lambda pair: pair.task),
            ("All categories but the baseline.",),
        )
    )
    figures.append(
        split_grid(
            scores,
            "perturbations",
            "Perturbation by perturbation",
            ("Model", "Perturbation"),
            _pairs_by_line(scores, lambda pair: pair.recipe.label, baseline=True),
        )
    )
    return figures


def _pairs_by_line(
    scores: Scores, key: Key, *, baseline: bool = False, category: str | None = None
) -> dict[tuple[str, ...], list[Pair]]:
    """Return the pairs by model and `key`, without the baseline unless `baseline`."""
    lines: dict[tuple[str, ...], list[Pair]] = {}
    for model in scores.models:
        for pair in scores.of_model(model):
            if pair.category == BASELINE and not baseline:
                continue
            if category is None or pair.category == category:
                lines.setdefault((model, key(pair)), []).append(pair)
    return lines


def _format_figures(scores: Scores) -> Iterator[Figure]:
    """Yield robustness by format, with the number of responses in that format.

    If no response is in a format, its robustness over parsed responses is N/A.
    """
    lines = _pairs_by_line(scores, lambda pair: _requested_form(pair), category=FORMAT)
    rows: list[tuple[Value, ...]] = []
    free = [reply for result in scores.main for reply in replies_to(result, REFERENCE_FORM)]
    for model in scores.models:
        replies = [
            (item, reply) for name, item, reply in free if name == model and reply is not None
        ]
        if replies:
            rows.append(
                (model, "plain text", *_parsed_counts(scores, replies, model), None, None, None)
            )
    for (model, form), pairs in lines.items():
        replies = [(f"{p.task} {p.item}", p.candidate) for p in pairs if p.candidate is not None]
        found = scores.overall_score(pairs)
        if found is None:
            continue
        overall = found.overall
        about = {"model": model, "format": form}
        none = not any(reply.parts is not None for _, reply in replies)
        valid: Value = "N/A" if none else scores.signed(overall.valid, **about)
        rows.append(
            (
                model,
                form,
                *_parsed_counts(scores, replies, model),
                valid,
                scores.signed(overall.strict, **about),
                found.quality.valid,
            )
        )
    if not rows:
        return
    rows.sort(key=lambda row: scores.models.index(str(row[0])))
    yield Grid(rows=tuple(rows), **declaration("formats"))


def _requested_form(pair: Pair) -> str:
    return (pair.recipe.output_format or pair.recipe.label).upper()


def _parsed_counts(
    scores: Scores, replies: Sequence[tuple[str, Reply]], model: str
) -> tuple[Value, ...]:
    """Return counts and share of parsed replies; those to one item are one cluster."""
    read = [reply.parts is not None for _, reply in replies]
    items = [item for item, _ in replies]
    share = accuracy([float(x) for x in read], clusters=items, level=scores.level)
    return len(read), sum(read), scores.signed(share, model=model)


def _languages(scores: Scores) -> Iterator[Figure]:
    """Yield the quality delta by language with mean, worst and range, and the table of deltas."""
    lines = _pairs_by_line(scores, lambda pair: pair.languages[1], category=MULTILINGUAL)
    if not lines:
        return
    languages = list(dict.fromkeys(language for _, language in lines))
    deltas: dict[str, dict[str, Estimate]] = {}
    for (model, language), pairs in lines.items():
        found = scores.overall_score(pairs)
        if found is not None:
            delta = found.quality.strict
            deltas.setdefault(model, {})[language] = scores.signed(
                delta, model=model, language=language
            )
    plain = {m: {name: e.value for name, e in row.items()} for m, row in deltas.items()}
    summary = table_summary(plain)
    rows: list[tuple[Value, ...]] = [
        (
            model,
            *(row.get(language) for language in languages),
            ", ".join(summary.worst[model]) or "–",
            _bare_estimate(summary.ranges[model]),
        )
        for model, row in deltas.items()
    ]
    if len(rows) > 1:
        means = (_bare_estimate(summary.means.get(language)) for language in languages)
        rows.append(("Mean", *means, "", None))
    yield Grid(
        rows=tuple(rows),
        **declaration(
            "languages",
            columns=(
                Column(name=name, unit="percent", over="Quality delta, %") for name in languages
            ),
        ),
    )
    yield split_grid(
        scores,
        "languages-deltas",
        "Language by language",
        ("Model", "Language"),
        lines,
    )


def _heat_maps(scores: Scores) -> Iterator[Figure]:
    """Yield a heat map of robustness per model: input language × answer language."""
    for number, model in enumerate(scores.models, 1):
        pairs = [p for p in scores.of_model(model) if p.category == CROSSLINGUAL]
        if not pairs:
            continue
        shown = list(dict.fromkeys(pair.languages[0] for pair in pairs))
        wanted = list(dict.fromkeys(pair.languages[1] for pair in pairs))
        cells = [
            [_cell(scores, model, [p for p in pairs if p.languages == (a, b)]) for b in wanted]
            for a in shown
        ]
        tail = "" if len(scores.models) == 1 else f"-{number}"
        yield HeatMap(
            rows=tuple(shown),
            columns=tuple(wanted),
            cells=tuple(map(tuple, cells)),
            **declaration("cross-lingual", tail=tail, model=model),
        )


def _cell(scores: Scores, model: str, pairs: Sequence[Pair]) -> Estimate | None:
    found = scores.overall_score(pairs)
    if found is None:
        return None
    return scores.signed(found.overall.strict, model=model)


def _bare_estimate(value: float | None) -> Estimate:
    if value is None:
        return Estimate(measure="table_summary", value=None, status="insufficient_data")
    return Estimate(measure="table_summary", value=value)


# Measures next to the ratings: similarity, verdicts, agreement of judges


def supplementary_figures(scores: Scores) -> list[Figure]:
    """Return the tables of ROUGE-L and MiniLM similarity, judge verdicts and judge agreement."""
    return [*_likeness_figures(scores), *_verdicts_table(scores), *_judges_figures(scores)]


def _likeness_figures(scores: Scores) -> Iterator[Figure]:
    rows: list[tuple[Value, ...]] = []
    cosines = True
    for model in scores.models:
        for name in scores.categories:
            pairs = [p for p in scores.of_model(model) if p.category == name and not p.missing]
            pairs = [p for p in pairs if not p.crosses]
            if not pairs:
                continue
            about = {"model": model, "category": name}
            cells: list[Value] = [
                _pair_mean(scores, pairs, [measure(pair) for pair in pairs], **about)
                for measure in (likeness, aligned_likeness)
            ]
            similar = _cosines(pairs) if cosines else None
            cosines = similar is not None
            for found in similar or (None, None):
                cells.append(None if found is None else _pair_mean(scores, pairs, found, **about))
            rows.append((model, title_of(name), len(pairs), *cells))
    if rows:
        yield Grid(rows=tuple(rows), **declaration("likeness", unencoded=not cosines))


def _pair_mean(
    scores: Scores, pairs: Sequence[Pair], values: Sequence[float | None], **group: str
) -> Estimate:
    """Return the mean over pairs, with the pairs of an item as a cluster; None counts as NaN."""
    numbers = [np.nan if value is None else value for value in values]
    items = [f"{pair.task} {pair.item}" for pair in pairs]
    estimate = accuracy(numbers, clusters=items, level=scores.level)
    return scores.signed(replace(estimate, measure="likeness"), **group)


def _cosines(pairs: Sequence[Pair]) -> tuple[list[float | None], list[float | None]] | None:
    """Return MiniLM cosines of the whole responses, and their means over parts.

    Return None without the encoder.
    """
    replies = [(p.candidate, p.reference) for p in pairs if p.candidate and p.reference]
    try:
        whole = semantic_similarities([a.shown for a, _ in replies], [b.shown for _, b in replies])
        parts = [
            json_similarity(dict(a.parts or {}), dict(b.parts or {})).value if p.aligns else None
            for p, (a, b) in zip(pairs, replies, strict=True)
        ]
    except FalterError:
        return None
    return whole, parts


def _verdicts_table(scores: Scores) -> Iterator[Figure]:
    """Yield the table of verdicts: requested, parsed at the first try, at the second, never."""
    rows: list[tuple[Value, ...]] = []
    for stage, title in _QUESTIONS:
        for judge, counts in verdicts_of(scores.by_name, stage).items():
            asked, at_once, again = counts
            rows.append((judge, title, asked, at_once, again, asked - at_once - again))
    if rows:
        same = sum(1 for p in scores.pairs if not p.missing and not p.unread and p.same)
        yield Grid(rows=tuple(rows), **declaration("verdicts", same=same))
