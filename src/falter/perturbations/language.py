"""Translation: of the whole prompt, or of prompt, input and answer into different languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

from falter.perturbations.base import declared, register_all
from falter.perturbations.paraphrase import request
from falter.perturbations.rewriting import (
    NoRewrite,
    RewritePerturbation,
    Rewritten,
    Wanted,
    has_letters,
    open_core,
    put,
)
from falter.perturbations.vocabulary import table
from falter.records.errors import InvalidValue, nearest
from falter.records.render import with_choices
from falter.records.rng import Rng
from falter.records.types import Demonstration, Prompt, Section, SectionKind
from falter.text.protection import protect
from falter.text.spans import added

LANGUAGES: dict[str, str] = table("rewrites.json")["languages"]
# BCP 47 (RFC 5646): language, script, region. "es", "zh-Hans", "fr-CA", "es-419"; not "Spanish",
# "ES" or "en_US".
_TAG = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-(?:[A-Z]{2}|\d{3}))?")
_NOTE_NAME = "answer_language"
_INPUTS: tuple[SectionKind, ...] = ("input", "document")


def language_name(tag: str, argument: str = "language") -> str:
    """Return the English name of a language, for use in a request.

    A tag that is not listed is named by the tag itself. Raise `InvalidValue` if `tag` is no
    language tag.
    """
    if tag in LANGUAGES:
        return LANGUAGES[tag]
    if not _TAG.fullmatch(tag):
        close = nearest(tag, LANGUAGES)
        raise InvalidValue(
            argument,
            tag,
            "a language tag such as es, fr-CA or zh-Hans",
            hint=f"did you mean '{close}'?" if close else None,
        )
    return f"the language with the tag {tag}"


def _translation_request(to: str) -> str:
    return request("translation").format(language=language_name(to, "to"))


def _looks_like_name(text: str) -> bool:
    """Return True if a text looks like a name: names are often the same in two languages."""
    words = text.split()
    if len(words) == 1:
        return True
    ends = words[0][0].isupper() and words[-1][0].isupper()
    return len(words) <= 4 and ends and all(w[0].isupper() or len(w) < 4 for w in words)


Translate = Callable[[str], str]


def _translated(
    prompt: Prompt,
    of_input: Translate,
    of_answer: Translate,
    kinds: Sequence[SectionKind] = get_args(SectionKind),
) -> Prompt:
    """Return the prompt with sections of these kinds, options and answers translated.

    Sections are translated one at a time; the list of options is rebuilt from the translated
    options.
    """

    def section_of(section: Section) -> Section:
        if section.kind == "choices":
            return _translated_section(section, of_answer)
        return _translated_section(section, of_input) if section.kind in kinds else section

    sections = tuple(s if s.kind == "choices" else section_of(s) for s in prompt.sections)
    after = _translated_choices(prompt, prompt.with_sections(sections), of_answer)
    demonstrations = tuple(
        Demonstration(
            sections=tuple(map(section_of, example.sections)),
            answer=_translated_answer(prompt, example.answer, of_answer),
        )
        for example in after.demonstrations
    )
    return replace(after, demonstrations=demonstrations, target=_target(after, of_answer))


def _translate(prompt: Prompt, rewritten: Rewritten, rng: Rng, to: str) -> Prompt:
    language_name(to, "translate.to")
    into = partial(rewritten, to=to)
    return _translated(prompt, into, into)


def _has_input(prompt: Prompt, input: str, answer: str) -> bool:
    """Return True if there is an input to translate, and the answer's language is not yet set.

    Raise `InvalidValue` if `input` or `answer` is no language tag.
    """
    language_name(input, "crosslingual.input")
    language_name(answer, "crosslingual.answer")
    already_asked = any(section.name == _NOTE_NAME for section in prompt.sections)
    return not already_asked and any(s.kind in _INPUTS and open_core(s) for s in prompt.sections)


def _cross(prompt: Prompt, rewritten: Rewritten, rng: Rng, input: str, answer: str) -> Prompt:
    def into(language: str) -> Translate:
        return str if language == "en" else partial(rewritten, to=language)

    after = _translated(prompt, into(input), into(answer), _INPUTS)
    return _with_note(after, f"Answer in {language_name(answer)}.")


def _translated_section(section: Section, into: Translate) -> Section:
    span = open_core(section)
    if span is None:
        return section
    start, end = span
    return put(section, [(start, end, into(section.text[start:end]))], whole=True)


def _translated_choices(prompt: Prompt, after: Prompt, into: Translate) -> Prompt:
    """Return `after` with its options translated, in their order.

    Options that an earlier step changed stay. Raise `NoRewrite` if two options become the same.
    """
    listed = [s for s in prompt.sections if s.kind == "choices"]
    if not prompt.choices or any(s.edits or s.protected for s in listed):
        return after
    choices = tuple(_translated_text(choice, into) for choice in prompt.choices)
    if len(set(choices)) < len(set(prompt.choices)):
        raise NoRewrite("two options became the same")
    if choices == prompt.choices:
        return after
    return with_choices(after, choices, prompt.labels, prompt.target)


def _translated_answer(prompt: Prompt, answer: str, into: Translate) -> str:
    """Return the translated answer of a solved example; a label stays."""
    return answer if answer in prompt.labels else _translated_text(answer, into)


def _target(prompt: Prompt, into: Translate) -> int | str | None:
    """Return the translated target; an index, a number and code stay.

    The target of an answer with several fields is translated even if it looks like code.
    """
    if not isinstance(prompt.target, str) or prompt.program is not None:
        return prompt.target
    if prompt.schema is not None and any(map(str.isalpha, prompt.target)):
        return into(prompt.target.strip())
    return _translated_text(prompt.target, into)


def _translated_text(text: str, into: Translate) -> str:
    core = text.strip()
    if not core or not has_letters(core, protect(core)):
        return text
    return text.replace(core, into(core), 1)


def _with_note(prompt: Prompt, words: str) -> Prompt:
    """Return the prompt with a line before its answer cue, or at its end."""
    sections = list(prompt.sections)
    body = [at for at, s in enumerate(sections) if s.kind != "system"]
    at = body[-1] + 1
    if sections[body[-1]].kind == "cue":
        at = body[-1]
    before = "".join(s.text for s in sections[:at] if s.kind != "system")
    text = words if not before or before.endswith("\n") else f"\n{words}"
    # A blank line where a list ends, else the sentence would belong to its last item.
    text = f"\n{text}" if before.rpartition("\n")[2].startswith("- ") else text
    if at < len(sections) and not sections[at].text.startswith("\n"):
        text += "\n"
    return prompt.with_sections((*sections[:at], added(_NOTE_NAME, text), *sections[at:]))


_translation = partial(RewritePerturbation, ask=_translation_request, may_repeat=_looks_like_name)
translate = _translation("translate", change=_translate, **declared("translate"))
crosslingual = _translation(
    "crosslingual", change=_cross, eligible=_has_input, **declared("crosslingual")
)
register_all((translate, crosslingual))


def wanted_translation(text: str, to: str) -> Wanted:
    """Return the rewrite that a text needs to be in the language `to`."""
    return translate.wanted(text, 0, to=to)
