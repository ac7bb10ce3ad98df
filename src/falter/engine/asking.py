"""Requests to models outside of a run: single requests, a generated task, answer extraction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from falter.engine.config import Experiment, ModelSpec
from falter.engine.connections import connect, require_batches
from falter.engine.execution import (
    Watch,
    interruptible,
    opened,
    record_run,
    run_async,
    run_missing,
    send,
    watching,
)
from falter.engine.extraction import questions
from falter.engine.findings import part_result
from falter.engine.resolving import reader_settings, resolve
from falter.engine.sending import ModelQueue, Progress
from falter.protocols import Part
from falter.protocols.protocol import ScoredCell
from falter.records.errors import UsageError, refusal
from falter.records.interfaces import Client, Scorer
from falter.records.planning import Target
from falter.records.types import BASELINE, Request, Run, Sampling
from falter.store.store import Store
from falter.tasks.task import Task

DEFAULT_REPLY_TOKENS = 64
"""Default limit of a reply, in tokens; the limits of longer replies are multiples of it."""


def connect_writer(spec: ModelSpec) -> Client:
    """Return the client of a model that has to generate text; raise if it cannot."""
    client = connect(spec)
    if not client.capabilities.generates:
        raise refusal(UsageError, "engine.writer_without_text", name=spec.name)
    return client


def writing_target(client: Client, spec: ModelSpec) -> Target:
    """Return the target for text from a model."""
    return Target(
        model=client.model,
        asking="chat" if client.capabilities.chats else "plain",
        sampling=Sampling(max_tokens=DEFAULT_REPLY_TOKENS),
        price=spec.price,
    )


def ask_all(
    requests: Sequence[Request],
    client: Client,
    spec: ModelSpec,
    store: Store,
    label: str,
    watch: Watch | None,
    *,
    batch: bool = False,
) -> None:
    """Send the requests that the store lacks, singly or in batches, and store every response."""
    if batch:
        require_batches(spec, client)
    progress = Progress(label=label, total=len(requests))
    queue = ModelQueue(
        requests=requests, client=client, concurrency=spec.concurrency or 64, progress=progress
    )

    async def run() -> None:
        stop = asyncio.Event()
        async with opened([client]):
            with interruptible(stop):
                async with watching(watch, [progress]):
                    await send([queue], store, stop, batch=batch)

    run_async(run)


def ask_task(
    spec: ModelSpec, task: Task, store: Store, watch: Watch | None, *, seed: int = 0
) -> Iterator[ScoredCell]:
    """Send the missing requests of a task to a model; return every response with its score."""
    client = connect(spec)  # one for each round, since it is closed at its end
    experiment = Experiment(models=(spec,), seed=seed)
    resolved = resolve(experiment, loaded=[task], clients=[client], recipes=(BASELINE,))

    async def run() -> None:
        if not record_run(resolved, store):
            async with opened([client]):
                await run_missing(resolved, store, watch)

    run_async(run)
    part = Part(name=task.name, title=task.name, experiment={})
    return part_result(store, part, resolved.run).cells()


def ask_extractor(
    store: Store,
    run: Run,
    scorers: Mapping[str, Scorer],
    spec: ModelSpec,
    watch: Watch | None = None,
) -> Mapping[str, Any]:
    """Request the extraction of answers from a run's replies, as far as they are not stored.

    The result is the extractor's settings, by which `extractions` finds its replies.
    """
    client = connect_writer(spec)
    reader = reader_settings(client)
    asked = {q.request.key: q.request for q in questions(store, run, scorers, reader).values()}
    missing = [asked[key] for key in store.missing(list(asked))]
    if missing:
        ask_all(missing, client, spec, store, f"{spec.name}, reading", watch)
    return reader
