"""What was asked, answered and read: the cells of a run, picked by what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from falter.analysis._examples import example_of
from falter.analysis._table import score_cell, scored_cells
from falter.core.interfaces import Scorer
from falter.core.records import BASELINE, Run, Score
from falter.figures import Example
from falter.store import Store, StoredCell

__all__ = ["Answer", "AnswerKind", "UnreadReply", "answers", "unread_replies"]

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
