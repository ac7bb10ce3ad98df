"""Padding: characters before and after the whole prompt, and in place of its spaces."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

from falter.perturbations.additions import ends_in_space, framed
from falter.perturbations.base import prompt_perturbation
from falter.records.rng import Rng
from falter.records.types import Edit, Prompt, Section
from falter.text.protection import blocked
from falter.text.spans import replace_spans, uncovered


def _pad(character: str, prompt: Prompt, rng: Rng, count: int) -> Prompt:
    return framed(prompt, "padding", character * count, character * count)


# 64 characters: consonants and signs, so that they form neither words nor numbers; no brace, angle
# bracket, backslash, backtick or quotation mark, so that nothing looks like markup.
_RANDOM_CHARACTERS = b"bcdfghjklmnpqrstvwxzBCDFGHJKLMNPQRSTVWXZ!#$%&()*+,-./:;=?@[]^_|~"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_RANDOM = bytes.maketrans(_BASE64, _RANDOM_CHARACTERS)


def _random_text(rng: Rng, count: int) -> str:
    """Return random characters: a single draw, extended by a hash, because 140 draws are slow."""
    drawn = hashlib.shake_128(rng.below(1 << 53).to_bytes(8, "big")).digest(count)
    return b64encode(drawn).translate(_TO_RANDOM)[:count].decode("ascii")


def _pad_randomly(prompt: Prompt, rng: Rng, count: int) -> Prompt:
    """Return the prompt between two random strings, which contain no word and no number."""
    if not count:
        return prompt
    gap = "" if ends_in_space(prompt) else " "
    text = _random_text(rng, 2 * count)
    return framed(prompt, "padding", f"{text[:count]} ", f"{gap}{text[count:]}")


_SPACE = re.compile(" ")
_CHARACTERS = {
    "ideographic": "\u3000",
    "nbsp": "\u00a0",
    "tab": "\t",
    "thin": "\u2009",
    "underscore": "_",
}


def _has_space(prompt: Prompt, character: str) -> bool:
    return any(" " in section.text for section in prompt.sections if section.kind != "system")


def _replace_spaces(prompt: Prompt, rng: Rng, character: str) -> Prompt:
    """Return the prompt with another character in place of its spaces.

    The system message, the answers of demonstrations, protected text and earlier edits stay.
    """
    put = _CHARACTERS[character]
    demonstrations = tuple(
        replace(demonstration, sections=_with_characters(demonstration.sections, put))
        for demonstration in prompt.demonstrations
    )
    changed = prompt.with_sections(_with_characters(prompt.sections, put))
    return replace(changed, demonstrations=demonstrations) if demonstrations else changed


def _with_characters(sections: Sequence[Section], character: str) -> tuple[Section, ...]:
    return tuple([_with_character(section, character) for section in sections])


def _with_character(section: Section, character: str) -> Section:
    """Return the section with another character in place of its spaces, outside blocked spans."""
    if section.kind == "system" or " " not in section.text:
        return section
    closed = blocked(section)
    places = uncovered((match.span() for match in _SPACE.finditer(section.text)), closed)
    if section.edits or not places:
        return replace_spans(section, [(start, end, character) for start, end in places])
    parts: list[str] = []
    done = 0
    for start, end in closed:
        parts += (section.text[done:start].replace(" ", character), section.text[start:end])
        done = end
    text = "".join((*parts, section.text[done:].replace(" ", character)))
    return Section(
        name=section.name,
        kind=section.kind,
        text=text,
        protected=section.protected,
        edits=tuple([_one_character_edit(at) for at, _ in places]),
        opens=section.opens,
    )


@lru_cache(maxsize=4096)
def _one_character_edit(at: int) -> Edit:
    """Return the edit that replaces one character; cached, because all texts can share it."""
    return Edit(start=at, end=at + 1, new_start=at, new_end=at + 1)


prompt_perturbation("pad_quotes")(partial(_pad, '"'))
prompt_perturbation("pad_spaces")(partial(_pad, " "))
prompt_perturbation("pad_newlines")(partial(_pad, "\n"))
prompt_perturbation("pad_random")(_pad_randomly)
prompt_perturbation("replace_spaces", eligible=_has_space)(_replace_spaces)
