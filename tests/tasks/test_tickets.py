"""The commonest job, routing a ticket to one of six queues: before and after there was `label`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from falter.records.interfaces import Case
from falter.records.types import BASELINE, Item, Prompt, Response, Score, Section, Variant
from falter.scorers import scorers
from falter.scorers.answers import Label

FILE = Path(__file__).parents[1] / "data" / "tickets" / "replies.jsonl"
TICKETS: list[dict[str, Any]] = [json.loads(x) for x in FILE.read_text("utf-8").splitlines()]
QUEUES = ("billing", "login", "other", "returns", "shipping", "technical")
LABEL = Label({"tickets": QUEUES})


def judged(scorer: Any, ticket: dict[str, Any]) -> Score:
    sections = (Section(name="ticket", kind="input", text=ticket["ticket"]),)
    variant = Variant(
        item=Item(task="tickets", key=ticket["ticket"], fields={}, target=ticket["queue"]),
        recipe=BASELINE,
        draw=0,
        prompt=Prompt(sections=sections, target=ticket["queue"]),
        status="baseline",
    )
    response = Response(key="k", text=ticket["reply"])
    return scorer.score(Case(variant=variant, response=response))


def counts(scorer: Any) -> Counter[str]:
    """Right, wrong, unparsed and refused; and wrong where a person reads the right queue."""
    found: Counter[str] = Counter()
    for ticket in TICKETS:
        score = judged(scorer, ticket)
        outcome = (
            ("right" if score.value else "wrong") if score.value is not None else score.outcome
        )
        found[outcome] += 1
        found["misjudged"] += outcome == "wrong" and ticket["read"] == ticket["queue"]
    return found


BEFORE = Counter(right=23, wrong=62, misjudged=51, refused=7)
AFTER = Counter(right=74, wrong=2, unparsed=9, refused=7, misjudged=0)


def test_exact_calls_right_answers_wrong() -> None:
    """Before: every reply is scored, and most of the right ones are called wrong in silence."""
    assert counts(scorers.get("exact")) == BEFORE


def test_a_label_is_read() -> None:
    """After: no right answer is called wrong, and what names no queue is counted as such."""
    assert counts(LABEL) == AFTER


@pytest.mark.parametrize("ticket", TICKETS, ids=lambda t: t["reply"][:30])
def test_each_reply_is_read_as_a_person_does(ticket: dict[str, Any]) -> None:
    score = judged(LABEL, ticket)
    assert (score.extracted if score.outcome == "scored" else None) == ticket["read"]
