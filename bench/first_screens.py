"""The first screens of ten reports, beside what was put in. One command, one Markdown table.

    python bench/first_screens.py [FOLDER]

Tables of scores are made whose truth is known, and analysed as the results of a run are; with
FOLDER the pages are written there. `docs/report.md` holds the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.analyses import analyse_tables
from falter.analysis.cells import PanelCells, table_of
from falter.analysis.drop_parts import Evidence, parts_of
from falter.analysis.figures.answer import answer_figure
from falter.analysis.results import Analysis, Settings
from falter.analysis.table import OUTCOMES, Table
from falter.engine.findings import shown_analysis
from falter.records.types import Model, Panel
from falter.report.page import html

SETTINGS = Settings(run="sha256:" + "5a" * 32, version="0", created_at=0.0, store=Path("falter.db"))
REFUSED, CUT, FAILED, EMPTY = (
    OUTCOMES.index(o) for o in ("refused", "truncated", "failed", "unparsed")
)
Scores = NDArray[np.float64]


def table(scores: Scores, outcome: NDArray[Any] | None = None, **about: Any) -> Table:
    """Items × conditions (× runs); condition 0 is the clean prompt."""
    cells = scores if scores.ndim == 3 else scores[:, :, None]
    item, condition, run = (axis.ravel() for axis in np.indices(cells.shape))
    found = np.zeros(cells.shape, np.uint8) if outcome is None else outcome.reshape(cells.shape)
    model = about.pop("model", "model")
    panel = Panel(task="tickets", revision="sha256:" + "1" * 64,
                  model=Model(client="own", name=model), scorer="label")  # fmt: skip
    return table_of(
        panel,
        PanelCells(item=item, condition=condition, run=run,
                   value=np.where(found > 0, np.nan, cells).ravel(), outcome=found.ravel()),
        [f"item {n:04}" for n in range(len(cells))],
        ["baseline", "typos", "personas", "spaces", "capitals"][: cells.shape[1]],
        has_baseline=True,
        **about,
    )  # fmt: skip


def drawn(
    rng: np.random.Generator, items: int, drops: tuple[float, ...], right: float = 0.8
) -> Scores:
    """Scores of 0 and 1: a recipe turns 2 of 100 items each way, and more by its drop."""
    base = rng.random(items) < right
    columns = [base]
    for drop in drops:
        lost = base & (rng.random(items) < (0.02 + drop) / right)
        gained = ~base & (rng.random(items) < 0.02 / (1 - right))
        columns.append((base & ~lost) | gained)
    return np.column_stack(columns).astype(float)


def reports(seed: int = 0) -> Iterator[tuple[str, Analysis]]:
    """What was put in, and the analysis."""
    rng = np.random.default_rng(seed)

    def of(*tables: Table) -> Analysis:
        return analyse_tables(tables, SETTINGS)

    yield "400 items, four recipes without an effect", of(table(drawn(rng, 400, (0, 0, 0, 0))))
    yield "400 items, typos cost 15 points", of(table(drawn(rng, 400, (0.15, 0, 0, 0))))
    yield "300 items, typos make the model refuse 10 of 100", of_parts(rng, "refusals")
    yield (
        "300 items, typos cut 10 of 100 replies off, which hold the right answer",
        of_parts(rng, "cut"),
    )
    yield "300 items, typos change the meaning of 40, which turn wrong", of_parts(rng, "meaning")
    scores = drawn(rng, 300, (0, 0, 0, 0))
    gone = (rng.random(scores.shape) < 0.06) & (scores == 1.0)
    gone[:, 0] = False
    yield (
        "300 items, 6 of 100 right answers to changed prompts never came",
        of(table(scores, np.where(gone, FAILED, 0))),
    )
    gone = rng.random(scores.shape) < 0.15
    yield "300 items, 15 of 100 requests failed", of(table(scores, np.where(gone, FAILED, 0)))
    panels = [table(drawn(rng, 100, (0, 0, 0, 0)), model=f"model-{n}") for n in range(12)]
    yield "12 models, 100 items, no effect anywhere", of(*panels)
    yield (
        "five clusters of 40 items, typos cost 15 points",
        of(table(drawn(rng, 200, (0.15, 0, 0, 0)), clusters=[f"c{n // 40}" for n in range(200)])),
    )
    runs = np.repeat(rng.random((20, 5, 1)) < 0.95, 3, axis=2).astype(float)
    yield "20 items asked three times, 95 of 100 right, no effect", of(table(runs))


def of_parts(rng: np.random.Generator, cause: str) -> Analysis:
    """One recipe that loses a tenth of the points for a known cause."""
    scores = drawn(rng, 300, (0,), right=0.9)
    hit = np.flatnonzero(scores[:, 1] == 1.0)[:40]
    outcome = np.zeros(scores.shape, int)
    reread = np.full((*scores.shape, 1), np.nan)
    fails = np.zeros((*scores.shape, 1), np.bool_)
    if cause == "meaning":
        scores[hit, 1], fails[hit, 1] = 0.0, True
    else:
        hit = hit[:30]
        outcome[hit, 1] = REFUSED if cause == "refusals" else CUT
        reread[hit, 1] = np.nan if cause == "refusals" else 1.0
    made = table(scores, outcome)
    beside = Evidence(reread=reread, meaning_fails=fails, checked=frozenset({1}),
                      served_differently=np.zeros_like(fails), reader="named_answer")  # fmt: skip
    found = analyse_tables([made], SETTINGS)
    (panel,) = found.panels
    return replace(
        found, panels=(replace(panel, parts=parts_of(made, beside, SETTINGS)),)
    )


def main(folder: Path | None) -> None:
    """Print the table; write the pages."""
    print("| put in | the first screen |\n|---|---|")
    for place, (what, found) in enumerate(reports(), start=1):
        print(f"| {what} | {'<br>'.join(answer_figure([('', found)]).text)} |")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{place}.html").write_text(html(shown_analysis(found)), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
