"""Solved examples marked off from each other and from the question in another way."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from falter.core.interfaces import Parameter
from falter.core.records import Prompt
from falter.core.rng import Rng
from falter.perturbations._asking import added
from falter.perturbations._base import prompt_perturbation

__all__ = ["demonstration_delimiter"]


class _Marks(NamedTuple):
    """What stands before each example, and before the question."""

    example: str
    question: str


_MARKS: dict[str, _Marks] = {
    "blank": _Marks("\n\n", "\n\n"),
    "brackets": _Marks("[example]\n", "[question]\n"),
    "dashes": _Marks("---\n", "---\n"),
    "equals": _Marks("==========\n", "==========\n"),
    "hashes": _Marks("###\n", "###\n"),
    "headings": _Marks("## Example\n", "## Question\n"),
    "words": _Marks("Here is an example.\n", "Now it is your turn.\n"),
}
_STYLE = Parameter(
    name="style",
    type=str,
    default="draw",
    help="what marks them off; draw: one of the others for each item and draw",
    options=("draw", *_MARKS),
)


def _has_examples(prompt: Prompt, style: str) -> bool:
    return bool(prompt.demonstrations) and any(s.kind != "system" for s in prompt.sections)


@prompt_perturbation(
    "demonstration_delimiter",
    version=2,
    title="examples marked off in another way",
    family="position",
    group="demonstrations",
    parameters=(_STYLE,),
    invariants=("target", "choices", "numbers", "code", "negations"),
    eligible=_has_examples,
)
def demonstration_delimiter(prompt: Prompt, rng: Rng, style: str) -> Prompt:
    """Puts another mark before each solved example, and before the question.

    A rule, a heading, a word in brackets, a sentence or more empty lines. The words of examples
    and question stay as they are.
    """
    marks = _MARKS[rng.choice(tuple(_MARKS)) if style == "draw" else style]
    name = "demonstration_delimiter"
    shown = tuple(
        replace(d, sections=(added(name, marks.example), *d.sections))
        if n or marks.example.strip()
        else d  # empty lines before everything would mark nothing off
        for n, d in enumerate(prompt.demonstrations)
    )
    sections = prompt.sections
    start = next(n for n, section in enumerate(sections) if section.kind != "system")
    sections = (*sections[:start], added(name, marks.question), *sections[start:])
    return replace(prompt, demonstrations=shown, sections=sections)
