"""The tables of the enterprise paper, with the run's models in the first rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from falter.measures.enterprise import run_summary
from falter.protocols.enterprise.figures import title_of
from falter.protocols.enterprise.parts import BASELINE, CATEGORIES, COMPOUND, FORMAT, MULTILINGUAL
from falter.protocols.enterprise.scores import Scores
from falter.protocols.tables import figures_of
from falter.records.figures import Column, Figure, Grid, Value
from falter.records.types import Estimate

declaration = figures_of("enterprise")

SIX_CATEGORIES = tuple(name for name in CATEGORIES if name != COMPOUND)
ROUNDING_ERROR = 0.0101
"""Largest difference in percent that rounding explains: one unit of the second decimal.

The numbers are printed with two decimals and computed from others with two decimals.
"""
LANGUAGE_CODES = {
    "German": "de",
    "Spanish": "es",
    "French": "fr",
    "Italian": "it",
    "Japanese": "ja",
    "Dutch": "nl",
    "Brazilian Portuguese": "pt-BR",
}
_AVERAGES = ("Average", "Mean")


@dataclass(frozen=True, slots=True)
class Printed:
    """A printed number in percent: mean and standard deviation over five runs."""

    mean: float
    sd: float | None

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if self.sd is None else f" ± {self.sd:.2f}")


PrintedTable = Mapping[str, Mapping[str, Printed | None]]
"""Model → column → number; None if the paper prints N/A."""


@cache
def published_tables() -> Mapping[str, PrintedTable]:
    """Return `overall`, `formats` and `languages`: tables 2, 5 and 4 of the paper."""
    file = resources.files("falter.protocols.enterprise") / "data" / "published.tsv"
    lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
    tables: dict[str, dict[str, dict[str, Printed | None]]] = {}
    for row in csv.DictReader(lines, delimiter="\t"):
        sd = float(row["sd"]) if row["sd"] else None
        number = Printed(float(row["mean"]), sd) if row["mean"] else None
        tables.setdefault(row["table"], {}).setdefault(row["model"], {})[row["column"]] = number
    return tables


def _mean_of_six(row: Mapping[str, Printed | None]) -> float:
    """Return the mean of a printed row's six categories, the baseline included, without N/A."""
    known = {name: number.mean for name in SIX_CATEGORIES if (number := row[name]) is not None}
    mean = run_summary([known], baseline=BASELINE).mean_incl_baseline.mean
    assert mean is not None
    return mean


def overall_misfits() -> dict[str, tuple[float, float]]:
    """Return (printed Overall, mean of six categories) of the models for which the two differ.

    Differences that rounding explains do not count.
    """
    misfits: dict[str, tuple[float, float]] = {}
    for model, row in published_tables()["overall"].items():
        overall = row["overall"]
        assert overall is not None
        if model not in _AVERAGES and abs(overall.mean - _mean_of_six(row)) > ROUNDING_ERROR:
            misfits[model] = (overall.mean, _mean_of_six(row))
    return misfits


def published_figures(scores: Scores) -> list[Figure]:
    """Return the paper's tables of categories, formats and languages with the run's models."""
    return [_overall_table(scores), _formats_table(scores), _languages_table(scores)]


def _overall_table(scores: Scores) -> Grid:
    table, misfits = published_tables()["overall"], overall_misfits()
    rows: list[tuple[Value, ...]] = [
        (model, "yours", None, *_own_numbers(scores, model)) for model in scores.models
    ]
    for model, row in table.items():
        numbers = (
            row[name] for name in ("overall", "content_delta", "quality_delta", *SIX_CATEGORIES)
        )
        overall, *others = map(_printed_text, numbers)
        rows.append((model, "paper", overall, f"{_mean_of_six(row):.2f}", *others))
    models = len([model for model in table if model not in _AVERAGES])
    named = ", ".join(f"{name} {said:.2f} for {mean:.2f}" for name, (said, mean) in misfits.items())
    return Grid(
        rows=tuple(rows),
        **declaration(
            "published",
            columns=(
                Column(name=title_of(name), unit="percent", over="Robustness")
                for name in SIX_CATEGORIES
            ),
            unjudged=not scores.ratings.judged,
            fitting=models - len(misfits),
            models=models,
            others=len(misfits),
            named=named,
        ),
    )


def _own_numbers(scores: Scores, model: str) -> list[Value]:
    """Return a run model's mean of six categories, both deltas, and its six categories.

    All numbers leave unparsed responses out. An entry is None if its categories were not run.
    """
    pairs = [pair for pair in scores.of_model(model) if pair.category in SIX_CATEGORIES]
    by_category, whole = scores.score(pairs), scores.overall_score(pairs)
    if by_category is None or whole is None:
        return [None] * (3 + len(SIX_CATEGORIES))
    categories = by_category.categories
    complete = set(categories) == set(SIX_CATEGORIES)
    estimates: list[Estimate | None] = [
        by_category.valid.mean_incl_baseline if complete else None,
        whole.content.valid,
        whole.quality.valid,
        *(
            categories[name].overall.valid if name in categories else None
            for name in SIX_CATEGORIES
        ),
    ]
    return [None if e is None else scores.signed(e, model=model) for e in estimates]


def _formats_table(scores: Scores) -> Grid:
    def run_estimate(model: str, form: str) -> Estimate | None:
        found = scores.overall_score(
            pair
            for pair in scores.of_model(model)
            if pair.category == FORMAT and (pair.recipe.output_format or "").upper() == form.upper()
        )
        return None if found is None else found.overall.valid

    return _split_table(scores, "formats", run_estimate)


def _languages_table(scores: Scores) -> Grid:
    def run_estimate(model: str, language: str) -> Estimate | None:
        found = scores.overall_score(
            pair
            for pair in scores.of_model(model)
            if pair.category == MULTILINGUAL and pair.languages[1] == LANGUAGE_CODES.get(language)
        )
        return None if found is None else found.quality.valid

    return _split_table(scores, "languages", run_estimate)


def _split_table(scores: Scores, name: str, own: Callable[[str, str], Estimate | None]) -> Grid:
    """Return a printed table; `own` returns a run model's estimate for a column, or None."""
    table = published_tables()[name]
    columns = list(next(iter(table.values())))
    rows: list[tuple[Value, ...]] = []
    for model in scores.models:
        numbers = [own(model, column) for column in columns]
        if any(number is not None for number in numbers):
            signed = (None if e is None else scores.signed(e, model=model) for e in numbers)
            rows.append((model, "yours", *signed))
    rows += [
        (model, "paper", *(_printed_text(row[column]) for column in columns))
        for model, row in table.items()
    ]
    shown = (Column(name=column, unit="percent") for column in columns)
    return Grid(rows=tuple(rows), **declaration(f"published-{name}", shown))


def _printed_text(number: Printed | None) -> str:
    return "N/A" if number is None else str(number)
