"""Answers of models before they become responses, and the errors that can occur."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Self

import orjson

from falter.records.chats import json_line
from falter.records.codec import without_surrogates
from falter.records.errors import EndpointError
from falter.records.types import Call, ContinuationScore, Request, Response, Usage

MAX_TEXT_CHARACTERS = 1_000_000
MAX_REASON_CHARACTERS = 2000
MAX_DEPTH = 100
"""Maximum nesting of a reply's JSON; orjson writes 254 levels, Python's recursion ends at 1,000."""
MAX_CONTAINERS = 3_000_000
"""Maximum number of brackets in a reply; each may become a list of 56 bytes in memory."""
MAX_TOKEN_COUNT = 10_000_000
"""Largest token count that is believed: no request takes more tokens."""
REASONING_BLOCK = re.compile(r"\s*<think>(?P<inside>.*?)(?:(?P<end></think>)|\Z)", re.S)
REASONING_END = "</think>"
MAX_CALLS = 128
"""Maximum number of calls of one response that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A model's answer: a text or scores, with what the server reports about them.

    `reasoning` comes from a separate field of the reply; `stored` adds the reasoning in the text.
    `value` is a score that the model itself gave, from 0 to 1.
    """

    text: str | None = None
    scores: tuple[ContinuationScore, ...] = ()
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    served_by: str | None = None
    reasoning: str | None = None
    request_id: str | None = None
    value: float | None = None
    calls: tuple[Call, ...] = ()

    @classmethod
    def from_server(
        cls,
        text: str | None,
        *,
        scores: tuple[ContinuationScore, ...] = (),
        finish_reason: Any = None,
        prompt_tokens: Any = None,
        completion_tokens: Any = None,
        reasoning_tokens: Any = None,
        cached_tokens: Any = None,
        served_by: Any = None,
        reasoning: Any = None,
        request_id: Any = None,
        value: float | None = None,
        calls: Any = None,
    ) -> Self:
        """Return an answer from values of a server's JSON; values of a wrong type count as absent.

        Raise `TypeError` if the text is neither a string nor None.
        """
        if not isinstance(text, str | None):
            raise TypeError(f"the text is of type {type(text).__name__}")
        return cls(
            text=text,
            scores=scores,
            finish_reason=finish_reason[:100] if isinstance(finish_reason, str) else None,
            usage=Usage(
                prompt_tokens=_token_count(prompt_tokens),
                completion_tokens=_token_count(completion_tokens),
                reasoning_tokens=_token_count(reasoning_tokens),
                cached_tokens=_token_count(cached_tokens),
            ),
            served_by=_shortened(served_by),
            reasoning=reasoning if isinstance(reasoning, str) else None,
            request_id=_shortened(request_id),
            value=value,
            calls=calls_of(calls),
        )

    def response(self, request: Request, latency: float) -> Response:
        """Return the answer as the response to a request, as `stored` does for its key."""
        return self.stored(request.key, latency)

    def stored(self, key: str, latency: float = 0.0) -> Response:
        """Return the answer as the response to the request with this key.

        Every answer becomes a record here. Lone surrogates are replaced. A text beyond a million
        characters is truncated, with finish reason `length`. Reasoning moves from the text to
        `reasoning`. A score that is not finite is a failure.
        """
        odd = next((s.logprob for s in self.scores if not math.isfinite(s.logprob)), self.value)
        if odd is not None and not math.isfinite(odd):
            return failed_key(
                key, f"the model returned the score {odd}, which is not a finite number"
            )
        text, reasoning, finish_reason = self.text, self.reasoning, self.finish_reason
        if text is not None and len(text) > MAX_TEXT_CHARACTERS:
            text, finish_reason = text[:MAX_TEXT_CHARACTERS], "length"
        if text is not None and not self.scores:
            text, inside, whole = split_reasoning(text)
            reasoning = "\n".join(filter(None, (reasoning, inside))) or None
            if not whole and finish_reason != "length":
                finish_reason = "unclosed_reasoning"
        return Response(
            key=key,
            text=without_surrogates(text),
            scores=self.scores,
            finish_reason=without_surrogates(finish_reason),
            usage=self.usage,
            latency=latency,
            served_by=without_surrogates(self.served_by),
            received_at=time(),
            reasoning=without_surrogates(reasoning and reasoning[:MAX_TEXT_CHARACTERS]),
            value=self.value,
            request_id=without_surrogates(self.request_id),
            calls=self.calls,
        )


def calls_of(values: Any) -> tuple[Call, ...]:
    """Return the calls in a list, in OpenAI's form or flat; calls without a name are left out.

    Arguments stay as the model wrote them; a mapping is written as JSON.
    """
    listed = values[:MAX_CALLS] if isinstance(values, (list, tuple)) else ()
    calls = [c.get("function", c) for c in listed if isinstance(c, Mapping)]
    return tuple(
        Call(
            name=str(without_surrogates(call["name"][:200])),
            arguments=_arguments_json(call.get("arguments")),
        )
        for call in calls
        if isinstance(call, Mapping) and isinstance(call.get("name"), str)
    )


def _arguments_json(value: Any) -> str:
    if value is None or isinstance(value, str):
        return (without_surrogates(value) or "{}")[:MAX_TEXT_CHARACTERS]
    try:
        return str(without_surrogates(json_line(value)))[:MAX_TEXT_CHARACTERS]
    except (TypeError, ValueError, RecursionError):
        return "arguments that are not JSON"


def read_json(raw: bytes) -> Any:
    """Return the JSON of a reply; raise `ValueError` if it is invalid or exceeds the bounds.

    All JSON of servers is parsed here. NaN is invalid. A lone surrogate, which some servers write
    where a response was truncated, is replaced and does not cost the response.
    """
    brackets = raw.count(b"[") + raw.count(b"{")
    if brackets > MAX_CONTAINERS:
        raise TooLargeJson(f"more than {MAX_CONTAINERS:,} brackets")
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if b"\\u" not in raw:
            raise
        # Unlike orjson, json takes a lone surrogate such as "\ud83d".
        try:
            halved = json.loads(raw, parse_constant=_refuse_constant, parse_int=_bounded_number)
            data = orjson.loads(without_surrogates(json.dumps(halved, ensure_ascii=False)) or "")
        except (ValueError, RecursionError):
            raise error from None
    if brackets > MAX_DEPTH:
        _check_depth(data)
    return data


class TooLargeJson(ValueError):
    """JSON that exceeds the bounds; sending the request again would not help."""


def _bounded_number(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_depth(data: Any) -> None:
    """Raise `TooLargeJson` for JSON nested deeper than `MAX_DEPTH`, without recursion."""
    level = [data]
    for _ in range(MAX_DEPTH):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [v for values in inner for v in values if isinstance(v, (dict, list))]
        if not level:
            return
    raise TooLargeJson(f"nested more than {MAX_DEPTH} deep")


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """Return a response's text, its reasoning, and True if the reasoning is closed.

    The reasoning are the `<think>` blocks at the start. If the chat template opened the block in
    the prompt, all text before the first `</think>` is reasoning. Later blocks are part of the
    text. If a block is not closed, the text is empty.
    """
    reasoning: list[str] = []
    if REASONING_END in text and "<think>" not in text[: text.index(REASONING_END)]:
        before, _, text = text.partition(REASONING_END)
        reasoning.append(before.strip())
    while block := REASONING_BLOCK.match(text):
        reasoning.append(block["inside"].strip())
        text = text[block.end() :]
        if block["end"] is None:
            return "", "\n".join(reasoning), False
    return (text.lstrip() if reasoning else text), "\n".join(reasoning), True


def stop_at(text: str, stop: Sequence[str]) -> int | None:
    """Return the offset of the first stop string in the text, or None."""
    return min((at for word in stop if (at := text.find(word)) >= 0), default=None)


def _token_count(value: Any) -> int:
    """Return a number of tokens, or 0 if the value is no plausible count."""
    return value if type(value) is int and 0 < value <= MAX_TOKEN_COUNT else 0


def _shortened(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


class UnusableAnswer(Exception):
    """A reply that arrived without a usable answer; sending the request again may help."""


class RequestRefused(EndpointError):
    """A request that failed for good, with the server's error.

    `status` is the HTTP status, if there was one; `said`, `code` and `field` are the server's
    message, its code for the error, and the field of the body that it names.
    """

    def __init__(
        self, reason: str, *, status: int | None, said: str = "", code: str = "", field: str = ""
    ) -> None:
        super().__init__(reason)
        self.status, self.said, self.code, self.field = status, said, code, field


def failed(request: Request, reason: str) -> Response:
    """Return the response of a failed request; the next run sends the request again."""
    return failed_key(request.key, reason)


def failed_key(key: str, reason: str) -> Response:
    """Return the response of the failed request with this key."""
    return Response(
        key=key, failure=without_surrogates(reason[:MAX_REASON_CHARACTERS]), received_at=time()
    )


def refused_key(key: str, reason: str) -> Response:
    """Return the response of a request that the provider refused; it is not sent again."""
    return Response(key=key, text="", finish_reason=reason, received_at=time())


def submapping(data: Any, name: str) -> dict[str, Any]:
    """Return the mapping under a name of a mapping; an empty mapping if there is none."""
    inner = data.get(name) if isinstance(data, dict) else None
    return inner if isinstance(inner, dict) else {}
