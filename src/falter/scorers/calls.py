"""Scorers of tool calls, and scorers that compare an answer with the answer to the clean prompt."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Container, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from falter.records.chats import (
    chat_sections,
    json_line,
    mappings_in,
    plain_json,
    target_calls,
    tool_name,
)
from falter.records.interfaces import Case, Scorer, Style
from falter.records.types import CUT, Item, Prompt, Response, Score, Section
from falter.scorers.answers import Label, label_of
from falter.scorers.base import EMPTY_REASON, TextScorer, clean_question, declared, scorers
from falter.scorers.choices import letter_of
from falter.scorers.reading.calls import read_calls
from falter.scorers.reading.numbers import read_number

NO_CALL = "no call"
NOT_JSON = "arguments that are not a JSON object"
NOT_OFFERED = "a call of an unknown tool"
NATIVE, FROM_TEXT = "native", "from text"
ARGUMENT = "the argument {}"
OTHER_TOOL = "a call of another tool"
"""Part of a score's reason if a single argument makes the difference."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call under the clean prompt's names for the tool and its arguments.

    `arguments` is None if the call's arguments are not a JSON object. `offered` is True if the
    prompt offers the tool.
    """

    name: str
    arguments: Mapping[str, Any] | None
    offered: bool = True


def made_calls(
    response: Response, prompt: Prompt, native_only: bool = False
) -> tuple[list[MadeCall], str]:
    """Return the calls of a response, and their origin: `NATIVE`, `FROM_TEXT`, or empty for none.

    Tools and arguments that the prompt renamed get the clean prompt's names. With `native_only`,
    calls written as text are ignored.
    """
    offered = {tool_name(s.text) for s in prompt.sections if s.kind == "tool" and s.text}
    native, old = response.calls, dict(prompt.renames)
    calls = native or (() if native_only else read_calls(response.text or "", offered))
    origin = NATIVE if native else FROM_TEXT if calls else ""
    old_names = set(old.values())
    calls_made = []
    for call in calls:
        try:
            arguments = plain_json(call.arguments or "{}")
        except ValueError:
            arguments = None
        if isinstance(arguments, dict):
            # If the prompt renamed "city", an argument "city" is wrong: it becomes "old city".
            arguments = {
                old.get(k, f"old {k}" if k in old_names else k): v for k, v in arguments.items()
            }
        else:
            arguments = None
        calls_made.append(MadeCall(old.get(call.name, call.name), arguments, call.name in offered))
    return calls_made, origin


@lru_cache(maxsize=4096)
def _defaults(tools: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the default values of optional arguments by tool and argument; `tools` is JSON."""
    found = {}
    for tool in mappings_in(tools, "name"):
        schema = tool.get("parameters")
        known = schema.get("properties") if isinstance(schema, dict) else None
        properties = known.items() if isinstance(known, dict) else ()
        found[tool["name"]] = {
            k: p["default"] for k, p in properties if isinstance(p, dict) and "default" in p
        }
    return found


def defaults_of(item: Item) -> Mapping[str, Mapping[str, Any]]:
    """Return the default values of the arguments of an item's tools, by tool and argument."""
    return _defaults(item.fields.get("tools", "[]"))


def normal(value: Any, exact: bool = False) -> Any:
    """Return a value in a form for comparison: texts without case and outer white space, 4.0 as 4.

    With `exact`, texts are unchanged.
    """
    if isinstance(value, str):
        return value if exact else unicodedata.normalize("NFC", value).casefold().strip()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [normal(inner, exact) for inner in value]
    if isinstance(value, dict):
        return {key: normal(inner, exact) for key, inner in value.items()}
    return value


def _are_equal(one: Any, other: Any, exact: bool = False) -> bool:
    """Return True if two values are equal. True does not equal 1, and "4" does not equal 4."""
    first, second = (json.dumps(normal(v, exact), sort_keys=True) for v in (one, other))
    return first == second


def _json_type(value: Any) -> str:
    """Return the JSON type of a value; integers and floats are both `number`."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "number" if number else type(value).__name__


def canonical(calls: Sequence[MadeCall], item: Item, ignored: Container[str] = ()) -> str:
    """Return all calls as one text, without `ignored` arguments and arguments at their defaults.

    Equal calls give equal texts, in any order.
    """
    known = defaults_of(item)
    texts = []
    for call in calls:
        usual, given = known.get(call.name, {}), call.arguments or {}
        kept = {
            k: normal(v)
            for k, v in given.items()
            if k not in ignored and not (k in usual and _are_equal(v, usual[k]))
        }
        shown = json_line(dict(sorted(kept.items()))) if call.arguments is not None else NOT_JSON
        texts.append(f"{call.name} {shown}")
    return "; ".join(sorted(texts)) or NO_CALL


def changed_argument(
    calls: Sequence[MadeCall], others: Sequence[MadeCall], item: Item, ignored: Container[str]
) -> str | None:
    """Return the name of the only argument in which two lists of calls differ, else None.

    None if the called tools differ, or if no argument or several arguments differ. Arguments in
    `ignored` do not count.
    """
    defaults = defaults_of(item)
    differing: set[str] = set()
    first, second = (sorted(several, key=lambda call: call.name) for several in (calls, others))
    if [call.name for call in first] != [call.name for call in second]:
        return None
    for one, other in zip(first, second, strict=True):
        usual = defaults.get(one.name, {})
        given, right = ({**usual, **(call.arguments or {})} for call in (one, other))
        for name in given.keys() | right.keys():
            alike = name in given and name in right and _are_equal(given[name], right[name])
            if not alike and name not in ignored:
                differing.add(name)
    return differing.pop() if len(differing) == 1 else None


def _pair_reasons(reasons: Sequence[Sequence[str]]) -> list[str]:
    """Return the reasons of the pairs of expected and made calls if as many as possible agree.

    Several values may suit an argument, so a call that takes the first expected call that it suits
    could leave another one without a match. Calls of one tool are paired before calls of two.
    """
    if len(reasons) == len(reasons[0]) == 1:
        return list(reasons[0])
    from scipy.optimize import linear_sum_assignment

    # A pair that differs costs more than all ties between differing pairs together.
    costs = [[1000 * bool(r) + (r == OTHER_TOOL) for r in row] for row in reasons]
    pairs = zip(*linear_sum_assignment(costs), strict=True)
    return [reasons[wanted][made] for wanted, made in pairs]


@declared("tool_call")
class ToolCall(TextScorer):
    """The calls of the reply are those expected, in any order.

    Arguments are compared as JSON: types count, texts do without case and outer white space, an
    absent argument has the schema's default. The target may leave arguments `free`, list further
    values under `or`, have texts compared as they are (`exact`) and count the order (`ordered`).
    """

    ignored: tuple[str, ...] = ()
    native_only = False

    def fault(self, target: str) -> str | None:
        return None if target_calls(target) is not None else "the target lists no calls"

    def read(self, text: str, case: Case) -> Score:
        prompt = case.variant.prompt
        wanted = target_calls(prompt.target)
        if wanted is None:
            return self.failed("the target lists no calls")
        made, how = made_calls(case.response, prompt, self.native_only)
        if not made and not text.strip():
            return self.unparsed(EMPTY_REASON)
        if any(call.arguments is None for call in made):
            return self.unparsed(f"{NOT_JSON}; {how}")
        why = self.mismatch(made, wanted, defaults_of(case.variant.item))
        if "argument" in why:
            right = [MadeCall(call["name"], call["arguments"]) for call in wanted]
            free = {*self.ignored, *(name for call in wanted for name in call.get("free", ()))}
            name = changed_argument(made, right, case.variant.item, free)
            why = why if name is None else f"{why}; {ARGUMENT.format(name)}"
        answer = canonical(made, case.variant.item, self.ignored)
        score = self.scored(not why, answer, "stated")
        return replace(score, reason="; ".join(filter(None, (why, how))) or None)

    def mismatch(
        self,
        made: Sequence[MadeCall],
        wanted: Sequence[Mapping[str, Any]],
        defaults: Mapping[str, Mapping[str, Any]],
    ) -> str:
        """Return the reason why the calls are not the expected calls; empty if they are."""
        if not made:
            return NO_CALL if wanted else ""
        if not all(call.offered for call in made):
            return NOT_OFFERED
        if not wanted:
            return "a call that the target does not allow"
        reasons = [
            [self.differs(one, call, defaults.get(call["name"], {})) for one in made]
            for call in wanted
        ]
        for reason in _pair_reasons(reasons):
            if reason:
                return reason
        if len(made) != len(wanted):
            return "a call is missing" if len(made) < len(wanted) else "a call too many"
        in_place = all(
            not self.differs(one, call, defaults.get(call["name"], {}))
            for one, call in zip(made, wanted, strict=True)
        )
        ordered = any(call.get("ordered") for call in wanted)
        return "the calls in another order" if ordered and not in_place else ""

    def differs(
        self, made: MadeCall, wanted: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> str:
        """Return the reason why a call is not the expected call; empty if it is."""
        if made.name != wanted["name"]:
            return OTHER_TOOL
        given, right = {**defaults, **(made.arguments or {})}, {**defaults, **wanted["arguments"]}
        free, others = {*self.ignored, *wanted.get("free", ())}, wanted.get("or", {})
        exact = bool(wanted.get("exact"))
        for name in right.keys() - free:
            if name not in given:
                return "a missing argument"
            several = others.get(name, [])
            values = [right[name], *(several if isinstance(several, list) else [several])]
            if not any(_are_equal(given[name], value, exact) for value in values):
                alike = _json_type(given[name]) == _json_type(right[name])
                return "a wrong argument" if alike else "an argument of a wrong type"
        return "an extra argument" if given.keys() - right.keys() - free - others.keys() else ""


@declared("tool_name")
class ToolName(ToolCall):
    """The tools that the reply calls are those expected; arguments do not count."""

    def differs(
        self, made: MadeCall, wanted: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> str:
        return "" if made.name == wanted["name"] else OTHER_TOOL


# Scorers for which the answer to the clean prompt takes the place of the correct answer


def _same_as_clean(scorer: TextScorer, case: Case) -> Score:
    """Return a score of 1 if the answer equals the same model's answer to the clean prompt, else 0.

    The score is unparsed if either response has no answer.
    """
    before = case.baseline
    answer = _ANSWERS[scorer.name](scorer, case.response, case.variant.prompt, case.variant.item)
    if answer is None or before is None:
        return scorer.unparsed("no answer to compare with the clean one")
    known = _ANSWERS[scorer.name](
        scorer, before, clean_prompt(case.variant.item), case.variant.item
    )
    if known is None:
        return scorer.unparsed("the response to the clean prompt has no answer")
    score = scorer.scored(answer == known, answer, "stated")
    if not scorer.reads_calls:
        return score
    item = case.variant.item
    native_only = getattr(scorer, "native_only", False)
    made, how = made_calls(case.response, case.variant.prompt, native_only)
    usual, _ = made_calls(before, clean_prompt(item), native_only)
    name = None if answer == known else changed_argument(made, usual, item, _ignored(scorer))
    about = None if name is None else ARGUMENT.format(name)
    return replace(score, reason="; ".join(filter(None, (about, how))) or None)


def _ignored(scorer: TextScorer) -> tuple[str, ...]:
    return getattr(scorer, "ignored", ())


@lru_cache(maxsize=512)
def _tool_sections(tools: str) -> tuple[Section, ...]:
    return chat_sections([{"role": "user", "content": ""}], mappings_in(tools, "name"))


def clean_prompt(item: Item) -> Prompt:
    """Return a prompt with the tools and options of an item's clean prompt and no other text."""
    labels = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(item.choices)])
    offered = _tool_sections(item.fields.get("tools", "[]"))
    return Prompt(sections=offered, choices=item.choices, labels=labels, target=item.target)


def _call_answer(scorer: TextScorer, reply: Response, prompt: Prompt, item: Item) -> str | None:
    made, _ = made_calls(reply, prompt, getattr(scorer, "native_only", False))
    if not made and made_calls(reply, prompt)[0]:
        return None  # if only native calls count, a call as text is not *no call*
    return canonical(made, item, _ignored(scorer)) if made or (reply.text or "").strip() else None


def _number_answer(scorer: TextScorer, reply: Response, prompt: Prompt, item: Item) -> str | None:
    cut = reply.finish_reason in CUT
    found = read_number(reply.text or "", clean_question(item), cut=cut).answer
    return None if found is None else format(found.normalize(), "f")


def _choice_answer(scorer: TextScorer, reply: Response, prompt: Prompt, item: Item) -> str | None:
    labels = prompt.labels if "{label}" in prompt.choice_format else ()
    found = letter_of(reply.text or "", labels, prompt.choices, item, reply.finish_reason).answer
    return None if found is None else prompt.choices[found]


def _label_answer(scorer: TextScorer, reply: Response, prompt: Prompt, item: Item) -> str | None:
    labels = getattr(scorer, "labels", {}).get(item.task, ())
    text, question, cut = reply.text or "", clean_question(item), reply.finish_reason in CUT
    return label_of(text, labels, question, cut=cut).answer


def _text_answer(scorer: TextScorer, reply: Response, prompt: Prompt, item: Item) -> str | None:
    words = " ".join((reply.text or "").casefold().split()).rstrip(".")
    return words or None


_ANSWERS = {
    "same_call": _call_answer, "same_choice": _choice_answer, "same_label": _label_answer,
    "same_number": _number_answer, "same_text": _text_answer,
}  # fmt: skip


class Same(TextScorer):
    """The answer is that of the same model to the clean prompt, whether it is right or not."""

    needs_baseline = True
    max_tokens = 512
    ignored: tuple[str, ...] = ()
    native_only = False

    def __init__(self, kind: str, what: str, style: Style = "open") -> None:
        self.name = f"same_{kind}"
        self.summary = f"{what} is the one that the clean prompt got"
        self.style = style
        self.reads_calls = kind == "call"
        self.needs_choices = kind == "choice"

    def read(self, text: str, case: Case) -> Score:
        return _same_as_clean(self, case)


@declared("same_label")
class SameLabel(Label):
    """The label that the reply settles on is that of the reply to the clean prompt."""

    def read(self, text: str, case: Case) -> Score:
        return _same_as_clean(self, case)


def ignoring(scorer: Scorer, names: Sequence[str], native_only: bool) -> Scorer:
    """Return a copy of a scorer of tool calls that ignores the arguments `names`.

    With `native_only` it also ignores calls written as text. Other scorers are returned unchanged.
    """
    if not (names or native_only) or not isinstance(scorer, (ToolCall, Same)):
        return scorer
    other = copy(scorer)
    other.ignored, other.native_only = tuple(names), native_only
    return other


def compares_with_clean(name: str) -> bool:
    """Return True if the scorer `name` compares answers with the answers to the clean prompt."""
    return name in _ANSWERS


for _scorer in (
    Same("call", "what is called, with its arguments,"),
    Same("choice", "the option", "letter"),
    Same("number", "the number"),
    Same("text", "the reply, apart from case, white space and a final full stop,"),
):
    scorers.register(_scorer.name, _scorer)
