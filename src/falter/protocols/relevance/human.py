"""The blind rating sheet for summaries: export it for human raters, and read it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from falter.measures.relevance import HumanEvaluation, human_evaluation
from falter.protocols.protocol import PartResult
from falter.protocols.relevance.summaries import EXPECTED, ORIGINAL, article_of, summaries_of
from falter.records.errors import UsageError
from falter.records.ids import digest, short, step_seed
from falter.records.rng import Rng
from falter.rewrites.sheet import Faults, read_rating, sheet_rows, sheet_text
from falter.stats.agreement import krippendorff_alpha

CRITERIA: Mapping[str, tuple[int, int]] = {
    "faithfulness": (0, 1),
    "coherence": (1, 5),
    "relevance": (1, 5),
}
"""Criteria of the ratings, each with its lowest and highest number, as in Askari et al."""

ONE_RATER_HINT = "a sheet is of one rater, who rates each summary once"
OTHER_SHEET_HINT = "read it with the run, the articles and the seed that it was made with"
COLUMNS = ("row", "article", "summary", *CRITERIA)
INSTRUCTIONS = "instructions"
HOW_TO_RATE = (
    "Read the article, then rate its three summaries, which are below each other in an order that "
    "says nothing. Faithful: nothing in it contradicts the article or is not in it (1), else 0. "
    "Coherent: it reads as one text (1 poor to 5 very good). Relevant: it has what matters most "
    "(1 to 5). Leave a cell empty where you cannot tell. Do not change the first column."
)
ARMS = (EXPECTED, ORIGINAL, "relevant sentences")
MAX_ARTICLES = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A summary to rate; the sheet shows `name`, `article` and `summary`, but not the arm."""

    name: str
    arm: str
    item: tuple[str, str, str]
    article: str
    summary: str


def human_sheet(result: PartResult, *, articles: int = MAX_ARTICLES, seed: int = 0) -> str:
    """Return the rating sheet as CSV, with three summaries of each article in random order.

    The three are the expected summary, the summary of the original article, and the summary of the
    article with relevant sentences reworded. The sheet has `articles` articles with all three for
    each model and data set. The first row tells raters to fill in faithfulness (0 or 1), coherence
    and relevance (1 to 5). Each rater gets a copy. Raises UsageError if there is nothing to rate.
    """
    rows = list(_sheet_rows(result, articles, seed))
    if not rows:
        raise UsageError(
            "No article has both a summary of the original and a summary of a reworded text, so "
            "there is nothing to rate"
        )
    rng = Rng(step_seed(seed, "human sheet", 1, 0, result.run.id, 0))
    by_article: dict[tuple[str, str, str], list[_Row]] = {}
    for row in rows:
        by_article.setdefault(row.item, []).append(row)
    row_groups = list(by_article.values())
    shown = (
        (row.name, row.article, row.summary, *[""] * len(CRITERIA))
        for article in map(row_groups.__getitem__, rng.order(len(row_groups)))
        for row in map(article.__getitem__, rng.order(len(article)))
    )
    scales = (f"{low} or {high}" if high == 1 else f"{low} to {high}"
              for low, high in CRITERIA.values())  # fmt: skip
    return sheet_text(COLUMNS, ((INSTRUCTIONS, HOW_TO_RATE, "", *scales), *shown))


def read_human_sheets(
    result: PartResult,
    sheets: Mapping[str, str],
    *,
    articles: int = MAX_ARTICLES,
    seed: int = 0,
    level: float = 0.95,
) -> dict[tuple[str, str], HumanEvaluation]:
    """Return the evaluation of raters' sheets, by model and data set.

    `sheets` are the texts of the files by name, one per rater. `articles` and `seed` must be those
    of the export. Ratings of a summary are averaged over raters first. An empty cell is no rating.
    Raises TaskError for an unknown or repeated row, or a number outside its scale.
    """
    rows = {row.name: row for row in _sheet_rows(result, articles, seed)}
    ratings: dict[tuple[str, str], dict[str, float]] = {}
    for file, text in sheets.items():
        rated: set[str] = set()
        faults = Faults(file)
        for place, line in sheet_rows(text, file, ("row", *CRITERIA)):
            with faults.at(place):
                name = line["row"]
                if name == INSTRUCTIONS:
                    continue
                if name in rated:
                    raise UsageError(f"row '{name}' appears twice", hint=ONE_RATER_HINT)
                rated.add(name)
                if name not in rows:
                    raise UsageError(f"the sheet has no row '{name}'", hint=OTHER_SHEET_HINT)
                for criterion, scale in CRITERIA.items():
                    value = read_rating(criterion, line[criterion], *scale)
                    if value is not None:
                        ratings.setdefault((name, criterion), {})[file] = value
        faults.refuse()
    panels = dict.fromkeys(row.item[:2] for row in rows.values())
    return {
        panel: _panel_evaluation(panel, list(rows.values()), ratings, list(sheets), level)
        for panel in panels
    }


def _panel_evaluation(
    panel: tuple[str, str],
    rows: list[_Row],
    ratings_by_rater: Mapping[tuple[str, str], Mapping[str, float]],
    raters: Sequence[str],
    level: float,
) -> HumanEvaluation:
    panel_rows = [row for row in rows if row.item[:2] == panel]
    items = list(dict.fromkeys(row.item for row in panel_rows))
    ratings = {
        arm: {criterion: np.full(len(items), np.nan) for criterion in CRITERIA} for arm in ARMS
    }
    for row in panel_rows:
        for criterion in CRITERIA:
            if (row.name, criterion) in ratings_by_rater:
                mean = float(np.mean(list(ratings_by_rater[row.name, criterion].values())))
                ratings[row.arm][criterion][items.index(row.item)] = mean
    found = human_evaluation(ratings, scales=CRITERIA, level=level)
    if len(raters) < 2:
        return found
    agreement = {}
    for criterion in CRITERIA:
        said = [ratings_by_rater.get((row.name, criterion), {}) for row in panel_rows]
        table = [[of.get(rater, np.nan) for rater in raters] for of in said]
        if any(of for of in said):
            agreement[criterion] = krippendorff_alpha(table, level=level)
    return replace(found, agreement=agreement)


def _sheet_rows(result: PartResult, articles: int, seed: int) -> Iterator[_Row]:
    """Yield three rows for every drawn article; the draw depends on item key and seed only."""
    texts: dict[tuple[str, str, str], dict[str, tuple[str, str]]] = {}
    for summary in summaries_of(result):
        if summary.repeat or summary.arm not in ARMS:
            continue
        arms = texts.setdefault((summary.model, summary.task, summary.item), {})
        article = article_of(summary.variant)
        arms[summary.arm] = article, " ".join(summary.sentences)
        target = summary.variant.prompt.target
        if summary.arm == ORIGINAL and isinstance(target, str):
            arms[EXPECTED] = article, target
    by_panel: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for item, arms in texts.items():
        if all(arm in arms for arm in ARMS):
            by_panel.setdefault(item[:2], []).append(item)
    for items in by_panel.values():
        drawn = sorted(items, key=lambda item: digest("human", seed, item[2]))[:articles]
        for item in drawn:
            for arm in ARMS:
                name = short(digest("human row", seed, result.run.id, *item, arm), 12)
                article = texts[item][ORIGINAL][0]
                yield _Row(
                    name=name, arm=arm, item=item, article=article, summary=texts[item][arm][1]
                )
