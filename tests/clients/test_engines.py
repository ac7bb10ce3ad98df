"""Models in processes of their own: chunks, engines that end, a request that ends them.

The engines here are objects in this process that end when they are told to; tests/heavy has them
as actors of Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from falter.cli.app import invoke
from falter.clients.base import BatchClient
from falter.clients.engines import MAX_CHUNK, EngineClient, answer_chunk, next_chunk
from falter.engine.sending import ModelQueue, Progress, run_queues
from falter.integrations import ray_host as ray_engines
from falter.records.errors import EngineLost, PreflightError, RunStopped
from falter.records.interfaces import Capabilities, ChunkClient
from falter.records.types import Request, Response
from falter.store.store import Store
from falter.testing import Scripted
from samples import MODEL, RUN, answer, requests


class Host:
    """Engines that end over the requests of some items, or after so many chunks."""

    def __init__(self, count: int = 2, deadly: Sequence[str] = (), ends_after: int = 0) -> None:
        self.count, self.deadly, self.ends_after = count, set(deadly), ends_after
        self.started = self.stopped = 0
        self.startable = 10_000
        self.asked: list[int] = []
        self.is_closed = False

    async def open(self) -> int:
        return self.count

    async def start(self) -> _Engine:
        if self.started >= self.startable:
            raise PreflightError("no memory is left")
        self.started += 1
        return _Engine(self)

    async def close(self) -> None:
        self.is_closed = True


class _Engine:
    def __init__(self, host: Host) -> None:
        self._host, self._chunks = host, 0

    async def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        await asyncio.sleep(0)
        self._chunks += 1
        self._host.asked.append(len(requests))
        if self._chunks == self._host.ends_after:
            raise EngineLost("the node was taken away")
        if any(request.variant.item.key in self._host.deadly for request in requests):
            raise EngineLost("exit code 139")
        return [answer(request) for request in requests]

    async def stop(self) -> None:
        self._host.stopped += 1


async def ran(host: Host, store: Store, count: int) -> Progress:
    """A lane of twice `count` requests, through engines."""
    client = EngineClient(Scripted(["yes"]), host)
    progress = Progress(label="scripted", total=2 * count)
    try:
        await client.check()
        assert isinstance(client, ChunkClient)
        lane = ModelQueue(requests=requests(count), client=client, concurrency=1, progress=progress)
        await run_queues([lane], store)
    finally:
        await client.close()
    assert host.is_closed and host.stopped == host.started
    return progress


@pytest.fixture
def store(tmp_path: Path) -> Store:
    opened = Store(tmp_path / "falter.db")
    opened.begin_run(RUN)
    return opened


def test_all_is_answered_in_chunks_that_grow_while_they_are_fast(store: Store) -> None:
    host = Host(2)
    progress = asyncio.run(ran(host, store, 600))
    assert progress.landed == 1200 and progress.failed == 0
    assert host.asked[0] == 8 and 64 <= max(host.asked) <= MAX_CHUNK
    assert host.started == 2
    assert not store.missing([request.key for request in requests(600)])


def test_a_chunk_whose_engine_ends_is_answered_by_another(store: Store) -> None:
    host = Host(2, ends_after=3)
    progress = asyncio.run(ran(host, store, 400))
    assert progress.landed == 800 and progress.failed == 0
    assert host.started > 2


def test_requests_that_end_engines_are_found_and_cost_no_other_its_answer(store: Store) -> None:
    host = Host(2, deadly=["7", "251"])
    progress = asyncio.run(ran(host, store, 300))
    assert progress.failed == 4  # each item is asked twice
    assert progress.landed == 596
    missing = store.missing([request.key for request in requests(300)])
    wanted = [r for r in requests(300) if r.variant.item.key in ("7", "251")]
    assert missing == {request.key for request in wanted}
    assert progress.last_failure == "this request ended the engine: exit code 139"
    assert host.started < 60


def test_a_run_ends_where_engines_only_ever_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falter.engine.sending.LANDING_SECONDS", 0.1)
    host = Host(1, deadly=[str(n) for n in range(300)])
    with pytest.raises(RunStopped, match="ended in a row without a response"):
        asyncio.run(ran(host, store, 300))
    assert host.started == host.stopped == 16


def test_a_run_ends_where_no_engine_can_be_started_any_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falter.clients.engines.RESTART_PAUSES", (0.0,))
    host = Host(2, ends_after=4)
    host.startable = 3
    with pytest.raises(RunStopped, match=r"no engine is left, .* no memory is left"):
        asyncio.run(ran(host, store, 5000))


def test_engines_that_cannot_be_started_are_an_error_before_anything_is_sent(store: Store) -> None:
    host = Host(3)
    host.startable = 1
    with pytest.raises(PreflightError, match="no memory is left"):
        asyncio.run(ran(host, store, 5))
    assert host.asked == []


@pytest.mark.parametrize(
    ("chunk", "seconds", "following"),
    [(8, 0.1, 16), (512, 0.1, 512), (64, 5.0, 64), (64, 16.0, 32), (1, 100.0, 1)],
)
def test_a_chunk_is_some_seconds_of_work(chunk: int, seconds: float, following: int) -> None:
    assert next_chunk(chunk, seconds) == following


def test_a_chunk_is_answered_in_the_order_of_its_requests() -> None:
    class Slow(Scripted):
        """The later, the faster."""

        async def generate(self, request: Request) -> Response:
            await asyncio.sleep(0.001 * (20 - int(request.variant.item.key)))
            return await super().generate(request)

    client = Slow(lambda request: request.variant.item.key)
    client.capabilities = Capabilities(generates=True, scores=True, keeps_prefixes=True, batch=3)
    asked = list(requests(10))
    found = asyncio.run(answer_chunk(client, asked, 7))
    assert [response.key for response in found] == [request.key for request in asked]
    assert [response.text for response in found] == [r.variant.item.key for r in asked]


def test_an_engine_in_this_process_that_is_beyond_use_ends_the_run() -> None:
    class Broken(BatchClient):
        model = MODEL
        capabilities = Capabilities(generates=True, scores=True)

        def load(self) -> None:
            pass

        def answer(self, requests: Sequence[Request]) -> Sequence[Exception]:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    async def ask() -> None:
        client = Broken(most=4, name="broken")
        try:
            await client.generate(next(requests(1)))
        finally:
            await client.close()

    with pytest.raises(EngineLost, match=r"no longer responds: .*illegal memory") as told:
        asyncio.run(ask())
    assert told.value.hint is not None and "--engine ray" in told.value.hint


@pytest.mark.parametrize(
    ("resources", "count", "gpus", "in_process", "expected"),
    [
        ({"CPU": 2.0}, None, None, True, (3, 0.0)),
        ({"CPU": 2.0, "GPU": 8.0}, None, None, True, (8, 1.0)),
        ({"CPU": 2.0, "GPU": 8.0}, None, 4.0, True, (2, 4.0)),
        ({"CPU": 2.0, "GPU": 8.0}, 2, None, True, (2, 1.0)),
        ({"CPU": 2.0, "GPU": 8.0}, None, None, False, (3, 0.0)),
        ({"CPU": 2.0, "GPU": 8.0}, None, 0.0, True, (3, 0.0)),
    ],
)
def test_there_is_one_engine_a_gpu_or_one_a_node(
    resources: dict[str, float],
    count: int | None,
    gpus: float | None,
    in_process: bool,
    expected: tuple[int, float],
) -> None:
    found = ray_engines.placement(resources, nodes=3, count=count, gpus=gpus, in_process=in_process)
    assert found == expected


LINE = ["--task", "basics:core", "--limit", "4", "-r", "typos", "-m", "simulated"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--engine", "ray"], "pip install 'falter[ray]'"),
        (["--engine", "rya"], "did you mean 'ray'?"),
        (["--actors", "2"], "--actors needs --engine"),
        (["--engine", "ray", "--batch"], "--engine and --batch cannot be used together"),
    ],
    ids=["not installed", "misspelt", "without a name", "batches"],
)
def test_what_cannot_be_is_said_before_anything_is_sent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    said: str,
) -> None:
    monkeypatch.setattr(ray_engines, "is_installed", lambda: False)
    path = tmp_path / "falter.db"
    assert invoke(["run", *LINE, *more, "--store", str(path)]) == 2
    assert said in capsys.readouterr().err
    assert not path.exists()
