"""The runner: windows, deduplication, storing as it lands, stopping."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from falter.engine import execution
from falter.engine.sending import MAX_BUFFER_SECONDS, ModelQueue, Progress, run_queues
from falter.records.errors import AuthenticationError, RunStopped
from falter.records.planning import batched
from falter.records.types import Request, Response
from falter.store.store import Store
from falter.testing import Scripted
from samples import MODEL, answer, requests

PATIENCE = 120  # seconds, for what takes none


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "falter.db") as opened:
        yield opened


def lane(client: Scripted, planned: Sequence[Request], concurrency: int = 8) -> ModelQueue:
    return ModelQueue(
        requests=planned,
        client=client,
        concurrency=concurrency,
        progress=Progress(label="scripted", total=len(planned)),
    )


def run(*lanes: ModelQueue, store: Store, stop: asyncio.Event | None = None) -> None:
    asyncio.run(run_queues(lanes, store, stop))


def test_everything_missing_is_sent_and_stored(store: Store) -> None:
    planned, client = list(requests(50)), Scripted(lambda r: "yes")
    one = lane(client, planned)
    run(one, store=store)
    assert store.missing([r.key for r in planned]) == set()
    assert (one.progress.landed, one.progress.done) == (100, 100)
    again = lane(Scripted([]), planned)
    run(again, store=store)
    assert (again.progress.stored, again.progress.sent) == (100, 0)


def test_identical_requests_are_sent_once(store: Store) -> None:
    planned = [r for r in requests(20) for _ in range(5)]
    client = Scripted(lambda r: "yes")
    one = lane(client, planned)
    run(one, store=store)
    assert len(client.requests) == 40
    assert one.progress.done == one.progress.total == 200


def test_identical_requests_far_apart_are_sent_once(store: Store) -> None:
    """What is in the buffer, not yet in the store, counts as answered."""
    planned = [*requests(100), *requests(100), *requests(100)]
    client = Scripted(lambda r: "yes")
    one = lane(client, planned, concurrency=3)
    run(one, store=store)
    assert len(client.requests) == 200 and one.progress.done == 600


def test_the_plan_is_pulled_in_a_window(store: Store) -> None:
    """A million requests must not become a million tasks: the plan is read as it is needed."""
    pulled = 0
    widest = 0
    client_calls = 0

    def plan() -> Iterator[Request]:
        nonlocal pulled
        for request in requests(1000):
            pulled += 1
            yield request

    def script(request: Request) -> str:
        nonlocal widest, client_calls
        client_calls += 1
        widest = max(widest, pulled - client_calls)
        return "yes"

    one = lane(Scripted(script), [])
    one.requests = plan()
    run(one, store=store)
    assert client_calls == 2000 and widest <= 64 + 8


def test_no_more_than_the_limit_is_in_flight(store: Store) -> None:
    flying = most = 0
    full = asyncio.Event()

    class Slow(Scripted):
        async def generate(self, request: Request) -> Response:
            nonlocal flying, most
            flying += 1
            most = max(most, flying)
            if most == 7:
                full.set()
            await asyncio.wait_for(full.wait(), PATIENCE)
            await asyncio.sleep(0.001)
            flying -= 1
            return answer(request)

    run(lane(Slow([]), list(requests(40)), concurrency=7), store=store)
    assert most == 7


def test_failures_are_recorded_and_asked_again(store: Store) -> None:
    planned = list(requests(30))
    bad = {r.key for r in planned[::10]}
    failed = Response(key="", failure="HTTP 400: no")
    one = lane(Scripted(lambda r: failed if r.key in bad else "yes"), planned)
    run(one, store=store)
    assert store.missing([r.key for r in planned]) == bad
    assert (one.progress.failed, one.progress.landed) == (6, 54)
    again = Scripted(lambda r: "yes")
    run(lane(again, planned), store=store)
    assert {r.key for r in again.requests} == bad


def test_an_endpoint_that_only_fails_stops_the_run(store: Store) -> None:
    client = Scripted(lambda r: Response(key="", failure="HTTP 503"))
    with pytest.raises(RunStopped, match="requests all failed; the last error was: HTTP 503"):
        run(lane(client, list(requests(500))), store=store)
    assert len(client.requests) < 100


def test_one_item_that_always_fails_does_not_stop_the_run(store: Store) -> None:
    """A prompt too long for the model fails in all its recipes; the other items go on."""
    planned = [replace(r, key=f"sha256:{n:064x}") for n, r in enumerate(list(requests(1)) * 20)]
    planned += [replace(r, key=f"sha256:{n + 99:064x}") for n, r in enumerate(requests(20))]
    client = Scripted(
        lambda r: Response(key="", failure="too long") if r.variant.item.key == "0" else "yes"
    )
    one = lane(client, planned, 1)
    run(one, store=store)
    assert one.progress.done == 80
    assert one.progress.failed == 42


def test_refused_credentials_stop_the_run_at_once(store: Store) -> None:
    planned = list(requests(500))

    def script(request: Request) -> str | Exception:
        return AuthenticationError("HTTP 401") if request.key == planned[20].key else "yes"

    client = Scripted(script)
    with pytest.raises(AuthenticationError):
        run(lane(client, planned), store=store)
    assert len(client.requests) < 60
    assert len(store.missing([r.key for r in planned])) < 1000, "what had landed is stored"


def test_a_stop_lets_what_is_in_flight_land(store: Store) -> None:
    planned = list(requests(500))
    stop: list[asyncio.Event] = []

    async def main() -> None:
        stop.append(asyncio.Event())
        await run_queues([lane(client, planned)], store, stop[0])

    def script(request: Request) -> str:
        if request.key == planned[30].key:
            stop[0].set()
        return "yes"

    client = Scripted(script)
    with pytest.raises(RunStopped, match="interrupted"):
        asyncio.run(main())
    stored = 1000 - len(store.missing([r.key for r in planned]))
    assert stored == len(client.requests) < 1000


@pytest.mark.parametrize(("number", "waits"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_sigterm_does_not_wait_for_an_answer_that_takes_minutes(
    monkeypatch: pytest.MonkeyPatch, number: int, waits: bool
) -> None:
    """Ctrl-C waits, since the answer is paid for and a second one ends the run."""
    monkeypatch.setattr(execution, "TERMINATION_SECONDS", 0.1)
    landed: list[bool] = []

    async def main() -> None:
        with execution.interruptible(asyncio.Event()):
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.5)
            landed.append(True)

    with contextlib.nullcontext() if waits else pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert bool(landed) is waits


def test_a_landed_response_is_stored_within_a_tenth_of_a_second(store: Store) -> None:
    planned = list(requests(2))

    class Slow(Scripted):
        async def generate(self, request: Request) -> Response:
            if request.key != planned[0].key:
                await asyncio.sleep(4 * MAX_BUFFER_SECONDS)
                assert store.missing([planned[0].key]) == set()
            return answer(request)

    run(lane(Slow([]), planned), store=store)
    assert MAX_BUFFER_SECONDS <= 0.1


def test_lanes_run_side_by_side(store: Store) -> None:
    """A slow model does not hold up a fast one."""
    order: list[str] = []
    done = asyncio.Event()

    class Paced(Scripted):
        async def generate(self, request: Request) -> Response:
            if self.model.name == "slow":
                await asyncio.wait_for(done.wait(), PATIENCE)
            order.append(self.model.name)
            if order.count("fast") == 6:
                done.set()
            return answer(request)

    slow, fast = Paced([], name="slow"), Paced([], name="fast")
    ours = list(requests(3))
    theirs = [replace(r, key=r.key[:-1] + "0", model=MODEL) for r in requests(3)]
    run(lane(slow, ours, 1), lane(fast, theirs, 1), store=store)
    assert order[:6] == ["fast"] * 6


def test_a_client_that_breaks_breaks_the_run(store: Store) -> None:
    """An error of our own is not a failed request."""
    with pytest.raises(LookupError, match="was asked for one more"):
        run(lane(Scripted(["yes"]), list(requests(5)), 1), store=store)


def test_what_is_in_flight_lands_when_an_error_ends_the_run(store: Store) -> None:
    """Answers that are on their way are paid for: they are stored before the error is raised."""
    planned = list(requests(4))
    broken = asyncio.Event()

    class Breaking(Scripted):
        async def generate(self, request: Request) -> Response:
            if request.key == planned[0].key:
                broken.set()
                raise LookupError("a fault of the client")
            await broken.wait()
            await asyncio.sleep(0.05)
            return answer(request)

    with pytest.raises(LookupError, match="a fault of the client"):
        run(lane(Breaking([]), planned, concurrency=6), store=store)
    assert len(store.missing([r.key for r in planned])) == 8 - 5


def test_prompts_that_begin_alike_follow_each_other(store: Store) -> None:
    """To each of two engines that remember what they read; the answers land as in plan order."""
    planned = [
        replace(request, messages=(("user", f"{shots} examples, then question {number}"),))
        for number, pair in enumerate(batched(requests(128), 2))
        for shots, request in zip((2, 4), pair, strict=True)
    ]
    client = Scripted(lambda r: "yes")
    client.capabilities = replace(client.capabilities, lanes=2, keeps_prefixes=True)
    one = lane(client, planned)
    run(one, store=store)
    assert one.progress.done == len(client.requests) == 256
    for engine in (0, 1):  # the two take turns, since neither of them waits
        shots = [r.messages[0][1][0] for r in client.requests[engine::2]]
        assert shots == [shots[0]] * 128 and shots[0] == "24"[engine]
