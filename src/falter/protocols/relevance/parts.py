"""The parts of the protocol: articles, recipes, measures, temperature and number of draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from falter.protocols.protocol import Part, UserSettings, presets_of
from falter.protocols.tables import figures_of

_SCOPE = {"scope": ["document", "input"]}
RECIPES = (
    {"paraphrase_relevant": _SCOPE},
    {"paraphrase_irrelevant": _SCOPE},
    {"paraphrase_relevant": {**_SCOPE, "top": 3}},
    "identity",
)
"""The paper's arms. The article is a document, or the input of a template with a single text."""
BERTSCORE = "summary_bertscore"
MEASURES = {
    "summary_rouge1": "ROUGE-1",
    "summary_rouge2": "ROUGE-2",
    "summary_rougeL": "ROUGE-L",
    BERTSCORE: "BERTScore",
}
"""Scorers of summaries, and their names in the tables."""
LIKELIHOOD_RATING = "summary_rating_likelihood"
SAMPLED, GREEDY = "sampled", "greedy"
RATING, ENTAILMENT = "rating", "entailment"
TEMPERATURE, DRAWS = 0.7, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Tasks, and the number of articles per task for each part (`limits`).

    A part without an entry is left out. None means all articles.
    """

    tasks: tuple[str, ...]
    limits: Mapping[str, int | None] = field(default_factory=dict)


PRESETS = presets_of("relevance", Preset)
declaration = figures_of("relevance")


def parts_of(settings: UserSettings) -> Iterator[Part]:
    """Yield the parts with summaries, sampled and at temperature 0, then the judge's parts.

    The judge rates the preset's first part. If the user names judging parts, only they run.
    """
    preset = PRESETS[settings.preset]
    asked = {
        SAMPLED: (
            f"Relevance paraphrasing, {DRAWS} draws at temperature {TEMPERATURE}",
            {"sampling": {"temperature": TEMPERATURE}, "repeats": DRAWS},
        ),
        GREEDY: ("Relevance paraphrasing at temperature 0", {}),
    }
    for name, limit in preset.limits.items():
        title, sampling = asked[name]
        yield _summaries_part(preset, settings, name, title, limit, sampling)
    if settings.judge:
        named = {RATING, ENTAILMENT} & set(settings.parts) or {RATING, ENTAILMENT}
        judging = _judging_parts(next(iter(preset.limits)), scores=settings.judge_scores)
        yield from (part for part in judging if part.name in named)


def _summaries_part(
    preset: Preset,
    settings: UserSettings,
    name: str,
    title: str,
    limit: int | None,
    sampling: Mapping[str, Any],
) -> Part:
    return Part(
        name=name,
        title=title,
        experiment={
            "tasks": list(preset.tasks),
            "recipes": list(_recipes_of(settings)),
            "scorer": list(MEASURES) if settings.scorer is None else settings.scorer,
            **({} if limit is None else {"limit": limit}),
            **sampling,
        },
        takes=("open",),
        needs=("text",),
        insists=True,
    )


def _recipes_of(settings: UserSettings) -> Iterator[Any]:
    """Yield the user's recipes, or the paper's, applied to articles, and the repeated prompt."""
    if not settings.recipes:
        yield from RECIPES
        return
    for recipe in settings.recipes:
        if isinstance(recipe, str) and recipe.startswith("paraphrase_") and "scope=" not in recipe:
            recipe += f"{',' if ':' in recipe else ':'}scope={'|'.join(_SCOPE['scope'])}"
        yield recipe
    if "identity" not in settings.recipes:
        yield "identity"


def _judging_parts(source: str, *, scores: bool) -> Iterator[Part]:
    """Yield the parts for ratings and entailment of the part `source`.

    If `scores`, the judge's likelihoods are used, otherwise its written answers.
    """
    yield Part(
        name=RATING,
        title="How good the summaries are",
        experiment={"scorer": LIKELIHOOD_RATING if scores else "summary_rating"},
        judges=source,
    )
    yield Part(
        name=ENTAILMENT,
        title="Whether the summaries follow from the expected ones",
        experiment={"scorer": "entailment_likelihood" if scores else "entailment_written"},
        judges=source,
    )


def notes_of(preset: str) -> tuple[str, ...]:
    """Return notes on settings from the paper and on choices of the preset."""
    notes: tuple[str, ...] = declaration(
        "notes",
        paper=preset == "paper",
        sampled=SAMPLED in PRESETS[preset].limits,
        other=preset != "paper",
        temperature=TEMPERATURE,
        draws=DRAWS,
    )["text"]
    return notes
