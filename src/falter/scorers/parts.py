"""Answers with several parts: how many are there, which facts they hold, which slots are right."""

from __future__ import annotations

import json

from falter.records.interfaces import Case
from falter.records.types import Score
from falter.scorers._base import TextScorer, scorers
from falter.scorers._entities import entity_match

__all__ = ["Facts", "Parts", "Slots", "gold_slots"]


def gold_slots(target: str) -> dict[str, str]:
    """The slots of a target, one `name: value` a line."""
    pairs = (line.split(":", 1) for line in target.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


class Parts(TextScorer):
    """1 for a reply that is in its form and has all of its parts; any other is unparsed."""

    name = "complete_parts"
    summary = "the reply has all of its parts, read from its form with a real parser"
    max_tokens = 512
    needs_prompt = False

    def read(self, text: str, case: Case) -> Score:
        if not text.strip():
            return self.unparsed("the reply is empty")
        return self.scored(True, text)


class Facts(TextScorer):
    """The share of the target's lines that stand in the reply, case and spacing aside."""

    name = "stated_facts"
    summary = "share of the target's facts, one a line, that stand in the reply"
    max_tokens = 512
    needs_prompt = False

    def fault(self, target: str) -> str | None:
        return None if target.strip() else "the target names no fact"

    def read(self, text: str, case: Case) -> Score:
        facts = [_plain(line) for line in str(case.variant.prompt.target or "").splitlines()]
        facts = [fact for fact in facts if fact]
        if not facts:
            return self.failed("the item names no fact")
        reply = _plain(_values(text))
        return self.scored(sum(fact in reply for fact in facts) / len(facts), text)


class Slots(TextScorer):
    """F1 of the reply's slots against the target's; the values of a choice have to be the same."""

    name = "filled_slots"
    summary = "F1 of the slots filled, choices exactly and other values by ROUGE-L of at least 0.7"
    max_tokens = 512
    needs_prompt = False

    def fault(self, target: str) -> str | None:
        return None if gold_slots(target) else "the target has no lines 'slot: value'"

    def read(self, text: str, case: Case) -> Score:
        prompt = case.variant.prompt
        gold = gold_slots(str(prompt.target or ""))
        schema = prompt.schema
        choices = [key.name for key in schema.keys if key.choices] if schema else []
        match = entity_match(text, gold, choice_keys=choices, tokens="unicode")
        if match.value is None:
            return self.unparsed("the reply is not a JSON object of slots")
        return self.scored(match.value, text)


def _values(text: str) -> str:
    """The values of a JSON object one after another; any other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return "\n".join(map(str, value.values())) if isinstance(value, dict) else text


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


for _scorer in (Parts(), Facts(), Slots()):
    scorers.register(_scorer.name, _scorer)
