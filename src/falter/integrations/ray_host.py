"""`--engine ray`: engines as Ray actors, on this machine or on a cluster.

Ray is imported only when it is used. `RAY_ADDRESS` names a cluster. Without it, Ray is started on
this machine for the run: on the loopback, with a small object store and without its dashboard.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from falter import __version__
from falter.clients.engines import Engine, answer_chunk
from falter.clients.settings import ClientSettings, clients, is_free
from falter.records.errors import (
    AuthenticationError,
    EngineLost,
    FalterError,
    MissingExtra,
    PreflightError,
    RunStopped,
    UsageError,
    refusal,
)
from falter.records.interfaces import Client
from falter.records.types import Model, Request, Response

# Ray takes 30 % of the machine's memory by default; chunks of requests are some hundred KB.
STORE_BYTES = 100 << 20
LOCAL_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # otherwise models yield to all other processes
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listen on the loopback only, on Linux too
}
"""Environment of a Ray that falter starts on this machine."""
PLACING_SECONDS = 600.0
"""Seconds within which a cluster must have a place for an engine."""
MAX_REASON_CHARACTERS = 300
Trouble = tuple[str, str, str | None]
"""An error as it is passed between processes: its kind, message and hint."""


class Hosted:
    """The client inside an actor; the class itself does not need Ray."""

    def __init__(self, name: str, settings: ClientSettings) -> None:
        self._name, self._settings = name, settings
        self._client: Client | None = None
        self._width = 1

    async def placed(self) -> str:
        """Return the version of falter, once the process runs."""
        return __version__

    async def process(self) -> int:
        """Return the process id."""
        return os.getpid()

    async def load(self) -> Model | Trouble:
        """Connect and load the model; return its record as seen on this machine, or the error."""
        try:
            client = clients.get(self._name)(self._settings)
            await client.check()
        except FalterError as error:
            return _as_trouble(error)
        concurrency = self._settings.concurrency
        self._width = min(concurrency, client.capabilities.lanes or concurrency)
        self._client = client
        return client.model

    async def answer(self, requests: Sequence[Request]) -> Sequence[Response] | Trouble:
        """Return all answers, or the error that ends the run; other exceptions end the process."""
        assert self._client is not None
        try:
            return await answer_chunk(self._client, requests, self._width)
        except FalterError as error:
            return _as_trouble(error)


class RayHost:
    """Host of one model's engines: `count` Ray actors, each with `gpus` GPUs of a node.

    Without `count` there is one actor for each GPU if the model runs in the actor, otherwise one
    for each node.
    """

    def __init__(
        self,
        name: str,
        settings: ClientSettings,
        model: Model,
        *,
        count: int | None = None,
        gpus: float | None = None,
    ) -> None:
        if not is_installed():
            raise MissingExtra("--engine ray", "ray", "ray")
        self._name, self._settings, self._model = name, settings, model
        self._count, self._gpus = count, gpus
        self._is_open = False

    async def open(self) -> int:
        """Start or join Ray. Return the number of engines."""
        _SESSION.join(self._count or 1)
        self._is_open = True
        import ray

        resources = ray.cluster_resources()
        count, self._gpus = placement(
            resources,
            nodes=sum(bool(node["Alive"]) for node in ray.nodes()),
            count=self._count,
            gpus=self._gpus,
            in_process=is_free(self._name),
        )
        return count

    async def start(self) -> Engine:
        """Return an engine whose model is loaded. Raise the actor's error if that fails."""
        import ray

        actor = (
            ray.remote(Hosted)
            # No restarts by Ray: falter replaces an engine itself, and counts how many are lost.
            .options(num_cpus=1, num_gpus=self._gpus, max_restarts=0, scheduling_strategy="SPREAD")
            .remote(self._name, self._settings)
        )
        engine = _RayEngine(actor)
        try:
            await self._require_fit(engine)
        except BaseException:
            await engine.stop()
            raise
        return engine

    async def _require_fit(self, engine: _RayEngine) -> None:
        """Raise unless the actor runs the same falter and has loaded the same model."""
        try:
            async with asyncio.timeout(PLACING_SECONDS):
                version = await engine.call("placed")
        except TimeoutError as error:
            raise refusal(
                PreflightError, "integrations.no_place", placing=PLACING_SECONDS / 60
            ) from error
        except EngineLost as error:
            raise PreflightError(
                f"An engine of {self._model.label} did not start: {error.message}",
                hint="install falter and the model's libraries on every node, in the same "
                "environment",
            ) from error
        if version != __version__:
            raise refusal(
                PreflightError, "integrations.other_version", version=version, version2=__version__
            )
        try:
            found = await engine.call("load")
        except EngineLost as error:
            raise PreflightError(
                f"An engine of {self._model.label} ended while it loaded: {error.message}",
                hint="run the same model without --engine on such a machine to see its error",
            ) from error
        if isinstance(found, Model) and found.id != self._model.id:
            raise PreflightError(
                f"{self._model.label} differs between this machine and its engine: "
                f"{_differing_fields(self._model, found)}",
                hint="set the difference, such as dtype, in the model's options",
            )

    async def close(self) -> None:
        """Leave Ray; a Ray that falter started ends with its last model."""
        if self._is_open:
            self._is_open = False
            _SESSION.leave()


class _RayEngine:
    """An engine in one Ray actor."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call(self, method: str, *arguments: Any) -> Any:
        """Return the result of an actor's method.

        Raise the error that the actor returned, or `EngineLost` if the actor has ended.
        """
        from ray.exceptions import RayError

        try:
            found = await getattr(self._actor, method).remote(*arguments)
        except RayError as error:
            raise EngineLost(_first_line(error)) from error
        if isinstance(found, tuple) and len(found) == 3 and found[0] in _ERROR_KINDS:
            kind, message, hint = found
            raise _ERROR_KINDS[kind](message, hint=hint)
        return found

    async def answer(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return the actor's responses."""
        responses: Sequence[Response] = await self.call("answer", list(requests))
        return responses

    async def stop(self) -> None:
        """Kill the actor's process."""
        import ray

        with contextlib.suppress(Exception):  # it may have ended by itself
            ray.kill(self._actor)


_ERROR_KINDS: Mapping[str, type[FalterError]] = {
    "lost": EngineLost,
    "credentials": AuthenticationError,
    "usage": PreflightError,
    "run": RunStopped,
}


def _as_trouble(error: FalterError) -> Trouble:
    kinds = {EngineLost: "lost", AuthenticationError: "credentials", UsageError: "usage"}
    kind = next((name for base, name in kinds.items() if isinstance(error, base)), "run")
    # As data, since Ray wraps exceptions in its own classes.
    return kind, error.message, error.hint


def placement(
    resources: Mapping[str, float],
    *,
    nodes: int,
    count: int | None,
    gpus: float | None,
    in_process: bool,
) -> tuple[int, float]:
    """Return the number of engines, and the number of GPUs for each.

    By default there is one engine for each GPU if models run in the actor, otherwise one a node.
    """
    present = resources.get("GPU", 0.0)
    each = gpus if gpus is not None else 1.0 if in_process and present else 0.0
    if count is not None:
        return count, each
    return max(1, int(present // each) if each else nodes), each


def _differing_fields(ours: Model, theirs: Model) -> str:
    """Return the fields that differ: `options.dtype is float32 here and bfloat16 there`."""
    here = {"weights": ours.weights, **{f"options.{k}": v for k, v in ours.options.items()}}
    there = {"weights": theirs.weights, **{f"options.{k}": v for k, v in theirs.options.items()}}
    names = [n for n in {**here, **there} if here.get(n) != there.get(n)]
    return "; ".join(f"{n} is {here.get(n)} here and {there.get(n)} there" for n in names)


def _first_line(error: BaseException) -> str:
    """Return the reason for an actor's end in one line: its exception, or Ray's message."""
    cause = getattr(error, "cause", None)
    text = f"{type(cause).__name__}: {cause}" if isinstance(cause, Exception) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = next((line for line in lines if "exit" in line.lower()), lines[0] if lines else "")
    return (said or type(error).__name__)[:MAX_REASON_CHARACTERS]


class _Session:
    """Ray in this process, kept open while any model uses it."""

    def __init__(self) -> None:
        self._users = 0
        self._is_ours = False

    def join(self, least: int) -> None:
        """Connect to the cluster in `RAY_ADDRESS`, or start Ray here with `least` CPUs or more."""
        if not os.environ.get("RAY_ADDRESS"):
            os.environ.update({**LOCAL_RAY, **os.environ})  # read when Ray is imported
        import ray

        self._users += 1
        if ray.is_initialized():
            return
        try:
            self._start(least)
        except Exception as error:
            ray.shutdown()
            self._users -= 1
            raise PreflightError(
                f"Ray could not be started or reached: {_first_line(error)}",
                hint="set RAY_ADDRESS to a running cluster; without it Ray starts on this "
                "machine, which can fail on a busy machine: run the command again",
            ) from error
        self._is_ours = True

    def leave(self) -> None:
        """Shut Ray down when its last user leaves, unless it was running before."""
        self._users -= 1
        if self._users == 0 and self._is_ours:
            import ray

            self._is_ours = False
            ray.shutdown()

    def _start(self, least: int) -> None:
        import ray

        logging.getLogger("ray").setLevel(logging.ERROR)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
            return
        ray.init(
            address="local",
            num_cpus=max(os.cpu_count() or 1, least),
            include_dashboard=False,
            object_store_memory=STORE_BYTES,
            _node_ip_address="127.0.0.1",
            **quiet,
        )


_SESSION = _Session()


def is_installed() -> bool:
    """Return True if Ray can be imported."""
    return importlib.util.find_spec("ray") is not None
