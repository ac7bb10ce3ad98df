"""Selected cells of a run: prompts, responses and extracted answers, by their outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import Literal

import numpy as np

from falter.analysis.table import (
    CUT_PROMPT,
    STATUSES,
    Table,
    judged_cells,
    score_cell,
    scored_cells,
)
from falter.records.chats import reply_text
from falter.records.figures import Example, Segment, Side
from falter.records.interfaces import Scorer
from falter.records.types import BASELINE, Panel, Prompt, Run, Score, Section
from falter.scorers.base import second_reader
from falter.scorers.short_answers import aliases
from falter.store.store import Store, StoredCell
from falter.text.spans import diff_spans

# Examples: items whose answer flipped when the prompt changed, with the edits marked.


MAX_LOSING_RECIPES = 6
MAX_GAINING_RECIPES = 3
MAX_ITEMS_PER_RECIPE = 2


def examples(table: Table, store: Store, run: Run, scorer: Scorer) -> tuple[Example, ...]:
    """Return lost items of the recipes that cost most, and gained items of those that gain most.

    There are up to two items of each recipe: of `MAX_LOSING_RECIPES` and `MAX_GAINING_RECIPES`
    recipes. Where log-likelihoods are known, the target's largest fall against the best other
    option comes first. Otherwise the smallest edit comes first.
    """
    places = _choose_cells(table)
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
        pair = cells[item, baseline], cells[item, table.recipes[column].id]
        clean_response = pair[0].response if scorer.needs_baseline else None
        before, after = (Judged(cell, score_cell(cell, scorer, clean_response)) for cell in pair)
        chosen.append(example_of(before, after, with_demonstrations=with_demonstrations))
    return tuple(chosen)


def _choose_cells(table: Table) -> list[tuple[int, int]]:
    """Return rows and columns of answers that flipped: lost answers first, then gained ones.

    The order depends only on the data.
    """
    edits = table.edits
    if edits is None:
        return []
    scores, before = table.scores()[:, :, 0], table.scores()[:, 0, 0]
    changed = table.status[:, :, 0] == STATUSES.index("changed")
    taken: set[int] = set()
    places: list[tuple[int, int]] = []
    for sign, value, recipes in ((1.0, 1.0, MAX_LOSING_RECIPES), (-1.0, 0.0, MAX_GAINING_RECIPES)):
        flipped = (before[:, None] == value) & (scores == 1.0 - value) & changed
        change = sign * np.where(changed, before[:, None] - scores, 0.0)
        total = np.nansum(change, axis=0)
        falls = sign * np.nan_to_num(table.margin[:, :1, 0] - table.margin[:, :, 0])
        for column in sorted(table.columns, key=lambda n: -total[n])[:recipes]:
            rows = [int(row) for row in np.flatnonzero(flipped[:, column])]
            rows.sort(key=lambda row: (row in taken, -falls[row, column], edits[row, column, 0]))
            for row in rows[:MAX_ITEMS_PER_RECIPE]:
                places.append((row, column))
                taken.add(row)
    return places


@dataclass(frozen=True, slots=True)
class Judged:
    """A cell with its score and the second extractor's score, if there is one."""

    cell: StoredCell
    score: Score | None
    second: Score | None = None


def example_of(before: Judged, after: Judged, *, with_demonstrations: bool = False) -> Example:
    """Return two cells of an item as an example; `before` is the clean prompt's cell."""
    original, prompt = before.cell.variant.prompt, after.cell.variant.prompt
    demonstrations = _demonstration_segments(original, prompt) if with_demonstrations else ()
    target = prompt.target
    expected = (
        f"{prompt.labels[target]}. {prompt.choices[target]}"
        if isinstance(target, int) and prompt.choices
        else " or ".join(aliases(str(target)))
    )
    return Example(
        item=before.cell.variant.item.key,
        recipe=after.cell.variant.recipe.label,
        expected=expected,
        segments=tuple(_merged_segments([*demonstrations, *segments(original, prompt)])),
        baseline=_example_side(before),
        perturbed=_example_side(after),
    )


def _example_side(judged: Judged) -> Side:
    cell, score, second = judged.cell, judged.score, judged.second
    response, prompt = cell.response, cell.variant.prompt
    right = score is not None and score.value == 1.0
    if response is None:
        outcome = "failed" if cell.failure else "missing"
        return Side(answer=cell.failure or "no answer", right=False, outcome=outcome)
    if not response.scores:
        return Side(
            answer=reply_text(response),
            right=right,
            read=(score.extracted if score is not None else None) or "",
            outcome=_outcome_text(score),
            tier=(score.tier if score is not None else None) or "",
            second="" if second is None else f"{second.scorer}: {judgement(second)}",
        )
    detail = tuple(
        (text, scored.logprob)
        for text, scored in zip(prompt.choices, response.scores, strict=False)
    )
    label = score.extracted if score is not None else None
    answer = prompt.choices[prompt.labels.index(label)] if label in prompt.labels else ""
    return Side(answer=f"{label}. {answer}", right=right, detail=detail)


def judgement(score: Score) -> str:
    """Return `right`, `wrong`, `in between`, or the outcome of a response without a score."""
    if score.value is None:
        return score.outcome
    return {1.0: "right", 0.0: "wrong"}.get(score.value, "in between")


def _outcome_text(score: Score | None) -> str:
    """Return the reason that an answer is neither right nor wrong; empty if it is either."""
    if score is None or score.value is None:
        return "missing" if score is None else score.outcome
    return "" if score.value in (0.0, 1.0) else f"score {score.value:.3g}"


def segments(before: Prompt, after: Prompt) -> list[Segment]:
    """Return two versions of a prompt as one list of unchanged and edited segments."""
    return _merged_segments(_section_segments(before.sections, after.sections))


def _demonstration_segments(before: Prompt, after: Prompt) -> Iterator[Segment]:
    """Yield the segments of the demonstrations, each with its answer."""
    for old, new in zip(before.demonstrations, after.demonstrations, strict=False):
        yield from _section_segments(old.sections, [s for s in new.sections if s.kind != "system"])
        answer = f"{after.delimiter}{new.answer}\n\n"
        yield Segment(kind="same", before=answer, after=answer)


def _section_segments(before: Sequence[Section], after: Sequence[Section]) -> list[Segment]:
    originals = {section.name: section.text for section in before}
    edited: list[Segment] = []
    for section in after:
        original = originals.get(section.name, "")
        if section.opens and edited:
            edited.append(Segment(kind="same", before="\n\n", after="\n\n"))
        try:
            parts = diff_spans(original, section)
        except ValueError:  # rewritten as a whole, without edits
            edited.append(Segment(kind="edit", before=original, after=section.text))
            continue
        edited += [Segment(kind=p.kind, before=p.before, after=p.after) for p in parts]
    return edited


def _merged_segments(parts: Sequence[Segment]) -> list[Segment]:
    """Return the segments, with adjacent unchanged segments merged."""
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
    """One response with its clean prompt's; `example` holds both prompts and responses.

    `outcome`, `value` and `tier` belong to this response, `before` is the clean prompt's value.
    `reason` explains a missing value, or lists the score of each field.
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
    tier: str
    reason: str
    example: Example


def is_of_kind(kind: AnswerKind, score: Score | None, before: Score | None) -> bool:
    """Return True if a response is of a kind. `before` is the clean prompt's score.

    It is `lost` if its value is lower by more than 0.5, and `gained` if it is higher by more than
    0.5. Without a value, a response counts as 0 for `lost` and is never `gained`. Failed and
    missing responses are never `lost`. Any other kind is an outcome.
    """
    outcome = "missing" if score is None else score.outcome
    if kind not in ("lost", "gained"):
        return outcome == kind
    value, clean = (None if each is None else each.value for each in (score, before))
    if kind == "gained":
        return value is not None and value - (clean or 0.0) > 0.5
    is_lost = clean is not None and clean - (value or 0.0) > 0.5
    return is_lost and outcome not in ("failed", "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadReply:
    """A response that the scorer could not parse, its frequency, and scorers that can parse it."""

    text: str
    count: int
    read_by: tuple[str, ...] = ()


def cells_read_twice(
    store: Store,
    run: Run,
    scorers: Mapping[str, Scorer],
    seconds: Sequence[Scorer | None],
    *,
    sections: bool | Literal["texts"] = False,
) -> Iterator[tuple[StoredCell, Score | None, Score | None]]:
    """Yield every planned cell with its score and the score of its panel's second scorer.

    A response to a silently truncated prompt has failed for both. A panel without a second scorer
    has None.
    """
    readers = [*(second for second in seconds if second is not None), *scorers.values()]
    sections = any(reader.needs_prompt for reader in readers) or sections
    # Both iterators read the cells chunk by chunk, so `tee` buffers little.
    cells, again = tee(store.cells(run, sections=sections))
    first = scored_cells(store, run, scorers, cells=cells)
    for (cell, score), (_, second) in zip(first, judged_cells(again, run, seconds), strict=True):
        is_cut = score is not None and (score.reason or "").startswith(CUT_PROMPT)
        yield cell, score, score if is_cut else second


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
    most: int,
) -> tuple[list[Answer], int]:
    """Return the first `most` matching responses of a run in plan order, and the number of all.

    Empty filters match everything. Responses to the clean prompt match unless `kinds` compare with
    it.
    """
    clean: Judged | None = None
    matches: list[Answer] = []
    count = 0
    seconds = [second_reader(scorers[panel.scorer]) for panel in run.panels]
    for cell, score, second in cells_read_twice(store, run, scorers, seconds, sections=True):
        variant, panel = cell.variant, run.panels[cell.panel]
        judged = Judged(cell, score, second)
        if variant.recipe.id == BASELINE.id and cell.repeat == 0:
            clean = judged
        if model not in (None, panel.model.label) or task not in (None, panel.task):
            continue
        if recipe not in (None, variant.recipe.label) or (items and variant.item.key not in items):
            continue
        if clean is None or not _same_item(clean.cell, cell):
            clean = None
        before = None if clean is None else clean.score
        if kinds and not any(is_of_kind(kind, score, before) for kind in kinds):
            continue
        count += 1
        if count <= most:
            matches.append(_answer_record(judged, clean, panel))
    return matches, count


def unread_replies(
    unread: Iterable[tuple[StoredCell, Score | None]], others: Sequence[Scorer], most: int = 10
) -> tuple[tuple[UnreadReply, ...], dict[str, int]]:
    """Return the most frequent unparsed responses, and the number that each scorer can parse."""
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


def _answer_record(judged: Judged, clean: Judged | None, panel: Panel) -> Answer:
    cell, score = judged.cell, judged.score
    before = None if clean is None else clean.score
    return Answer(
        model=panel.model.label,
        task=panel.task,
        scorer=panel.scorer,
        item=cell.variant.item.key,
        recipe=cell.variant.recipe.label,
        draw=cell.variant.draw,
        repeat=cell.repeat,
        outcome="missing" if score is None else score.outcome,
        value=None if score is None else score.value,
        before=None if before is None else before.value,
        tier=(score.tier if score is not None else None) or "",
        reason=(score.reason if score is not None else None) or cell.failure or "",
        example=example_of(clean or judged, judged),
    )
