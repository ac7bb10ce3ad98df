"""Preparing rewrites: through the same planner, runner and store as a run."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from falter.engine._needs import Needs, ledger_for, model_made, needs_from, rewrite_label
from falter.engine.config import Experiment, ModelSpec
from falter.engine.connections import connect, require_batches
from falter.engine.execution import Watch, interruptible, opened, run_async, send, watching
from falter.engine.planning import Target, request
from falter.engine.recipes import recipes_of
from falter.engine.resolving import Resolved, resolve
from falter.engine.sending import ModelQueue, Progress
from falter.engine.translations import TaskTranslations, needs_translations
from falter.engine.variants import open_sets
from falter.perturbations import Wanted
from falter.records.errors import UsageError
from falter.records.interfaces import Client, RewriteBank
from falter.records.types import Item, Recipe, Request, Sampling, Section, Variant
from falter.rewrites import (
    HAND_WRITTEN,
    Banks,
    MemoryBank,
    bundled_bank,
    read_bank,
    read_rewrite,
)
from falter.store import Store, StoreBank, authors, find_responses, put_rewrites, scan_rewrites

__all__ = [
    "Prepared",
    "StatusRow",
    "ask_all",
    "bank_for",
    "bank_in",
    "prepare",
    "resolved_in",
    "rewrite_status",
    "writing_target",
]

ROUNDS = 4
LATER_DRAWS = 0.7
STEP = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """How many texts were wanted, what was made by status, and what is still missing."""

    author: str
    wanted: int
    made: dict[str, int]
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusRow:
    """The rewrites of one author for one perturbation, counted by status."""

    perturbation: str
    author: str
    wanted: int | None
    statuses: dict[str, int]
    missing: int | None


def bank_for(experiment: Experiment, store: Store | None) -> RewriteBank | None:
    """The rewrites an experiment runs with: those of its file, of the store, then bundled ones.

    If a rewriter is named, only its rewrites count; the bundled ones were written by hand.
    """
    author = None if experiment.rewriter is None else experiment.rewriter.name
    banks: list[RewriteBank] = []
    if experiment.rewrites is not None:
        banks.append(MemoryBank(read_bank(experiment.rewrites), author))
    if store is not None:
        banks.append(StoreBank(store, author))
    if author in (None, HAND_WRITTEN):
        banks.append(bundled_bank())
        banks += [TaskTranslations(experiment)] if needs_translations(experiment) else []
    return Banks(*banks) if banks else None


@contextlib.contextmanager
def bank_in(experiment: Experiment, path: Path) -> Iterator[RewriteBank | None]:
    """The experiment's rewrites, if it needs any: `bank_for` with the store at `path`."""
    if not any(map(model_made, recipes_of(experiment))):
        yield None
    elif not path.exists():
        yield bank_for(experiment, None)
    else:
        with Store(path) as store:
            yield bank_for(experiment, store)


@contextlib.contextmanager
def resolved_in(experiment: Experiment, path: Path) -> Iterator[Resolved]:
    """The experiment resolved, with the store open for as long as rewrites may be read."""
    with bank_in(experiment, path) as bank:
        yield resolve(experiment, bank)


def needs_of(experiment: Experiment, bank: RewriteBank | None) -> Needs:
    """The texts to rewrite. The models decide how items are asked; without them, the tasks do."""
    recipes = recipes_of(experiment)
    if not any(map(model_made, recipes)):
        raise UsageError(
            "No recipe of the experiment needs a rewriter",
            hint="for example -r paraphrase_free; those that do have needs_model in "
            "'falter list perturbations --json'",
        )
    if experiment.models:
        needs = resolve(experiment, bank).rewrites
        assert needs is not None
        return needs
    ledger = ledger_for(recipes, bank)
    assert ledger is not None
    sets = open_sets(experiment, ledger)
    return needs_from(ledger, [(s.items, s.conditions, s.draws) for s in sets])


def prepare(
    experiments: Sequence[Experiment],
    rewriter: ModelSpec,
    store: Store,
    watch: Watch | None = None,
) -> Prepared:
    """Ask the rewriter for every text it has not rewritten yet, and store its rewrites.

    Each rewrite is one stored response. A request that failed is sent again the next time; a
    rewrite that was refused, cut off or broken is recorded and not asked for again.
    """
    statuses: Counter[str] = Counter()
    bank = StoreBank(store, rewriter.name)
    wanted, missing = _texts(experiments, bank)
    batch = any(experiment.batch for experiment in experiments)
    for _ in range(ROUNDS):  # a chain of two rewrites asks for the second after the first
        before = missing
        if not before:
            break
        statuses += _round(list(before.values()), rewriter, store, watch, batch)
        wanted, missing = _texts(experiments, bank)
        if missing.keys() & before.keys():
            break
    return Prepared(
        author=rewriter.name, wanted=len(wanted), made=dict(statuses), missing=len(missing)
    )


def _texts(
    experiments: Sequence[Experiment], bank: RewriteBank
) -> tuple[dict[str, Wanted], dict[str, Wanted]]:
    """What is wanted, and what of it is missing; texts that experiments share count once."""
    by_experiment = [needs_of(experiment, bank) for experiment in experiments]
    return (
        {text.key: text for needs in by_experiment for text in needs.wanted},
        {text.key: text for needs in by_experiment for text in needs.missing},
    )


def _round(
    missing: Sequence[Wanted],
    rewriter: ModelSpec,
    store: Store,
    watch: Watch | None,
    batch: bool,
) -> Counter[str]:
    """Ask for the missing texts once; the rewrites made, by status."""
    client = connect(rewriter)
    target = writing_target(client, rewriter)
    requests = []
    texts_of: dict[str, list[Wanted]] = {}
    for wanted in missing:
        request = _request(wanted, target)
        requests.append(request)
        texts_of.setdefault(request.key, []).append(wanted)
    statuses: Counter[str] = Counter()
    try:
        label = f"{rewriter.name}, rewriting"
        ask_all(requests, client, rewriter, store, label, watch, batch=batch)
    finally:
        answers = find_responses(store, list(texts_of))
        rewrites = [
            read_rewrite(wanted, response, rewriter.name)
            for key, response in answers.items()
            for wanted in texts_of[key]
        ]
        put_rewrites(store, rewrites)
        statuses.update(rewrite.status for rewrite in rewrites)
    return statuses


def writing_target(client: Client, spec: ModelSpec) -> Target:
    """How a model is asked for text; raises if it cannot write."""
    if not client.capabilities.generates:
        raise UsageError(
            f"'{spec.name}' cannot write text, so it cannot make rewrites or rate them",
            hint="name a model that generates text",
        )
    return Target(
        model=client.model,
        asking="chat" if client.capabilities.chats else "plain",
        sampling=Sampling(max_tokens=STEP),
        price=spec.price,
    )


def _request(wanted: Wanted, target: Target) -> Request:
    """The request for one text: at most two tokens per byte, and at random for a second draw."""
    size = len(wanted.text.encode("utf-8", "surrogatepass"))
    sampling: dict[str, float] = {"max_tokens": STEP * (2 + 2 * size // STEP)}
    if wanted.draw:
        sampling["temperature"] = LATER_DRAWS
    prompt = wanted.perturbation.request(wanted.text, wanted.asked)
    if target.asking == "plain":  # a model that only continues a text needs a cue to begin
        cue = Section(name="cue", kind="cue", text="\n\nThe new text:")
        prompt = prompt.with_sections((*prompt.sections, cue))
    variant = Variant(
        item=Item(task="rewrites", key=wanted.key, fields={"text": wanted.text}),
        recipe=Recipe(label=rewrite_label(wanted), sampling=sampling),
        draw=wanted.draw,
        prompt=prompt,
        status="changed",
    )
    return request(variant, target, wanted.draw)


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
    """Send what the store lacks, one by one or in batches, and store every response that comes."""
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


def rewrite_status(experiment: Experiment | None, store: Store) -> list[StatusRow]:
    """Rewrites counted by perturbation and author; with an experiment, those that it needs.

    The bundled ones are counted where an experiment needs some of them and may use them.
    """
    statuses: dict[tuple[str, str], Counter[str]] = {}
    if experiment is None:
        for rewrite in scan_rewrites(store):
            place = rewrite_label(rewrite), rewrite.author
            statuses.setdefault(place, Counter())[rewrite.status] += 1
        return [_row(place, counts, None) for place, counts in sorted(statuses.items())]
    plain = replace(experiment, rewriter=None, rewrites=None)
    wanted: dict[str, Counter[str]] = {}
    for author, needs in _needs_by_author(experiment.rewriter, plain, store):
        wanted[author] = Counter(map(rewrite_label, needs.wanted))
        for text in needs.wanted:
            counts = statuses.setdefault((rewrite_label(text), author), Counter())
            if text.key in needs.ledger.found:
                counts[needs.ledger.found[text.key].status] += 1
    return [_row(place, c, wanted[place[1]][place[0]]) for place, c in sorted(statuses.items())]


def _needs_by_author(
    rewriter: ModelSpec | None, experiment: Experiment, store: Store
) -> list[tuple[str, Needs]]:
    """What is needed beside each author's rewrites; beside none, if there is no author."""
    names = authors(store) if rewriter is None else [rewriter.name]
    banks: dict[str, RewriteBank] = {name: StoreBank(store, name) for name in names}
    if rewriter is None or rewriter.name == HAND_WRITTEN:
        written: list[RewriteBank] = [StoreBank(store, HAND_WRITTEN), bundled_bank()]
        written += [TaskTranslations(experiment)] if needs_translations(experiment) else []
        banks[HAND_WRITTEN] = Banks(*written)
    by_author = [(name, needs_of(experiment, bank)) for name, bank in banks.items()]
    used = [(name, needs) for name, needs in by_author if name in names or needs.ledger.found]
    return used or [("", needs_of(experiment, None))]


def _row(place: tuple[str, str], counts: Counter[str], wanted: int | None) -> StatusRow:
    name, author = place
    return StatusRow(
        perturbation=name,
        author=author,
        wanted=wanted,
        statuses=dict(counts),
        missing=None if wanted is None else wanted - counts.total(),
    )
