"""The batcher: what is asked together is answered together, and nobody pays for another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import pytest

from falter.clients import Answer, BatchClient, Batcher
from falter.records.errors import EndpointError, PreflightError
from falter.records.interfaces import Capabilities
from falter.records.types import BASELINE, Item, Model, Prompt, Request, Response, Sampling, Variant

T = TypeVar("T")


def batched(
    answer: Callable[[Sequence[Any]], Sequence[Any]],
    body: Callable[[Batcher[Any, Any]], Awaitable[T]],
    **settings: Any,
) -> T:
    """Run `body` with a batcher, closed afterwards."""

    async def main() -> T:
        batcher: Batcher[Any, Any] = Batcher(answer, **{"most": 100, "name": "test", **settings})
        try:
            return await body(batcher)
        finally:
            await batcher.close()

    return asyncio.run(asyncio.wait_for(main(), 20))


async def all_of(batcher: Batcher[Any, Any], questions: Sequence[Any]) -> list[Any]:
    return await asyncio.gather(*map(batcher.ask, questions), return_exceptions=True)


def test_what_is_asked_at_once_is_answered_at_once() -> None:
    """On one thread of its own, in order, at most so many at a time."""
    batches: list[int] = []
    threads: set[str] = set()

    def double(numbers: Sequence[int]) -> list[int]:
        batches.append(len(numbers))
        threads.add(threading.current_thread().name)
        return [2 * n for n in numbers]

    assert batched(double, lambda b: all_of(b, range(25)), most=10) == [2 * n for n in range(25)]
    assert batches == [10, 10, 5]
    assert threads == {"test_0"}


def test_kinds_do_not_mix_and_keep_their_order() -> None:
    """A batch is of the kind that has waited longest."""
    batches: list[list[int]] = []

    def same(numbers: Sequence[int]) -> Sequence[int]:
        batches.append(list(numbers))
        return numbers

    asked = [1, 2, 3, 5, 4, 7]
    assert batched(same, lambda b: all_of(b, asked), kind=lambda n: n % 2) == asked
    assert batches == [[1, 3, 5, 7], [2, 4]]


def test_a_batch_that_fails_is_halved_until_it_is_known_why() -> None:
    """One bad question of sixteen costs eight more calls, and no other question its answer."""
    batches: list[int] = []
    recovered: list[int] = []

    def picky(numbers: Sequence[int]) -> Sequence[int]:
        batches.append(len(numbers))
        if 5 in numbers:
            raise RuntimeError("five")
        return numbers

    answers = batched(
        picky, lambda b: all_of(b, range(16)), recover=lambda: recovered.append(len(batches))
    )
    assert [n for n in answers if not isinstance(n, Exception)] == [n for n in range(16) if n != 5]
    assert str(answers[5]) == "five"
    assert batches == [16, 8, 4, 4, 2, 1, 1, 2, 8]
    assert recovered == [1, 2, 4, 5, 7]


def test_exceptions_may_be_given_as_answers() -> None:
    """For what an engine knows of one question without trying."""
    answers = batched(
        lambda texts: [ValueError(text) if text == "b" else text for text in texts],
        lambda b: all_of(b, "abc"),
    )
    assert (answers[0], str(answers[1]), answers[2]) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda numbers: numbers[:-1], "0 responses to 1 requests"),
        (lambda numbers: exec("raise SystemExit(3)"), r"SystemExit\(3\)"),
    ],
)
def test_an_engine_that_misbehaves_fails_its_questions(answer: Any, message: str) -> None:
    """Too few answers, or an attempt to end the process, are failures like others."""
    for outcome in batched(answer, lambda b: all_of(b, [1, 2])):
        with pytest.raises((ValueError, RuntimeError), match=message):
            raise outcome


def test_what_recovering_raises_reaches_those_who_wait() -> None:
    """Nobody waits for ever."""

    def fail(*_: Any) -> Any:
        raise MemoryError("none left")

    outcomes = batched(fail, lambda b: all_of(b, [1, 2]), recover=fail)
    assert [str(outcome) for outcome in outcomes] == ["none left", "none left"]


def test_closing_drops_what_waits() -> None:
    """Questions that were not answered end cancelled, those under way as well."""
    started, finish = threading.Event(), threading.Event()

    def slow(numbers: Sequence[int]) -> Sequence[int]:
        started.set()
        finish.wait(10)
        return numbers

    async def main() -> list[Any]:
        batcher: Batcher[int, int] = Batcher(slow, most=1, name="slow")
        waiting = asyncio.gather(*map(batcher.ask, range(3)), return_exceptions=True)
        await asyncio.to_thread(started.wait, 10)
        asyncio.get_running_loop().call_later(0.05, finish.set)
        await batcher.close()
        return await waiting

    outcomes = asyncio.run(asyncio.wait_for(main(), 20))
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)


def test_a_question_that_nobody_waits_for_is_not_asked() -> None:
    """A cancelled request leaves the line."""
    seen: list[int] = []

    def note(numbers: Sequence[int]) -> Sequence[int]:
        seen.extend(numbers)
        return numbers

    async def body(batcher: Batcher[Any, Any]) -> int:
        gone = asyncio.ensure_future(batcher.ask(1))
        kept = asyncio.ensure_future(batcher.ask(2))
        await asyncio.sleep(0)
        gone.cancel()
        result: int = await kept
        return result

    assert batched(note, body) == 2
    assert seen == [2]


# Clients that batch


class Shouting(BatchClient):
    """Writes prompts in capitals; loads once, and remembers its batches."""

    def __init__(self) -> None:
        super().__init__(most=8, name="shouting")
        self.model = Model(client="shouting", name="s")
        self.capabilities = Capabilities(generates=True, scores=False)
        self.loads = 0
        self.batches: list[int] = []

    def load(self) -> None:
        self.loads += 1

    def answer(self, requests: Sequence[Request]) -> list[Answer | Exception]:
        self.batches.append(len(requests))
        if any("broken" in request.context for request in requests):
            raise PreflightError("not now")
        return [Answer(text=request.context.upper()) for request in requests]

    def reason(self, error: Exception) -> str:
        if isinstance(error, KeyError):
            raise error
        return super().reason(error)


def request_of(client: BatchClient, text: str) -> Request:
    variant = Variant(
        item=Item(task="t", key="k", fields={}), recipe=BASELINE, draw=0,
        prompt=Prompt(sections=()), status="baseline",
    )  # fmt: skip
    return Request(
        key=text, variant=variant, model=client.model, sampling=Sampling(), repeat=0, context=text
    )


def written(client: BatchClient, texts: Sequence[str]) -> list[Response]:
    async def main() -> list[Response]:
        try:
            return await asyncio.gather(*(client.generate(request_of(client, t)) for t in texts))
        finally:
            await client.close()

    return asyncio.run(asyncio.wait_for(main(), 20))


def test_a_batching_client_loads_once_and_shares_the_time() -> None:
    """However many ask first; what a response took is its share of its batch."""
    client = Shouting()
    responses = written(client, [f"text {n}" for n in range(8)])
    assert [r.text for r in responses] == [f"TEXT {n}" for n in range(8)]
    assert (client.loads, client.batches) == (1, [8])
    assert len({r.latency for r in responses}) == 1
    assert all(r.received_at > 0 for r in responses)


def test_what_an_engine_raises_is_the_failure_of_its_request() -> None:
    """With the exception's name; the neighbours are answered."""
    good, bad = written(Shouting(), ["fine", "broken"])
    assert (good.text, bad.failure) == ("FINE", "PreflightError: not now")


def test_a_client_may_let_an_exception_end_the_run() -> None:
    """A mistake of its own is not the failure of a request."""
    client = Shouting()
    client.answer = lambda requests: [KeyError("ours")]  # type: ignore[method-assign]
    with pytest.raises(KeyError, match="ours"):
        written(client, ["text"])


def test_a_client_that_does_not_score_says_so() -> None:
    """For the kind of client that inherits no scoring."""

    async def main() -> None:
        from falter.clients import BaseClient

        await BaseClient.score_many(Shouting(), [])

    with pytest.raises(EndpointError, match="shouting:s cannot compute the log-likelihood"):
        asyncio.run(main())
