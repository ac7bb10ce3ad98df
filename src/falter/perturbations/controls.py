"""Control perturbations: small changes of the meaning, after which another answer is correct.

A rule or the user makes them, never a model, because nobody could certify a model's change. If the
new correct answer is not known, it is known to differ from the answer to the clean prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from falter.perturbations.base import locked_spans, prompt_perturbation, with_section
from falter.perturbations.tool_lists import tools_at
from falter.perturbations.vocabulary import proper_names, table
from falter.records.chats import chat_sections, is_chat, json_line, target_calls, texts_in
from falter.records.lazy_regex import named_regex
from falter.records.render import plain
from falter.records.rng import Rng
from falter.records.types import Prompt, Span
from falter.text.spans import overlaps, replace_spans
from falter.text.words import sentences

TARGET_CONTROLS = frozenset({"other_entity", "other_number", "shifted_labels", "without_tool"})
"""Controls that are made from the correct answer; without one they change nothing."""


def _last_input(prompt: Prompt) -> int | None:
    """Return the index of a conversation's last input section that is not blank, or None."""
    at = [n for n, s in enumerate(prompt.sections) if s.kind == "input" and s.text.strip()]
    return at[-1] if at and is_chat(prompt.sections) else None


def _is_open(prompt: Prompt, at: int, start: int, end: int) -> bool:
    return not overlaps(locked_spans(prompt.sections[at]), start, end)


# The user's own version


def _has_version(prompt: Prompt) -> bool:
    at = _last_input(prompt)
    return (
        bool(prompt.contrast)
        and at is not None
        and _is_open(prompt, at, 0, len(prompt.sections[at].text))
    )


@prompt_perturbation("contrast", eligible=_has_version)
def contrast(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks the version of other meaning that the data give in the column `contrast`."""
    version: dict[str, Any] = rng.choice(tuple(json.loads(prompt.contrast or "[]")))
    at = _last_input(prompt)
    if "messages" in version:
        sections = _with_tools(prompt, version["messages"])
    elif at is None:
        return prompt
    else:
        section = prompt.sections[at]
        gap = len(section.text) - len(section.text.lstrip())  # white space after the documents
        said = replace_spans(section, [(gap, len(section.text), version["say"])])
        sections = (*prompt.sections[:at], said, *prompt.sections[at + 1 :])
    target = version.get("target")
    return replace(
        prompt, sections=sections, contrast=None, other=target is None,
        target=prompt.target if target is None else target,
    )  # fmt: skip


def _with_tools(prompt: Prompt, turns: list[dict[str, Any]]) -> tuple[Any, ...]:
    given = [s for s in prompt.sections if s.name.partition("_")[0] in ("before", "doc", "after")]
    new = chat_sections(turns, documents=[replace(s, opens=False) for s in given])
    lead = next((n for n, s in enumerate(new) if s.kind != "system"), len(new))
    return (*new[:lead], *(s for s in prompt.sections if s.kind == "tool"), *new[lead:])


# Another number

# A whole number by itself. "order 12345", "A-1042", "42, yes"; not "10:30", "1,200", "5%", "3rd".
_NUMBER = re.compile(r"(?<![\d.,:/])(?<!\d-)\d{1,12}(?![\d]|[.,:/-]\d|st\b|nd\b|rd\b|th\b|%)")


def _numbers(prompt: Prompt) -> Iterator[tuple[int, Span, str]]:
    """Yield the numbers of the last turn that the correct answer copies.

    Each is a section index, a span and its text. The number occurs once in the prompt and is not
    locked.
    """
    at = _last_input(prompt)
    if at is None or not isinstance(prompt.target, str) or prompt.other:
        return
    calls = target_calls(prompt.target)
    wanted = [prompt.target] if calls is None else [
        text for call in calls for text in texts_in(call.get("arguments"))
    ]  # fmt: skip
    text = prompt.sections[at].text
    said = plain(prompt)
    for match in _NUMBER.finditer(text):
        alone = re.compile(rf"(?<!\d){match[0]}(?!\d)")
        told = any(alone.search(value) for value in wanted)
        if told and len(alone.findall(said)) == 1 and _is_open(prompt, at, *match.span()):
            yield at, match.span(), match[0]


@prompt_perturbation("other_number", eligible=lambda prompt: any(map(bool, _numbers(prompt))))
def other_number(prompt: Prompt, rng: Rng) -> Prompt:
    """Puts another number of as many digits for one that the answer has to take over."""
    at, span, old = rng.choice(tuple(_numbers(prompt)))
    new = _other_number(old, rng, plain(prompt) + str(prompt.target))
    return prompt if new is None else _with_replacement(prompt, at, span, new)


def _with_replacement(prompt: Prompt, at: int, span: Span, new: str) -> Prompt:
    """Return the prompt with `new` in a span, and with the new target if it is known.

    Otherwise `other` is set: the correct answer is only known to differ.
    """
    section, calls = prompt.sections[at], target_calls(prompt.target)
    old, said = section.text[slice(*span)], replace_spans(section, [(*span, new)])
    changed = replace(with_section(prompt, at, said), contrast=None)
    told = texts_in([call.get("arguments") for call in calls or []])
    # If an argument was computed rather than copied, its new value is not known.
    copied = all(text in section.text for text in told) and not any("or" in c for c in calls or [])
    if calls is not None and (old.isdigit() or copied):
        taken = [{**_updated_value(call, old, new), "name": call["name"]} for call in calls]
        return replace(changed, target=json_line(taken))
    return replace(changed, other=True)


def _other_number(old: str, rng: Rng, said: str) -> str | None:
    """Return a number with as many digits that does not occur in `said`.

    None if no such number is found in 50 attempts.
    """
    for _ in range(50):
        first = str(rng.below(9) + 1) if old[0] != "0" else "0"
        new = first + "".join(str(rng.below(10)) for _ in old[1:])
        if new != old and re.search(rf"(?<!\d){new}(?!\d)", said) is None and int(new) > 1:
            return new
    return None


def _updated_value(value: Any, old: str, new: str) -> Any:
    """Return a value of the target with the new number or word in place of the old one."""
    if isinstance(value, dict):
        return {k: _updated_value(v, old, new) for k, v in value.items()}
    if isinstance(value, list):
        return [_updated_value(inner, old, new) for inner in value]
    if isinstance(value, str):
        edge = r"\d" if old.isdigit() else r"\w"
        return re.sub(rf"(?<!{edge}){re.escape(old)}(?!{edge})", new, value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and old.isdigit()
    return type(value)(new) if is_number and value == int(old) else value


# Another name, town or value of a list

_WORD = re.compile(r"[^\W\d_]+")
_ENUM = re.compile(r'"enum": (\[(?:"(?:[^"\\]|\\.)*+"|[^\[\]{}"])*+\])')
_LISTED_NOUN = named_regex("perturbations", "before_listed")


def _copied_words(prompt: Prompt) -> Iterator[tuple[str, list[str]]]:
    """Yield the words that the correct answer copies, each with all words of its kind.

    The kinds are the values that a schema lists, first names and towns.
    """
    calls = target_calls(prompt.target)
    told = [prompt.target] if calls is None else texts_in([c.get("arguments") for c in calls])
    wanted, tools = set(told), "\n".join(prompt.sections[n].text for n in tools_at(prompt))
    listed = (json.loads(values) for values in _ENUM.findall(tools))
    for kind in (*listed, *map(sorted, proper_names())):
        words = [str(value) for value in kind if _WORD.fullmatch(str(value))]
        yield from ((word, words) for word in words if word in wanted)


def _copied_entities(prompt: Prompt) -> list[tuple[int, Span, list[str]]]:
    """Return the words of the last turn that the correct answer copies.

    Each is a section index, a span and the words that may replace it. The word occurs once in the
    conversation, descriptions of tools not counted.
    """
    at, found = _last_input(prompt), list[tuple[int, Span, list[str]]]()
    if at is None or not isinstance(prompt.target, str) or prompt.other:
        return []
    said = plain(prompt.with_sections(tuple(s for s in prompt.sections if s.kind != "tool")))
    words = [word.lower() for word in _WORD.findall(said)]
    for old, kind in _copied_words(prompt):
        places = list(re.finditer(rf"(?<!\w){old}(?!\w)", prompt.sections[at].text))
        # *a* and *an* stay correct
        fits = [new for new in kind if (new[0].lower() in "aeiou") == (old[0].lower() in "aeiou")]
        others = [new for new in fits if new.lower() not in words]
        alone = len(places) == words.count(old.lower()) == 1
        before = prompt.sections[at].text[: places[0].start()] if alone else ""
        named = alone and (old[0].isupper() or _LISTED_NOUN.search(before))
        if others and named and _is_open(prompt, at, *places[0].span()):
            found.append((at, places[0].span(), others))
    return found


@prompt_perturbation("other_entity", eligible=lambda prompt: bool(_copied_entities(prompt)))
def other_entity(prompt: Prompt, rng: Rng) -> Prompt:
    """Puts another name, town or listed value for one that the answer has to take over."""
    at, span, others = rng.choice(_copied_entities(prompt))
    return _with_replacement(prompt, at, span, rng.choice(others))


# Labels that mean something else

# A line that explains a label. "- refund: wants money back"; not "Dear all:".
_LABELLED = re.compile(
    r"^([ \t]*+(?:[-*][ \t]*+)?(\w[\w -]{0,30}?)[ \t]*: )(\S[^\n]*)$", re.MULTILINE
)
_OTHER_LABELS = named_regex("perturbations", "of_others")


def _label_lines(prompt: Prompt) -> tuple[int, list[re.Match[str]]]:
    """Return the index of the section that explains the labels, and a match for each of its lines.

    There are no lines if a meaning mentions other labels, or if the correct answer is no label.
    """
    for at, section in enumerate(prompt.sections):
        lines = list(_LABELLED.finditer(section.text))
        labels = [line[2].lower() for line in lines]
        meanings = "\n".join(line[3] for line in lines).lower()
        mixed = _OTHER_LABELS.search(meanings) or set(labels) & set(_WORD.findall(meanings))
        told = str(prompt.target).lower() in labels
        rules = section.kind in ("system", "instruction") and not prompt.other
        loose = rules and _is_open(prompt, at, 0, len(section.text))
        if (
            len(set(labels)) == len(labels) == len({line[3] for line in lines}) > 1
            and not mixed
            and told
            and loose
        ):
            return at, lines
    return 0, []


@prompt_perturbation("shifted_labels", eligible=lambda prompt: bool(_label_lines(prompt)[1]))
def shifted_labels(prompt: Prompt, rng: Rng) -> Prompt:
    """Gives each label the meaning of the next, where a prompt lists what labels mean."""
    at, lines = _label_lines(prompt)
    meanings = [line[3] for line in lines]
    shifted = zip(lines, (*meanings[1:], meanings[0]), strict=True)
    section = replace_spans(prompt.sections[at], [(*m.span(3), new) for m, new in shifted])
    return replace(with_section(prompt, at, section), other=True, contrast=None)


# A negated request

_VERBS = frozenset(table("tools.json")["requests"].split())
_REQUEST = named_regex("perturbations", "request")
_ASKS_OTHERWISE = re.compile(r"\b(?:not|never|no|don['’]t|unless|or)\b", re.IGNORECASE)
# The verb of a second request. ", and then please refund me"; not "and then the refund".
_JOINED_VERB = re.compile(
    r"(?:\band\b|\bthen\b|[,;])\s+(?:(?:and|then|also|please)\s+)*([a-z]+)", re.IGNORECASE
)


def _only_request(prompt: Prompt) -> list[tuple[int, Span, str]]:
    """Return the only request of the last turn: section index, span, and its negated beginning.

    The list is empty if there is no request or more than one, or if the request cannot be negated.
    """
    at = _last_input(prompt)
    if at is None or prompt.other or target_calls(prompt.target) == []:
        return []
    text, found = prompt.sections[at].text, []
    for start, end in sentences(text):
        match = _REQUEST.match(text, start, end)
        if match is None or match["verb"].lower() not in _VERBS:
            continue
        rest = text[match.end() : end]
        if _ASKS_OTHERWISE.search(rest) or any(
            m[1].lower() in _VERBS for m in _JOINED_VERB.finditer(rest)
        ):
            return []
        begin = match.start("ask") if match["ask"] else match.start("verb")
        polite = "Please do not " if match["ask"] else "Do not "
        found.append((at, (begin, match.end()), polite + match["verb"].lower()))
    several = len(found) != 1 or not _is_open(prompt, at, *found[0][1])
    return [] if several else found


@prompt_perturbation("negated", eligible=lambda prompt: bool(_only_request(prompt)))
def negated(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks not to do what was asked for: *Please do not cancel order A-1042.*"""
    at, (start, end), new = _only_request(prompt)[0]
    section = prompt.sections[at]
    stop = next(e for s, e in sentences(section.text) if s <= start < e)
    changes = [(start, end, new)]
    if section.text[stop - 1] == "?" and stop > end and _is_open(prompt, at, stop - 1, stop):
        changes.append((stop - 1, stop, "."))
    changed = with_section(prompt, at, replace_spans(section, changes))
    return replace(changed, other=True, contrast=None)


# Without the tool


def _needed_tool(prompt: Prompt) -> int | None:
    """Return the index of the tool that the correct answer calls first, or None.

    None if it is the only tool, if the conversation has already called it, or if it is locked.
    """
    calls, at = target_calls(prompt.target), tools_at(prompt)
    if not calls or len(at) < 2 or prompt.other:
        return None
    new = {old: new for new, old in prompt.renames}
    name = new.get(calls[0]["name"], calls[0]["name"])
    made = {json.loads(s.text)["name"] for s in prompt.sections if s.kind == "call"}
    found = (n for n in at if json.loads(prompt.sections[n].text)["name"] == name)
    place = next(found, None)
    if place is None or name in made or locked_spans(prompt.sections[place]):
        return None
    return place


@prompt_perturbation("without_tool", eligible=lambda prompt: _needed_tool(prompt) is not None)
def without_tool(prompt: Prompt, rng: Rng) -> Prompt:
    """Takes away the tool that the right answer calls."""
    at = _needed_tool(prompt)
    if at is None:
        return prompt
    section = prompt.sections[at]
    gone = replace_spans(section, [(0, len(section.text), "")])
    return replace(with_section(prompt, at, gone), other=True, contrast=None)
