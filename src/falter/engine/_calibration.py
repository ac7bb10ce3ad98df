"""How far a judge agrees with people: asked for the pairs that people have rated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

import numpy as np

from falter.engine.config import Experiment, ModelSpec
from falter.engine.connections import connect
from falter.engine.execution import Watch, carry_out, opened, record_run, run_async
from falter.engine.findings import part_result
from falter.engine.resolving import resolve
from falter.measures import corrected_rate
from falter.protocols import AGAIN, OUTPUT, PREFERENCE, SIMILARITY, Part, quoted
from falter.records.errors import DuplicateName, InvalidValue, TaskError
from falter.records.types import BASELINE, Estimate, Item, Run
from falter.scorers.rating import RATINGS, RatingOfThree
from falter.stats import (
    exact_agreement,
    krippendorff_alpha,
    round_half_up,
    spearman,
    weighted_kappa,
)
from falter.store import Store
from falter.tasks import Task, Template, pick, read_rows

__all__ = [
    "BUNDLED_RATINGS",
    "Coefficient",
    "JudgeCalibration",
    "RatedTexts",
    "calibrate_judge",
]

Question = Literal["preference", "similarity"]
RUBRICS: Mapping[Question, str] = {"preference": PREFERENCE, "similarity": SIMILARITY}
LABELS: Mapping[Question, Mapping[str, int]] = {
    "preference": {"1": 1, "0": 2, "2": 3},
    "similarity": {"1": 1, "2": 2, "3": 3},
}
LONGEST = 6_000
SWAPPED = "/swapped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedTexts:
    """Where people's ratings are: a file, its columns, and what was asked.

    Of a preference, 1 and 2 name the better text and 0 neither; a similarity is 1 to 3.
    """

    path: str
    question: Question = "preference"
    first: str = "response1"
    second: str = "response2"
    context: tuple[str, ...] = ("instruction", "input")
    ratings: tuple[str, ...] = ("annotator1", "annotator2", "annotator3")


def _bundled() -> str:
    folder = resources.files("falter.engine").joinpath("data", "ratings")
    return str(folder.joinpath("pandalm_testset.json.gz"))


BUNDLED_RATINGS = RatedTexts(path=_bundled())
"""999 pairs of replies with three people's preferences each, the test set of PandaLM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One coefficient with its interval."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    status: str
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalibration:
    """A judge beside people: verdicts read and not read, and coefficients of agreement.

    `people` are among themselves; `judge` against people's rounded mean (of preferences, their
    median); `swapped` is the share of verdicts that stay when the texts change places; `rate` is
    the share of pairs below 3 as people see it, corrected from the judge's by half of the labels.
    """

    model: str
    question: str
    pairs: int
    read: int
    read_again: int
    unread: int
    failed: int
    people: tuple[Coefficient, ...]
    judge: tuple[Coefficient, ...]
    swapped: Coefficient | None
    rates: tuple[Coefficient, ...]


def calibrate_judge(
    spec: ModelSpec,
    rated: RatedTexts,
    store: Store,
    *,
    limit: int | None = None,
    seed: int = 0,
    swap: bool = False,
    watch: Watch | None = None,
) -> JudgeCalibration:
    """Ask the judge for a sample of the pairs, once more where it cannot be read, and compare.

    Verdicts are stored answers: the same call again sends nothing.
    """
    items, people = _items(rated)
    chosen = pick(items, limit, seed)
    asked = [*chosen, *(_swapped(item) for item in chosen if swap)]
    client = connect(spec)
    if not client.capabilities.generates:
        raise InvalidValue("judge", spec.name, "a model that generates text")
    task = _task("calibration", asked, OUTPUT)
    first, failed = _ask(spec, task, store, seed, watch)
    left = [item for item in asked if item.key not in first and item.key not in failed]
    second: dict[str, int] = {}
    if left:
        task = _task("calibration-again", left, AGAIN)
        second, more = _ask(spec, task, store, seed, watch)
        failed |= more
    verdicts = {**second, **first}
    keys = [item.key for item in chosen]
    return JudgeCalibration(
        model=client.model.label,
        question=rated.question,
        pairs=len(keys),
        read=sum(key in first for key in keys),
        read_again=sum(key in second for key in keys),
        unread=sum(key not in verdicts and key not in failed for key in keys),
        failed=sum(key in failed for key in keys),
        people=_among([people[key] for key in keys], seed),
        judge=_against(people, verdicts, keys, rated.question, seed),
        swapped=_stays(verdicts, keys, rated.question) if swap else None,
        rates=_rates(people, verdicts, keys, rated.question, seed),
    )


# Items


def _items(rated: RatedTexts) -> tuple[list[Item], dict[str, list[float]]]:
    """The pairs as items, and what people said by key; every bad row is named at once."""
    rows = read_rows(rated.path)
    columns = [rated.first, rated.second, *rated.context, *rated.ratings]
    faults: list[str] = []
    items: list[Item] = []
    people: dict[str, list[float]] = {}
    labels = LABELS[rated.question]
    for number, row in enumerate(rows, 1):
        lacking = [name for name in columns if name not in row]
        if lacking:
            faults.append(f"row {number} has no column {', '.join(lacking)}")
            continue
        said = [str(row[name]).strip() for name in rated.ratings]
        wrong = [text for text in said if text not in labels and text not in ("", "None")]
        if wrong:
            faults.append(f"row {number}: {wrong[0]!r} is none of {', '.join(labels)}")
            continue
        key = str(number)
        people[key] = [float(labels[text]) if text in labels else math.nan for text in said]
        items.append(_item(key, row, rated))
    if faults:
        shown = "\n".join(f"- {fault}" for fault in faults[:20])
        raise TaskError(f"{len(faults)} rows of {rated.path} cannot be used:\n{shown}")
    if len(people) != len(items):
        raise DuplicateName(f"{rated.path} has two rows of one key")
    return items, people


def _item(key: str, row: Mapping[str, Any], rated: RatedTexts) -> Item:
    context = "\n".join(str(row[name]) for name in rated.context if str(row[name]).strip())
    about = f"The request:\n{quoted(context, LONGEST)}\n\n" if context else ""
    fields = {
        "rubric": RUBRICS[rated.question],
        "about": about,
        "first": quoted(str(row[rated.first]) or "(empty)", LONGEST),
        "second": quoted(str(row[rated.second]) or "(empty)", LONGEST),
    }
    return Item(task="calibration", key=key, fields=fields, choices=RATINGS)


def _swapped(item: Item) -> Item:
    fields = {**item.fields, "first": item.fields["second"], "second": item.fields["first"]}
    return replace(item, key=item.key + SWAPPED, fields=fields)


def _task(name: str, items: Sequence[Item], output: str) -> Task:
    shown = "{about}The first reply:\n{first}\n\nThe second reply:\n{second}\n"
    parts = {"instruction": "{rubric}", "input": shown}
    return Task(
        name=name,
        items=tuple(items),
        templates={
            "open": Template.parse({**parts, "output_format": output}),
            "cloze": Template.parse({**parts, "cue": "\nThe rating is"}),
        },
        scorer=RatingOfThree.name,
    )


# Asking


def _ask(
    spec: ModelSpec, task: Task, store: Store, seed: int, watch: Watch | None
) -> tuple[dict[str, int], set[str]]:
    """The verdicts by key, and the keys for which nothing arrived."""
    client = connect(spec)  # one for each round, since it is closed at its end
    experiment = Experiment(models=(spec,), seed=seed)
    resolved = resolve(experiment, loaded=[task], clients=[client], recipes=(BASELINE,))

    async def run() -> None:
        if not record_run(resolved, store):
            async with opened([client]):
                await carry_out(resolved, store, watch)

    run_async(run)
    made: Run = resolved.run
    result = part_result(store, Part(name=task.name, title=task.name, experiment={}), made)
    verdicts: dict[str, int] = {}
    failed: set[str] = set()
    for answered in result.cells():
        key, score = answered.cell.variant.item.key, answered.score
        if score is not None and score.outcome == "scored" and score.extracted:
            verdicts[key] = int(score.extracted)
        elif score is None or score.outcome == "failed":
            failed.add(key)
    return verdicts, failed


# Coefficients


def _among(ratings: Sequence[Sequence[float]], seed: int) -> tuple[Coefficient, ...]:
    """Agreement of people with each other; nothing for one of them."""
    matrix = np.array(ratings, dtype=float)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        return ()
    return (
        _shown("kappa, weighted", weighted_kappa(matrix, (1, 2, 3), seed=seed)),
        _shown("alpha, ordinal", krippendorff_alpha(matrix, "ordinal", seed=seed)),
        _shown("exact agreement of pairs", exact_agreement(matrix, over="pairs", seed=seed)),
    )


def _against(
    people: Mapping[str, Sequence[float]],
    verdicts: Mapping[str, int],
    keys: Sequence[str],
    question: Question,
    seed: int,
) -> tuple[Coefficient, ...]:
    both = [(_consensus(people[key], question), float(verdicts[key])) for key in keys
            if key in verdicts and not np.isnan(people[key]).all()]  # fmt: skip
    if len(both) < 2:
        return ()
    matrix = np.array(both)
    return (
        _shown("kappa, weighted", weighted_kappa(matrix, (1, 2, 3), seed=seed)),
        _shown("alpha, ordinal", krippendorff_alpha(matrix, "ordinal", seed=seed)),
        _shown("exact agreement", exact_agreement(matrix, seed=seed)),
        _shown("Spearman", spearman(matrix[:, 0], matrix[:, 1])),
    )


def _consensus(ratings: Sequence[float], question: Question) -> float:
    """People's mean, rounded half up; of preferences the median: two extremes are no tie."""
    given = [rating for rating in ratings if not math.isnan(rating)]
    centre = np.median(given) if question == "preference" else np.mean(given)
    return float(round_half_up([float(centre)])[0])


def _stays(verdicts: Mapping[str, int], keys: Sequence[str], question: Question) -> Coefficient:
    """The share of verdicts that say the same when the texts have changed places."""
    both = [(verdicts[k], verdicts[k + SWAPPED]) for k in keys
            if k in verdicts and k + SWAPPED in verdicts]  # fmt: skip
    turned = [(a, 4 - b if question == "preference" else b) for a, b in both]
    result = exact_agreement(np.array(turned, dtype=float).reshape(-1, 2))
    return _shown("same verdict after swapping", result)


def _rates(
    people: Mapping[str, Sequence[float]],
    verdicts: Mapping[str, int],
    keys: Sequence[str],
    question: Question,
    seed: int,
) -> tuple[Coefficient, ...]:
    """The share of pairs below 3: the judge's, people's, and the judge's as people would say it.

    The corrected one knows the labels of a random half only, as a user's own would.
    """
    if question != "similarity":
        return ()
    both = [(_consensus(people[k], question) < 3, verdicts[k] < 3) for k in keys if k in verdicts]
    if len(both) < 4:
        return ()
    human, judge = np.array(both, dtype=float).T
    known = np.random.default_rng(seed).permutation(len(human)) < len(human) // 2
    corrected = corrected_rate(judge, np.where(known, human, math.nan))
    by_judge = Coefficient(
        name="below 3, the judge", value=float(judge.mean()), low=None, high=None, status="ok",
        items=len(judge),
    )  # fmt: skip
    by_people = replace(by_judge, name="below 3, people", value=float(human.mean()))
    name = "below 3, corrected from half of the labels"
    return (by_judge, by_people, _estimated(name, corrected))


def _estimated(name: str, estimate: Estimate) -> Coefficient:
    return Coefficient(
        name=name, value=estimate.value, low=estimate.low, high=estimate.high,
        status=estimate.status, items=estimate.items,
    )  # fmt: skip


def _shown(name: str, result: Any) -> Coefficient:
    return Coefficient(
        name=name,
        value=result.value,
        low=result.interval.low,
        high=result.interval.high,
        status=result.status,
        items=result.items,
    )
