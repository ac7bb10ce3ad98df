"""Tables of the enterprise protocol: robustness by category, deltas, difficulty, runs, samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from falter.measures.enterprise import (
    CategoryScore,
    RobustnessScore,
    category_difficulty,
    run_summary,
)
from falter.protocols.enterprise.pairs import Pair, Reply
from falter.protocols.enterprise.parts import BASELINE, CROSSLINGUAL, POSITIONAL, kind_of
from falter.protocols.enterprise.scores import MIN_SAME_ROUGE, SCORE_TOLERANCE, Scores
from falter.protocols.tables import figures_of
from falter.records.figures import (
    Column,
    Curve,
    Curves,
    Figure,
    Grid,
    HeatMap,
    Statement,
    Strip,
    Strips,
    Value,
)
from falter.records.types import Estimate, EstimateStatus

declaration = figures_of("enterprise")

Scored = Mapping[str, RobustnessScore]
_TITLES = {CROSSLINGUAL: "Cross-lingual"}
# "qwen-7b", "SmolLM2-135M", "llama3.2-1B-base"; not "7bit".
_MODEL_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z])", re.IGNORECASE)


def title_of(category: str) -> str:
    """Return the title of a category, such as `Cross-lingual`."""
    return _TITLES.get(category, category.capitalize())


def main_figures(scores: Scores) -> list[Figure]:
    """Return the main figures: method, robustness table, heat map, deltas and difficulty.

    If no pairs were compared, only the statement about the method is returned.
    """
    by_model = {
        model: found
        for model in scores.models
        if (found := scores.score(scores.of_model(model))) is not None
    }
    figures: list[Figure] = _method_figures(scores)
    if not by_model:
        return figures
    figures += [_robustness_table(scores, by_model), _robustness_heat_map(scores, by_model)]
    figures += [_deltas_table(scores, by_model), _difficulty_table(scores, by_model)]
    return figures


def _method_figures(scores: Scores) -> list[Figure]:
    if scores.ratings.judged:
        return []
    if all(pair.missing or pair.unread or pair.same for pair in scores.pairs):
        return [Statement(**declaration("nothing-compared"))]
    names = " and ".join(title_of(name) for name in scores.not_compared)
    method = declaration(
        "method",
        crosses=any(pair.crosses for pair in scores.pairs),
        hidden=f" {names}: not shown." if names else "",
        alike=MIN_SAME_ROUGE,
        tolerance=SCORE_TOLERANCE,
    )
    return [Statement(**method)]


def _robustness_table(scores: Scores, by_model: Scored) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for model, found in by_model.items():
        cells = [
            scores.signed(found.categories[name].overall.strict, model=model, category=name)
            if name in found.categories
            else None
            for name in scores.categories
        ]
        overall = (
            found.strict.mean_excl_baseline,
            found.strict.overall_formula,
            found.valid.mean_incl_baseline,
        )
        rows.append((model, *(scores.signed(e, model=model) for e in overall), *cells))
    columns = (
        Column(name=title_of(name), unit="percent", over="Robustness, strict")
        for name in scores.categories
    )
    return Grid(rows=tuple(rows), **declaration("robustness", columns))


def _robustness_heat_map(scores: Scores, by_model: Scored) -> HeatMap:
    return HeatMap(
        rows=tuple(by_model),
        columns=tuple(title_of(name) for name in scores.categories),
        cells=tuple(
            tuple(
                scores.signed(found.categories[name].overall.strict, model=model, category=name)
                if name in found.categories
                else None
                for name in scores.categories
            )
            for model, found in by_model.items()
        ),
        **declaration("categories"),
    )


def _cells(scores: Scores, found: CategoryScore, **group: str) -> list[Value]:
    """Return the numbers of one row of a table of deltas, the number of items first."""
    content, quality, overall = found.content, found.quality, found.overall
    estimates = (
        content.strict, content.valid, quality.strict, quality.valid, quality.worse,
        quality.better, quality.mixed, overall.strict, overall.valid,
    )  # fmt: skip
    return [content.strict.items, *(scores.signed(e, **group) for e in estimates)]


def _deltas_table(scores: Scores, by_model: Scored) -> Grid:
    rows: list[tuple[Value, ...]] = [
        (model, title_of(name), *_cells(scores, found.categories[name], model=model, category=name))
        for model, found in by_model.items()
        for name in scores.categories
        if name in found.categories
    ]
    return Grid(rows=tuple(rows), **declaration("deltas"))


def split_grid(
    scores: Scores,
    name: str,
    title: str,
    headings: Sequence[str],
    lines: Mapping[tuple[str, ...], Sequence[Pair]],
    text: Sequence[str] = (),
) -> Grid:
    """Return a table of deltas with a row for each group of pairs in `lines`.

    The keys of `lines` are the row labels, one for each of the `headings`.
    """
    rows: list[tuple[Value, ...]] = []
    for labels, pairs in lines.items():
        found = scores.overall_score(pairs)
        if found is None:
            continue
        about = dict(zip(map(str.lower, headings), labels, strict=True))
        rows.append((*labels, *_cells(scores, found, **about)))
    columns = [Column(name=heading) for heading in headings]
    settings = declaration("split", columns, text, name=name, title=title)
    return Grid(rows=tuple(rows), labels=len(headings), **settings)


def _difficulty_table(scores: Scores, by_model: Scored) -> Grid:
    """Return the table of categories with three kinds of spread, the baseline first.

    The other categories follow from the lowest mean robustness to the highest.
    """
    values = {
        model: {name: found.categories[name].overall.strict.value for name in found.categories}
        for model, found in by_model.items()
    }
    sds = {model: _run_sds(scores, model) for model in by_model}
    table = category_difficulty(values, sds, baseline=BASELINE)
    ordered = sorted(table, key=lambda name: (table[name].mean is None, table[name].mean or 0.0))
    ordered.sort(key=lambda name: name != BASELINE)
    rows: list[tuple[Value, ...]] = []
    for name in ordered:
        line = table[name]
        spreads = (line.mean_run_sd, line.pooled_run_sd, line.sd_across_models)
        numbers = (line.mean, line.drop, *spreads)
        rows.append((title_of(name), line.models, *map(_bare_estimate, numbers)))
    return Grid(rows=tuple(rows), **declaration("difficulty"))


def _bare_estimate(value: float | None) -> Estimate:
    status: EstimateStatus = "insufficient_data" if value is None else "ok"
    return Estimate(measure="category_difficulty", value=value, status=status)


def _robustness_per_run(scores: Scores, model: str) -> list[dict[str, float | None]]:
    runs: list[dict[str, float | None]] = []
    for run in scores.runs:
        found = scores.score(pair for pair in scores.of_model(model) if pair.run == run)
        if found is not None:
            runs.append({n: c.overall.strict.value for n, c in found.categories.items()})
    return runs


def _run_sds(scores: Scores, model: str) -> dict[str, float | None]:
    if len(scores.runs) < 2:
        return {}
    summary = run_summary(_robustness_per_run(scores, model), baseline=BASELINE)
    return {name: spread.sd for name, spread in summary.categories.items()}


def run_figures(scores: Scores) -> list[Figure]:
    """Return the means and standard deviations over runs; empty for a single run."""
    if len(scores.runs) < 2:
        return []
    rows: list[tuple[Value, ...]] = []
    flagged: list[str] = []
    for model in scores.models:
        summary = run_summary(_robustness_per_run(scores, model), baseline=BASELINE)
        cells: list[Value] = []
        for name in scores.categories:
            spread = summary.categories.get(name)
            cells += [
                _bare_estimate(spread.mean if spread else None),
                _bare_estimate(spread.sd if spread else None),
            ]
        overall = summary.mean_excl_baseline
        rows.append((model, _bare_estimate(overall.mean), _bare_estimate(overall.sd), *cells))
        flagged += [f"run {n + 1} of {model} lacks {', '.join(x)}"
                    for n, x in summary.flagged.items()]  # fmt: skip
    names = ("Mean of categories", *(title_of(name) for name in scores.categories))
    columns = (
        Column(name=kind, unit="percent", over=name) for name in names for kind in ("mean", "SD")
    )
    text = [f"{'; '.join(flagged)}: left out of the mean of categories."] if flagged else []
    table = Grid(rows=tuple(rows), **declaration("runs", columns, text, runs=len(scores.runs)))
    return [table, *_positional_strips(scores)]


def _positional_strips(scores: Scores) -> Iterator[Figure]:
    """Yield the robustness of each run under positional perturbations, as the paper's Figure 2."""
    strips: list[Strip] = []
    for model in scores.models:
        values = [run.get(POSITIONAL) for run in _robustness_per_run(scores, model)]
        dots = [(f"run {n}", value) for n, value in enumerate(values, 1) if value is not None]
        strips.append(Strip(label=model, kind="one run", values=tuple(dots)))
    if any(strip.values for strip in strips):
        yield Strips(strips=tuple(strips), **declaration("positional"))


def size_figures(scores: Scores) -> list[Figure]:
    """Return robustness against the number of parameters, read from model names such as `7b`.

    The list is empty if fewer than two models have a size in their name.
    """
    curves: list[Curve] = []
    for model in scores.models:
        size, found = _MODEL_SIZE.search(model), scores.score(scores.of_model(model))
        if size is None or found is None:
            continue
        billions = float(size[1]) / (1000 if size[2].lower() == "m" else 1)
        estimate = scores.signed(found.strict.mean_excl_baseline, model=model)
        curves.append(Curve(label=model, points=((billions, estimate),)))
    if len(curves) < 2:
        return []
    return [Curves(curves=tuple(curves), true_scale=True, **declaration("size"))]


# Samples of response pairs


SAMPLES_PER_CATEGORY = 3
MAX_SAMPLE_CHARACTERS = 600


def sample_figures(scores: Scores) -> list[Figure]:
    """Return a table of up to `SAMPLES_PER_CATEGORY` pairs per model and category, worst first."""
    rows = [row for model in scores.models for row in _sample_rows(scores, model)]
    if not rows:
        return []
    return [Grid(rows=tuple(rows), **declaration("samples", each=SAMPLES_PER_CATEGORY))]


def _sample_rows(scores: Scores, model: str) -> Iterator[tuple[Value, ...]]:
    for name in scores.categories:
        rated = [
            (rating, pair)
            for pair in scores.of_model(model)
            if pair.category == name and (rating := scores.rating(pair)) is not None
        ]
        rated.sort(key=lambda both: (both[0] != both[0], both[0], both[1].recipe.label))
        for rating, pair in rated[:SAMPLES_PER_CATEGORY]:
            yield (
                model,
                title_of(name),
                pair.recipe.label,
                pair.task,
                pair.item,
                int(rating) if rating == rating else None,
                _measures_text(scores, pair, rating),
                _reply_text(pair.reference),
                _reply_text(pair.candidate),
            )


def _measures_text(scores: Scores, pair: Pair, rating: float) -> str:
    """Return the quality measures of both responses, such as `faithfulness 3 → 2`.

    The text is empty unless the rating is below 3.
    """
    if not rating < 3:
        return ""
    names = (*scores.ratings.measures(pair), *kind_of(pair.task).beside)
    values = ((name, *scores.ratings.both(pair, name)) for name in names)
    return "; ".join(f"{name} {_number_text(a)} → {_number_text(b)}" for name, a, b in values)


def _number_text(value: float) -> str:
    return f"{value:.2g}" if value == value else "?"


def _reply_text(reply: Reply | None) -> str:
    text = "" if reply is None else reply.text.strip()
    return text if len(text) <= MAX_SAMPLE_CHARACTERS else f"{text[: MAX_SAMPLE_CHARACTERS - 1]}…"
