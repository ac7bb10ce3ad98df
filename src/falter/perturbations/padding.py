"""Prompt padding: characters before and after the whole prompt."""

from __future__ import annotations

from falter.core.interfaces import Parameter
from falter.core.records import Prompt
from falter.core.rng import Rng
from falter.perturbations._base import prompt_perturbation
from falter.perturbations._frame import framed

__all__ = ["pad_newlines", "pad_quotes", "pad_spaces"]

_FAMILY, _GROUP = "padding", "prompt padding"
_MEANING = ("target", "choices", "numbers", "code", "negations")
_COUNT = Parameter(
    name="count", type=int, default=5, low=0, high=64, help="characters on each side"
)


@prompt_perturbation(
    "pad_quotes",
    family=_FAMILY,
    group=_GROUP,
    parameters=(_COUNT,),
    invariants=(*_MEANING, "lines"),
)
def pad_quotes(prompt: Prompt, rng: Rng, count: int) -> Prompt:
    """Puts quotation marks before and after the whole prompt."""
    return framed(prompt, "padding", '"' * count, '"' * count)


@prompt_perturbation(
    "pad_spaces",
    family=_FAMILY,
    group=_GROUP,
    parameters=(_COUNT,),
    invariants=(*_MEANING, "lines"),
)
def pad_spaces(prompt: Prompt, rng: Rng, count: int) -> Prompt:
    """Puts spaces before and after the whole prompt."""
    return framed(prompt, "padding", " " * count, " " * count)


@prompt_perturbation(
    "pad_newlines", family=_FAMILY, group=_GROUP, parameters=(_COUNT,), invariants=_MEANING
)
def pad_newlines(prompt: Prompt, rng: Rng, count: int) -> Prompt:
    """Puts line breaks before and after the whole prompt."""
    return framed(prompt, "padding", "\n" * count, "\n" * count)
