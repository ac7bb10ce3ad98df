"""What clients have in common: one that answers by itself, one behind HTTP, one that batches."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from falter.clients._answers import Answer, failed
from falter.clients._batching import Batcher
from falter.core.errors import EndpointError, EngineLost
from falter.core.interfaces import Capabilities
from falter.core.records import Model, Request, Response

if TYPE_CHECKING:
    from falter.clients._transport import Transport

__all__ = ["BaseClient", "BatchClient", "HttpClient"]

LONGEST_REASON = 500
LOST = ("CUDA error", "HIP error", "device-side assert", "EngineDeadError")
"""What errors say after which an engine answers nothing more in this process."""


class BaseClient(ABC):
    """The least that a client has: `model`, `capabilities` and `generate`.

    `model` says who answers: it enters the key of every request, so it holds whatever changes
    answers, and no key. What goes wrong with one request is a response with `failure` set; what is
    raised ends the run.
    """

    model: Model
    capabilities: Capabilities

    async def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raise `PreflightError` when the first request could only fail; nothing is paid yet."""

    @abstractmethod
    async def generate(self, request: Request) -> Response:
        """The answer to `request.messages`, or to the plain text `request.context`."""

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """The log-likelihood of every continuation after its context, a response a request."""
        raise EndpointError(f"{self.model.label} gives no log-likelihoods of given answers")

    @property
    def adapted(self) -> Mapping[str, str]:
        """What was learnt of how the server wants to be asked: fields, and what became of them."""
        return {}

    async def close(self) -> None:  # noqa: B027 (or to close)
        """Let go of connections and memory."""


class HttpClient(BaseClient):
    """A model behind a `Transport`."""

    transport: Transport

    async def check(self) -> None:
        """Ask for the model list: free of charge, and it says if the first request can work."""
        await self.transport.check(self.model.name)

    @property
    def adapted(self) -> Mapping[str, str]:
        """The changes of the transport's shape."""
        return self.transport.shape.changes

    @property
    def way(self) -> str:
        """What carries the requests."""
        return self.transport.way

    async def close(self) -> None:
        """Close the connections."""
        await self.transport.close()


class BatchClient(BaseClient):
    """A model in this process that is fast when asked many things at once.

    It computes on one thread of its own. Whatever is asked meanwhile goes to `answer` together,
    scoring and writing apart, `most` requests at a time.
    """

    def __init__(self, *, most: int, name: str) -> None:
        self._loaded = False
        self._batcher: Batcher[Request, Response] = Batcher(
            self._responses,
            most=most,
            name=name,
            kind=lambda request: request.scores,
            recover=self.recover,
        )

    @abstractmethod
    def load(self) -> None:
        """Load the model, on its thread; `PreflightError` when that cannot be done."""

    @abstractmethod
    def answer(self, requests: Sequence[Request]) -> Sequence[Answer | Exception]:
        """The answers in order, on the model's thread; an exception where there is none.

        All requests are to be scored, or none is. What is raised costs no other request its
        answer: the batch is halved until it is known whose failure it is.
        """

    def recover(self) -> None:
        """Give back memory after a batch that failed, on the model's thread."""

    def reason(self, error: Exception) -> str:
        """An exception as the failure of its request; raise it where it should end the run."""
        return f"{type(error).__name__}: {error}"[:LONGEST_REASON]

    async def check(self) -> None:
        """Load the model."""
        if not self._loaded:
            await self._batcher.call(self._load_once)

    async def generate(self, request: Request) -> Response:
        """One answer, in a batch with whatever else is asked at the time."""
        await self.check()
        try:
            return await self._batcher.ask(request)
        except Exception as error:
            if any(mark in repr(error) for mark in LOST):
                raise EngineLost(
                    f"{self.model.label} answers nothing more: {error!r:.{LONGEST_REASON}}",
                    hint="what is answered is stored, and the same command goes on; with "
                    "'--engine ray' a run starts such an engine anew by itself",
                ) from error
            return failed(request, self.reason(error))

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Log-likelihoods, in a batch with whatever else is asked at the time."""
        return await asyncio.gather(*map(self.generate, requests))

    async def close(self) -> None:
        """Let the batch under way end, and the model go."""
        await self._batcher.close()
        self._loaded = False

    def _load_once(self) -> None:
        if not self._loaded:
            self.load()
            self._loaded = True

    def _responses(self, requests: Sequence[Request]) -> list[Response | Exception]:
        """Each request of a batch took its share of the batch's time."""
        started = time.perf_counter()
        answers = self.answer(requests)
        share = (time.perf_counter() - started) / len(requests)
        return [
            answer if isinstance(answer, Exception) else answer.response(request, share)
            for request, answer in zip(requests, answers, strict=True)
        ]
