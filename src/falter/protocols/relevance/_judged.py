"""Figures of a judge's part: ratings and entailment of the summaries, arm by arm."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Value
from falter.measures import geval_score, human_evaluation
from falter.protocols._protocol import PartResult
from falter.protocols.relevance._judging import judging_key
from falter.protocols.relevance._parts import BERTSCORE, LIKELIHOOD_RATING, RATING
from falter.protocols.relevance._replies import (
    EXPECTED,
    ORIGINAL,
    Floats,
    Scores,
    summaries_of,
)

__all__ = ["judged_figures"]

NLI_SHARE = 0.3
"""MENLI's weight of entailment less contradiction, beside 0.7 of BERTScore (Chen and Eger 2023)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """One model on one data set: what the judge said of each arm, an entry an article."""

    model: str
    task: str
    items: tuple[str, ...]
    arms: Mapping[str, Floats]


def judged_figures(
    source: PartResult, judged: PartResult, scores: Sequence[Scores], level: float
) -> tuple[Figure, ...]:
    """The ratings of every arm, or its entailment with MENLI's combination. Calls no model."""
    numbers = _numbers(judged)
    panels = list(_panels(source, judged.part.name, numbers))
    judge = ", ".join(dict.fromkeys(panel.model.label for panel in judged.run.panels))
    unread = sum(one.score is None or one.score.value is None for one in judged.cells())
    said = f"Judge: {judge}, {judged.run.panels[0].scorer}." if judged.run.panels else ""
    text = [said] + ([f"{unread} answers of the judge could not be read."] if unread else [])
    if judged.part.name == RATING:
        return (_rating_grid(panels, text, level),)
    return (_entailment_grid(panels, scores, text, level),)


def _numbers(judged: PartResult) -> dict[str, float]:
    """By the key of the pair: the rating from 1 to 5, or entailment less contradiction."""
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


def _panels(source: PartResult, part: str, numbers: Mapping[str, float]) -> Iterator[_Judged]:
    """Articles × arms, draws averaged."""
    found: dict[tuple[str, str], dict[str, dict[str, list[float]]]] = {}
    for summary in summaries_of(source):
        arms = found.setdefault((summary.model, summary.task), {})
        for arm, expected in ((summary.arm, False), (EXPECTED, True)):
            if expected and (part != RATING or summary.arm != ORIGINAL or summary.repeat):
                continue
            key = judging_key(source, part, summary, expected=expected)
            if key in numbers:
                arms.setdefault(arm, {}).setdefault(summary.item, []).append(numbers[key])
    for (model, task), arms in found.items():
        items = tuple(dict.fromkeys(item for arm in arms.values() for item in arm))
        yield _Judged(
            model=model,
            task=task,
            items=items,
            arms={
                arm: np.array([np.mean(of[i]) if i in of else np.nan for i in items])
                for arm, of in arms.items()
            },
        )


def _rating_grid(panels: Sequence[_Judged], text: Sequence[str], level: float) -> Grid:
    return Grid(
        name="rating",
        title="How good the summaries are, as a judge rates them",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Summaries"),
            Column(name="Articles", unit="count"),
            Column(name="Rating, 1 to 5", unit="coefficient"),
            Column(name="Less the original's", unit="coefficient"),
        ),
        rows=tuple(_rows(panels, level)),
        labels=3,
        text=(
            *text,
            "The expected rating where likelihoods of 1 to 5 are known (G-Eval), else the written "
            "one. The judge sees the article as it stood originally. Judges prefer long texts and "
            "their own.",
        ),
    )


def _rows(panels: Sequence[_Judged], level: float) -> Iterator[tuple[Value, ...]]:
    for panel in panels:
        original = panel.arms.get(ORIGINAL)
        for arm, values in panel.arms.items():
            change = None if arm == ORIGINAL else _difference(panel, arm, values, original, level)
            mean = _mean(values, panel, arm, level)
            yield panel.model, panel.task, arm, mean.items, mean, change


def _entailment_grid(
    panels: Sequence[_Judged], scores: Sequence[Scores], text: Sequence[str], level: float
) -> Grid:
    bertscores = {(s.model, s.task): s for s in scores if s.measure == BERTSCORE}
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        f1 = bertscores.get((panel.model, panel.task))
        combined = _combined(panel, f1)
        for arm, values in panel.arms.items():
            mean = _mean(values, panel, arm, level)
            change = menli = menli_change = None
            if arm != ORIGINAL:
                change = _difference(panel, arm, values, panel.arms.get(ORIGINAL), level)
            if arm in combined:
                menli = _mean(combined[arm], panel, arm, level)
                if arm != ORIGINAL:
                    menli_change = _difference(
                        panel, arm, combined[arm], combined.get(ORIGINAL), level
                    )
            rows.append(
                (panel.model, panel.task, arm, mean.items, mean, change, menli, menli_change)
            )
    nli, menli_name = "Entailment less contradiction", "with BERTScore, as in MENLI"
    return Grid(
        name="entailment",
        title="Whether the summaries follow from the expected ones",
        columns=(
            Column(name="Model"),
            Column(name="Data set"),
            Column(name="Summaries"),
            Column(name="Articles", unit="count"),
            Column(name="mean, −1 to 1", unit="coefficient", over=nli),
            Column(name="less the original's", unit="coefficient", over=nli),
            Column(name="mean", unit="coefficient", over=menli_name),
            Column(name="less the original's", unit="coefficient", over=menli_name),
        ),
        rows=tuple(rows),
        labels=3,
        text=(
            *text,
            "The likelihood of yes less that of no, of yes, no and maybe, to whether the summary "
            "follows from the expected one. MENLI adds 0.7 of BERTScore's F1 to 0.3 of it; there a "
            "model of entailment is asked and another encoder used, so its numbers differ. Changes "
            "are differences: percentages of a mean near 0 mean nothing.",
        ),
    )


def _combined(panel: _Judged, scores: Scores | None) -> dict[str, Floats]:
    """0.3·(e − c) + 0.7·F1 of every arm; empty where BERTScore was not asked for."""
    if scores is None:
        return {}
    place = {item: n for n, item in enumerate(scores.items)}
    rows = [place.get(item, -1) for item in panel.items]
    combined = {}
    for arm, values in panel.arms.items():
        f1 = scores.of(arm)
        if f1 is not None:
            own = np.array([f1[n] if n >= 0 else np.nan for n in rows])
            combined[arm] = NLI_SHARE * values + (1.0 - NLI_SHARE) * own
    return combined


def _mean(values: Floats, panel: _Judged, arm: str, level: float) -> Estimate:
    """A mean with Student's t, also where all numbers happen to be 0 and 1."""
    mean = human_evaluation({arm: {"judge": values}}, level=level).means[arm]["judge"]
    return _signed(replace(mean, measure="judged_mean"), panel, arm)


def _difference(
    panel: _Judged, arm: str, values: Floats, original: Floats | None, level: float
) -> Estimate | None:
    """Values less those of the original, over the articles that have both."""
    if original is None:
        return None
    gain = replace(_mean(values - original, panel, arm, level), measure="judged_difference")
    return replace(gain, estimand="mean difference to the original's, items like these")


def _signed(estimate: Estimate, panel: _Judged, arm: str) -> Estimate:
    group = {"model": panel.model, "task": panel.task, "arm": arm}
    return replace(estimate, group={**estimate.group, **group})
