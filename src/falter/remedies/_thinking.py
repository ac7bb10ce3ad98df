"""Reasoning asked for before the answer."""

from __future__ import annotations

from dataclasses import replace

from falter.core.records import Prompt
from falter.remedies._base import remedy
from falter.remedies._placing import ahead_of_cue
from falter.text import replace_spans

__all__ = ["think_first"]

_TOKENS = 512
_CUE = "Reasoning:"
_CUE_WORDS = 4


@remedy("think_first", reasons=True, reply_tokens=_TOKENS)
def think_first(prompt: Prompt) -> Prompt:
    """Asks for the reasoning first, and for the answer on a last line of its own.

    Prompts whose answer has a form of its own, with several parts or code, stay as they are.
    """
    if prompt.schema is not None or prompt.program is not None or not prompt.sections:
        return prompt
    asked = ahead_of_cue(
        prompt,
        "think_first",
        "First work out step by step what is asked and what follows, in a few sentences, even if "
        f"a short answer was asked for. Then write, on a last line by itself:\nAnswer: X\n"
        f"where X is {_what(prompt)}.",
    )
    return _with_cue(asked)


def _what(prompt: Prompt) -> str:
    """What an answer consists of, in words."""
    if not prompt.choices or not any(s.kind == "choices" for s in prompt.sections):
        return "your answer"
    labelled = prompt.answer_as == "label" and "{label}" in prompt.choice_format
    return f"the {'label' if labelled else 'text'} of the option you choose"


def _with_cue(prompt: Prompt) -> Prompt:
    """A short cue that asks for the answer at once asks for the reasoning instead."""
    sections = list(prompt.sections)
    for at in range(len(sections) - 1, -1, -1):
        section = sections[at]
        line = section.text.rstrip()
        start = line.rfind("\n") + 1
        if section.kind == "cue" and line:
            if len(line[start:].split()) <= _CUE_WORDS:
                sections[at] = replace_spans(section, [(start, len(line), _CUE)])
            break
    return replace(prompt, sections=tuple(sections))
