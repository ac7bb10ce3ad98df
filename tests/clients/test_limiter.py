"""The rate at which requests leave."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import sys
import time
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.clients import limiter as limiter_module
from falter.clients.limiter import Bucket, Limiter


class Clock:
    """A clock that moves only when told to, with the calls scheduled on it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._calls: list[tuple[float, int, Clock.Call]] = []
        self._number = itertools.count()

    class Call:
        def __init__(self, callback: Callable[[], None]) -> None:
            self.callback: Callable[[], None] | None = callback

        def cancel(self) -> None:
            self.callback = None

    def __call__(self) -> float:
        return self.now

    def schedule(self, seconds: float, callback: Callable[[], None]) -> Call:
        call = Clock.Call(callback)
        heapq.heappush(self._calls, (self.now + seconds, next(self._number), call))
        return call

    async def advance(self, seconds: float) -> None:
        """Let time pass, running what falls due, and let woken tasks run."""
        until = self.now + seconds
        await settle()
        while self._calls and self._calls[0][0] <= until:
            due, _, call = heapq.heappop(self._calls)
            self.now = max(self.now, due)
            if call.callback is not None:
                call.callback()
                await settle()
        self.now = until


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def limiter(clock: Clock, **limits: float) -> Limiter:
    return Limiter(clock=clock, schedule=clock.schedule, **limits)  # type: ignore[arg-type]


def test_without_limits_nothing_waits() -> None:
    """Without a limit in force, acquiring is two calls that do not suspend, releasing one."""
    free = Limiter(concurrency=4)
    calls = 0

    async def main() -> None:
        for _ in range(10_000):
            coroutine = free.acquire(1000)
            with pytest.raises(StopIteration):
                coroutine.send(None)
            free.release()

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename == limiter_module.__file__

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        asyncio.run(main())
    finally:
        sys.setprofile(before)
    assert calls == 3 * 10_000


def test_places_are_given_in_order() -> None:
    """No more than `concurrency` hold a place, and the line is served first come, first served."""

    async def main() -> None:
        gate, order, held = Limiter(concurrency=2), [], 0

        async def one(number: int) -> None:
            nonlocal held
            await gate.acquire(1)
            held += 1
            assert held <= 2
            order.append(number)
            await asyncio.sleep(0)
            held -= 1
            gate.release()

        await asyncio.gather(*[one(n) for n in range(50)])
        assert order == list(range(50))

    asyncio.run(main())


def test_a_newcomer_does_not_overtake_the_line() -> None:
    """A place that becomes free goes to the line, also when somebody asks at that moment."""

    async def main() -> None:
        gate, order = Limiter(concurrency=1), []

        async def one(name: str) -> None:
            await gate.acquire(1)
            order.append(name)

        await gate.acquire(1)
        waiting = asyncio.ensure_future(one("first"))
        await asyncio.sleep(0)
        gate.release()
        late = asyncio.ensure_future(one("second"))
        await asyncio.sleep(0)
        gate.release()
        await asyncio.gather(waiting, late)
        assert order == ["first", "second"]

    asyncio.run(main())


def test_a_cheap_request_does_not_overtake_a_dear_one() -> None:
    """Who waits for many tokens is not passed by who needs none."""

    async def main() -> None:
        clock = Clock()
        gate = limiter(clock, tokens_per_minute=600)
        await gate.acquire(600)
        dear = asyncio.ensure_future(gate.acquire(600))
        await clock.advance(59.95)
        cheap = asyncio.ensure_future(gate.acquire(0))
        await settle()
        assert not dear.done()
        assert not cheap.done()
        await clock.advance(0.1)
        assert dear.done()
        assert not cheap.done()
        cheap.cancel()

    asyncio.run(main())


async def departures(
    clock: Clock, gate: Limiter, costs: list[float], seconds: float
) -> list[float]:
    """When each of the requests, all there from the start, gets through."""
    times: list[float] = []

    async def one(cost: float) -> None:
        await gate.acquire(cost)
        times.append(clock.now)
        gate.release()

    tasks = [asyncio.ensure_future(one(cost)) for cost in costs]
    await clock.advance(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return times


@pytest.mark.parametrize("limit", [1, 30, 600, 6000])
def test_the_request_rate_is_kept_and_used(limit: float) -> None:
    """A minute holds no more than the limit, and very nearly all of it."""
    clock = Clock()
    gate = limiter(clock, requests_per_minute=limit)
    times = asyncio.run(departures(clock, gate, [1.0] * int(limit * 1.2 + 3), 59.999))
    assert 0.97 * limit - 1 <= len(times) <= limit


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 3000), st.lists(st.floats(0, 3), min_size=1, max_size=200))
def test_no_window_exceeds_the_limit(limit: int, gaps: list[float]) -> None:
    """However requests arrive, no minute sees more than the limit."""
    bucket, now, times = Bucket(limit, 0.0), 0.0, []
    for gap in gaps * 5:
        now += gap
        now += bucket.wait(1, now)
        bucket.wait(1, now)
        bucket.take(1)
        times.append(now)
    for number, start in enumerate(times):
        assert sum(start <= t < start + 59.999 for t in times[number : number + limit + 2]) <= limit


def test_the_token_rate_is_kept() -> None:
    """Requests are spaced by their tokens; one dearer than the burst passes and is paid off."""
    clock = Clock()
    gate = limiter(clock, tokens_per_minute=6000)
    times = asyncio.run(departures(clock, gate, [1000.0] * 20, 59.999))
    assert len(times) == 6
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert all(gap == pytest.approx(10, rel=0.02) for gap in gaps)


def test_both_rates_hold_together() -> None:
    """The stricter of the two rates decides."""
    clock = Clock()
    gate = limiter(clock, requests_per_minute=600, tokens_per_minute=600)
    times = asyncio.run(departures(clock, gate, [100.0] * 50, 59.999))
    assert len(times) in (6, 7)


def test_unused_tokens_are_given_back() -> None:
    """An estimate that was too high holds the next request back only until it is corrected."""

    async def main() -> None:
        clock = Clock()
        gate = limiter(clock, tokens_per_minute=600)
        await gate.acquire(600)
        waiting = asyncio.ensure_future(gate.acquire(10))
        await clock.advance(1)
        assert not waiting.done()
        gate.settle(600, 5)
        await clock.advance(1.1)
        assert waiting.done()

    asyncio.run(main())


def test_tokens_beyond_the_estimate_are_paid_off() -> None:
    """An estimate that was too low slows what follows."""

    async def main() -> None:
        clock = Clock()
        gate = limiter(clock, tokens_per_minute=600)
        await gate.acquire(1)
        gate.settle(1, 301)
        waiting = asyncio.ensure_future(gate.acquire(1))
        await clock.advance(29)
        assert not waiting.done()
        await clock.advance(2)
        assert waiting.done()

    asyncio.run(main())


def test_a_pause_holds_everybody_back() -> None:
    """Nothing passes during a cool-down, which a shorter one does not end; then all pass."""
    clock = Clock()
    gate = limiter(clock)
    gate.pause(5)
    gate.pause(1)
    times = asyncio.run(departures(clock, gate, [1.0] * 3, 10))
    assert times == pytest.approx([1005.0] * 3)


def test_after_a_pause_the_fast_path_is_back() -> None:
    """Once a cool-down is over, an acquire returns without suspending again."""
    clock = Clock()
    gate = limiter(clock)
    gate.pause(1)
    clock.now += 2
    with pytest.raises(StopIteration):
        gate.acquire(1).send(None)


def test_who_gives_up_waiting_frees_the_line() -> None:
    """A cancelled waiter neither takes a place nor blocks those behind it."""

    async def main() -> None:
        gate = Limiter(concurrency=1)
        await gate.acquire(1)
        first = asyncio.ensure_future(gate.acquire(1))
        second = asyncio.ensure_future(gate.acquire(1))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        gate.release()
        await asyncio.wait_for(second, 1)
        gate.release()
        await asyncio.wait_for(gate.acquire(1), 1)

    asyncio.run(main())


def test_who_is_cancelled_with_a_place_gives_it_back() -> None:
    """A waiter cancelled in the very moment it was let through does not keep the place."""

    async def main() -> None:
        gate = Limiter(concurrency=1)
        await gate.acquire(1)
        waiting = asyncio.ensure_future(gate.acquire(1))
        await asyncio.sleep(0)
        gate.release()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(gate.acquire(1), 1)

    asyncio.run(main())


def test_the_real_clock_paces_too() -> None:
    """With the loop's own timer, 20 requests at 6,000 a minute take a tenth of a second or more."""

    async def main() -> float:
        gate = Limiter(requests_per_minute=6000)
        start = time.monotonic()
        for _ in range(20):
            await gate.acquire(1)
            gate.release()
        return time.monotonic() - start

    assert asyncio.run(main()) >= 0.09
