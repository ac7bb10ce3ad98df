"""Rewrites that a model writes or rates, with the planner, the runner and the store of a run."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path

from falter.engine.asking import DEFAULT_REPLY_TOKENS, ask_all, connect_writer, writing_target
from falter.engine.config import Experiment, ModelSpec
from falter.engine.execution import Watch
from falter.engine.recipes import recipes_of
from falter.engine.resolving import resolve
from falter.engine.task_loading import load_tasks
from falter.engine.variants import open_sets
from falter.perturbations import perturbations
from falter.perturbations.language import wanted_translation
from falter.perturbations.rewriting import RewritePerturbation, Wanted
from falter.records.errors import PluginError, UsageError, refusal
from falter.records.interfaces import RewriteBank
from falter.records.planning import Target, request
from falter.records.reviews import Review, Sample
from falter.records.types import Item, Prompt, Recipe, Request, Rewrite, Section, Variant
from falter.rewrites.bank import (
    HAND_WRITTEN,
    Banks,
    MemoryBank,
    Needs,
    bundled_bank,
    hand_written,
    ledger_for,
    model_made,
    needs_from,
    read_bank,
    rewrite_label,
)
from falter.rewrites.reply_reading import read_rewrite
from falter.rewrites.reviews import sample_of
from falter.store.rewrites import (
    StoreBank,
    all_samples,
    authors,
    find_responses,
    put_reviews,
    put_rewrites,
    put_samples,
    scan_rewrites,
)
from falter.store.store import Store
from falter.tasks.task import Task

ROUNDS = 4
"""Maximum number of rounds of requests; each round prepares the next rewrite of a chain."""
LATER_DRAWS = 0.7
"""Temperature of the second and later draws of a rewrite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The numbers of texts: wanted, rewritten (by status), and still missing."""

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


def bank_for(experiment: Experiment, store: Store | None) -> RewriteBank:
    """Return an experiment's rewrites: from its file, then hand-written ones, then the store's.

    If a rewriter is named, the file and the store contribute only that author's rewrites.
    """
    author = None if experiment.rewriter is None else experiment.rewriter.name
    banks: list[RewriteBank] = []
    if experiment.rewrites is not None:
        banks.append(MemoryBank(read_bank(experiment.rewrites), author))
    banks += _written_by_hand(experiment, store)
    if store is not None:
        banks.append(StoreBank(store, author))
    return Banks(*banks)


def _written_by_hand(experiment: Experiment, store: Store | None) -> list[RewriteBank]:
    """Return the rewrites that people wrote or edited, in the store, bundled and of tasks."""
    banks: list[RewriteBank] = [] if store is None else [StoreBank(store, HAND_WRITTEN)]
    return [*banks, bundled_bank(), TaskRewrites(experiment)]


@contextlib.contextmanager
def bank_in(experiment: Experiment, path: Path) -> Iterator[RewriteBank | None]:
    """Yield the experiment's rewrites with the store at `path` open, or None if it needs none."""
    if not any(map(model_made, recipes_of(experiment))):
        yield None
    elif not path.exists():
        yield bank_for(experiment, None)
    else:
        with Store(path) as store:
            yield bank_for(experiment, store)


def needs_of(experiment: Experiment, bank: RewriteBank | None) -> Needs:
    """Return the texts to rewrite; raise if no recipe needs a rewriter.

    The models decide which templates are used. Without models, the tasks decide it.
    """
    recipes = recipes_of(experiment)
    if not any(map(model_made, recipes)):
        raise refusal(UsageError, "engine.no_rewriter_needed")
    if experiment.models:
        needs = resolve(experiment, bank).rewrites
        assert needs is not None
        return needs
    ledger = ledger_for(recipes, bank)
    assert ledger is not None
    sets = open_sets(experiment, ledger)
    asks = experiment.rewriter is not None
    return needs_from(ledger, [(s.items, s.conditions, s.draws) for s in sets], asks=asks)


def prepare(
    experiments: Sequence[Experiment],
    rewriter: ModelSpec,
    store: Store,
    watch: Watch | None = None,
) -> Prepared:
    """Request a rewrite of every text that neither the rewriter nor a person has rewritten yet.

    Each rewrite is one stored response. A failed request is sent again the next time. A rewrite
    that was refused, truncated or broken is recorded and not requested again.
    """
    statuses: Counter[str] = Counter()
    experiments = [replace(experiment, rewriter=rewriter) for experiment in experiments]
    wanted, missing = _wanted_and_missing(experiments, store)
    batch = any(experiment.batch for experiment in experiments)
    for _ in range(ROUNDS):  # a chain of two rewrites needs the first for the second's request
        before = missing
        if not before:
            break
        statuses += _request_rewrites(list(before.values()), rewriter, store, watch, batch)
        wanted, missing = _wanted_and_missing(experiments, store)
        if missing.keys() & before.keys():
            break
    return Prepared(
        author=rewriter.name, wanted=len(wanted), made=dict(statuses), missing=len(missing)
    )


def _wanted_and_missing(
    experiments: Sequence[Experiment], store: Store
) -> tuple[dict[str, Wanted], dict[str, Wanted]]:
    """Return the wanted texts and the missing ones; texts that experiments share count once."""
    by_experiment = [
        needs_of(experiment, bank_for(experiment, store)) for experiment in experiments
    ]
    return (
        {text.key: text for needs in by_experiment for text in needs.wanted},
        {text.key: text for needs in by_experiment for text in needs.missing},
    )


def _request_rewrites(
    missing: Sequence[Wanted],
    rewriter: ModelSpec,
    store: Store,
    watch: Watch | None,
    batch: bool,
) -> Counter[str]:
    """Request the missing texts once; return the number of new rewrites by status."""
    client = connect_writer(rewriter)
    target = writing_target(client, rewriter)
    requests = []
    texts_of: dict[str, list[Wanted]] = {}
    for wanted in missing:
        request = rewriting_request(wanted, target)
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


def rewriting_request(wanted: Wanted, target: Target) -> Request:
    """Return the request for one text, with a limit of about two tokens per byte.

    Later draws have a temperature above 0, so that they differ.
    """
    size = len(wanted.text.encode("utf-8", "surrogatepass"))
    sampling: dict[str, float] = {
        "max_tokens": DEFAULT_REPLY_TOKENS * (2 + 2 * size // DEFAULT_REPLY_TOKENS)
    }
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


def rewrite_status(experiment: Experiment | None, store: Store) -> list[StatusRow]:
    """Count rewrites by perturbation and author; with an experiment, only rewrites that it needs.

    Bundled rewrites are counted if an experiment needs some of them and may use them.
    """
    statuses: dict[tuple[str, str], Counter[str]] = {}
    if experiment is None:
        for rewrite in scan_rewrites(store):
            place = rewrite_label(rewrite), rewrite.author
            statuses.setdefault(place, Counter())[rewrite.status] += 1
        return [_status_row(place, counts, None) for place, counts in sorted(statuses.items())]
    plain = replace(experiment, rewriter=None, rewrites=None)
    wanted: Counter[tuple[str, str]] = Counter()
    for author, needs in _needs_by_author(experiment.rewriter, plain, store):
        for text in needs.wanted:
            found = needs.ledger.found.get(text.key)
            place = rewrite_label(text), author if found is None else found.author
            wanted[place] += 1
            counts = statuses.setdefault(place, Counter())
            if found is not None:
                counts[found.status] += 1
    return [_status_row(place, counts, wanted[place]) for place, counts in sorted(statuses.items())]


def _needs_by_author(
    rewriter: ModelSpec | None, experiment: Experiment, store: Store
) -> list[tuple[str, Needs]]:
    """Return the texts that each author's rewrites leave to be written, or all without authors.

    A named rewriter only has to write texts that people have not written.
    """
    if rewriter is not None and rewriter.name != HAND_WRITTEN:
        bank = Banks(*_written_by_hand(experiment, store), StoreBank(store, rewriter.name))
        return [(rewriter.name, needs_of(replace(experiment, rewriter=rewriter), bank))]
    names = authors(store) if rewriter is None else [rewriter.name]
    banks: dict[str, RewriteBank] = {name: StoreBank(store, name) for name in names}
    banks[HAND_WRITTEN] = Banks(*_written_by_hand(experiment, store))
    by_author = [(name, needs_of(experiment, bank)) for name, bank in banks.items()]
    used = [(name, needs) for name, needs in by_author if name in names or needs.ledger.found]
    return used or [("", needs_of(experiment, None))]


def _status_row(place: tuple[str, str], counts: Counter[str], wanted: int | None) -> StatusRow:
    """Return a row of the status, with the number of missing rewrites if it is known."""
    name, author = place
    return StatusRow(
        perturbation=name,
        author=author,
        wanted=wanted,
        statuses=dict(counts),
        missing=None if wanted is None else wanted - counts.total(),
    )


# A judge that rates rewrites

JUDGE_TOKENS = 256
"""Maximum length of a judge's reply, in tokens."""

_RATING_REQUEST = "\n\nReply with one line: Rating: and a whole number from 1 to 5."
# "Rating: 4", "**Rating:** 4/5"; not "Rating: 4.5" or "rating 45".
_RATING_LINE = re.compile(r"rating\W{0,12}([1-5])(?!\d|[.,]\d)", re.IGNORECASE)
# A whole reply such as "4" or "**4/5**."; not "4 of 5" or "It is 4".
_BARE_RATING = re.compile(r"\W{0,8}([1-5])(?:\s*/\s*5)?\W{0,8}\Z")
MAX_RATING_CHARACTERS = 20_000
"""Number of characters at the end of a judge's reply that are searched for a rating."""


def judge_prompt(sample: Sample) -> Prompt:
    """Return the question to the judge about one sample, which may be damaged on purpose.

    The prompt does not reveal if the text is damaged.
    """
    rubric = resources.files("falter.engine").joinpath("data", "rating.txt").read_text("utf-8")
    return Prompt(
        sections=(
            Section(name="rubric", kind="instruction", text=rubric + "\n<original>\n"),
            Section(name="original", kind="input", text=sample.source),
            Section(name="between", kind="instruction", text="\n</original>\n\n<rewrite>\n"),
            Section(name="rewrite", kind="input", text=sample.shown),
            Section(name="ask", kind="instruction", text="\n</rewrite>" + _RATING_REQUEST),
        )
    )


def rating_in_reply(text: str | None) -> int | None:
    """Return the rating in a judge's reply, or None.

    It is the last `Rating: n`, or a number that is the whole reply, such as `4/5`.
    """
    reply = (text or "")[-MAX_RATING_CHARACTERS:]
    ratings = _RATING_LINE.findall(reply)
    if ratings:
        return int(ratings[-1])
    alone = _BARE_RATING.match(reply)
    return None if alone is None else int(alone[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The numbers of a judge's samples, ratings, unparsed replies and failed requests."""

    judge: str
    samples: int
    rated: int
    unparsed: int
    failed: int


def judge_rewrites(
    store: Store, judge: ModelSpec, rewrites: Sequence[Rewrite], watch: Watch | None = None
) -> Judged:
    """Let a judge rate rewrites, and all damaged samples of sheets, from 1 to 5.

    Replies are stored like all responses, and not requested again. The ratings are stored under the
    rater `judge:NAME`. They do not decide if a rewrite is used.
    """
    samples = {sample.id: sample for sample in map(sample_of, rewrites) if sample.shown}
    samples |= {key: s for key, s in all_samples(store).items() if s.flaw is not None}
    client = connect_writer(judge)
    target = writing_target(client, judge)
    requests = {r.key: r for r in (_rating_request(s, target) for s in samples.values())}
    try:
        label = f"{judge.name}, judging"
        ask_all(list(requests.values()), client, judge, store, label, watch)
    finally:
        rated, unparsed = _store_ratings(store, judge, requests, samples)
    return Judged(
        judge=judge.name,
        samples=len(samples),
        rated=rated,
        unparsed=unparsed,
        failed=len(samples) - rated - unparsed,
    )


def _rating_request(sample: Sample, target: Target) -> Request:
    """Return the request for a judge's rating of one sample."""
    variant = Variant(
        item=Item(task="ratings", key=sample.id, fields={"text": sample.shown}),
        recipe=Recipe(label="rating", sampling={"max_tokens": JUDGE_TOKENS}),
        draw=0,
        prompt=judge_prompt(sample),
        status="changed",
    )
    return request(variant, target, 0)


def _store_ratings(
    store: Store, judge: ModelSpec, requests: dict[str, Request], samples: dict[str, Sample]
) -> tuple[int, int]:
    """Store the ratings that arrived; return their number and the number of unparsed replies."""
    answers = find_responses(store, list(requests))
    reviews, unparsed = [], 0
    for key, response in answers.items():
        sample, rating = samples[requests[key].variant.item.key], rating_in_reply(response.text)
        if rating is None:
            unparsed += 1
            continue
        reviews.append(Review(sample=sample.id, rater=f"judge:{judge.name}", rating=rating))
    put_samples(store, samples.values())
    put_reviews(store, reviews)
    return len(reviews), unparsed


class TaskRewrites:
    """People's translations and rewordings of an experiment's tasks, read on first use."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    @cached_property
    def _bank(self) -> MemoryBank:
        texts = {
            wanted.key: hand_written(wanted, new, HAND_WRITTEN)
            for task in load_tasks(self._experiment)
            for wanted, new in rewrites_of(task)
        }
        return MemoryBank(texts.values())

    def find(self, key: str, text: str) -> Rewrite | None:
        return self._bank.find(key, text)


def rewrites_of(task: Task) -> Iterator[tuple[Wanted, str]]:
    """Yield the rewrites that a task contains: a text that may be wanted, and its new text."""
    if task.translations is not None:
        for language, texts in task.translations().items():
            for text, new in texts.items():
                yield wanted_translation(text, language), new
    if task.rewrites is not None:
        for name, texts in task.rewrites().items():
            perturbation = perturbations.get(name)
            if not isinstance(perturbation, RewritePerturbation):
                raise refusal(PluginError, "engine.unused_rewrites", task=task.name, name=name)
            for text, new in texts.items():
                yield perturbation.wanted(text, 0), new
