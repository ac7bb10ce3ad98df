"""Other labels for the options: in the list, in the template's own words, in demonstrations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from falter.core.records import Choicewise, Demonstration, Prompt, Section
from falter.core.render import choice_block
from falter.perturbations._choices import refers, relisted, shows_labels, untouched
from falter.text import Replacement, merged, overlaps, replace_spans

__all__ = ["STYLES", "relabelled"]

STYLES = ("digits", "lower", "roman", "none")
_UPPER = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_SCHEMES: dict[str, tuple[str, ...]] = {
    "upper": _UPPER,
    "digits": tuple(str(n) for n in range(1, 27)),
    "lower": tuple(letter.lower() for letter in _UPPER),
    "roman": tuple("x" * (n // 10) + _ONES[n % 10] for n in range(1, 27)),
}
_WORDS = {"digits": "number", "lower": "letter", "roman": "numeral", "none": "text"}


class _Clash(Exception):
    """The prompt says something about its labels that would become false."""


@lru_cache(maxsize=64)  # called once to see whether it applies, and once for the prompt
def relabelled(prompt: Prompt, style: str) -> Prompt | None:
    """The prompt under other labels; None where that would contradict something in it."""
    if not shows_labels(prompt.choice_format):
        return None
    try:
        return _relabelled(prompt, style)
    except _Clash:
        return None


def _relabelled(prompt: Prompt, style: str) -> Prompt:
    old, choices = _scheme(prompt.labels), prompt.choices
    new = _SCHEMES.get(style, old)
    _require(not any(refers(text, prompt.labels) for text in choices))
    _require(_distinct(choices, new[: len(choices)], style))
    changed = relisted(
        prompt,
        choices,
        new[: len(choices)],
        prompt.target,
        choice_format=_unlabelled(prompt.choice_format) if style == "none" else None,
        answer_as="text" if style == "none" else None,
    )
    demonstrations = [
        _demonstration(d, prompt, changed, old, new, style) for d in prompt.demonstrations
    ]
    sections = _reworded(changed.sections, old, new, style)
    return replace(changed, sections=sections, demonstrations=tuple(demonstrations))


def _require(holds: bool) -> None:
    if not holds:
        raise _Clash


def _scheme(labels: Sequence[str]) -> tuple[str, ...]:
    """The usual series that the labels begin, or the labels themselves."""
    schemes = (s for s in _SCHEMES.values() if s[: len(labels)] == tuple(labels))
    return next(schemes, tuple(labels))


def _distinct(choices: Sequence[str], labels: Sequence[str], style: str) -> bool:
    """Whether a reply could only mean one option: no text is the label of another option."""
    texts = [choice.casefold().strip() for choice in choices]
    if style == "none":
        return len(set(texts)) == len(texts)
    index_of = {label: i for i, label in enumerate(labels)}
    return all(index_of.get(text, i) == i for i, text in enumerate(texts))


def _unlabelled(line: str) -> str:
    """The line of a list without its label and the marks around it."""
    if line.find("{label}") < line.find("{text}"):
        return re.sub(r"[(\[*_]*\{label\}[^{]*(?=\{text\})", "", line)
    return re.sub(r"\s*[(\[*_]*\{label\}[)\]*_]*", "", line)


# The template's own words about labels

_LETTER = re.compile(
    r"\b(?:the|its|one|only|with|by|correct|right|option|single|a)\s+(letter)\b", re.IGNORECASE
)
_LEFT = {
    "lower": re.compile(r"\b(?:capitals|capital\s+letters?|upper-?case)\b", re.I),
    "": re.compile(r"\b(?:letters?|Buchstaben?|lettres?|letras?|lettera|lettere)\b", re.IGNORECASE),
}


def _reworded(
    sections: Iterable[Section], old: Sequence[str], new: Sequence[str], style: str
) -> tuple[Section, ...]:
    return tuple([_reworded_one(s, tuple(old), tuple(new), style) for s in sections])


def _reworded_one(
    section: Section, old: tuple[str, ...], new: tuple[str, ...], style: str
) -> Section:
    if section.kind not in ("system", "instruction", "output_format", "cue"):
        return section
    changes = _changes(section.text, old, new, style)
    _require(changes is not None)
    if not changes:
        return section
    closed = merged((*section.protected, *((e.new_start, e.new_end) for e in section.edits)))
    _require(not any(overlaps(closed, start, end) for start, end, _ in changes))
    return replace_spans(section, changes)


@lru_cache(maxsize=512)
def _changes(
    text: str, old: tuple[str, ...], new: tuple[str, ...], style: str
) -> tuple[Replacement, ...] | None:
    """What to replace in the template's words; None if some words cannot be adapted."""
    changes: list[Replacement] = []
    if style != "lower":
        changes = [(*m.span(1), _WORDS[style]) for m in _LETTER.finditer(text)]
    alternatives = "|".join(sorted(map(re.escape, old), key=len, reverse=True))
    one_label = rf"(?<![\w'’])(?:{alternatives})(?![\w'’])"
    joint = r"[)\]\"'`]*\s*(?:[,;/–-]|\b(?:and|or|to|through|und|oder|bis|et|ou|y|o|e|of)\b)"
    label_list = re.compile(rf"{one_label}(?:(?:{joint}\s*)+[(\[\"'`]*{one_label})+")
    index_of = {label: i for i, label in enumerate(old)}
    for match in label_list.finditer(text):
        if style == "none":
            return None
        for label in re.finditer(one_label, match[0]):
            start = match.start() + label.start()
            changes.append((start, match.start() + label.end(), new[index_of[label[0]]]))
    unclear = _LEFT["lower" if style == "lower" else ""]
    starts = {start for start, _, _ in changes}
    if any(match.start() not in starts for match in unclear.finditer(text)):
        return None
    return tuple(sorted(changes))


# Demonstrations


def _demonstration(
    demonstration: Demonstration,
    before: Prompt,
    after: Prompt,
    old: Sequence[str],
    new: Sequence[str],
    style: str,
) -> Demonstration:
    """The solved example under the same labels as the item, so that the two agree."""
    sections: list[Section] = []
    choices: tuple[str, ...] = ()
    for section in demonstration.sections:
        if section.kind == "choices":
            choices = _taken_apart(section, old, before.choice_format)
            _require(_distinct(choices, new[: len(choices)], style))
            block = choice_block(new[: len(choices)], choices, after.choice_format)
            start = section.text.index(section.text.strip("\n"))
            end = start + len(section.text.strip("\n"))
            section = replace_spans(section, [(start, end, block)])
        sections.append(section)
    answer = _answer(demonstration.answer, choices, before.answer_as, old, new, style)
    return Demonstration(sections=_reworded(sections, old, new, style), answer=answer)


def _taken_apart(section: Section, labels: Sequence[str], line: str) -> tuple[str, ...]:
    """The listed options; listing them again has to give exactly the same text."""
    text = section.text.strip("\n")
    _require(untouched(section) and bool(text))
    choices: list[str] = []
    at = 0
    for i, label in enumerate(labels):
        opened, closed = line.format(label=label, text="\0").split("\0")
        _require(text.startswith(opened, at))
        at += len(opened)
        following = line.format(label=labels[i + 1], text="\0") if i + 1 < len(labels) else "\0"
        end = text.find(closed + following.split("\0")[0], at) if i + 1 < len(labels) else -1
        choices.append(text[at:] if end < 0 else text[at:end])
        if end < 0:
            break
        at = end + len(closed)
    choices[-1] = choices[-1].removesuffix(closed.rstrip("\n"))
    _require(choice_block(labels[: len(choices)], choices, line) == text)
    return tuple(choices)


def _answer(
    answer: str,
    choices: Sequence[str],
    answer_as: Choicewise,
    old: Sequence[str],
    new: Sequence[str],
    style: str,
) -> str:
    if answer_as == "text":
        return answer
    _require(answer in old)
    at = old.index(answer)
    if style != "none":
        return new[at]
    _require(at < len(choices))
    return choices[at]
