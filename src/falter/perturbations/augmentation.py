"""Prompt augmentation: a sentence before or after the whole prompt."""

from __future__ import annotations

from falter.core.interfaces import Parameter
from falter.core.records import Prompt
from falter.core.rng import Rng
from falter.perturbations._base import has_body, prompt_perturbation
from falter.perturbations._frame import ends_in_space, framed
from falter.perturbations._resources import lines, user_lines

__all__ = ["emotion", "persona"]

_FAMILY, _GROUP = "augmentation", "prompt augmentation"
_MEANING = ("target", "choices", "numbers", "code")
_FILE = Parameter(
    name="file", type=str, default=None, help="a text file with sentences of your own, one a line"
)


def _personas(file: str | None, language: str) -> tuple[str, ...]:
    return lines(f"personas_{language}.txt") if file is None else user_lines("persona.file", file)


def _emotions(file: str | None, language: str) -> tuple[str, ...]:
    return lines(f"emotions_{language}.txt") if file is None else user_lines("emotion.file", file)


def _has_persona(prompt: Prompt, file: str | None, language: str) -> bool:
    return bool(_personas(file, language)) and has_body(prompt)


def _has_emotion(prompt: Prompt, file: str | None, language: str) -> bool:
    return bool(_emotions(file, language)) and has_body(prompt)


@prompt_perturbation(
    "persona",
    title="a persona in front",
    family=_FAMILY,
    group=_GROUP,
    parameters=(_FILE,),
    invariants=_MEANING,
    languages=("en",),
    eligible=_has_persona,
)
def persona(prompt: Prompt, rng: Rng, file: str | None, language: str) -> Prompt:
    """Puts a persona before the whole prompt, on a line of its own.

    An item draws the same persona for all its options and for every model.
    """
    chosen = rng.choice(_personas(file, language))
    return framed(prompt, "persona", before=f"{chosen}\n")


@prompt_perturbation(
    "emotion",
    title="an emotional plea",
    family=_FAMILY,
    group=_GROUP,
    parameters=(_FILE,),
    invariants=(*_MEANING, "lines"),
    languages=("en",),
    eligible=_has_emotion,
)
def emotion(prompt: Prompt, rng: Rng, file: str | None, language: str) -> Prompt:
    """Puts an emotional plea after the whole prompt, answer cue included."""
    chosen = rng.choice(_emotions(file, language))
    gap = "" if ends_in_space(prompt) else " "
    return framed(prompt, "emotion", after=gap + chosen)
