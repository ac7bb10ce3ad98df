"""The judge's task for summaries, and figures of its ratings and of entailment by arm."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from falter.measures.relevance import best_tally, geval_score, human_evaluation
from falter.protocols.judging import quoted, rubric
from falter.protocols.protocol import Part, PartResult
from falter.protocols.relevance.parts import BERTSCORE, ENTAILMENT, LIKELIHOOD_RATING, RATING
from falter.protocols.relevance.summaries import (
    EXPECTED,
    ORIGINAL,
    Floats,
    Scores,
    Summary,
    article_of,
    summaries_of,
)
from falter.protocols.tables import figures_of
from falter.records.errors import TaskError
from falter.records.figures import Figure, Grid, Value
from falter.records.ids import digest, short
from falter.records.types import Estimate, Item
from falter.scorers import summary_rating
from falter.tasks import Template
from falter.tasks.task import Task

# The judge's task


MAX_ARTICLE_CHARACTERS, MAX_SUMMARY_CHARACTERS = 24_000, 4_000

_MATERIAL = "\nThe article:\n{article}\n\nThe summary:\n{summary}\n"
_TEXTS = "\nThe first text:\n{expected}\n\nThe second text:\n{summary}\n"


def judged_task(part: Part, source: PartResult) -> Task:
    """Return the judge's task: an item for every different pair of texts.

    A rating compares a summary with the original article, even if the model saw a reworded article,
    because the rating should show lost content. The expected summaries are rated too. Entailment
    compares a summary with the expected summary. Raises TaskError if there is nothing to judge.
    """
    is_entailment = part.name == ENTAILMENT
    summaries = list(summaries_of(source))
    articles = {(s.task, s.item): article_of(s.variant) for s in summaries if s.arm == ORIGINAL}
    items: dict[str, Item] = {}
    for summary, expected in _rated_versions(summaries):
        article = articles.get((summary.task, summary.item))
        if article is None or (is_entailment and (expected or not _expected_summary(summary))):
            continue
        text = _expected_summary(summary) if expected else " ".join(summary.sentences)
        first = {"expected": quoted(_expected_summary(summary), MAX_SUMMARY_CHARACTERS)}
        if not is_entailment:
            first = {"article": quoted(article, MAX_ARTICLE_CHARACTERS)}
        key = _judging_key(source, part.name, summary, expected=expected)
        items[key] = Item(
            task=f"summary_{part.name}",
            key=key,
            fields={**first, "summary": quoted(text, MAX_SUMMARY_CHARACTERS)},
            choices=summary_rating.ENTAILMENT if is_entailment else summary_rating.RATINGS,
        )
    if not items:
        raise TaskError(
            f"The part '{source.part.name}' has no summary to judge",
            hint="finish the run first; the judge needs at least one response",
        )
    name, material = ("entailment", _TEXTS) if is_entailment else ("summary", _MATERIAL)
    cue = "Does the second follow from the first?" if is_entailment else "Rating (1 to 5):"
    wanted = "yes, no or maybe" if is_entailment else "one whole number from 1 to 5"
    form = f"\nReply with {wanted} and nothing else."
    sections = {"instruction": rubric(name), "input": material}
    return Task(
        name=f"summary_{part.name}",
        items=tuple(items.values()),
        templates={
            "cloze": Template.parse({**sections, "cue": cue}),
            "open": Template.parse({**sections, "output_format": form, "cue": cue}),
        },
        scorer=str(part.experiment["scorer"]),
    )


def _judging_key(source: PartResult, task: str, summary: Summary, *, expected: bool) -> str:
    """Return the item key of a judged pair; the same article with the same summary is one item."""
    text = _expected_summary(summary) if expected else " ".join(summary.sentences)
    return short(digest("judged", source.run.id, task, summary.task, summary.item, text), 16)


def _rated_versions(summaries: Sequence[Summary]) -> Iterator[tuple[Summary, bool]]:
    """Yield every summary with False, and one per article with True for its expected summary."""
    for summary in summaries:
        yield summary, False
        if summary.arm == ORIGINAL and summary.repeat == 0 and _expected_summary(summary):
            yield summary, True


def _expected_summary(summary: Summary) -> str:
    target = summary.variant.prompt.target
    return target if isinstance(target, str) else ""


declaration = figures_of("relevance")

NLI_WEIGHT = 0.3
"""Weight of entailment minus contradiction in MENLI; BERTScore has 0.7 (Chen and Eger 2023)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratings:
    """The judge's numbers for one model on one data set.

    `arms` maps each arm to an array of shape (articles,), NaN without a parsed verdict.
    """

    model: str
    task: str
    items: tuple[str, ...]
    arms: Mapping[str, Floats]


def judged_figures(
    source: PartResult, judged: PartResult, scores: Sequence[Scores], level: float
) -> tuple[Figure, ...]:
    """Return a table of ratings by arm, or of entailment by arm with MENLI. Calls no model."""
    numbers = _numbers_by_item(judged)
    panels = list(_panels(source, judged.part.name, numbers))
    judge = ", ".join(dict.fromkeys(panel.model.label for panel in judged.run.panels))
    unread = sum(one.score is None or one.score.value is None for one in judged.cells())
    said = f"Judge: {judge}, {judged.run.panels[0].scorer}." if judged.run.panels else ""
    text = [said] + ([f"{unread} answers of the judge could not be read."] if unread else [])
    if judged.part.name == RATING:
        return (_rating_grid(panels, text, level),)
    return (_entailment_grid(panels, scores, text, level),)


def _numbers_by_item(judged: PartResult) -> dict[str, float]:
    """Return by item key the rating from 1 to 5, or entailment minus contradiction in [-1, 1]."""
    numbers: dict[str, float] = {}
    for answered in judged.cells():
        score = answered.score
        if score is None or score.value is None:
            continue
        if score.scorer == LIKELIHOOD_RATING:
            rating = geval_score(json.loads(score.extracted or "[]")).value
        elif judged.part.name == RATING:
            rating = 1.0 + 4.0 * score.value
        else:
            rating = 2.0 * score.value - 1.0
        if rating is not None:
            numbers[answered.cell.variant.item.key] = rating
    return numbers


def _panels(source: PartResult, part: str, numbers: Mapping[str, float]) -> Iterator[_Ratings]:
    """Yield the judge's numbers by article and arm, averaged over draws."""
    found: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = {}
    for summary in summaries_of(source):
        arms = found.setdefault((summary.model, summary.task), {})
        for arm, expected in ((summary.arm, False), (EXPECTED, True)):
            if expected and (part != RATING or summary.arm != ORIGINAL or summary.repeat):
                continue
            key = _judging_key(source, part, summary, expected=expected)
            if key in numbers:
                arms.setdefault(arm, {}).setdefault(summary.item, []).append(numbers[key])
    for (model, task), arms in found.items():
        items = tuple(dict.fromkeys(item for arm in arms.values() for item in arm))
        yield _Ratings(
            model=model,
            task=task,
            items=items,
            arms={
                arm: np.array([np.mean(of[i]) if i in of else np.nan for i in items])
                for arm, of in arms.items()
            },
        )


def _rating_grid(panels: Sequence[_Ratings], text: Sequence[str], level: float) -> Grid:
    return Grid(rows=tuple(_rating_rows(panels, level)), **declaration("rating", text=text))


def _rating_rows(panels: Sequence[_Ratings], level: float) -> Iterator[tuple[Value, ...]]:
    for panel in panels:
        original = panel.arms.get(ORIGINAL)
        tally = best_tally({arm: {"judge": values} for arm, values in panel.arms.items()})
        for arm, values in panel.arms.items():
            change = None
            if arm != ORIGINAL:
                change = _difference(panel, arm, values, original, level, 4.0)
            mean = _arm_mean(values, panel, arm, level, (1.0, 5.0))
            yield panel.model, panel.task, arm, mean.items, mean, change, tally[arm]


def _entailment_grid(
    panels: Sequence[_Ratings], scores: Sequence[Scores], text: Sequence[str], level: float
) -> Grid:
    # Reversed, so that the first of several encoders wins.
    named = [s for s in scores if s.measure.partition(":")[0] == BERTSCORE]
    bertscores = {(s.model, s.task): s for s in reversed(named)}
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        f1 = bertscores.get((panel.model, panel.task))
        combined = _combined_estimate(panel, f1)
        for arm, values in panel.arms.items():
            mean = _arm_mean(values, panel, arm, level, (-1.0, 1.0))
            change = menli = menli_change = None
            if arm != ORIGINAL:
                change = _difference(panel, arm, values, panel.arms.get(ORIGINAL), level, 2.0)
            if arm in combined:
                menli = _arm_mean(combined[arm], panel, arm, level, (-1.0, 1.0))
                if arm != ORIGINAL:
                    menli_change = _difference(
                        panel, arm, combined[arm], combined.get(ORIGINAL), level, 2.0
                    )
            rows.append(
                (panel.model, panel.task, arm, mean.items, mean, change, menli, menli_change)
            )
    return Grid(rows=tuple(rows), **declaration("entailment", text=text))


def _combined_estimate(panel: _Ratings, scores: Scores | None) -> dict[str, Floats]:
    """Return MENLI by arm, 0.3·(e − c) + 0.7·F1; empty if BERTScore is no measure of the run."""
    if scores is None:
        return {}
    place = {item: n for n, item in enumerate(scores.items)}
    rows = [place.get(item, -1) for item in panel.items]
    combined = {}
    for arm, values in panel.arms.items():
        f1 = scores.of(arm)
        if f1 is not None:
            own = np.array([f1[n] if n >= 0 else np.nan for n in rows])
            combined[arm] = NLI_WEIGHT * values + (1.0 - NLI_WEIGHT) * own
    return combined


def _arm_mean(
    values: Floats, panel: _Ratings, arm: str, level: float, scale: tuple[float, float]
) -> Estimate:
    """Return the mean of an arm, with an interval that stays on the scale."""
    found = human_evaluation({arm: {"judge": values}}, scales={"judge": scale}, level=level)
    return _signed_estimate(replace(found.means[arm]["judge"], measure="judged_mean"), panel, arm)


def _difference(
    panel: _Ratings, arm: str, values: Floats, original: Floats | None, level: float, width: float
) -> Estimate | None:
    """Return the mean difference to the original, over the articles that have both numbers.

    The t interval is clipped to ±`width`, the width of the scale. Return None without an original.
    """
    if original is None:
        return None
    found = human_evaluation({arm: {"judge": values - original}}, level=level).means[arm]["judge"]
    low, high = (None if end is None else min(width, max(-width, end))
                 for end in (found.low, found.high))  # fmt: skip
    gain = replace(found, measure="judged_difference", low=low, high=high)
    gain = replace(gain, estimand="mean difference to the original's, items like these")
    return _signed_estimate(gain, panel, arm)


def _signed_estimate(estimate: Estimate, panel: _Ratings, arm: str) -> Estimate:
    group = {"model": panel.model, "task": panel.task, "arm": arm}
    return replace(estimate, group={**estimate.group, **group})
