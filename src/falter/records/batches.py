"""Requests that a provider answers together, within a day: records, and who does what with them.

A client hands batches in and reads them (`BatchDesk`), the store remembers them (`BatchBook`), and
the runner brings the two together.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from falter.records.interfaces import Client
from falter.records.types import Model, Request, Response

BatchState = Literal["sending", "waiting", "read", "refused", "lost", "given up"]
OPEN_STATES: tuple[BatchState, ...] = ("sending", "waiting")
"""Those of a batch whose answers may still come: it is being handed in, or the provider has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """A batch as the store knows it.

    `mark` is its address here, and goes along to the provider where one takes it. `name` is the
    provider's name for it, None until that is known. `asked` says in what way the server was asked
    that differs from the usual one; `said` is the provider's last word.
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
    """One request's result in a batch; without a response, it is to be sent again, and why.

    `key` is empty where the line names no request of falter's.
    """

    key: str
    response: Response | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """The state of a batch: whether it has ended, and the provider's words for that.

    `failure` is why the whole of it was refused after it had been taken. `too_much` says that the
    reason is how much the provider was asked at once, `gone` that it knows no such batch.
    """

    ended: bool
    said: str
    failure: str = ""
    too_much: bool = False
    cancelled: bool = False
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedBatch:
    """One of the batches that an account has; what a provider does not say is None."""

    name: str
    mark: str | None = None
    requests: int | None = None
    created_at: float | None = None


class BatchDesk(Protocol):
    """One model's batches at one provider, whose form of a file is called `form`."""

    form: str
    most_requests: int
    most_bytes: int

    @property
    def asked(self) -> str:
        """In what way the server is asked by now that differs from the usual one."""

    def line(self, request: Request) -> bytes:
        """One request, as a line of JSON. `ValueError` where it cannot be written."""

    def file_line(self, request: Request) -> bytes:
        """The same for a file that somebody hands in by hand."""

    async def check(self) -> None:
        """Raise `PreflightError` where the server has no batches; nothing is sent yet."""

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        """Hand a batch in; its name, or None where nobody knows whether it arrived.

        The name is empty where it arrived and got none that can be used. Raises where it was
        refused for certain. It is never handed in a second time.
        """

    def listed(self, since: float) -> AsyncIterator[ListedBatch]:
        """The account's batches made since a time, the newest first."""

    async def status(self, name: str) -> BatchStatus:
        """Return the state of a batch."""

    def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        """Every line of a batch that has ended, in the provider's order."""


@runtime_checkable
class BatchClient(Client, Protocol):
    """A client whose provider takes batches."""

    @property
    def batches(self) -> BatchDesk: ...


class BatchBook(Protocol):
    """The part of the store that remembers batches."""

    def record(self, model: Model, keys: Sequence[str], asked: str) -> StoredBatch | None:
        """Write down what is about to be handed in, and lease it to this process.

        Requests that are answered, or in the hands of another process, are left out.
        """

    def open(self, model: Model) -> list[StoredBatch]:
        """A model's batches whose answers may still come, the oldest first."""

    def names(self, model: Model) -> set[str]:
        """Return the provider's names of a model's batches, whatever became of them."""

    def keys(self, batch: StoredBatch) -> list[str]: ...

    def held(self, keys: Collection[str]) -> set[str]:
        """Those of the requests that are in an open batch."""

    def is_free(self, key: str) -> bool:
        """Return True if a request leased by this process has no answer and no open batch."""

    def lease(self, batch: StoredBatch) -> bool:
        """Take charge of a batch until it ends or is given back; False if another process has."""

    def mark(
        self, batch: StoredBatch, state: BatchState, *, name: str | None, said: str = ""
    ) -> StoredBatch: ...

    def land(self, batch: StoredBatch, responses: Sequence[Response]) -> None:
        """Store what came: answers as answers, failures as failures, in one commit."""


def custom_id(key: str) -> str:
    """Return the name of a request for providers: its key without the prefix, 64 hex digits."""
    return key.removeprefix("sha256:")


def key_of(name: object) -> str:
    """The key of what a provider calls a request by; empty where it is none."""
    digits = isinstance(name, str) and len(name) == 64 and set(name) <= set("0123456789abcdef")
    return f"sha256:{name}" if digits else ""
