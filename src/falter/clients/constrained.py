"""Request fields that constrain a response to one of several answers, or to a number.

In every form the response is the same JSON, `{"answer": "B"}`, so that one reader suffices. An
empty list of answers stands for any number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from falter.clients.answers import Answer, UnusableAnswer

PLAIN_FORMS = ("structured_outputs", "guided_choice", "grammar")
"""The forms that completions servers take as well as chat servers."""
NUMBER_REPLY = r'\{"answer": -?(0|[1-9][0-9]{0,14})(\.[0-9]{1,6})?\}'
NUMBER_GRAMMAR = 'root ::= "{\\"answer\\": " "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,6})? "}"'
MAX_TOP_LOGPROBS = 20  # maximum number of log-probabilities that servers return for one token


def answer_schema(answers: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an object with one of the answers, or with a number."""
    answer = {"type": "string", "enum": list(answers)} if answers else {"type": "number"}
    return {
        "type": "object",
        "properties": {"answer": answer},
        "required": ["answer"],
        "additionalProperties": False,
    }


def choice_texts(answers: Sequence[str]) -> list[str]:
    """Return all possible responses.

    >>> choice_texts(["A", "B"])
    ['{"answer": "A"}', '{"answer": "B"}']
    """
    return [json.dumps({"answer": answer}, ensure_ascii=False) for answer in answers]


def native_choice(answers: Sequence[str]) -> dict[str, Any]:
    """Return the possible responses for vLLM: whole texts, or a regular expression for numbers."""
    return {"choice": choice_texts(answers)} if answers else {"regex": NUMBER_REPLY}


def answer_grammar(answers: Sequence[str]) -> str:
    """Return the possible responses as a grammar of llama.cpp.

    >>> answer_grammar(["A"])
    'root ::= "{\\\\"answer\\\\": \\\\"A\\\\"}"'
    """
    if not answers:
        return NUMBER_GRAMMAR
    rules = " | ".join(json.dumps(text, ensure_ascii=False) for text in choice_texts(answers))
    return f"root ::= {rules}"


def constraint_fields(form: str, answers: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a body that constrain a model to the answers, in one of the forms."""
    if form == "structured_outputs":
        return {"structured_outputs": native_choice(answers)}
    if form == "guided_choice":
        return {f"guided_{name}": value for name, value in native_choice(answers).items()}
    if form == "grammar":
        return {"grammar": answer_grammar(answers)}
    if form == "top_logprobs":
        return {"logprobs": True, "top_logprobs": MAX_TOP_LOGPROBS, "max_tokens": 1}
    schema = {"name": "answer", "strict": True, "schema": answer_schema(answers)}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def likeliest(answers: Sequence[str], read: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """Return a reader that answers with the most likely answer among the possible first tokens.

    If the server lists no such tokens, the reader raises `UnusableAnswer`, so that the request
    fails instead of counting as wrong. If no token is an answer, the text is not changed, and no
    scorer extracts an answer from it.
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
    """Return the possible first tokens with their log-probabilities."""
    try:
        entries = data["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return [(str(entry["token"]), float(entry["logprob"])) for entry in entries]
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnusableAnswer(
            "the server returns no log-probabilities of the first token, which 'hold_by: "
            "top_logprobs' needs"
        ) from None
