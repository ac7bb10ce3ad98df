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
from falter.records.errors import EndpointError
from falter.records.types import Call, ContinuationScore, Request, Response, Usage

LONGEST_TEXT = 1_000_000
LONGEST_REASON = 2000
MAX_DEPTH = 100
"""Lists within lists of a reply; orjson writes 254, and Python's own recursion ends at 1,000."""
MAX_CONTAINERS = 3_000_000
"""Brackets of a reply, each of which may be a list of 56 bytes in memory."""
MOST_TOKENS = 10_000_000
"""More than any request takes: a server that counts beyond has not counted."""
THOUGHT = re.compile(r"\s*<think>(?P<inside>.*?)(?:(?P<end></think>)|\Z)", re.S)
END = "</think>"
MOST_CALLS = 128
"""Calls of one reply that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A text or scores, and what came with them; `reasoning` stood before the text, or beside."""

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
        """From values of a server's JSON: those of a wrong type count as absent, but for the text.

        TypeError: the text is none.
        """
        if not isinstance(text, str | None):
            raise TypeError(f"the text is of type {type(text).__name__}")
        return cls(
            text=text,
            scores=scores,
            finish_reason=finish_reason[:100] if isinstance(finish_reason, str) else None,
            usage=Usage(
                prompt_tokens=_count(prompt_tokens),
                completion_tokens=_count(completion_tokens),
                reasoning_tokens=_count(reasoning_tokens),
                cached_tokens=_count(cached_tokens),
            ),
            served_by=_short(served_by),
            reasoning=reasoning if isinstance(reasoning, str) else None,
            request_id=_short(request_id),
            value=value,
            calls=calls_of(calls),
        )

    def response(self, request: Request, latency: float) -> Response:
        """This answer to a request, as it is stored: reasoning apart from the text."""
        return self.stored(request.key, latency)

    def stored(self, key: str, latency: float = 0.0) -> Response:
        """The same where no more than the request's key is known.

        Every reply becomes a record here. Halves of characters are replaced. A text beyond a
        million characters is cut there, with finish reason `length`. A score that is not finite
        is a failure.
        """
        odd = next((s.logprob for s in self.scores if not math.isfinite(s.logprob)), self.value)
        if odd is not None and not math.isfinite(odd):
            return failed_key(
                key, f"the model returned the score {odd}, which is not a finite number"
            )
        text, reasoning, finish_reason = self.text, self.reasoning, self.finish_reason
        if text is not None and len(text) > LONGEST_TEXT:
            text, finish_reason = text[:LONGEST_TEXT], "length"
        if text is not None and not self.scores:
            text, inside, whole = split_reasoning(text)
            reasoning = "\n".join(filter(None, (reasoning, inside))) or None
            if not whole and finish_reason != "length":
                finish_reason = "unclosed_reasoning"
        return Response(
            key=key,
            text=_without_surrogates(text),
            scores=self.scores,
            finish_reason=_without_surrogates(finish_reason),
            usage=self.usage,
            latency=latency,
            served_by=_without_surrogates(self.served_by),
            received_at=time(),
            reasoning=_without_surrogates(reasoning and reasoning[:LONGEST_TEXT]),
            value=self.value,
            request_id=_without_surrogates(self.request_id),
            calls=self.calls,
        )


def calls_of(values: Any) -> tuple[Call, ...]:
    """The calls in OpenAI's form, or flat; what has no name counts as absent.

    Arguments stay as the model wrote them; a mapping is written as JSON.
    """
    listed = values[:MOST_CALLS] if isinstance(values, (list, tuple)) else ()
    calls = [c.get("function", c) for c in listed if isinstance(c, Mapping)]
    return tuple(
        Call(
            name=str(_without_surrogates(call["name"][:200])),
            arguments=_arguments(call.get("arguments")),
        )
        for call in calls
        if isinstance(call, Mapping) and isinstance(call.get("name"), str)
    )


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return (_without_surrogates(value) or "{}")[:LONGEST_TEXT]
    try:
        return json_line(value)[:LONGEST_TEXT]
    except (TypeError, ValueError, RecursionError):
        return "arguments that are not JSON"


def read_json(raw: bytes) -> Any:
    """Return the JSON of a reply; `ValueError` if it is none, or beyond the bounds.

    The one place where what a server sent is parsed. NaN is no JSON. Half a character, which some
    servers write where an answer was cut, does not cost the answer.
    """
    brackets = raw.count(b"[") + raw.count(b"{")
    if brackets > MAX_CONTAINERS:
        raise TooLargeJson(f"more than {MAX_CONTAINERS:,} brackets")
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if b"\\u" not in raw:
            raise
        try:
            halved = json.loads(raw, parse_constant=_no_number, parse_int=_bounded)
            data = orjson.loads(_without_surrogates(json.dumps(halved, ensure_ascii=False)) or "")
        except (ValueError, RecursionError):
            raise error from None
    if brackets > MAX_DEPTH:
        _check_depth(data)
    return data


class TooLargeJson(ValueError):
    """JSON beyond the bounds, which asking again would not change."""


def _bounded(digits: str) -> int | float:
    return int(digits) if len(digits) < 19 else float(digits)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _check_depth(data: Any) -> None:
    """Raise for lists in lists without end; level by level, so that nothing recurses here."""
    level = [data]
    for _ in range(MAX_DEPTH):
        inner = (v.values() if isinstance(v, dict) else v for v in level)
        level = [v for values in inner for v in values if isinstance(v, (dict, list))]
        if not level:
            return
    raise TooLargeJson(f"nested more than {MAX_DEPTH} deep")


def _without_surrogates(text: str | None) -> str | None:
    """The text with U+FFFD for halves of characters, which no file can hold."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """A reply without the `<think>` blocks that it begins with, these, and whether they are closed.

    Where the chat template has opened the block in the prompt, all before the first `</think>` is
    reasoning. Blocks further on are part of the answer.
    """
    inside: list[str] = []
    if END in text and "<think>" not in text[: text.index(END)]:
        before, _, text = text.partition(END)
        inside.append(before.strip())
    while block := THOUGHT.match(text):
        inside.append(block["inside"].strip())
        text = text[block.end() :]
        if block["end"] is None:
            return "", "\n".join(inside), False
    return (text.lstrip() if inside else text), "\n".join(inside), True


def stop_at(text: str, stop: Sequence[str]) -> int | None:
    """The place where the first of the stop strings begins, or None."""
    return min((at for word in stop if (at := text.find(word)) >= 0), default=None)


def _count(value: Any) -> int:
    """A number of tokens; 0 where it is none that could be."""
    return value if type(value) is int and 0 < value <= MOST_TOKENS else 0


def _short(value: Any) -> str | None:
    return value[:200] if isinstance(value, str) and value else None


class UnusableAnswer(Exception):
    """An answer that arrived and says nothing usable; asking again may help."""


class RequestRefused(EndpointError):
    """A request that failed for good, with what the server said of it.

    `status` is the HTTP status, if there was one; `said`, `code` and `field` are the server's
    message, its code for the error, and the field of the body that it names.
    """

    def __init__(
        self, reason: str, *, status: int | None, said: str = "", code: str = "", field: str = ""
    ) -> None:
        super().__init__(reason)
        self.status, self.said, self.code, self.field = status, said, code, field


def failed(request: Request, reason: str) -> Response:
    """A response that says why there is no answer; the next run asks again."""
    return failed_key(request.key, reason)


def failed_key(key: str, reason: str) -> Response:
    """The same where no more than the request's key is known."""
    return Response(
        key=key, failure=_without_surrogates(reason[:LONGEST_REASON]), received_at=time()
    )


def refused_key(key: str, reason: str) -> Response:
    """A refusal that came instead of an answer: it is stored, and not asked again."""
    return Response(key=key, text="", finish_reason=reason, received_at=time())


def submapping(data: Any, name: str) -> dict[str, Any]:
    """The mapping inside a mapping; an empty one where there is none."""
    inner = data.get(name) if isinstance(data, dict) else None
    return inner if isinstance(inner, dict) else {}
