"""Looks at a run while it is asked: it stops as soon as what was wanted is known.

Every look is a run of its own, of the first so many items of one layout, so that a look's answers
are stored, found again and never paid for twice. Each look has intervals so wide that those of all
looks together hold the level: stopping early costs nothing in trust.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from falter.analysis import Analysis, Settings, analyse_tables, run_tables
from falter.core.errors import UsageError
from falter.experiment._config import Experiment, Precision
from falter.experiment._labels import run_scorers
from falter.experiment._resolve import PanelPlan, Resolved
from falter.store import Store

__all__ = ["is_enough", "look_level", "looks", "looks_of", "refuse_export"]


def looks(experiment: Experiment) -> bool:
    """Whether a run looks before its budget is spent."""
    return experiment.precision is not None or experiment.decide is not None


def look_level(count: int, level: float) -> float:
    """The level of every look's intervals with which all `count` looks together hold `level`.

        1 − (1 − level)/count

    Bonferroni's, which holds however far apart the looks are. Boundaries like Pocock's suppose that
    information grows evenly; of a finite table it grows faster at the end, and they fall short.
    """
    return 1.0 - (1.0 - level) / count


def refuse_export(experiment: Experiment) -> None:
    """Raise if requests are to be written to files for a run that looks at answers on the way."""
    if looks(experiment):
        raise UsageError(
            "A run that looks at its answers cannot be written to files in one go",
            hint="leave 'precision' and 'decide' out; 'budget' alone can be exported",
        )


def looks_of(resolved: Resolved) -> Iterator[Resolved]:
    """The runs of the looks, each with more items than the one before; else the run itself."""
    experiment = resolved.experiment
    if not looks(experiment):
        yield resolved
        return
    level = round(look_level(experiment.looks, experiment.level), 6)
    for look in range(1, experiment.looks + 1):
        panels = tuple(_first(p, look / experiment.looks) for p in resolved.panels)
        layout = {
            task: {
                **about,
                **_size(panels, task, resolved),
                "look": [look, experiment.looks],
                "wanted": _wanted(experiment.precision),
            }
            for task, about in resolved.run.experiment["layout"].items()
        }
        recorded = {**resolved.run.experiment, "layout": layout, "level": level}
        yield replace(resolved, panels=panels, run=replace(resolved.run, experiment=recorded))


def _wanted(precision: Precision | None) -> dict[str, float]:
    """The half-widths that were asked for, as fractions."""
    goals = {} if precision is None else asdict(precision)
    return {name: goal / 100.0 for name, goal in goals.items() if goal is not None}


def _first(panel: PanelPlan, share: float) -> PanelPlan:
    """The panel with the first share of its items, in the order in which they are asked."""
    assert panel.asked is not None
    count = math.ceil(share * len(panel.asked))
    asked = dict(islice(panel.asked.items(), count))
    return replace(
        panel, asked=asked, items=tuple(item for item in panel.items if item.key in asked)
    )


def _size(panels: tuple[PanelPlan, ...], task: str, resolved: Resolved) -> dict[str, Any]:
    panel = next(p for p in panels if p.panel.task == task)
    run = resolved.run
    return {"asked": len(panel.items), "requests": panel.cells(run.draws, run.repeats)}


def is_enough(resolved: Resolved, store: Store) -> bool:
    """Whether a look shows everything that was wanted, in every panel."""
    experiment, run = resolved.experiment, resolved.run
    if not looks(experiment):
        return True
    settings = Settings(
        run=run.id,
        version=run.version,
        created_at=0.0,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
        margin=(experiment.decide or 2.0) / 100.0,
    )
    analysis = analyse_tables(run_tables(store, run, run_scorers(run)), settings)
    decided = experiment.decide is None or _decided(analysis)
    precise = all(
        panel.not_asked is None or all(panel.not_asked.reached.values())
        for panel in analysis.panels
    )
    return decided and precise


def _decided(analysis: Analysis) -> bool:
    return all(
        recipe.verdict != "undecided" for panel in analysis.panels for recipe in panel.recipes
    )
