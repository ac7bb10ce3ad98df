"""Perturbations of options: the listed options in another order, or under other labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

from falter.perturbations.base import locked_spans, prompt_perturbation
from falter.perturbations.vocabulary import word_set
from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.render import choice_block
from falter.records.rng import Rng
from falter.records.types import Choicewise, Demonstration, Edit, Prompt, Section
from falter.text.spans import Replacement, overlaps, replace_spans

_bundled_regex = partial(named_regex, "perturbations")

# The options of a prompt: where they are listed, and which of them refer to others

OptionIndices = tuple[int, ...]


def shows_labels(choice_format: str) -> bool:
    """Return True if a listed option is shown with its label."""
    return "{label}" in choice_format


def target_of(prompt: Prompt) -> int | None:
    """Return the index of the correct option, or None if the target is no option."""
    return prompt.target if isinstance(prompt.target, int) and prompt.choices else None


def untouched(section: Section) -> bool:
    """Return True if nothing in the section is protected or has been edited."""
    return not section.protected and not section.edits


def is_listed(prompt: Prompt) -> bool:
    """Return True if the prompt lists two or more options in a section that is still unedited.

    Only options that the template lists in a separate section count; prose is not searched.
    """
    if len(prompt.choices) < 2:
        return False
    sections = [s for s in prompt.sections if s.kind == "choices"]
    block = _listing(prompt.labels, prompt.choices, prompt.choice_format)
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
    """Return the prompt with other options, listed where the old ones were, as one edit.

    None for `choice_format` or `answer_as` keeps the prompt's own value.
    """
    old = _listing(prompt.labels, prompt.choices, prompt.choice_format)
    line = prompt.choice_format if choice_format is None else choice_format
    new = choice_block(labels, choices, line)
    return replace(
        prompt, sections=tuple([_relisted(s, old, new) for s in prompt.sections]),
        choices=tuple(choices), labels=tuple(labels), target=target, choice_format=line,
        answer_as=answer_as or prompt.answer_as,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _listing(labels: tuple[str, ...], choices: tuple[str, ...], line: str) -> str:
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
_PLACE_REFERENCE = _bundled_regex("place_reference")
# No pattern above or below can match without one of these words: most options end here.
_SUSPECTS = word_set("refers_to_options")
_GROUP_WORDS = frozenset({"all", "both", "either", "four", "neither", "none", "the", "three"})
_LONE_GROUP_WORDS = _GROUP_WORDS - {"the", "three", "four"}
_TOKEN = lazy_regex(r"\w+")
_COUNTED = _bundled_regex("counted")


@lru_cache(maxsize=64)
def _label_patterns(labels: Sequence[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return a pattern for one label, and one for phrases that can only be about labels."""
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


def referenced_options(text: str, labels: Sequence[str]) -> OptionIndices | None:
    """Return the indices of the options that an option's text refers to; None if it refers to none.

    The result is empty if the text refers to a position rather than to labels ("all of the above").
    It has all indices if the text counts options ("the second option"). In doubt a text counts as a
    reference, which does no harm: the option merely stays where it is.
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
    if text.isascii() and low.isdisjoint(_SUSPECTS) and not low <= _GROUP_WORDS:
        return None
    if _COUNTED.search(text):
        return tuple(range(len(labels)))
    return () if _PLACE_REFERENCE.search(text) else None


def _are_independent(choices: tuple[str, ...], labels: tuple[str, ...]) -> bool:
    """Return True if no word of the options shows that one option refers to others."""
    text = "\n".join(choices)
    if "(" in text or not text.isascii():
        return False
    words = set(_TOKEN.findall(text.casefold()))
    if not words.isdisjoint(_SUSPECTS) or not words.isdisjoint(_LONE_GROUP_WORDS):
        return False
    if words.isdisjoint([label.casefold() for label in labels]):
        return True
    return set(_TOKEN.findall(text)).isdisjoint(labels)


@lru_cache(maxsize=1024)
def movable(choices: tuple[str, ...], labels: tuple[str, ...]) -> tuple[OptionIndices, ...]:
    """Return groups of options, as indices, that may change places among themselves.

    An option that refers to others keeps its place, and so do the options that it names. If an
    option refers to a position, the options above it stay above, and the options below it stay
    below.
    """
    if _are_independent(choices, labels) and len(set(choices)) > 1:
        return (tuple(range(len(choices))),)
    pinned: set[int] = set()
    boundaries: list[int] = []
    for at, text in enumerate(choices):
        mentioned = referenced_options(text, labels)
        if mentioned is not None:
            pinned |= {at, *mentioned}
            boundaries += [at] if not mentioned else []
    groups: dict[int, list[int]] = {}
    for at in range(len(choices)):
        if at not in pinned:
            groups.setdefault(sum(wall < at for wall in boundaries), []).append(at)
    return tuple(tuple(g) for g in groups.values() if len({choices[i] for i in g}) > 1)


# Other labels for the options: in the list, in the template's own words, in demonstrations

_UPPER = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_LABEL_SCHEMES: dict[str, tuple[str, ...]] = {
    "upper": _UPPER,
    "digits": tuple(str(n) for n in range(1, 27)),
    "lower": tuple(letter.lower() for letter in _UPPER),
    "roman": tuple("x" * (n // 10) + _ONES[n % 10] for n in range(1, 27)),
}
_LABEL_WORDS = {"digits": "number", "lower": "letter", "roman": "numeral", "none": "text"}


class _LabelConflict(Exception):
    """Raised if a statement of the prompt about its labels would become false."""


class _Relabelling(NamedTuple):
    """The old labels, the new labels, and the style of the new labels."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    style: str


@lru_cache(maxsize=64)  # needed once to check that it applies, and once for the prompt
def _relabelled(prompt: Prompt, style: str) -> Prompt | None:
    """Return the prompt under other labels; None if they would contradict something in it."""
    if not shows_labels(prompt.choice_format):
        return None
    # The usual series that the labels begin, or the labels themselves
    series = (s for s in _LABEL_SCHEMES.values() if s[: len(prompt.labels)] == prompt.labels)
    old = next(series, prompt.labels)
    labels = _Relabelling(old, _LABEL_SCHEMES.get(style, old), style)
    try:
        return _with_labels(prompt, labels)
    except _LabelConflict:
        return None


def _with_labels(prompt: Prompt, labels: _Relabelling) -> Prompt:
    """Return the prompt under other labels; raise `_LabelConflict` if they contradict its text."""
    choices = prompt.choices
    new = labels.new[: len(choices)]
    _require_consistent(not any(referenced_options(text, prompt.labels) for text in choices))
    _require_consistent(_labels_are_distinct(choices, labels))
    if labels.style == "none":
        line = _unlabelled(prompt.choice_format)
        changed = relisted(
            prompt, choices, new, prompt.target, choice_format=line, answer_as="text"
        )
    else:
        changed = relisted(prompt, choices, new, prompt.target)
    demonstrations = tuple(
        _demonstration(example, prompt, changed, labels) for example in prompt.demonstrations
    )
    sections = _reworded_sections(changed.sections, labels)
    return replace(changed, sections=sections, demonstrations=demonstrations)


def _require_consistent(holds: bool) -> None:
    """Raise `_LabelConflict` unless the condition holds."""
    if not holds:
        raise _LabelConflict


def _labels_are_distinct(choices: Sequence[str], labels: _Relabelling) -> bool:
    """Return True if a reply can only mean one option: no text is the label of another option."""
    texts = [choice.casefold().strip() for choice in choices]
    if labels.style == "none":
        return len(set(texts)) == len(texts)
    index_of = {label: i for i, label in enumerate(labels.new[: len(choices)])}
    return all(index_of.get(text, i) == i for i, text in enumerate(texts))


def _unlabelled(line: str) -> str:
    """Return the format of a listed option without the label and the marks around it."""
    if line.find("{label}") < line.find("{text}"):
        return re.sub(r"[(\[*_]*\{label\}[^{]*(?=\{text\})", "", line)
    return re.sub(r"\s*[(\[*_]*\{label\}[)\]*_]*", "", line)


# The template's own words about labels

_LETTER = _bundled_regex("letter")
_UNADAPTABLE = {
    "lower": re.compile(r"\b(?:capitals|capital\s+letters?|upper-?case)\b", re.I),
    "": _bundled_regex("letters_left"),
}


def _reworded_sections(sections: Iterable[Section], labels: _Relabelling) -> tuple[Section, ...]:
    return tuple([_reworded_section(section, labels) for section in sections])


def _reworded_section(section: Section, labels: _Relabelling) -> Section:
    if section.kind not in ("system", "instruction", "output_format", "cue"):
        return section
    changes = _label_changes(section.text, labels)
    _require_consistent(changes is not None)
    if not changes:
        return section
    closed = locked_spans(section)
    _require_consistent(not any(overlaps(closed, start, end) for start, end, _ in changes))
    return replace_spans(section, changes)


@lru_cache(maxsize=512)
def _label_changes(text: str, labels: _Relabelling) -> tuple[Replacement, ...] | None:
    """Return the replacements in the template's words; None if some words cannot be adapted."""
    old, new, style = labels
    changes: list[Replacement] = []
    if style != "lower":
        changes = [(*m.span(1), _LABEL_WORDS[style]) for m in _LETTER.finditer(text)]
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
    unclear = _UNADAPTABLE["lower" if style == "lower" else ""]
    starts = {start for start, _, _ in changes}
    if any(match.start() not in starts for match in unclear.finditer(text)):
        return None
    return tuple(sorted(changes))


# Demonstrations


def _demonstration(
    demonstration: Demonstration, before: Prompt, after: Prompt, labels: _Relabelling
) -> Demonstration:
    """Return the solved example under the same labels as the item, so that the two agree."""
    sections: list[Section] = []
    choices: tuple[str, ...] = ()
    for section in demonstration.sections:
        if section.kind == "choices":
            choices = _listed_options(section, labels.old, before.choice_format)
            _require_consistent(_labels_are_distinct(choices, labels))
            block = choice_block(labels.new[: len(choices)], choices, after.choice_format)
            start = section.text.index(section.text.strip("\n"))
            end = start + len(section.text.strip("\n"))
            section = replace_spans(section, [(start, end, block)])
        sections.append(section)
    answer = demonstration.answer
    if before.answer_as != "text":
        answer = _relabelled_answer(answer, choices, labels)
    return Demonstration(sections=_reworded_sections(sections, labels), answer=answer)


def _listed_options(section: Section, labels: Sequence[str], line: str) -> tuple[str, ...]:
    """Return the options that a section lists.

    Raise `_LabelConflict` unless the options, listed again, give exactly the same text.
    """
    text = section.text.strip("\n")
    _require_consistent(untouched(section) and bool(text))
    choices: list[str] = []
    at = 0
    for i, label in enumerate(labels):
        opened, closed = line.format(label=label, text="\0").split("\0")
        _require_consistent(text.startswith(opened, at))
        at += len(opened)
        following = line.format(label=labels[i + 1], text="\0") if i + 1 < len(labels) else "\0"
        end = text.find(closed + following.split("\0")[0], at) if i + 1 < len(labels) else -1
        choices.append(text[at:] if end < 0 else text[at:end])
        if end < 0:
            break
        at = end + len(closed)
    choices[-1] = choices[-1].removesuffix(closed.rstrip("\n"))
    _require_consistent(choice_block(labels[: len(choices)], choices, line) == text)
    return tuple(choices)


def _relabelled_answer(answer: str, choices: Sequence[str], labels: _Relabelling) -> str:
    _require_consistent(answer in labels.old)
    at = labels.old.index(answer)
    if labels.style != "none":
        return labels.new[at]
    _require_consistent(at < len(choices))
    return choices[at]


def _can_shuffle(prompt: Prompt) -> bool:
    return is_listed(prompt) and bool(movable(prompt.choices, prompt.labels))


def _can_relabel(prompt: Prompt, labels: str) -> bool:
    return is_listed(prompt) and _relabelled(prompt, labels) is not None


def _shuffled(prompt: Prompt, rng: Rng, *, labels_too: bool) -> Prompt:
    """Return the prompt with its options in an order that reads differently.

    With `labels_too` each option keeps its label; otherwise the labels stay in place.
    """
    choices = prompt.choices
    groups = movable(choices, prompt.labels)
    reordered = choices
    while reordered == choices:
        order = list(range(len(choices)))
        for group in groups:
            for place, drawn in zip(group, rng.order(len(group)), strict=True):
                order[place] = group[drawn]
        reordered = tuple([choices[at] for at in order])
    labels = [prompt.labels[at] for at in order] if labels_too else prompt.labels
    right = target_of(prompt)
    target = prompt.target if right is None else order.index(right)
    return relisted(prompt, reordered, labels, target)


@prompt_perturbation("shuffle_choice_texts", eligible=_can_shuffle)
def shuffle_choice_texts(prompt: Prompt, rng: Rng) -> Prompt:
    """Shuffles the options' texts and leaves the labels in place.

    The target's label changes with its text. Options that refer to others keep their place.
    """
    return _shuffled(prompt, rng, labels_too=False)


@prompt_perturbation("shuffle_choice_order", eligible=_can_shuffle)
def shuffle_choice_order(prompt: Prompt, rng: Rng) -> Prompt:
    """Lists the options in another order, each with its own label."""
    return _shuffled(prompt, rng, labels_too=True)


@prompt_perturbation("relabel_choices", eligible=_can_relabel)
def relabel_choices(prompt: Prompt, rng: Rng, labels: str) -> Prompt:
    """Gives the options other labels, or none, in the prompt and its demonstrations.

    Words of the template about letters are adapted. Nothing changes if an option names another by
    its label, or if its text would be the new label of another.
    """
    return _relabelled(prompt, labels) or prompt
