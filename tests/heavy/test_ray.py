# ruff: noqa: E402
"""`--engine ray` for real: two actors on this machine, with and without processes that end.

These tests need `falter[ray]` and `falter[hf]`. They are not part of `make test`: `make
test-heavy`, or `pytest tests/heavy/test_ray.py`. Ray runs on the loopback, with a small object
store and no dashboard, and is shut down at the end in any case.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from falter.integrations.ray_host import LOCAL_RAY

os.environ.update({**LOCAL_RAY, **os.environ})  # before Ray is imported, as falter does
HERE = str(Path(__file__).parent)  # actors import the models of these tests by name
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (HERE, os.environ.get("PYTHONPATH"))))
import ray

import falter
from falter.clients import ClientSettings, clients
from falter.clients.engines import EngineClient
from falter.integrations.ray_host import _SESSION, RayHost
from falter.records.errors import EngineLost, PreflightError
from falter.records.types import Request, Response
from falter.store.maintenance import verify
from falter.store.store import Store

# Ray leaves its own files and processes to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
]

ENGINE: dict[str, Any] = {"name": "ray", "actors": 2}
SETTINGS: dict[str, Any] = {"task": "basics", "recipes": ["typos", "casing", "identity"]}


@pytest.fixture(scope="module")
def started() -> Iterator[None]:
    """Ray, once for the tests that do not ask how it starts and ends."""
    assert not ray.is_initialized()
    _SESSION.join(2)
    try:
        yield
    finally:
        _SESSION.leave()
        assert not ray.is_initialized()


def test_a_run_starts_ray_on_the_loopback_and_shuts_it_down(tmp_path: Path) -> None:
    asked = {**SETTINGS, "models": ["simulated"], "limit": 120}
    alone = falter.run(asked, store=tmp_path / "alone.db")
    addresses: list[str] = []

    def watch(_: object) -> None:
        if not addresses and ray.is_initialized():
            addresses.extend(str(node["NodeManagerAddress"]) for node in ray.nodes())

    together = falter.run({**asked, "engine": ENGINE}, store=tmp_path / "ray.db", watch=watch)
    assert addresses == ["127.0.0.1"]
    assert not ray.is_initialized()
    assert together.run.id == alone.run.id
    assert together.scores() == alone.scores()
    with Store(tmp_path / "ray.db") as store:
        assert not verify(store).problems


def test_a_request_that_kills_processes_is_found_and_costs_no_other(
    tmp_path: Path, started: None
) -> None:
    """In a process of its own each, a death is a death: the exit code is that of a fault in C."""
    rows = [{"question": f"What comes after {n}?", "answer": str(n + 1)} for n in range(60)]
    store = tmp_path / "falter.db"
    result = falter.run(
        data=rows,
        template="Answer with a number.\n\n{question}\nAnswer:",
        recipes=["persona", "pad_quotes", "identity"],
        models=["function:ray_models:unsteady"],
        engine={"name": "ray", "actors": 2},
        store=store,
    )
    with Store(store, writes=False) as opened:
        assert opened.counts(result.run) == (240, 236)
        reasons = {text for (text,) in opened.db.execute("SELECT reason FROM failures")}
    assert reasons and all("this request ended the engine" in reason for reason in reasons)


def test_a_model_of_transformers_scores_and_writes_alike_in_actors(
    tmp_path: Path, started: None, folder: Path
) -> None:
    asked: dict[str, Any] = {
        **SETTINGS,
        "limit": 6,
        "models": [{"name": f"hf:{folder}", "api": "completions", "options": {"device": "cpu"}}],
        "sampling": {"max_tokens": 4},
    }
    alone = falter.run(asked, store=tmp_path / "alone.db")
    together = falter.run({**asked, "engine": ENGINE}, store=tmp_path / "ray.db")

    def untimed(result: falter.Result) -> list[dict[str, Any]]:
        return [
            {name: value for name, value in row.items() if name != "latency"}
            for row in result.scores()
        ]

    assert untimed(together) == untimed(alone)
    assert together.run.id == alone.run.id


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama of two layers with random weights."""
    from test_hf_client import save

    torch.manual_seed(1)
    return save(tmp_path_factory.mktemp("llama"), "llama")


def test_an_actor_that_is_killed_from_outside_is_replaced(started: None) -> None:
    """As a node that is taken away, in the middle of a run."""
    settings = ClientSettings(name="ray_models:steady")
    client = clients.get("function")(settings)
    host = RayHost("function", settings, client.model, count=2)
    engines = EngineClient(client, host)

    async def ask() -> tuple[list[Response], int]:
        await engines.check()
        before = set(engines._engines)
        victim = ray.get(next(iter(before))._actor.process.remote())  # type: ignore[attr-defined]
        os.kill(victim, signal.SIGKILL)
        found = [response for n in range(6) for response in await engines.answer_many(some(n))]
        await asyncio.gather(*engines._starting)
        fresh = len(set(engines._engines) - before)
        await engines.close()
        return found, fresh

    found, fresh = asyncio.run(ask())
    assert [response.failure for response in found] == [None] * 60
    assert fresh == 1


def some(n: int) -> list[Request]:
    """Ten requests."""
    from samples import requests

    return list(requests(5 * (n + 1)))[10 * n :]


def test_what_is_wrong_with_a_model_is_said_in_its_own_words(started: None) -> None:
    """An error of an actor is raised here, and its record is compared with that of this process."""
    settings = ClientSettings(name="ray_models:steady")
    model = clients.get("function")(settings).model
    other = ClientSettings(name="ray_models:steady", options={"version": "2"})

    async def start(name: str, given: ClientSettings) -> None:
        host = RayHost(name, given, model, count=1)
        await host.open()
        try:
            await host.start()
        finally:
            await host.close()

    with pytest.raises(PreflightError, match=r"options.version is None here and 2 there"):
        asyncio.run(start("function", other))
    with pytest.raises(PreflightError, match="no_such_module"):
        asyncio.run(start("function", ClientSettings(name="no_such_module:answer")))


def test_engine_errors_are_no_errors_of_usage() -> None:
    assert not issubclass(EngineLost, PreflightError)
