"""The tasks that a judge is given: do two replies say the same, and how good is each of them?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from falter.core.errors import TaskError
from falter.core.records import Item
from falter.protocols._protocol import Part, PartResult
from falter.protocols._quoting import quoted
from falter.protocols._rubrics import AGAIN as BRIEFLY
from falter.protocols._rubrics import OUTPUT, QUALITY, SIMILARITY
from falter.protocols.enterprise._pairs import Pair, Reply, pairs_in
from falter.protocols.enterprise._parts import AGAIN, COMPARING, RATING, kind_of
from falter.scorers.rating import RATINGS
from falter.tasks import Task, Template

__all__ = [
    "SAME",
    "judged_task",
    "main_results",
    "most_calls",
    "ratings_of",
    "unread_of",
    "verdicts_of",
]

SAME = 3.0
LONGEST_MATERIAL, LONGEST_REPLY = 16_000, 6_000


def main_results(results: Mapping[str, PartResult]) -> list[PartResult]:
    """The parts that ask the models themselves."""
    return [result for result in results.values() if result.part.judges is None]


def judged_task(part: Part, results: Mapping[str, PartResult]) -> Task:
    """The items of a stage: every different pair, or every different reply with a measure.

    The second stage has the replies of pairs rated below 3. Asked again are the verdicts of a stage
    that could not be read.
    """
    if part.name.endswith(AGAIN):
        items = _unread(results[part.name.removesuffix(AGAIN)])
        return _task(part.name, items, BRIEFLY, "every verdict could be read")
    pairs = pairs_in(main_results(results))
    if part.name == COMPARING:
        return _task(part.name, _comparisons(pairs), OUTPUT, "no two replies differ")
    items = _quality(pairs, ratings_of(results, COMPARING))
    return _task(part.name, items, OUTPUT, "no pair of replies that a judge rates is below 3")


def most_calls(part: Part, cells: Mapping[tuple[str, str], int]) -> int:
    """The most calls of a stage: a pair for each cell, and each measure of both of its replies."""
    if part.name.startswith(COMPARING):
        return sum(cells.values())
    return sum(2 * len(kind_of(task).judged) * count for (_, task), count in cells.items())


def _task(name: str, items: Iterable[Item], output: str, nothing: str) -> Task:
    by_key = {item.key: item for item in items}
    if not by_key:
        raise TaskError(nothing[:1].upper() + nothing[1:])
    parts = {"instruction": "{rubric}", "input": "{shown}", "output_format": output}
    cloze = {"instruction": "{rubric}", "input": "{shown}", "cue": "\nThe rating is"}
    return Task(
        name=name,
        items=tuple(by_key.values()),
        templates={"open": Template.parse(parts), "cloze": Template.parse(cloze)},
    )


def _comparisons(pairs: Iterable[Pair]) -> Iterable[Item]:
    for pair in pairs:
        if pair.missing or pair.unread or pair.same:
            continue
        assert pair.reference is not None and pair.candidate is not None
        first, second = (
            quoted(reply.shown or "(empty)", LONGEST_REPLY)
            for reply in (pair.reference, pair.candidate)
        )
        shown = f"The first reply:\n{first}\n\nThe second reply:\n{second}\n"
        yield _item(COMPARING, pair.key, SIMILARITY, shown)


def _quality(pairs: Iterable[Pair], similarity: Mapping[str, float]) -> Iterable[Item]:
    for pair in pairs:
        if pair.missing or pair.unread or pair.same or similarity.get(pair.key, SAME) >= SAME:
            continue
        assert pair.reference is not None and pair.candidate is not None
        for measure in kind_of(pair.task).judged:
            for reply in (pair.reference, pair.candidate):
                yield _item(
                    RATING, pair.rating_key(measure, reply), QUALITY[measure], _rated(pair, reply)
                )


def _rated(pair: Pair, reply: Reply) -> str:
    material = quoted(pair.material, LONGEST_MATERIAL)
    text = quoted(reply.shown or "(empty)", LONGEST_REPLY)
    return f"The material:\n{material}\n\nThe reply:\n{text}\n"


def _item(task: str, key: str, rubric: str, shown: str) -> Item:
    return Item(task=task, key=key, fields={"rubric": rubric, "shown": shown}, choices=RATINGS)


def _unread(result: PartResult) -> Iterable[Item]:
    for answered in result.cells():
        if answered.score is not None and answered.score.outcome in ("unparsed", "refused"):
            yield answered.cell.variant.item


def ratings_of(results: Mapping[str, PartResult], stage: str) -> dict[str, float]:
    """The verdicts of a stage by key, the second try where the first could not be read."""
    ratings: dict[str, float] = {}
    for name in (stage, stage + AGAIN):
        if name not in results:
            continue
        for answered in results[name].cells():
            score = answered.score
            if score is not None and score.outcome == "scored" and score.extracted:
                ratings.setdefault(answered.cell.variant.item.key, float(score.extracted))
    return ratings


def unread_of(results: Mapping[str, PartResult], stage: str) -> set[str]:
    """The keys of a stage whose verdicts could not be read, at the second try either."""
    names = [name for name in (stage, stage + AGAIN) if name in results]
    unread = {item.key for name in names for item in _unread(results[name])}
    return unread - set(ratings_of(results, stage))


def verdicts_of(results: Mapping[str, PartResult], stage: str) -> tuple[int, int, int] | None:
    """How many verdicts of a stage were asked for, read at once, and read at the second try."""
    if stage not in results:
        return None
    asked = {a.cell.variant.item.key for a in results[stage].cells()}
    first = {stage: results[stage]}
    at_once, in_all = len(ratings_of(first, stage)), len(ratings_of(results, stage))
    return len(asked), at_once, in_all - at_once
