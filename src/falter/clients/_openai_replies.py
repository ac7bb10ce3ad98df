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
    reason = choice.get("finish_reason")
    _check_finish(content, reason, choice)
    return answer_of(data, content, finish_reason=reason, reasoning=_reasoning(message))


def read_completion(data: Any) -> Answer:
    """The first choice's text."""
    choice = choices_of(data)[0]
    content = _text(choice.get("text"))
    _check_finish(content, choice.get("finish_reason"), choice)
    return answer_of(data, content, finish_reason=choice.get("finish_reason"))


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
    reasoning: str | None = None,
) -> Answer:
    """A text or scores with what a body says beside them.

    Who served it is the fingerprint, else the model's name in the answer; with the provider, where
    a router names one.
    """
    tokens = _part(data, "usage")
    served, provider = data.get("system_fingerprint") or data.get("model"), data.get("provider")
    if isinstance(provider, str) and provider:
        served = f"{provider}: {served}" if isinstance(served, str) else provider
    return Answer.from_server(
        text,
        scores=scores,
        finish_reason=finish_reason,
        prompt_tokens=tokens.get("prompt_tokens"),
        completion_tokens=tokens.get("completion_tokens"),
        reasoning_tokens=_part(tokens, "completion_tokens_details").get("reasoning_tokens"),
        cached_tokens=_part(tokens, "prompt_tokens_details").get("cached_tokens"),
        served_by=served,
        reasoning=reasoning,
        request_id=data.get("id"),
    )


def _check_finish(content: str, reason: Any, choice: dict[str, Any]) -> None:
    """A choice that says it is an error, with nothing in it, is a failure and no empty answer."""
    if reason == "error" and not content.strip():
        said = choice.get("error") or "without a word"
        raise UnusableAnswer(f"finish reason 'error': {orjson.dumps(said).decode()}")


def _reasoning(message: dict[str, Any]) -> str | None:
    """What a server puts apart from the content: as a text, or as details of which some are."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    details = message.get("reasoning_details")
    parts = details if isinstance(details, list) else []
    texts = [p.get("text") or p.get("summary") for p in parts if isinstance(p, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _part(data: dict[str, Any], name: str) -> dict[str, Any]:
    """A mapping inside a mapping; an empty one where there is none."""
    inner = data.get(name)
    return inner if isinstance(inner, dict) else {}


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
