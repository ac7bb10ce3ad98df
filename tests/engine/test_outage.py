"""A server that dies in the middle of a run: the run pauses, and goes on or says why it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.cli.progress import describe
from falter.clients.openai import connect
from falter.clients.settings import ClientSettings
from falter.engine import sending
from falter.engine.sending import ModelQueue, Progress, run_queues
from falter.records.errors import PreflightError, RunStopped
from falter.records.types import Request
from falter.store.store import Store
from faulty_server import FaultyServer, _send
from samples import requests

DEATHS = {"500": "HTTP 500: mock 500", "closed": "connection failed", "hang": "timed out"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store, and seconds for the minutes of an outage."""
    monkeypatch.setattr(sending, "OUTAGE_SECONDS", 0.6)
    monkeypatch.setattr(sending, "FIRST_PROBE_SECONDS", 0.05)
    monkeypatch.setattr(sending, "MAX_PAUSE_SECONDS", 1.0)
    with Store(tmp_path / "falter.db") as opened:
        yield opened


async def run_and_die(store: Store, fault: str, *, back: bool) -> tuple[Progress, list[str]]:
    """Run 160 requests against a server that dies after 40; the counts, and what is said."""
    planned = list(requests(80))
    said: list[str] = []
    async with FaultyServer(latency=0.01) as server:
        settings = ClientSettings(
            name="mock", base_url=server.base_url, timeout=0.3, max_attempts=2, max_wait=0.1
        )
        client = connect(settings)
        planned = [replace(r, model=client.model) for r in planned]
        progress = Progress(label="mock", total=len(planned))
        queue = ModelQueue(requests=planned, client=client, concurrency=24, progress=progress)

        async def die() -> None:
            while progress.landed < 40:
                await asyncio.sleep(0.005)
            server.faults = {fault: 1.0}
            while not progress.paused:
                await asyncio.sleep(0.005)
            said.append(describe(progress, None))
            if back:
                server.faults = {}

        dying = asyncio.create_task(die())
        try:
            await run_queues([queue], store)
        finally:
            dying.cancel()
            await client.close()
    return progress, said


def test_a_judge_is_checked_before_the_first_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its own address; without its key nothing is asked of the model that is judged."""
    monkeypatch.delenv("JUDGE_API_KEY", raising=False)

    async def main() -> FaultyServer:
        async with FaultyServer() as server:
            address = {"base_url": server.base_url}
            settings = {
                "protocol": "brittlebench",
                "task": "basics",
                "limit": 6,
                "models": [{"name": "openai:mock", **address}],
                "judge": {"name": "openai:mock", **address, "api_key_env": "JUDGE_API_KEY"},
            }
            with pytest.raises(PreflightError, match="JUDGE_API_KEY is not set"):
                await asyncio.to_thread(falter.run, settings, store=tmp_path / "s.db")
            return server

    assert asyncio.run(main()).requests == 0


@pytest.mark.parametrize("fault", DEATHS)
def test_a_server_that_comes_back_costs_nothing(store: Store, fault: str) -> None:
    """The run pauses with the reason, goes on, and is complete, also at the end of its plan."""
    progress, said = asyncio.run(run_and_die(store, fault, back=True))
    assert (progress.failed, progress.landed) == (0, 160)
    assert DEATHS[fault] in said[0] and "paused, because every request fails" in said[0]
    assert progress.paused is None


class Misfit(FaultyServer):
    """It answers every request, and never in the form that was asked for."""

    async def _respond(self, method: str, path: str, headers: Any, body: bytes, out: Any) -> bool:
        return await _send(out, 200, {"choices": []})


async def asked_of(
    server: FaultyServer, planned: list[Request], store: Store, *, concurrency: int, **settings: Any
) -> Progress:
    """Send the requests to a server that is up, and return how far they came."""
    client = connect(ClientSettings(name="mock", base_url=server.base_url, **settings))
    planned = [replace(r, model=client.model) for r in planned]
    progress = Progress(label="mock", total=len(planned))
    queue = ModelQueue(requests=planned, client=client, concurrency=concurrency, progress=progress)
    try:
        await run_queues([queue], store)
    finally:
        await client.close()
    return progress


def test_a_server_that_always_answers_otherwise_is_no_outage(store: Store) -> None:
    """Its replies fail, and the run does not wait for it to come back."""

    async def main() -> Progress:
        async with Misfit() as server:
            planned = list(requests(10))
            return await asked_of(
                server, planned, store, concurrency=24, max_attempts=2, max_wait=0.01
            )

    progress = asyncio.run(main())
    assert progress.failed == 20 and "unusable answer" in (progress.last_failure or "")


class Busy(FaultyServer):
    """It works on 24 requests at a time, first for two seconds, and turns the others away."""

    working = 0

    async def _respond(self, method: str, path: str, headers: Any, body: bytes, out: Any) -> bool:
        if self.working >= 24:
            return await _send(out, 503, {"error": {"message": "no slot is free"}})
        self.working += 1
        try:
            await asyncio.sleep(0.01 if self.answered else 2)
            return await super()._respond(method, path, headers, body, out)
        finally:
            self.working -= 1


def test_a_busy_server_is_not_dead(store: Store) -> None:
    """It may work on what it took for longer than an outage may last."""

    async def main() -> Progress:
        async with Busy() as server:
            planned = list(requests(24))
            return await asked_of(
                server, planned, store, concurrency=48, max_attempts=999, max_wait=0.05
            )

    progress = asyncio.run(main())
    assert (progress.failed, progress.landed) == (0, 48)


@pytest.mark.parametrize("fault", DEATHS)
def test_a_server_that_stays_dead_ends_the_run(store: Store, fault: str) -> None:
    """The error has the reason, the count and what to do; what was answered is stored."""
    with pytest.raises(
        RunStopped, match=f"the server no longer responds: {DEATHS[fault]}"
    ) as caught:
        asyncio.run(run_and_die(store, fault, back=False))
    assert "of 160 responses are stored" in caught.value.message
    assert "run the same command again" in str(caught.value.hint)
    assert 40 <= 160 - len(store.missing([r.key for r in requests(80)])) < 160
