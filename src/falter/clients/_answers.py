"""What a model said, before it is a response; and how that can go wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import time
from typing import Any, Self

from falter.core.errors import EndpointError
from falter.core.records import ContinuationScore, Request, Response, Usage

__all__ = ["Answer", "RequestRefused", "UnusableAnswer", "failed"]

LONGEST_TEXT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A text or scores, and what came with them."""

    text: str | None = None
    scores: tuple[ContinuationScore, ...] = ()
    finish_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    served_by: str | None = None

    @classmethod
    def from_server(
        cls,
        text: str | None,
        *,
        scores: tuple[ContinuationScore, ...] = (),
        finish_reason: Any = None,
        prompt_tokens: Any = None,
        completion_tokens: Any = None,
        served_by: Any = None,
    ) -> Self:
        """From values of a server's JSON: those of a wrong type count as absent.

        A text beyond a million characters is cut there, with finish reason `length`.
        """
        if text is not None and len(text) > LONGEST_TEXT:
            text, finish_reason = text[:LONGEST_TEXT], "length"
        sent, written = prompt_tokens, completion_tokens
        return cls(
            text=text,
            scores=scores,
            finish_reason=finish_reason[:100] if isinstance(finish_reason, str) else None,
            usage=Usage(
                prompt_tokens=sent if type(sent) is int and sent > 0 else 0,
                completion_tokens=written if type(written) is int and written > 0 else 0,
            ),
            served_by=served_by[:200] if isinstance(served_by, str) else None,
        )

    def response(self, request: Request, latency: float) -> Response:
        """This answer to a request, as it is stored."""
        return Response(
            key=request.key,
            text=self.text,
            scores=self.scores,
            finish_reason=self.finish_reason,
            usage=self.usage,
            latency=latency,
            served_by=self.served_by,
            received_at=time(),
        )


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
    return Response(key=request.key, failure=reason, received_at=time())
