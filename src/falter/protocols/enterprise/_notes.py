"""What the enterprise protocol takes from its paper, and what is our choice."""

from __future__ import annotations

from collections.abc import Iterable

from falter.protocols.enterprise.parts import PRESETS
from falter.protocols.enterprise.scores import ALIKE
from falter.protocols.judging import VERSION

__all__ = ["notes_of"]

_PAPER = (
    "From the paper: four tasks, five categories and the baseline asked twice, a judge that rates "
    "pairs of replies 1 to 3, measures of quality below 3, content delta, quality delta and their "
    "product, temperature 0, formats against plain text.",
    f"Our choice where the paper is silent, or our own: data and prompts; rubrics of our own "
    f"(version {VERSION}); replies that are the same to the letter are rated 3 unasked; a verdict "
    "that cannot be read is asked for once more; without a judge a ROUGE-L of "
    f"{ALIKE:g} stands in for a rating of 3; chains of two perturbations as a seventh category.",
    "Unlike the paper: the headline is the mean of the perturbed categories, without the baseline; "
    "replies that cannot be read count as changed. The paper's own way stands beside both: for 7 "
    "of its 11 models the printed Overall is the mean of six category scores, the baseline's among "
    "them.",
)


def notes_of(preset: str) -> tuple[str, ...]:
    """In sentences, for the plan and the report."""
    chosen = PRESETS[preset]
    if preset != "quick":
        return _PAPER
    return (
        f"Preset quick: every category, with some of its recipes, on {chosen.items} items of each "
        f"task and {chosen.translated} for languages: {', '.join(chosen.multilingual)}, and input "
        f"and answer in {_pairs(chosen.crosslingual)}. It shows that everything works; intervals "
        "are wide or cannot be had.",
        *_PAPER,
    )


def _pairs(languages: Iterable[tuple[str, str]]) -> str:
    """Such as "en and de, de and en"."""
    return ", ".join(f"{shown} and {wanted}" for shown, wanted in languages)
