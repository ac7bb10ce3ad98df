"""The worst examples: items answered rightly until the prompt changed, with the edits marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from falter.analysis._results import Example, Segment, Side
from falter.analysis._table import STATUSES, Table, score_cell
from falter.core.interfaces import Scorer
from falter.core.records import Prompt, Run, Section
from falter.store import Store, StoredCell
from falter.text import diff_spans

__all__ = ["examples", "segments"]

RECIPES = 6
EACH = 2


def examples(
    table: Table, store: Store, run: Run, scorer: Scorer, columns: Sequence[int]
) -> tuple[Example, ...]:
    """Up to two items of each of the six recipes that cost most.

    The farthest fall of the target against the other options first, where likelihoods are known;
    else the smallest change.
    """
    wanted = _choose(table, columns)
    if not wanted:
        return ()
    items = {table.item_ids[row] for row, _ in wanted}
    panel = run.panels.index(table.panel)
    cells: dict[tuple[str, str], StoredCell] = {}
    for cell in store.cells(run, items=items):
        if cell.panel == panel and cell.variant.draw == 0:
            cells.setdefault((cell.variant.item.id, cell.variant.recipe.id), cell)
    baseline = table.recipes[0].id
    out = []
    for row, column in wanted:
        item = table.item_ids[row]
        before, after = cells[item, baseline], cells[item, table.recipes[column].id]
        shown = bool(run.experiment.get("perturb_demonstrations"))
        out.append(_example(before, after, scorer, shown=shown))
    return tuple(out)


def _choose(table: Table, columns: Sequence[int]) -> list[tuple[int, int]]:
    """Rows and columns of answers that turned wrong. The order depends on nothing but the data."""
    value = table.strict()[:, :, 0]
    real = table.status[:, :, 0] == STATUSES.index("changed")
    before = value[:, 0]
    lost = (before[:, None] == 1.0) & (value == 0.0) & real
    net = {n: float(np.nansum(np.where(real[:, n], before - value[:, n], 0.0))) for n in columns}
    chosen: list[tuple[int, int]] = []
    if table.edits is None:
        return chosen
    edits = table.edits
    used: set[int] = set()
    for column in sorted(columns, key=lambda n: -net[n])[:RECIPES]:
        rows = [int(row) for row in np.flatnonzero(lost[:, column])]
        fallen = np.nan_to_num(table.margin[:, 0, 0] - table.margin[:, column, 0])
        rows.sort(key=lambda row: (row in used, -fallen[row], edits[row, column, 0]))
        for row in rows[:EACH]:
            chosen.append((row, column))
            used.add(row)
    return chosen


def _example(before: StoredCell, after: StoredCell, scorer: Scorer, *, shown: bool) -> Example:
    first, prompt = before.variant.prompt, after.variant.prompt
    parts = [*(_shown(first, prompt) if shown else ()), *segments(first, prompt)]
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
        segments=tuple(_joined(parts)),
        baseline=_side(before, scorer),
        perturbed=_side(after, scorer),
    )


def _side(cell: StoredCell, scorer: Scorer) -> Side:
    score, response, prompt = score_cell(cell, scorer), cell.response, cell.variant.prompt
    right = score is not None and score.value == 1.0
    if response is None:
        return Side(answer=cell.failure or "no answer", right=False)
    if not response.scores:
        return Side(answer=response.text or "", right=right)
    detail = tuple(
        (text, scored.logprob)
        for text, scored in zip(prompt.choices, response.scores, strict=False)
    )
    label = score.extracted if score is not None else None
    answer = prompt.choices[prompt.labels.index(label)] if label in prompt.labels else ""
    return Side(answer=f"{label}. {answer}", right=right, detail=detail)


def segments(before: Prompt, after: Prompt) -> list[Segment]:
    """Two versions of a prompt as one list of stretches that stayed or were edited."""
    return _joined(_segments(before.sections, after.sections))


def _shown(before: Prompt, after: Prompt) -> Iterator[Segment]:
    """The same for the demonstrations, each with its answer."""
    for old, new in zip(before.demonstrations, after.demonstrations, strict=False):
        yield from _segments(old.sections, [s for s in new.sections if s.kind != "system"])
        answer = f"{after.delimiter}{new.answer}\n\n"
        yield Segment(kind="same", before=answer, after=answer)


def _segments(before: Sequence[Section], after: Sequence[Section]) -> list[Segment]:
    originals = {section.name: section.text for section in before}
    out: list[Segment] = []
    for section in after:
        original = originals.get(section.name, "")
        try:
            parts = diff_spans(original, section)
        except ValueError:  # rewritten as a whole, without edits
            out.append(Segment(kind="edit", before=original, after=section.text))
            continue
        out += [Segment(kind=p.kind, before=p.before, after=p.after) for p in parts]
    return out


def _joined(parts: Sequence[Segment]) -> list[Segment]:
    out: list[Segment] = []
    for part in parts:
        if out and out[-1].kind == part.kind == "same":
            last = out.pop()
            part = Segment(
                kind="same", before=last.before + part.before, after=last.after + part.after
            )
        out.append(part)
    return out
