"""People's ratings: a judge's agreement with them, and sheets on which they rate summaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np

from falter.engine.asking import ask_task, connect_writer
from falter.engine.config import ModelSpec
from falter.engine.execution import Watch
from falter.engine.findings import part_results
from falter.measures.relevance import HumanEvaluation, corrected_rate
from falter.protocols.judging import OUTPUT, PREFERENCE, RETRY_OUTPUT, SIMILARITY, quoted
from falter.protocols.protocol import PartResult
from falter.protocols.relevance.human import human_sheet, read_human_sheets
from falter.records.errors import UsageError
from falter.records.types import Item
from falter.rewrites.agreement import Coefficient, coefficients, consensus, pair_of
from falter.rewrites.sheet import Faults, read_rating, sheet_in
from falter.scorers.rating import RATINGS, RatingOfThree
from falter.stats.agreement import exact_agreement
from falter.store.store import Store
from falter.store.studies import find_study, require_store
from falter.tasks import Template
from falter.tasks.rows import read_rows
from falter.tasks.task import Task, pick

Question = Literal["preference", "similarity"]
RUBRICS: Mapping[Question, str] = {"preference": PREFERENCE, "similarity": SIMILARITY}
"""Instructions to the judge for each question."""
SCALES: Mapping[Question, tuple[int, int]] = {"preference": (0, 2), "similarity": (1, 3)}
"""Minimum and maximum of people's ratings for each question."""
SWAPPED_VERDICT = {1: 1, 0: 2, 2: 3}
"""A preference as a rating from 1 to 3: the first text, neither, the second text."""
MAX_SHOWN_CHARACTERS = 6_000
"""Maximum number of characters of a text that the judge is shown."""
SWAPPED = "/swapped"
"""Suffix of the key of a pair with its texts swapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedTexts:
    """A file with people's ratings of pairs of texts: its path, its columns and the question.

    A preference is 1 or 2 for the better text and 0 for neither. A similarity is 1 to 3.
    """

    path: str
    question: Question = "preference"
    first: str = "response1"
    second: str = "response2"
    context: tuple[str, ...] = ("instruction", "input")
    ratings: tuple[str, ...] = ("annotator1", "annotator2", "annotator3")


BUNDLED_RATINGS = RatedTexts(
    path=str(
        resources.files("falter.engine").joinpath("data", "ratings", "pandalm_testset.json.gz")
    )
)
"""999 pairs of replies with three people's preferences each, the test set of PandaLM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalibration:
    """A judge compared with people: numbers of verdicts, and coefficients of agreement.

    - `read` verdicts were parsed at once, `read_again` ones after a second request, `unread` ones
      after neither. `failed` requests have no response.
    - `people` is the agreement of people with each other.
    - `judge` is the agreement of the judge with people's rounded mean (for preferences, their
      median).
    - `swapped` is the share of verdicts that stay the same when the texts are swapped.
    - `rates` are shares of pairs rated below 3: the judge's, people's, and the judge's share
      corrected with half of people's labels. It is empty for preferences.
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
    """Request a judge's verdicts on a sample of pairs, and compare them with people's ratings.

    An unparsed verdict is requested once more. Verdicts are stored responses, so the same call
    again sends nothing. With `swap`, each pair is also judged with its texts swapped.
    """
    items, people = _rated_items(rated)
    chosen = pick(items, limit, seed)
    judged = [*chosen, *(_swapped_item(item) for item in chosen if swap)]
    label = connect_writer(spec).model.label
    first, failed = _verdicts(spec, _task("calibration", judged, OUTPUT), store, seed, watch)
    unparsed = [item for item in judged if item.key not in first and item.key not in failed]
    retried: dict[str, int] = {}
    if unparsed:
        task = _task("calibration-again", unparsed, RETRY_OUTPUT)
        retried, failed_again = _verdicts(spec, task, store, seed, watch)
        failed |= failed_again
    verdicts = {**retried, **first}
    keys = [item.key for item in chosen]
    preferences = rated.question == "preference"
    joint = {
        key: consensus(ratings, np.median if preferences else np.mean)
        for key, ratings in people.items()
        if not all(map(math.isnan, ratings))
    }
    return JudgeCalibration(
        model=label,
        question=rated.question,
        pairs=len(keys),
        read=sum(key in first for key in keys),
        read_again=sum(key in retried for key in keys),
        unread=sum(key not in verdicts and key not in failed for key in keys),
        failed=sum(key in failed for key in keys),
        people=_human_agreement([people[key] for key in keys], seed),
        judge=_judge_agreement(
            [(joint[k], verdicts[k]) for k in keys if k in verdicts and k in joint], seed
        ),
        swapped=_swap_consistency(verdicts, keys, preferences) if swap else None,
        rates=() if preferences else _similarity_shares(joint, verdicts, keys, seed),
    )


# Items


def _rated_items(rated: RatedTexts) -> tuple[list[Item], dict[str, list[float]]]:
    """Return the pairs as items, and people's ratings by key; raise with all wrong rows at once."""
    columns = [rated.first, rated.second, *rated.context, *rated.ratings]
    faults = Faults(rated.path)
    items: list[Item] = []
    people: dict[str, list[float]] = {}
    for number, row in enumerate(read_rows(rated.path), 1):
        with faults.at(f"row {number}"):
            lacking = [name for name in columns if name not in row]
            if lacking:
                raise UsageError(f"the file has no column {', '.join(lacking)}")
            said = [read_rating(name, row[name], *SCALES[rated.question]) for name in rated.ratings]
            if rated.question == "preference":
                said = [None if rating is None else SWAPPED_VERDICT[rating] for rating in said]
            people[str(number)] = [math.nan if rating is None else rating for rating in said]
            items.append(_pair_item(str(number), row, rated))
    faults.refuse()
    return items, people


def _pair_item(key: str, row: Mapping[str, Any], rated: RatedTexts) -> Item:
    """Return a row of ratings as an item with its quoted texts."""
    context = "\n".join(str(row[name]) for name in rated.context if str(row[name]).strip())
    about = f"The request:\n{quoted(context, MAX_SHOWN_CHARACTERS)}\n\n" if context else ""
    fields = {
        "rubric": RUBRICS[rated.question],
        "about": about,
        "first": quoted(str(row[rated.first]) or "(empty)", MAX_SHOWN_CHARACTERS),
        "second": quoted(str(row[rated.second]) or "(empty)", MAX_SHOWN_CHARACTERS),
    }
    return Item(task="calibration", key=key, fields=fields, choices=RATINGS)


def _swapped_item(item: Item) -> Item:
    """Return the item with its two texts swapped."""
    fields = {**item.fields, "first": item.fields["second"], "second": item.fields["first"]}
    return replace(item, key=item.key + SWAPPED, fields=fields)


def _task(name: str, items: Sequence[Item], output: str) -> Task:
    """Return the task that the judge is given."""
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


def _verdicts(
    spec: ModelSpec, task: Task, store: Store, seed: int, watch: Watch | None
) -> tuple[dict[str, int], set[str]]:
    """Return the verdicts by key, and the keys without a response."""
    verdicts: dict[str, int] = {}
    failed: set[str] = set()
    for answered in ask_task(spec, task, store, watch, seed=seed):
        key, score = answered.cell.variant.item.key, answered.score
        if score is not None and score.outcome == "scored" and score.extracted:
            verdicts[key] = int(score.extracted)
        elif score is None or score.outcome == "failed":
            failed.add(key)
    return verdicts, failed


# Coefficients


def _human_agreement(ratings: Sequence[Sequence[float]], seed: int) -> tuple[Coefficient, ...]:
    """Return people's agreement with each other; empty for fewer than two people."""
    if not ratings or len(ratings[0]) < 2:
        return ()
    return tuple(coefficients(ratings, (1, 2, 3), over="pairs", seed=seed).values())


def _judge_agreement(ratings: Sequence[tuple[int, int]], seed: int) -> tuple[Coefficient, ...]:
    """Return the agreement of people's joint ratings with the judge; empty below two pairs."""
    if len(ratings) < 2:
        return ()
    pair = pair_of("people", "judge", ratings, (1, 2, 3), seed=seed)
    return (pair.kappa, pair.alpha, pair.exact, pair.spearman)


def _swap_consistency(
    verdicts: Mapping[str, int], keys: Sequence[str], preferences: bool
) -> Coefficient:
    """Return the share of verdicts that stay the same when the texts are swapped."""
    verdict_pairs = [(verdicts[k], verdicts[k + SWAPPED]) for k in keys
            if k in verdicts and k + SWAPPED in verdicts]  # fmt: skip
    unswapped_pairs = [(a, 4 - b if preferences else b) for a, b in verdict_pairs]
    result = exact_agreement(np.array(unswapped_pairs, dtype=float).reshape(-1, 2))
    return Coefficient.of("same verdict after swapping", result)


def _similarity_shares(
    joint: Mapping[str, int], verdicts: Mapping[str, int], keys: Sequence[str], seed: int
) -> tuple[Coefficient, ...]:
    """Return the shares of pairs below 3: the judge's, people's, and the judge's corrected.

    The correction uses people's labels of a random half only, as a user would have them. The result
    is empty for fewer than four pairs.
    """
    pairs = [(joint[k] < 3, verdicts[k] < 3) for k in keys if k in verdicts and k in joint]
    if len(pairs) < 4:
        return ()
    human, judge = np.array(pairs, dtype=float).T
    known = np.random.default_rng(seed).permutation(len(human)) < len(human) // 2
    corrected = corrected_rate(judge, np.where(known, human, math.nan))
    shares = {"below 3, the judge": judge, "below 3, people": human}
    return (
        *(
            Coefficient(name=name, value=float(below.mean()), status="ok", items=len(below))
            for name, below in shares.items()
        ),
        Coefficient.of("below 3, corrected from half of the labels", corrected),
    )


# Summaries


def summary_sheet(
    store: Path | str, name: str | None = None, *, articles: int = 30, seed: int = 0
) -> str:
    """Return the rating sheet of a study as CSV, by default of the newest; see `human_sheet`.

    It does not reveal who wrote a summary.
    """
    with _first_part(Path(store), name) as result:
        return human_sheet(result, articles=articles, seed=seed)


def summary_ratings(
    store: Path | str,
    sheets: Sequence[Path | str],
    name: str | None = None,
    *,
    articles: int = 30,
    seed: int = 0,
) -> dict[tuple[str, str], HumanEvaluation]:
    """Return the ratings in copies of the sheet, by model and data set."""
    texts = {str(path): sheet_in(Path(path)) for path in sheets}
    with _first_part(Path(store), name) as result:
        return read_human_sheets(result, texts, articles=articles, seed=seed)


@contextmanager
def _first_part(path: Path, name: str | None) -> Iterator[PartResult]:
    """Yield the result of a study's first part, with the store open."""
    require_store(path)
    with Store(path, writes=False) as opened:
        yield part_results(opened, find_study(opened, name))[0]
