"""The first screens of ten reports, beside what was put in. One command, one Markdown table.

    python bench/first_screens.py [--pages FOLDER] [--same 30]

Tables of scores are made whose truth is known, and analysed as the results of a run are; `--pages`
writes the pages to a folder. `docs/report.md` holds the table. `--same` makes so many random
studies instead, and compares what terminal, page, Markdown, CSV, JSON and LaTeX say of each: the
sentences of the first screen, and every drop with its interval. Exit code 1 if two forms differ.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from falter.analysis.analyses import analyse_tables
from falter.analysis.cells import PanelCells, table_of
from falter.analysis.drop_parts import Evidence, parts_of
from falter.analysis.figures.answer import answer_figure
from falter.analysis.results import Analysis, Settings
from falter.analysis.table import OUTCOMES, Table
from falter.engine.findings import shown_analysis
from falter.records import numbers as n
from falter.records.figures import Forest, Study
from falter.records.types import Model, Panel
from falter.report.forms.data import as_csv, as_json
from falter.report.forms.latex import as_latex, words
from falter.report.forms.markdown import as_markdown
from falter.report.forms.terminal import terminal
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
    """Yield what was put in, and the analysis."""
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
    return replace(found, panels=(replace(panel, parts=parts_of(made, beside, SETTINGS)),))


def random_study(seed: int) -> Analysis:
    """One to three panels of recipes, some of which cost something, with missing answers."""
    rng = np.random.default_rng(seed)
    tables = []
    for place in range(int(rng.integers(1, 4))):
        recipes = int(rng.integers(1, 5))
        drops = tuple(rng.random(recipes) * rng.choice([0.0, 0.2]))
        scores = drawn(rng, int(rng.integers(20, 300)), drops)
        gone = rng.random(scores.shape) < rng.choice([0.0, 0.05, 0.2], p=[0.5, 0.3, 0.2])
        tables.append(table(scores, np.where(gone, FAILED, 0), model=f"m{place}"))
    return analyse_tables(tables, replace(SETTINGS, replications=400))


def told_otherwise(study: Study) -> list[str]:
    """Return the differences between one form of a study and its figures."""
    lines = study.figures[0].text
    printed = io.StringIO()
    terminal(study, Console(file=printed, width=150))
    forms = {
        "terminal": " ".join(printed.getvalue().split()),
        "page": re.sub("<[^>]*>", "", html(study)).replace("&#x27;", "'").replace("&quot;", '"'),
        "Markdown": as_markdown(study).replace("\\", ""),
    }
    latex = " ".join(as_latex(study).split())
    rows = list(csv.DictReader(io.StringIO(as_csv(study))))
    data = {
        "CSV": [row["text"].removeprefix("'") for row in rows if row["figure"] == "answer"],
        "JSON": json.loads(as_json(study))["figures"][0]["text"],
    }
    found = [
        f"{name}: {line}" for name, text in forms.items() for line in lines if line not in text
    ]
    found += [f"LaTeX: {line}" for line in lines if " ".join(words(line).split()) not in latex]
    found += [f"{name}: {told}" for name, told in data.items() if told != list(lines)]
    numbers = {(row["figure"], row["row"]): row for row in rows if row["column"] == "drop"}
    for figure in study.figures:
        for row in figure.rows if isinstance(figure, Forest) else ():
            drop = row.estimate
            if drop is None or drop.value is None:
                continue
            shown = n.shown(drop, "points").text
            found += [f"{name}: {row.label} {shown}" for name, text in forms.items()
                      if not _holds(text, shown)]  # fmt: skip
            if not all(words(part) in latex for part in re.findall(r"[+−]?[\d.]+", shown)):
                found.append(f"LaTeX: {row.label} {shown}")
            cell = numbers[figure.name, row.label]
            ends = [None if not cell[end] else float(cell[end]) for end in ("value", "low", "high")]
            if ends != [drop.value, drop.low, drop.high]:
                found.append(f"CSV: {row.label} {ends}")
    return found


def _holds(text: str, shown: str) -> bool:
    """Return True if a number stands there with its interval, close beside each other."""
    parts = re.findall(r"[+−]?[\d.]+", shown)
    return re.search(r"\D{1,8}?".join(map(re.escape, parts)), text) is not None


def main(arguments: list[str] | None = None) -> int:
    """Print the table and write the pages, or compare the forms."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=Path, metavar="FOLDER", dest="folder")
    parser.add_argument("--same", type=int, metavar="STUDIES")
    given = parser.parse_args(arguments)
    if given.same is not None:
        differ = [(seed, told_otherwise(shown_analysis(random_study(seed))))
                  for seed in range(given.same)]  # fmt: skip
        for seed, told in differ:
            print("".join(f"study {seed}: {line}\n" for line in told), end="")
        alike = sum(not told for _, told in differ)
        print(f"{alike} of {given.same} studies: all six forms say the same")
        return 0 if alike == given.same else 1
    folder = given.folder
    print("| put in | the first screen |\n|---|---|")
    for place, (what, found) in enumerate(reports(), start=1):
        print(f"| {what} | {'<br>'.join(answer_figure([('', found)]).text)} |")
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{place}.html").write_text(html(shown_analysis(found)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
