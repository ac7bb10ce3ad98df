"""The tasks that a judge is given: do two replies say the same, and how good is each of them?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low

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
    "judges_of",
    "main_results",
    "most_calls",
    "ratings_by_judge",
    "ratings_of",
    "unread_of",
    "verdicts_of",
]

SAME = 3.0
_UNREADABLE = ("unparsed", "truncated", "refused")
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
        stage = part.name.removesuffix(AGAIN)
        items = _unread(results[stage]) if stage in results else ()
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


def _unread(result: PartResult, judges: Sequence[str] = ()) -> Iterable[Item]:
    """The items whose verdicts could not be read, of these judges or of any."""
    for answered in result.cells():
        if judges and answered.panel.model.label not in judges:
            continue
        if answered.score is not None and answered.score.outcome in _UNREADABLE:
            yield answered.cell.variant.item


def judges_of(results: Mapping[str, PartResult], stage: str) -> list[str]:
    """The judges of a stage as the user named them; nobody where it was not run."""
    panels = results[stage].run.panels if stage in results else ()
    return list(dict.fromkeys(panel.model.label for panel in panels))


def ratings_by_judge(results: Mapping[str, PartResult], stage: str) -> dict[str, dict[str, float]]:
    """Each judge's verdicts by key, the second try where the first could not be read."""
    ratings: dict[str, dict[str, float]] = {judge: {} for judge in judges_of(results, stage)}
    for name in (stage, stage + AGAIN):
        if name not in results:
            continue
        for answered in results[name].cells():
            score = answered.score
            if score is not None and score.outcome == "scored" and score.extracted:
                own = ratings[answered.panel.model.label]
                own.setdefault(answered.cell.variant.item.key, float(score.extracted))
    return ratings


def ratings_of(results: Mapping[str, PartResult], stage: str) -> dict[str, float]:
    """The verdicts that count, by key: of three judges or more the median, else the first's.

    Of an even number of verdicts the median is the lower middle one, so that it is one of them.
    """
    by_judge = ratings_by_judge(results, stage)
    counting = [by_judge[judge] for judge in _counting(list(by_judge))]
    keys = dict.fromkeys(key for own in counting for key in own)
    return {key: median_low([own[key] for own in counting if key in own]) for key in keys}


def _counting(judges: Sequence[str]) -> Sequence[str]:
    """The judges whose verdicts are counted with: all from three on, else the first."""
    return judges if len(judges) > 2 else judges[:1]


def unread_of(results: Mapping[str, PartResult], stage: str) -> set[str]:
    """The keys of a stage for which no verdict that counts could be read, at either try."""
    judges = _counting(judges_of(results, stage))
    names = [name for name in (stage, stage + AGAIN) if name in results]
    unread = {item.key for name in names for item in _unread(results[name], judges)}
    return unread - set(ratings_of(results, stage))


def verdicts_of(results: Mapping[str, PartResult], stage: str) -> dict[str, tuple[int, int, int]]:
    """For each judge: verdicts of a stage asked for, read at once, and read at the second try."""
    if stage not in results:
        return {}
    asked = {a.cell.variant.item.key for a in results[stage].cells()}
    at_once = ratings_by_judge({stage: results[stage]}, stage)
    in_all = ratings_by_judge(results, stage)
    return {
        judge: (len(asked), len(at_once[judge]), len(in_all[judge]) - len(at_once[judge]))
        for judge in in_all
    }
