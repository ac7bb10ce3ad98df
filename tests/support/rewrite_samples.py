"""A rewriter that works by rule, a small task for it, and what tests of rewrites share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from falter.clients import ClientSettings
from falter.engine.config import Experiment, ModelSpec, read_experiment
from falter.engine.resolving import Resolved, resolve
from falter.engine.rewriting import bank_in
from falter.records.interfaces import Client
from falter.records.types import Request, Response
from falter.testing import Scripted

__all__ = ["REWRITER", "WORDSMITH", "Wordsmith", "experiment_of", "resolved_in", "write_data"]

WORDSMITH = "wordsmith"
REWRITER = ModelSpec(name=WORDSMITH)
QUESTIONS = {
    "Which animal says moo?": "the cow",
    "Which animal says meow?": "the cat",
    "Which animal says woof?": "the dog",
    "Which animal refuses to be reworded?": "the mule",
    "Which animal leaves it empty?": "the snail",
    "Which animal stays the same?": "the tortoise",
    "Which animal runs 100 km in 1 hour?": "the cheetah",
    "Which animal is cut off?": "the lizard",
}
_REFUSAL = "I'm sorry, but I can't assist with that."


def said(text: str) -> str | Response:
    """Return the rewriter's reply to a text: mostly a good rewrite, and every way to fail."""
    if "refuses" in text:
        return _REFUSAL
    if "empty" in text:
        return "  \n"
    if "same" in text:
        return text
    if "100 km" in text:
        return "What creature runs very fast?"
    if "cut off" in text:
        return Response(key="", text="What creature is", finish_reason="length")
    return f'Here is the paraphrased text:\n"{text.replace("Which animal", "What creature")}"'


class Wordsmith:
    """Every client of the name `wordsmith`, with what all of them were asked.

    `answers` puts a function of the text in the place of the rule; `failing` texts get no answer.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: Any = said
        self.failing: set[str] = set()
        self.generates = True

    def __call__(self, settings: ClientSettings) -> Client:
        client = Scripted(self._answer, name=settings.name or WORDSMITH)
        if not self.generates:
            from dataclasses import replace

            client.capabilities = replace(client.capabilities, generates=False)
        return client

    def _answer(self, request: Request) -> str | Response:
        self.requests.append(request)
        text = request.variant.item.fields["text"]
        if text in self.failing:
            return Response(key=request.key, failure="HTTP 500")
        answer: str | Response = self.answers(text)
        return answer

    @property
    def texts(self) -> list[str]:
        return [request.variant.item.fields["text"] for request in self.requests]


def write_data(folder: Path, questions: Mapping[str, str] = QUESTIONS) -> Path:
    """The questions as JSONL, each with two options, the right one first."""
    path = folder / "animals.jsonl"
    rows = [
        {"question": question, "options": [answer, "none of them"], "answer": 0}
        for question, answer in questions.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def experiment_of(path: Path, *recipes: str, **settings: Any) -> Experiment:
    """An experiment on the questions with the simulated model."""
    return read_experiment(
        {
            "data": {"path": str(path), "choices": "options", "target": "answer"},
            "template": "Say which one.\n\nQuestion: {question}\nAnswer:",
            "models": ["simulated"],
            "recipes": list(recipes),
            **settings,
        }
    )


@contextmanager
def resolved_in(experiment: Experiment, path: Path) -> Iterator[Resolved]:
    """The experiment resolved, with the store open for as long as rewrites may be read."""
    with bank_in(experiment, path) as bank:
        yield resolve(experiment, bank)


def asked_text(request: Request) -> str:
    """The text that a rewriter is shown, between its tags."""
    found = re.search(r"<text>\n(.*)\n</text>\Z", request.messages[-1][1], re.DOTALL)
    assert found, request.messages
    return found[1]
