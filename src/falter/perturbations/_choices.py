"""The options of a prompt: where they are listed, and which of them refer to others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from falter.core.late_regex import late_regex
from falter.core.records import Choicewise, Edit, Prompt, Section
from falter.core.render import choice_block

__all__ = ["is_listed", "movable", "refers", "relisted", "shows_labels", "target_of", "untouched"]

Places = tuple[int, ...]


def shows_labels(choice_format: str) -> bool:
    """Whether a listed option is shown with its label."""
    return "{label}" in choice_format


def target_of(prompt: Prompt) -> int | None:
    """The index of the right option, where there is one."""
    return prompt.target if isinstance(prompt.target, int) and prompt.choices else None


def untouched(section: Section) -> bool:
    """Whether nothing in the section is protected or has been edited."""
    return not section.protected and not section.edits


def is_listed(prompt: Prompt) -> bool:
    """Whether the prompt lists its options, two or more, in a section that is still open.

    Only options that the template lists in a section of their own count; prose is not searched.
    """
    if len(prompt.choices) < 2:
        return False
    sections = [s for s in prompt.sections if s.kind == "choices"]
    block = _block(prompt.labels, prompt.choices, prompt.choice_format)
    return bool(sections) and all(untouched(s) and s.text.count(block) == 1 for s in sections)


def relisted(
    prompt: Prompt,
    choices: Sequence[str],
    labels: Sequence[str],
    target: int | str | None,
    *,
    choice_format: str | None = None,
    answer_as: Choicewise | None = None,
) -> Prompt:
    """The prompt with other options, listed where the old ones were, as one edit."""
    old = _block(prompt.labels, prompt.choices, prompt.choice_format)
    line = prompt.choice_format if choice_format is None else choice_format
    new = choice_block(labels, choices, line)
    return Prompt(
        sections=tuple([_relisted(s, old, new) for s in prompt.sections]),
        demonstrations=prompt.demonstrations,
        choices=tuple(choices),
        labels=tuple(labels),
        choice_format=line,
        answer_as=answer_as or prompt.answer_as,
        delimiter=prompt.delimiter,
        target=target,
        program=prompt.program,
        schema=prompt.schema,
    )


@lru_cache(maxsize=256)
def _block(labels: tuple[str, ...], choices: tuple[str, ...], line: str) -> str:
    return choice_block(labels, choices, line)


def _relisted(section: Section, old: str, new: str) -> Section:
    if section.kind != "choices" or old == new:
        return section
    at = section.text.find(old)
    end = at + len(old)
    edit = Edit(start=at, end=end, new_start=at, new_end=at + len(new))
    text = section.text[:at] + new + section.text[end:]
    return Section(name=section.name, kind=section.kind, text=text, edits=(edit,))


# Options that refer to others: "all of the above", "both A and C", "the first option". The other
# languages are those of the multilingual data; they name the usual closing options only.
_QUANTITY = r"(?:all|none|any|both|neither|either|each|some|most|two|three|four|five|one|\d+)"
_OPTION = r"(?:options?|choices?|answers?|alternatives?)"
_PLACE = late_regex(
    rf"^\W*{_QUANTITY}\s+of\s+(?:these|those|them)\b"
    rf"|\b{_QUANTITY}\s+of\s+(?:the\s+)?(?:above|below|aforementioned|preceding|previous|following"
    rf"|others?(?=\W*$)|(?:(?:two|three|four|other|given|listed)\s+)?{_OPTION})\b"
    r"|\b(?:the|of|listed|named|mentioned|stated|given|as|any)\s+(?:above|below|aforementioned)\b"
    r"|\b(?:above|preceding|previous|foregoing|following|other|these|those|all|both|no)\s+"
    rf"(?:{_OPTION}|statements?)\b"
    r"|^\W*(?:all|none|both|neither|either|all\s+(?:three|four)|the\s+others?)\W*$"
    r"|\b(?:alle|keine[rs]?|beide|nichts)\s+(?:der\s+|von\s+)?(?:oben|obigen?|genannten?|vorigen"
    r"|davon)\b"
    r"|\b(?:toutes|aucune|tous|aucun)\s+(?:(?:de\s+)?(?:ces|les|des)\s+)?"
    r"(?:réponses|précédente?s|ci-dessus|propositions)\b"
    r"|\b(?:todas|ningun[ao]|nenhum[ao]|todos)\s+(?:de\s+)?(?:las|los|das|dos|as|os)\s+"
    r"(?:anteriores|opciones|opções|acima)\b"
    r"|\b(?:tutte|nessuna|tutti|nessuno)\s+(?:le|delle|i|dei)\s+(?:precedenti|opzioni|risposte)\b"
    r"|\b(?:alle|geen)\s+(?:van\s+)?(?:de\s+)?(?:bovenstaande|genoemde)\b"
    r"|上記|以上のすべて|いずれでもない|どれでもない",
    re.IGNORECASE,
)
# No pattern above or below can match without one of these words: most options end here.
_SUSPICIOUS = (
    "above below aforementioned preceding previous foregoing following other others these those "
    "them option options choice choices answer answers alternative alternatives statement "
    "statements oben obige obigen genannte genannten vorigen davon propositions dessus anteriores "
    "opciones acima precedenti opzioni risposte bovenstaande genoemde"
)
_SUSPECTS = frozenset(_SUSPICIOUS.split())
_ALONE = frozenset({"all", "both", "either", "four", "neither", "none", "the", "three"})
_LONELY = _ALONE - {"the", "three", "four"}
_TOKEN = late_regex(r"\w+")
_COUNTED = late_regex(
    r"\b(?:options?|choices?|answers?|alternatives?)\s+(?:#|no\.?\s*|number\s+)?"
    r"(?:\d+|one|two|three|four|five)\b"
    r"|\b(?:first|second|third|fourth|fifth|last|next)\s+(?:(?:two|three|\d)\s+)?"
    r"(?:options?|choices?|answers?|alternatives?)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=64)
def _label_patterns(labels: Sequence[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """One label, and a phrase that can only be about labels."""
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    label = rf"(?:\((?i:{names})\)|(?<!\w)(?:{names})(?!\w))"
    joint = r"\s*(?:,|;|&|\+|/|\b(?:and|or|nor|but|und|oder|et|ou|y|o|e|en|of)\b)\s*"
    cue = (
        r"\b(?:both|either|neither|only|options?|choices?|answers?|letters?|except(?:\s+for)?|but"
        r"|not|same\s+as|see|sowohl|weder|nur)"
    )
    phrase = (
        rf"{label}(?:{joint}){{1,2}}(?:(?:not|only|both)\s+)?{label}"
        rf"|(?i:{cue})\s+{label}|{label}\s+(?:only|alone|is|are)\b"
    )
    return re.compile(label), re.compile(phrase)


def refers(text: str, labels: Sequence[str]) -> Places | None:
    """The other options that an option's text refers to; None when it refers to none.

    Empty when it means a position rather than labels ("all of the above"), every place when it
    counts ("the second option"). In doubt a text counts as a reference, which does no harm: the
    option merely stays where it is.
    """
    words = set(_TOKEN.findall(text))
    if not words.isdisjoint(labels) or "(" in text:
        label_pattern, phrase = _label_patterns(tuple(labels))
        if phrase.search(text):
            place = {label.casefold(): i for i, label in enumerate(labels)}
            return tuple(
                sorted({place[m.strip("()").casefold()] for m in label_pattern.findall(text)})
            )
    low = set(map(str.casefold, words))
    if text.isascii() and low.isdisjoint(_SUSPECTS) and not low <= _ALONE:
        return None
    if _COUNTED.search(text):
        return tuple(range(len(labels)))
    return () if _PLACE.search(text) else None


def _harmless(choices: tuple[str, ...], labels: tuple[str, ...]) -> bool:
    """Whether the words of all options together show that none refers to others."""
    text = "\n".join(choices)
    if "(" in text or not text.isascii():
        return False
    words = set(_TOKEN.findall(text.casefold()))
    if not words.isdisjoint(_SUSPECTS) or not words.isdisjoint(_LONELY):
        return False
    if words.isdisjoint([label.casefold() for label in labels]):
        return True
    return set(_TOKEN.findall(text)).isdisjoint(labels)


@lru_cache(maxsize=1024)
def movable(choices: tuple[str, ...], labels: tuple[str, ...]) -> tuple[Places, ...]:
    """Groups of options that may change places among themselves, given their texts.

    An option that refers to others keeps its place, and so do those it names. One that means a
    position also keeps the options above it above, and those below it below.
    """
    if _harmless(choices, labels) and len(set(choices)) > 1:
        return (tuple(range(len(choices))),)
    pinned: set[int] = set()
    walls: list[int] = []
    for at, text in enumerate(choices):
        mentioned = refers(text, labels)
        if mentioned is not None:
            pinned |= {at, *mentioned}
            walls += [at] if not mentioned else []
    groups: dict[int, list[int]] = {}
    for at in range(len(choices)):
        if at not in pinned:
            groups.setdefault(sum(wall < at for wall in walls), []).append(at)
    return tuple(tuple(g) for g in groups.values() if len({choices[i] for i in g}) > 1)
