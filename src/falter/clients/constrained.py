"""Request fields that let a model write one of a few answers, or a number, and nothing else.

Whatever the form, the reply is the same JSON: `{"answer": "B"}`. So one reader judges all of them.
An empty list of answers stands for any number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from falter.clients.answers import Answer, UnusableAnswer

PLAIN_FORMS = ("structured_outputs", "guided_choice", "grammar")
"""Those that a completions server takes as well."""
NUMBER_REPLY = r'\{"answer": -?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?\}'
NUMBER_GRAMMAR = 'root ::= "{\\"answer\\": " "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})? "}"'
MOST_TOP = 20  # log-probabilities that servers give of one token


def answer_schema(answers: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of an object with one of the answers."""
    answer = {"type": "string", "enum": list(answers)} if answers else {"type": "number"}
    return {
        "type": "object",
        "properties": {"answer": answer},
        "required": ["answer"],
        "additionalProperties": False,
    }


def choice_texts(answers: Sequence[str]) -> list[str]:
    """The whole replies that are possible.

    >>> choice_texts(["A", "B"])
    ['{"answer": "A"}', '{"answer": "B"}']
    """
    return [json.dumps({"answer": answer}, ensure_ascii=False) for answer in answers]


def native_choice(answers: Sequence[str]) -> dict[str, Any]:
    """The possible replies as vLLM takes them: whole texts, or a regular expression of numbers."""
    return {"choice": choice_texts(answers)} if answers else {"regex": NUMBER_REPLY}


def answer_grammar(answers: Sequence[str]) -> str:
    """The possible replies as a grammar of llama.cpp.

    >>> answer_grammar(["A"])
    'root ::= "{\\\\"answer\\\\": \\\\"A\\\\"}"'
    """
    if not answers:
        return NUMBER_GRAMMAR
    rules = " | ".join(json.dumps(text, ensure_ascii=False) for text in choice_texts(answers))
    return f"root ::= {rules}"


def constraint_fields(form: str, answers: Sequence[str]) -> dict[str, Any]:
    """The fields of a body that hold a model to the answers, in one of the forms."""
    if form == "structured_outputs":
        return {"structured_outputs": native_choice(answers)}
    if form == "guided_choice":
        return {f"guided_{name}": value for name, value in native_choice(answers).items()}
    if form == "grammar":
        return {"grammar": answer_grammar(answers)}
    if form == "top_logprobs":
        return {"logprobs": True, "top_logprobs": MOST_TOP, "max_tokens": 1}
    schema = {"name": "answer", "strict": True, "schema": answer_schema(answers)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def likeliest(answers: Sequence[str], read: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """A reader that answers with the likeliest of the answers among the first tokens.

    A server that gives no such list cannot be read: that is a failure and no wrong answer. Where
    the list names none of the answers, the text stays as it is, and no scorer takes it for one.
    """

    def reading(data: Any) -> Answer:
        answer = read(data)
        weights: dict[str, float] = {}
        for token, logprob in _first_tokens(data):
            label = token.strip()
            if label in answers:
                weights[label] = max(logprob, weights.get(label, -math.inf))
        if not weights:
            return answer
        best = max(weights, key=lambda label: weights[label])
        return replace(answer, text=choice_texts([best])[0], finish_reason="stop")

    return reading


def _first_tokens(data: Any) -> list[tuple[str, float]]:
    """The tokens that may come first, each with its log-probability."""
    try:
        entries = data["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return [(str(entry["token"]), float(entry["logprob"])) for entry in entries]
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnusableAnswer(
            "the server returns no log-probabilities of the first token, which 'hold_by: "
            "top_logprobs' needs"
        ) from None
