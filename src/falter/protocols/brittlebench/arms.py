"""The two arms of a reasoning part, without and with a chain of thought, and the judge's task."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.table import OUTCOMES, UNREADABLE, Table
from falter.protocols.judging import quoted, rubric
from falter.protocols.protocol import PartResult, ScoredCell
from falter.records.errors import TaskError
from falter.records.ids import short
from falter.records.types import Estimate, Item, Prompt, Recipe
from falter.scorers.judging import DIMENSIONS
from falter.scorers.replies import without_sequel
from falter.tasks import Template
from falter.tasks.task import Task

CLEAN = "clean"
ALL_TASKS = "all tasks"
SCORED = OUTCOMES.index("scored")

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Column pairs of a run whose recipes differ only by a chain of thought, the clean pair first.

    `names` are the labels of the conditions: CLEAN, then the perturbations. `alone` are the labels
    of recipes without a partner.
    """

    names: tuple[str, ...]
    plain: tuple[int, ...]
    thought: tuple[int, ...]
    alone: tuple[str, ...]


def pairs_of(recipes: Sequence[Recipe]) -> Pairs | None:
    """Return the pairs of recipes that differ by a chain of thought; None without a clean pair.

    The partner of a recipe has the same steps, plus steps that ask for reasoning. If there are two
    partners (the chain of thought before or after a perturbation), the first one counts.
    """
    plain: dict[str, int] = {}
    thought: dict[str, int] = {}
    for n, recipe in enumerate(recipes):
        (thought if recipe.reasons else plain).setdefault(_without_reasoning(recipe), n)
    shared = [key for key in plain if key in thought]
    clean = next((key for key in shared if not recipes[plain[key]].perturbs), None)
    if clean is None:
        return None
    keys = [clean, *(key for key in shared if key != clean)]
    used = {column for key in keys for column in (plain[key], thought[key])}
    return Pairs(
        names=(CLEAN, *(recipes[plain[key]].label for key in keys[1:])),
        plain=tuple(plain[key] for key in keys),
        thought=tuple(thought[key] for key in keys),
        alone=tuple(r.label for n, r in enumerate(recipes) if r.perturbs and n not in used),
    )


def reasoning_of(answered: ScoredCell) -> str | None:
    """Return the chain of thought of a response; None if the prompt did not ask for one.

    If some step of the recipe had nothing to change, the prompt is the clean one.
    """
    cell = answered.cell
    variant = cell.variant
    if cell.response is None or variant.status != "changed" or not variant.recipe.reasons:
        return None
    text = without_sequel(cell.response.text or "", variant.prompt, reasoned=True).strip()
    return text or None


def _without_reasoning(recipe: Recipe) -> str:
    """Return the id of a recipe without its reasoning steps; its partner has the same id."""
    sampling = {k: v for k, v in (recipe.sampling or {}).items() if k != "max_tokens"}
    steps = tuple(step for step in recipe.steps if not step.reasons)
    return replace(recipe, steps=steps, sampling=sampling or None).id


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arms:
    """One model's scores and outcomes in both arms.

    `plain` and `thought` (without and with a chain of thought) have shape (items, conditions,
    realisations), and so have their outcomes. Condition 0 is the clean prompt. Scores are NaN if
    they are missing, or if a step of the recipe changed nothing in the item. In the second case the
    outcome is -1. `units` holds each item's independent unit: the item or its cluster. `rows` holds
    each item's task.
    """

    model: str
    task: str
    names: tuple[str, ...]
    plain: Floats
    thought: Floats
    plain_outcome: NDArray[np.int8]
    thought_outcome: NDArray[np.int8]
    units: tuple[Hashable, ...]
    rows: tuple[str, ...]
    clustered: bool

    @property
    def perturbations(self) -> tuple[str, ...]:
        return self.names[1:]

    @property
    def clusters(self) -> tuple[Hashable, ...] | None:
        """The cluster of every item; None if the items are independent."""
        return self.units if self.clustered else None

    def cells(self, *arrays: NDArray[Any]) -> tuple[list[NDArray[Any]], list[Hashable] | None]:
        """Return the arrays as vectors over cells, and the unit of every cell.

        The units are None if every cell is a unit.
        """
        each = int(np.prod(arrays[0].shape[1:]))
        vectors = [array.reshape(-1) for array in arrays]
        if each == 1 and not self.clustered:
            return vectors, None
        return vectors, [unit for unit in self.units for _ in range(each)]

    def only(self, places: Sequence[int]) -> Arms:
        """Return the arms with only the conditions at `places`."""
        columns = list(places)
        return replace(
            self,
            names=tuple(self.names[n] for n in columns),
            plain=self.plain[:, columns],
            thought=self.thought[:, columns],
            plain_outcome=self.plain_outcome[:, columns],
            thought_outcome=self.thought_outcome[:, columns],
        )

    def both_read(self) -> Arms:
        """Return the arms with NaN unless a cell was scored in both arms, as the paper counts."""
        both_scored = (self.plain_outcome == SCORED) & (self.thought_outcome == SCORED)
        return replace(
            self,
            plain=np.where(both_scored, self.plain, np.nan),
            thought=np.where(both_scored, self.thought, np.nan),
        )

    def counted_wrong(self) -> Arms:
        """Return the arms with a score of 0 for every unparsed answer."""
        plain, thought = (
            np.where(np.isin(outcome, UNREADABLE), 0.0, values)
            for outcome, values in (
                (self.plain_outcome, self.plain),
                (self.thought_outcome, self.thought),
            )
        )
        return replace(self, plain=plain, thought=thought)


def counts_unread_as_wrong(result: PartResult) -> bool:
    """Return True if the run counts unparsed answers as wrong, False if it leaves them out."""
    return bool(result.run.experiment["unparsed"] == "wrong")


def arms_of(result: PartResult, pairs: Pairs) -> Iterator[tuple[Arms, ...]]:
    """Yield for every model its arms on each task, then on all tasks if there are several.

    In the arms on all tasks, every item has the same weight.
    """
    strict = counts_unread_as_wrong(result)
    names = model_names(result.tables)
    for identity, model in names.items():
        tables = [table for table in result.tables if table.panel.model.id == identity]
        by_task = [_arms(table, model, pairs, strict) for table in tables]
        yield (*by_task, _combined_arms(by_task)) if len(by_task) > 1 else tuple(by_task)


def _arms(table: Table, model: str, pairs: Pairs, strict: bool) -> Arms:
    plain, thought = list(pairs.plain), list(pairs.thought)
    changed = table.changed()
    # A cell counts only if its recipe changed the prompt in both arms. Otherwise the arms would
    # compare prompts that differ in more than the chain of thought.
    valid = changed[:, thought]
    valid[:, 1:] &= changed[:, plain[1:]]
    values = table.scores(strict=strict)
    task = table.panel.task
    units = table.items if table.clusters is None else table.clusters
    return Arms(
        model=model,
        task=task,
        names=pairs.names,
        plain=np.where(valid[:, :, None], values[:, plain], np.nan),
        thought=np.where(valid[:, :, None], values[:, thought], np.nan),
        plain_outcome=_outcomes_of(table, plain, valid),
        thought_outcome=_outcomes_of(table, thought, valid),
        units=tuple((task, unit) for unit in units),
        rows=(task,) * len(table.items),
        clustered=table.clusters is not None,
    )


def _outcomes_of(table: Table, columns: list[int], valid: Flags) -> NDArray[np.int8]:
    """Return the outcomes of some columns, -1 for cells that are not `valid`."""
    outcome = table.outcome[:, columns].astype(np.int8)
    return np.where(valid[:, :, None], outcome, np.int8(-1))


def _combined_arms(arms: Sequence[Arms]) -> Arms:
    return replace(
        arms[0],
        task=ALL_TASKS,
        plain=np.concatenate([a.plain for a in arms]),
        thought=np.concatenate([a.thought for a in arms]),
        plain_outcome=np.concatenate([a.plain_outcome for a in arms]),
        thought_outcome=np.concatenate([a.thought_outcome for a in arms]),
        units=tuple(unit for a in arms for unit in a.units),
        rows=tuple(row for a in arms for row in a.rows),
        clustered=any(a.clustered for a in arms),
    )


class Signer:
    """A callable that adds group, seed and a signature of the run to an estimate."""

    def __init__(self, result: PartResult, seed: int) -> None:
        self.run, self.seed = result.run, seed
        self.strict = counts_unread_as_wrong(result)

    @property
    def unread(self) -> str:
        """The words for the treatment of unparsed answers: "wrong" or "left out"."""
        return "wrong" if self.strict else "left out"

    def __call__(self, estimate: Estimate, **group: str) -> Estimate:
        run = self.run
        parts = (
            f"falter {run.version}",
            f"run {short(run.id)}",
            *group.values(),
            f"draws {run.draws}",
            f"repeats {run.repeats}",
            f"unparsed {'wrong' if self.strict else 'excluded'}",
            f"level {estimate.level:g}",
            f"seed {self.seed}",
        )
        return replace(estimate, group=group, seed=self.seed, signature=" | ".join(parts))


# The judge's task


TASK = "reasoning_quality"
RATINGS = "ratings_wanted"
MAX_QUESTION_CHARACTERS, MAX_REASONING_CHARACTERS = 12_000, 8_000
_PRINTED_KINDS = ("instruction", "input", "document")

_SECTION_TEXTS = {
    "instruction": rubric("reasoning"),
    "input": "The question:\n{question}\n{options}\nThe reasoning:\n{reasoning}\n",
    "output_format": (
        f"Reply with one JSON object and nothing else. Its keys are {{{RATINGS}}}; every value is "
        "a whole number from 0 to 100."
    ),
}


def quality_task(source: PartResult) -> Task:
    """Return the judge's task: an item for every different response with a chain of thought.

    The item's key is the request's key. The judge sees the clean question, so that it cannot rate
    the perturbed prompt. The reasoning may still echo a perturbed word. The judge sees the options
    as the model saw them, because the reasoning names their labels.

    The judge does not see the correct option. Otherwise it would rate the answer instead of the
    reasoning, and quality could not be compared with correctness. Raises TaskError without any
    reasoning.
    """
    questions: dict[tuple[str, str], str] = {}
    for scored_cell in source.cells():
        variant = scored_cell.cell.variant
        if not variant.recipe.perturbs:
            place = scored_cell.panel.task, variant.item.key
            questions.setdefault(place, _question_text(variant.prompt, variant.item))
    items: dict[str, Item] = {}
    for scored_cell in source.cells():
        cell, text = scored_cell.cell, reasoning_of(scored_cell)
        if text is None or cell.key in items:
            continue
        item = cell.variant.item
        question = questions.get((scored_cell.panel.task, item.key)) or _fields_text(item)
        items[cell.key] = Item(
            task=TASK,
            key=cell.key,
            fields={
                "question": quoted(question, MAX_QUESTION_CHARACTERS),
                "options": _options_text(cell.variant.prompt, item),
                "reasoning": quoted(text, MAX_REASONING_CHARACTERS),
                RATINGS: ", ".join(DIMENSIONS),
            },
        )
    if not items:
        raise TaskError(
            f"The part '{source.part.name}' has no reasoning to judge",
            hint="judge a part with a chain of thought that has at least one response",
        )
    return Task(
        name=TASK,
        items=tuple(items.values()),
        templates={"open": Template.parse(_SECTION_TEXTS)},
        scorer=TASK,
    )


def _question_text(prompt: Prompt, item: Item) -> str:
    """Return instruction, input and documents of a prompt; the item's fields if there are none."""
    text = "".join(s.text for s in prompt.sections if s.kind in _PRINTED_KINDS).strip()
    return text or _fields_text(item)


def _fields_text(item: Item) -> str:
    return "\n\n".join(item.fields.values())


def _options_text(prompt: Prompt, item: Item) -> str:
    """Return a heading and the options with the order and labels that the model saw.

    If the prompt's options do not match the item's, the item's order with letters is used. The text
    is empty without options.
    """
    if not item.choices:
        return ""
    choices, labels = prompt.choices, prompt.labels
    if sorted(choices) != sorted(item.choices) or len(labels) != len(choices):
        choices, labels = item.choices, tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(item.choices)])
    lines = (f"{a}. {text}" for a, text in zip(labels, choices, strict=True))
    return f"\nThe options:\n{quoted(chr(10).join(lines), MAX_QUESTION_CHARACTERS)}\n"
