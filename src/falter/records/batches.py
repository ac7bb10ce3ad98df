"""Records and protocols of batch APIs: requests that a provider answers together, within a day.

A client submits batches and reads their results (`BatchDesk`), the store records them
(`BatchLog`), and the engine uses both.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from falter.records.interfaces import Client
from falter.records.types import Model, Request, Response

BatchState = Literal["sending", "waiting", "read", "refused", "lost", "given up"]
OPEN_STATES: tuple[BatchState, ...] = ("sending", "waiting")
"""States of a batch that may still be answered: being submitted, or with the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch as recorded in the store.

    `mark` is its local identifier. It is sent along if the provider accepts one. `name` is the
    provider's name for it, None until it is known. `asked` describes how the API dialect differs
    from the usual one. `said` is the provider's last message.
    """

    mark: str
    model: Model
    name: str | None
    state: BatchState
    asked: str
    said: str
    created_at: float
    changed_at: float
    requests: int
    answered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """Result of one request in a batch. Without a response, the request is sent again for `reason`.

    `key` is empty if the line belongs to no request of falter.
    """

    key: str
    response: Response | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """State of a batch: `ended`, and the provider's words in `said`.

    `failure` is the reason that an accepted batch was refused as a whole. `too_much`: too many
    requests were submitted at once. `gone`: the provider knows no such batch.
    """

    ended: bool
    said: str
    failure: str = ""
    too_much: bool = False
    cancelled: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """One of an account's batches. Values that the provider does not report are None."""

    name: str
    mark: str | None = None
    requests: int | None = None
    created_at: float | None = None


class BatchDesk(Protocol):
    """Protocol of the batch API of one model at one provider; `form` names its file format."""

    form: str
    most_requests: int
    most_bytes: int

    @property
    def asked(self) -> str:
        """Description of how the API dialect differs from the usual one at present."""

    def batch_line(self, request: Request) -> bytes:
        """Return one request as a line of JSON; raise ValueError if it cannot be encoded."""

    def file_line(self, request: Request) -> bytes:
        """Return one request as a line of a file that is submitted by hand."""

    async def check(self) -> None:
        """Raise `PreflightError` if the server has no batch API. Nothing was sent yet."""

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        """Submit a batch and return its name; None if its arrival is unknown.

        The name is empty if the batch arrived without a usable name. Raise an error if the batch
        was certainly refused. `submit` does not retry.
        """

    def listed(self, since: float) -> AsyncIterator[ListedBatch]:
        """Yield the account's batches created since a time, the newest first."""

    async def status(self, name: str) -> BatchStatus:
        """Return the state of a batch."""

    def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        """Yield every line of a batch that has ended, in the provider's order."""


@runtime_checkable
class BatchClient(Client, Protocol):
    """A client whose provider takes batches."""

    @property
    def batches(self) -> BatchDesk: ...


class BatchLog(Protocol):
    """The part of the store that records batches."""

    def record(self, model: Model, keys: Sequence[str], asked: str) -> StoredBatch | None:
        """Record and lease a batch that is about to be submitted; None if no request is left.

        Requests are left out that are answered, in an open batch, or leased by another process.
        """

    def open(self, model: Model) -> list[StoredBatch]:
        """Return a model's batches that may still be answered, the oldest first."""

    def names(self, model: Model) -> set[str]:
        """Return the provider's names of a model's batches in any state."""

    def keys(self, batch: StoredBatch) -> list[str]: ...

    def held(self, keys: Collection[str]) -> set[str]:
        """Return the keys that are in an open batch."""

    def is_free(self, key: str) -> bool:
        """Return True if a request leased by this process has no answer and no open batch."""

    def lease(self, batch: StoredBatch) -> bool:
        """Lease a batch until it ends or is released; return False if another process has it."""

    def mark(
        self, batch: StoredBatch, state: BatchState, *, name: str | None, said: str = ""
    ) -> StoredBatch: ...

    def store_results(self, batch: StoredBatch, responses: Sequence[Response]) -> None:
        """Store the results, responses and failures, in one commit."""


def custom_id(key: str) -> str:
    """Return the name of a request for providers: its key without the prefix, 64 hex digits."""
    return key.removeprefix("sha256:")


def key_of(name: object) -> str:
    """Return the key for a request's name at a provider; empty if it is no such name."""
    digits = isinstance(name, str) and len(name) == 64 and set(name) <= set("0123456789abcdef")
    return f"sha256:{name}" if digits else ""
