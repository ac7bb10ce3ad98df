"""What OpenAI-compatible servers answer: chat, completions, usage; read with mistrust."""

from __future__ import annotations

from typing import Any

import orjson

from falter.clients._answers import Answer, UnusableAnswer
from falter.core.records import ContinuationScore

__all__ = ["answer_of", "choices_of", "read_chat", "read_completion"]


def read_chat(data: Any) -> Answer:
    """The first choice's message; a refusal in a field of its own is a text, too."""
    choice = choices_of(data)[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnusableAnswer("the first choice has no message")
    refusal = message.get("refusal")
    if refusal and isinstance(refusal, str):
        return answer_of(data, refusal, finish_reason="refusal")
    content = _text(message.get("content"))
    return answer_of(data, content, finish_reason=choice.get("finish_reason"))


def read_completion(data: Any) -> Answer:
    """The first choice's text."""
    choice = choices_of(data)[0]
    return answer_of(data, _text(choice.get("text")), finish_reason=choice.get("finish_reason"))


def choices_of(data: Any) -> list[dict[str, Any]]:
    """The list of choices, of which the first is one."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        error = data.get("error") if isinstance(data, dict) else None
        reason = f": {orjson.dumps(error).decode()}" if error else ""
        raise UnusableAnswer(f"no choices{reason}")
    return choices


def answer_of(
    data: dict[str, Any],
    text: str | None = None,
    *,
    scores: tuple[ContinuationScore, ...] = (),
    finish_reason: Any = None,
) -> Answer:
    """A text or scores with what a body says beside them."""
    usage = data.get("usage")
    tokens = usage if isinstance(usage, dict) else {}
    return Answer.from_server(
        text,
        scores=scores,
        finish_reason=finish_reason,
        prompt_tokens=tokens.get("prompt_tokens"),
        completion_tokens=tokens.get("completion_tokens"),
        served_by=data.get("system_fingerprint") or data.get("model"),
    )


def _text(content: Any) -> str:
    """Text, or the text parts of a list of parts; nothing at all is the empty text."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    raise UnusableAnswer("the content is not text")
