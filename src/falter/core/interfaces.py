"""The few protocols that rooms meet through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from falter.core.records import (
    Model,
    Prompt,
    Request,
    Response,
    Rewrite,
    Score,
    SectionKind,
    Variant,
)
from falter.core.rng import Rng

__all__ = [
    "Capabilities",
    "Case",
    "Client",
    "Parameter",
    "Perturbation",
    "ResponseStore",
    "RewriteBank",
    "Scorer",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a perturbation or client: its type, default and what it accepts."""

    name: str
    type: type
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()


class Perturbation(Protocol):
    """One meaning-preserving change: a pure function of prompt and rng.

    `reply_tokens` above 0 says that it only makes sense when the model writes an answer, and how
    many tokens that answer needs; `output_format` is the form it asks the answer to have.
    """

    name: str
    family: str
    group: str
    version: int
    summary: str
    scope: tuple[SectionKind, ...]
    parameters: tuple[Parameter, ...]
    invariants: frozenset[str]
    languages: frozenset[str] | None
    needs_model: bool
    reply_tokens: int
    output_format: str | None

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt: ...

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Whether there is anything in the prompt that this could change."""
        ...


class RewriteBank(Protocol):
    """Rewrites that were prepared before a run."""

    def find(self, key: str, text: str) -> Rewrite | None:
        """What was made of a text, usable or not; None when nobody was asked.

        The key says it all; the text is for banks that make rewrites up on the spot.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a client can do, known before the first paid call.

    `chats` says whether it takes messages rather than one plain text; `lanes` is how many
    requests it serves at once when the client itself is the bottleneck (None: as many as the
    user allows); `batch` is how many scoring requests it takes together.
    """

    generates: bool
    scores: bool
    chats: bool = True
    lanes: int | None = None
    batch: int = 1


class Client(Protocol):
    """Something that answers requests."""

    model: Model
    capabilities: Capabilities

    async def check(self) -> None:
        """Raise `PreflightError` when the first request could only fail."""
        ...

    async def generate(self, request: Request) -> Response: ...

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Log-likelihoods of each request's continuations: all of a request, or a failure."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a scorer sees: a variant with its response."""

    variant: Variant
    response: Response


class Scorer(Protocol):
    """Judges one response."""

    name: str
    summary: str
    needs_scores: bool
    needs_choices: bool
    max_tokens: int
    style: Literal["cloze", "letter", "open"]

    def score(self, case: Case, verdicts: Mapping[str, Response]) -> Score: ...

    def needs(self, case: Case) -> Sequence[Request]:
        """Judge requests to be answered first; most scorers need none."""
        ...


class ResponseStore(Protocol):
    """The part of the store that the runner uses."""

    def missing(self, keys: Sequence[str]) -> set[str]: ...

    def put_responses(self, responses: Sequence[tuple[Request, Response]]) -> None: ...

    def put_failures(self, responses: Sequence[Response]) -> None: ...
