"""Pairs of a response and the response to the clean prompt, and the tasks of their judges."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low

from falter.protocols.enterprise.parts import (
    COMPARING,
    FORMAT,
    RATING,
    REFERENCE_FORM,
    RETRY,
    category_of,
    kind_of,
    languages_of,
    name_of,
)
from falter.protocols.judging import OUTPUT, PAIR_RUBRIC, RETRY_OUTPUT, RUBRICS, VERSION, quoted
from falter.protocols.protocol import Part, PartResult, ScoredCell
from falter.records.errors import TaskError
from falter.records.ids import digest, short
from falter.records.types import Item, Prompt, Recipe
from falter.scorers.answer_parts import FREE_TEXT_KEY, answer_parts
from falter.scorers.rating import RATINGS
from falter.tasks import Template
from falter.tasks.task import Task

_MATERIAL_KINDS = ("input", "document")


@dataclass(frozen=True, slots=True)
class Reply:
    """A response and its parts by name; `parts` is None if it is not in the requested form."""

    text: str
    parts: Mapping[str, str] | None

    @property
    def shown(self) -> str:
        """The text that a judge sees: the parts without markup, or the whole text if unparsed."""
        if self.parts is None or FREE_TEXT_KEY in self.parts:
            return self.text.strip()
        return "\n".join(f"{name}: {text}" for name, text in self.parts.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two responses to one item: `reference` to the clean prompt, `candidate` under the recipe.

    In the format category, the reference answers the plain-text request. A response that failed or
    never arrived is None. `material` is the text that both are about. `run` counts the repeats from
    0. `target` and `reference_target` are the gold answers of the two prompts. `sources` names the
    documents with the answer. `choices` names the schema's keys that have options.
    """

    model: str
    task: str
    item: str
    recipe: Recipe
    category: str
    run: int
    reference: Reply | None
    candidate: Reply | None
    material: str
    target: str | None
    reference_target: str | None
    sources: tuple[str, ...]
    choices: tuple[str, ...]

    @property
    def missing(self) -> bool:
        """True if one of the responses failed or never arrived."""
        return self.reference is None or self.candidate is None

    @property
    def unread(self) -> bool:
        """True if a response is not in its requested form; in `format`, only the candidate counts.

        False if a response is missing.
        """
        if self.reference is None or self.candidate is None:
            return False
        read = self.category == FORMAT or self.reference.parts is not None
        return not read or self.candidate.parts is None

    @property
    def aligns(self) -> bool:
        """True if both responses have parts, and both or neither of them are free text."""
        sides = [reply.parts for reply in (self.reference, self.candidate) if reply is not None]
        free = [FREE_TEXT_KEY in parts for parts in sides if parts is not None]
        return len(free) == 2 and free[0] == free[1]

    @property
    def languages(self) -> tuple[str, str]:
        """The languages of the input and of the requested answer."""
        return languages_of(self.recipe)

    @property
    def crosses(self) -> bool:
        """True if the two responses should be in different languages."""
        return self.languages[1] != "en"

    @property
    def same(self) -> bool:
        """True if the responses are identical, so that no judge need compare them.

        Free text and a structured response are identical if their words are.
        """
        assert self.reference is not None and self.candidate is not None
        if self.reference.text.strip() == self.candidate.text.strip():
            return True
        first, second = self.reference.parts, self.candidate.parts
        if first is None or second is None:
            return False
        return first == second or (not self.aligns and _texts_of(first) == _texts_of(second))

    @property
    def key(self) -> str:
        """Hash of the two texts that a judge compares; the key of the judge's item."""
        assert self.reference is not None and self.candidate is not None
        return digest("replies", VERSION, self.reference.shown, self.candidate.shown)

    def rating_key(self, measure: str, reply: Reply) -> str:
        """Return the hash of measure, material and response: the key of the judge's item."""
        return digest("reply", VERSION, measure, self.material, reply.shown)


def _texts_of(parts: Mapping[str, str]) -> list[str]:
    return " ".join(parts.values()).split()


def pairs_in(results: Sequence[PartResult]) -> tuple[Pair, ...]:
    """Return the pairs of the parts whose prompt was changed or repeated; first draws only."""
    return tuple(pair for result in results for pair in _pairs_of(result))


def replies_to(result: PartResult, recipe: str) -> Iterator[tuple[str, str, Reply | None]]:
    """Yield model, item and response for every cell of the recipe with this label.

    The response is None if it failed or never arrived.
    """
    for answered in result.cells():
        variant = answered.cell.variant
        if variant.recipe.label == recipe and variant.status in ("changed", "baseline"):
            item = f"{name_of(answered.panel.task)} {variant.item.key}"
            yield answered.panel.model.label, item, _reply_of(answered)


def _pairs_of(result: PartResult) -> Iterator[Pair]:
    places: dict[tuple[str, str, str], dict[tuple[str, int], ScoredCell]] = {}
    repeats = result.run.repeats
    for scored_cell in result.cells():
        variant = scored_cell.cell.variant
        if variant.draw:
            continue
        place = scored_cell.panel.model.label, name_of(scored_cell.panel.task), variant.item.key
        # Repeats of the repeated clean prompt are counted on: of 5 repeats they are 5 to 9.
        run = scored_cell.cell.repeat - variant.recipe.repeat * repeats
        places.setdefault(place, {})[variant.recipe.label, run] = scored_cell
    clean = result.run.recipes[0].label
    for (model, task, item), cells in places.items():
        for (label, run), scored_cell in cells.items():
            variant = scored_cell.cell.variant
            category = category_of(variant.recipe)
            changed = variant.status == "changed" or variant.recipe.repeat
            if category is None or label == REFERENCE_FORM or not changed:
                continue
            base = cells.get((REFERENCE_FORM if category == FORMAT else clean, run))
            origin = cells.get((clean, run)) or base
            if base is None or origin is None:
                continue
            prompt, original = variant.prompt, origin.cell.variant.prompt
            schema = prompt.schema
            yield Pair(
                model=model,
                task=task,
                item=item,
                recipe=variant.recipe,
                category=category,
                run=run,
                reference=_reply_of(base),
                candidate=_reply_of(scored_cell),
                material=_material_text(original),
                target=None if prompt.target is None else str(prompt.target),
                reference_target=None if original.target is None else str(original.target),
                sources=_source_names(variant.item.fields.get("sources", "")),
                choices=() if schema is None else tuple(k.name for k in schema.keys if k.choices),
            )


def _material_text(prompt: Prompt) -> str:
    """Return the user's material: the case, the chat, or the question with its documents."""
    texts = [
        s.text.strip() for s in prompt.sections if s.kind in _MATERIAL_KINDS and s.text.strip()
    ]
    return "\n\n".join(texts)


def _source_names(text: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _reply_of(answered: ScoredCell) -> Reply | None:
    cell = answered.cell
    if cell.response is None or cell.response.failure is not None or cell.response.text is None:
        return None
    text, schema = cell.response.text, cell.variant.prompt.schema
    form = cell.variant.recipe.output_format
    if schema is None:
        return Reply(text, {FREE_TEXT_KEY: text.strip()} if form is None and text.strip() else None)
    return Reply(text, answer_parts(text, form or schema.form, schema))


# Judging: the similarity of two responses, and the quality of each


SAME_RATING = 3.0
_UNREADABLE_OUTCOMES = ("unparsed", "truncated", "refused")
MAX_MATERIAL_CHARACTERS, MAX_REPLY_CHARACTERS = 16_000, 6_000


def main_results(results: Mapping[str, PartResult]) -> list[PartResult]:
    """Return the parts that send requests to the tested models, not to judges."""
    return [result for result in results.values() if result.part.judges is None]


def judged_task(part: Part, results: Mapping[str, PartResult]) -> Task:
    """Return the judge's task of a stage, without duplicate items. Raises TaskError without items.

    The items of COMPARING are pairs that differ. The items of RATING are the responses of pairs
    rated below 3, once per measure. The retry of a stage repeats its items with unparsed verdicts.
    """
    if part.name.endswith(RETRY):
        stage = part.name.removesuffix(RETRY)
        items = _unparsed_items(results[stage]) if stage in results else ()
        return _task(part.name, items, RETRY_OUTPUT, "every verdict could be read")
    pairs = pairs_in(main_results(results))
    if part.name == COMPARING:
        return _task(part.name, _pair_items(pairs, part.rubrics), OUTPUT, "no two replies differ")
    items = _quality_items(pairs, ratings_of(results, COMPARING), part.rubrics)
    return _task(part.name, items, OUTPUT, "no pair of replies that a judge rates is below 3")


def max_calls(part: Part, cells: Mapping[tuple[str, str], int]) -> int:
    """Return the maximum number of calls of a stage: one per pair, or one per measure and response.

    `cells` counts the planned cells by part and task.
    """
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


def _pair_items(pairs: Iterable[Pair], rubrics: Mapping[str, str]) -> Iterable[Item]:
    for pair in pairs:
        if pair.missing or pair.unread or pair.same:
            continue
        assert pair.reference is not None and pair.candidate is not None
        first, second = (
            quoted(reply.shown or "(empty)", MAX_REPLY_CHARACTERS)
            for reply in (pair.reference, pair.candidate)
        )
        shown = f"The first reply:\n{first}\n\nThe second reply:\n{second}\n"
        yield _judge_item(COMPARING, pair.key, rubrics[PAIR_RUBRIC], shown)


def _quality_items(
    pairs: Iterable[Pair], similarity: Mapping[str, float], rubrics: Mapping[str, str]
) -> Iterable[Item]:
    for pair in pairs:
        if (
            pair.missing
            or pair.unread
            or pair.same
            or similarity.get(pair.key, SAME_RATING) >= SAME_RATING
        ):
            continue
        assert pair.reference is not None and pair.candidate is not None
        for measure in kind_of(pair.task).judged:
            for reply in (pair.reference, pair.candidate):
                yield _judge_item(
                    RATING,
                    pair.rating_key(measure, reply),
                    rubrics[measure],
                    _rated_text(pair, reply),
                )


def _rated_text(pair: Pair, reply: Reply) -> str:
    material = quoted(pair.material, MAX_MATERIAL_CHARACTERS)
    text = quoted(reply.shown or "(empty)", MAX_REPLY_CHARACTERS)
    return f"The material:\n{material}\n\nThe reply:\n{text}\n"


def _judge_item(task: str, key: str, rubric: str, shown: str) -> Item:
    fields = {"rubric": rubric, "shown": shown, "ratings_wanted": "rating"}
    return Item(task=task, key=key, fields=fields, choices=RATINGS)


def _unparsed_items(result: PartResult, judges: Sequence[str] = ()) -> Iterable[Item]:
    """Yield the items with an unparsed verdict by one of `judges`, or by any judge if empty."""
    for answered in result.cells():
        if judges and answered.panel.model.label not in judges:
            continue
        if answered.score is not None and answered.score.outcome in _UNREADABLE_OUTCOMES:
            yield answered.cell.variant.item


def own_rubrics(results: Mapping[str, PartResult]) -> str:
    """Return a short hash of the user's rubrics; empty if all rubrics are bundled."""
    texts = {
        answered.cell.variant.item.fields["rubric"]
        for stage in (COMPARING, RATING)
        if stage in results
        for answered in results[stage].cells()
    }
    own = sorted(texts - set(RUBRICS.values()))
    return short(digest("rubrics", own)) if own else ""


def judges_of(results: Mapping[str, PartResult], stage: str) -> list[str]:
    """Return the labels of a stage's judges in the user's order; empty if the stage was not run."""
    panels = results[stage].run.panels if stage in results else ()
    return list(dict.fromkeys(panel.model.label for panel in panels))


def ratings_by_judge(results: Mapping[str, PartResult], stage: str) -> dict[str, dict[str, float]]:
    """Return each judge's verdicts by item key; a retry replaces only an unparsed verdict."""
    ratings: dict[str, dict[str, float]] = {judge: {} for judge in judges_of(results, stage)}
    for name in (stage, stage + RETRY):
        if name not in results:
            continue
        for answered in results[name].cells():
            score = answered.score
            if score is not None and score.outcome == "scored" and score.extracted:
                own = ratings[answered.panel.model.label]
                own.setdefault(answered.cell.variant.item.key, float(score.extracted))
    return ratings


def ratings_of(results: Mapping[str, PartResult], stage: str) -> dict[str, float]:
    """Return the verdicts that count, by item key.

    With three judges or more, the median of their verdicts counts, otherwise the first judge's
    verdict. The median of an even number of verdicts is the lower middle one, so that it is a
    rating that a judge gave.
    """
    by_judge = ratings_by_judge(results, stage)
    counting = [by_judge[judge] for judge in _counting_judges(list(by_judge))]
    keys = dict.fromkeys(key for own in counting for key in own)
    return {key: median_low([own[key] for own in counting if key in own]) for key in keys}


def _counting_judges(judges: Sequence[str]) -> Sequence[str]:
    """Return the judges whose verdicts count: all of three or more, otherwise the first."""
    return judges if len(judges) > 2 else judges[:1]


def unread_of(results: Mapping[str, PartResult], stage: str) -> set[str]:
    """Return the item keys of a stage with an unparsed verdict and no parsed verdict.

    Only judges whose verdicts count are considered.
    """
    judges = _counting_judges(judges_of(results, stage))
    names = [name for name in (stage, stage + RETRY) if name in results]
    unread = {item.key for name in names for item in _unparsed_items(results[name], judges)}
    return unread - set(ratings_of(results, stage))


def verdicts_of(results: Mapping[str, PartResult], stage: str) -> dict[str, tuple[int, int, int]]:
    """Return for each judge the number of verdicts requested, parsed at once, and parsed on retry.

    Empty if the stage was not run.
    """
    if stage not in results:
        return {}
    requested = {a.cell.variant.item.key for a in results[stage].cells()}
    first_try = ratings_by_judge({stage: results[stage]}, stage)
    parsed = ratings_by_judge(results, stage)
    return {
        judge: (len(requested), len(first_try[judge]), len(parsed[judge]) - len(first_try[judge]))
        for judge in parsed
    }
