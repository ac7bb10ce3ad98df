"""What was asked, answered and read: the cells of a run, picked by what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from falter.analysis.table import STATUSES, Table, score_cell, scored_cells
from falter.records.figures import Example, Segment, Side
from falter.records.interfaces import Scorer
from falter.records.types import BASELINE, Prompt, Response, Run, Score, Section
from falter.store.store import Store, StoredCell
from falter.text.spans import diff_spans

# Examples: items whose answer turned when the prompt changed, with the edits marked.


MOST_RECIPES = 6
GAINING_RECIPES = 3
ITEMS_OF_EACH = 2


def examples(table: Table, store: Store, run: Run, scorer: Scorer) -> tuple[Example, ...]:
    """Up to two lost items of each of the six recipes that cost most, and of three that gain most.

    The farthest fall of the target against the other options first, where likelihoods are known;
    else the smallest change.
    """
    places = _choose(table)
    if not places:
        return ()
    items = {table.item_ids[row] for row, _ in places}
    cells: dict[tuple[str, str], StoredCell] = {}
    for cell in store.cells(run, items=items, panel=table.place):
        if cell.variant.draw == 0:
            cells.setdefault((cell.variant.item.id, cell.variant.recipe.id), cell)
    baseline = table.recipes[0].id
    with_demonstrations = bool(run.experiment.get("perturb_demonstrations"))
    chosen = []
    for row, column in places:
        item = table.item_ids[row]
        before, after = cells[item, baseline], cells[item, table.recipes[column].id]
        chosen.append(example_of(before, after, scorer, with_demonstrations=with_demonstrations))
    return tuple(chosen)


def _choose(table: Table) -> list[tuple[int, int]]:
    """Rows and columns of answers that turned: first lost, then gained.

    The order depends on nothing but the data.
    """
    edits = table.edits
    if edits is None:
        return []
    scores, before = table.scores()[:, :, 0], table.scores()[:, 0, 0]
    changed = table.status[:, :, 0] == STATUSES.index("changed")
    used: set[int] = set()
    places: list[tuple[int, int]] = []
    for sign, was, recipes in ((1.0, 1.0, MOST_RECIPES), (-1.0, 0.0, GAINING_RECIPES)):
        turned = (before[:, None] == was) & (scores == 1.0 - was) & changed
        change = sign * np.where(changed, before[:, None] - scores, 0.0)
        total = np.nansum(change, axis=0)
        fall = sign * np.nan_to_num(table.margin[:, :1, 0] - table.margin[:, :, 0])
        for column in sorted(table.columns, key=lambda n: -total[n])[:recipes]:
            rows = [int(row) for row in np.flatnonzero(turned[:, column])]
            rows.sort(key=lambda row: (row in used, -fall[row, column], edits[row, column, 0]))
            for row in rows[:ITEMS_OF_EACH]:
                places.append((row, column))
                used.add(row)
    return places


def example_of(
    before: StoredCell, after: StoredCell, scorer: Scorer, *, with_demonstrations: bool = False
) -> Example:
    """What was asked and answered at two cells of an item, the clean one first."""
    original, prompt = before.variant.prompt, after.variant.prompt
    demonstrations = _demonstrations(original, prompt) if with_demonstrations else ()
    target = prompt.target
    expected = (
        f"{prompt.labels[target]}. {prompt.choices[target]}"
        if isinstance(target, int) and prompt.choices
        else str(target)
    )
    return Example(
        item=before.variant.item.key,
        recipe=after.variant.recipe.label,
        expected=expected,
        segments=tuple(_joined([*demonstrations, *segments(original, prompt)])),
        baseline=_side(before, scorer, before.response),
        perturbed=_side(after, scorer, before.response),
    )


def _side(cell: StoredCell, scorer: Scorer, baseline: Response | None) -> Side:
    score = score_cell(cell, scorer, baseline if scorer.needs_baseline else None)
    response, prompt = cell.response, cell.variant.prompt
    right = score is not None and score.value == 1.0
    if response is None:
        outcome = "failed" if cell.failure else "missing"
        return Side(answer=cell.failure or "no answer", right=False, outcome=outcome)
    if not response.scores:
        read = (score.extracted if score is not None else None) or ""
        return Side(answer=response.text or "", right=right, read=read, outcome=_outcome(score))
    detail = tuple(
        (text, scored.logprob)
        for text, scored in zip(prompt.choices, response.scores, strict=False)
    )
    label = score.extracted if score is not None else None
    answer = prompt.choices[prompt.labels.index(label)] if label in prompt.labels else ""
    return Side(answer=f"{label}. {answer}", right=right, detail=detail)


def _outcome(score: Score | None) -> str:
    """Why an answer is neither right nor wrong; empty if it is."""
    if score is None or score.value is None:
        return "missing" if score is None else score.outcome
    return "" if score.value in (0.0, 1.0) else f"score {score.value:.3g}"


def segments(before: Prompt, after: Prompt) -> list[Segment]:
    """Two versions of a prompt as one list of stretches that stayed or were edited."""
    return _joined(_segments(before.sections, after.sections))


def _demonstrations(before: Prompt, after: Prompt) -> Iterator[Segment]:
    """The same for the demonstrations, each with its answer."""
    for old, new in zip(before.demonstrations, after.demonstrations, strict=False):
        yield from _segments(old.sections, [s for s in new.sections if s.kind != "system"])
        answer = f"{after.delimiter}{new.answer}\n\n"
        yield Segment(kind="same", before=answer, after=answer)


def _segments(before: Sequence[Section], after: Sequence[Section]) -> list[Segment]:
    originals = {section.name: section.text for section in before}
    edited: list[Segment] = []
    for section in after:
        original = originals.get(section.name, "")
        try:
            parts = diff_spans(original, section)
        except ValueError:  # rewritten as a whole, without edits
            edited.append(Segment(kind="edit", before=original, after=section.text))
            continue
        edited += [Segment(kind=p.kind, before=p.before, after=p.after) for p in parts]
    return edited


def _joined(parts: Sequence[Segment]) -> list[Segment]:
    """The parts, with neighbours that stayed the same made one."""
    joined: list[Segment] = []
    for part in parts:
        if joined and joined[-1].kind == part.kind == "same":
            last = joined.pop()
            part = Segment(
                kind="same", before=last.before + part.before, after=last.after + part.after
            )
        joined.append(part)
    return joined


AnswerKind = Literal["lost", "gained", "unparsed", "truncated", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One cell beside its item's clean prompt; `example` holds the prompts and both answers.

    `outcome` and `value` are those of this cell, `before` is the clean prompt's value. `reason`
    says why there is no value.
    """

    model: str
    task: str
    scorer: str
    item: str
    recipe: str
    draw: int
    repeat: int
    outcome: str
    value: float | None
    before: float | None
    reason: str
    example: Example

    @property
    def is_lost(self) -> bool:
        """Whether the item was right as asked and is not any more."""
        return self.before is not None and self.before - (self.value or 0.0) > 0.5

    @property
    def is_gained(self) -> bool:
        """Whether it was not right as asked and is now."""
        return self.value is not None and self.value - (self.before or 0.0) > 0.5

    def of_kind(self, kind: AnswerKind) -> bool:
        """Whether the answer is of a kind."""
        if kind == "lost":
            return self.is_lost and self.outcome not in ("failed", "missing")
        return self.is_gained if kind == "gained" else self.outcome == kind


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadReply:
    """A reply that the scorer could not read, how often it came, and who would read it."""

    text: str
    count: int
    read_by: tuple[str, ...] = ()


def answers(
    store: Store,
    run: Run,
    scorers: Mapping[str, Scorer],
    *,
    kinds: Sequence[AnswerKind] = (),
    recipe: str | None = None,
    items: Sequence[str] = (),
    model: str | None = None,
    task: str | None = None,
) -> Iterator[Answer]:
    """The answers of a run in plan order: those of the kinds, or all; of a recipe, items, a panel.

    The clean prompt's own answers are among them where no kind needs a comparison.
    """
    clean: tuple[StoredCell, Score | None] | None = None
    for cell, score in scored_cells(store, run, scorers, sections=True):
        variant, panel = cell.variant, run.panels[cell.panel]
        if variant.recipe.id == BASELINE.id and cell.repeat == 0:
            clean = (cell, score)
        if model not in (None, panel.model.label) or task not in (None, panel.task):
            continue
        if recipe not in (None, variant.recipe.label) or (items and variant.item.key not in items):
            continue
        if clean is None or not _same_item(clean[0], cell):
            clean = None
        answer = _answer(cell, score, clean, run, scorers[panel.scorer])
        if not kinds or any(answer.of_kind(kind) for kind in kinds):
            yield answer


def unread_replies(
    unread: Iterable[tuple[StoredCell, Score | None]], others: Sequence[Scorer], most: int = 10
) -> tuple[tuple[UnreadReply, ...], dict[str, int]]:
    """The commonest unread replies, and how many replies each of the other scorers would read."""
    counts: Counter[str] = Counter()
    readers: dict[str, set[str]] = {}
    read_by: Counter[str] = Counter()
    for cell, _ in unread:
        text = (cell.response.text or "" if cell.response is not None else "").strip()
        counts[text] += 1
        for scorer in others:
            score = score_cell(cell, scorer)
            if score is not None and score.outcome == "scored":
                read_by[scorer.name] += 1
                readers.setdefault(text, set()).add(scorer.name)
    commonest = tuple(
        UnreadReply(text=text, count=count, read_by=tuple(sorted(readers.get(text, ()))))
        for text, count in counts.most_common(most)
    )
    return commonest, dict(read_by.most_common())


def _same_item(clean: StoredCell, cell: StoredCell) -> bool:
    return (clean.panel, clean.variant.item.id) == (cell.panel, cell.variant.item.id)


def _answer(
    cell: StoredCell,
    score: Score | None,
    clean: tuple[StoredCell, Score | None] | None,
    run: Run,
    scorer: Scorer,
) -> Answer:
    before, clean_score = clean if clean is not None else (cell, None)
    panel, variant = run.panels[cell.panel], cell.variant
    return Answer(
        model=panel.model.label,
        task=panel.task,
        scorer=panel.scorer,
        item=variant.item.key,
        recipe=variant.recipe.label,
        draw=variant.draw,
        repeat=cell.repeat,
        outcome="missing" if score is None else score.outcome,
        value=None if score is None else score.value,
        before=None if clean_score is None else clean_score.value,
        reason=(score.reason if score is not None else None) or cell.failure or "",
        example=example_of(before, cell, scorer),
    )
