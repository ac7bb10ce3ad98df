"""The tables that the paper prints, with the numbers of a run beside them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from falter.protocols.consistency.figures import Measured, pooled_tables
from falter.protocols.tables import figures_of
from falter.records.figures import Column, Grid, Value

declared = figures_of("consistency")
FACTORS = {
    "num_demos": "demonstrations",
    "prompt_variation": "noise",
    "template_used": "template",
    "temperature": "temperature",
    "Intercept": "intercept",
}
"""The paper's name of each factor, and falter's."""


@cache
def published_rows(name: str) -> tuple[dict[str, str], ...]:
    """The rows of a table as printed: `capability` (A.2) or `anova` (C.1 and C.2)."""
    file = resources.files("falter.protocols.consistency") / "data" / f"published_{name}.csv"
    return tuple(csv.DictReader(file.read_text("utf-8").splitlines()))


def published_figures(found: Sequence[Measured]) -> Iterator[Grid]:
    """Table A.2 with the run's models first; tables C.1 and C.2 with the run's own tests."""
    tasks = [name for name in published_rows("capability")[0] if name != "model"]
    own: dict[str, dict[str, Value]] = {}
    for m in found:
        own.setdefault(m.panel.model, {}).setdefault(m.panel.task.lower(), m.capability)
    rows: list[tuple[Value, ...]] = [
        (model, "this run", *(of.get(task) for task in tasks)) for model, of in own.items()
    ]
    for row in published_rows("capability"):
        rows.append((row["model"], "paper", *(float(row[task]) for task in tasks)))
    columns = (Column(name=task, unit="percent", over="Capability, %") for task in tasks)
    yield Grid(rows=tuple(rows), **declared("published-capability", columns))
    yield Grid(rows=tuple(_anova_rows(found)), **declared("published-anova"))


def _anova_rows(found: Sequence[Measured]) -> Iterator[tuple[Value, ...]]:
    printed = {(row["type"], row["dataset"], row["factor"]): row for row in published_rows("anova")}
    own = {task.lower(): table for task, _, table, _ in pooled_tables(found)}
    for (kind, task, factor), row in printed.items():
        if kind == "3":
            second = printed.get(("2", task, factor))
            table = own.get(task.lower().replace("-", "_"))
            names = {term.name for term in table.terms} | {"intercept"} if table else set()
            term = table[FACTORS[factor]] if table and FACTORS[factor] in names else None
            own_f, own_p = (term.f, term.p_value) if term else (None, None)
            yield (
                task, FACTORS[factor], row["f"], row["p"], row["sum_sq"],
                second["eta_sq"] if second else None, row["eta_sq"], row["partial_eta_sq"],
                own_f, own_p,
            )  # fmt: skip
