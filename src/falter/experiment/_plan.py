"""`falter.plan`, the twin of `falter.run`: what a run would send and cost. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from falter.core.codec import to_json
from falter.core.errors import InvalidValue
from falter.experiment._api import given_study
from falter.experiment._config import Experiment
from falter.experiment._demonstrations import demonstration_changes
from falter.experiment._keywords import ExperimentSettings
from falter.experiment._plan_text import panel_row, plan_lines, plan_remarks
from falter.experiment._planned import planned_prompts, planned_study
from falter.experiment._prices import read_prices, with_prices
from falter.experiment._resolve import PanelPlan
from falter.experiment._study import ResolvedStudy, StudySpec, study_in
from falter.store import Store
from falter.tasks import Described, sized_by_description

__all__ = ["Plan", "plan", "plan_of"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would send: the same numbers and words as `falter plan`.

    `data` is what `falter plan --json` prints; a plan in text is `str(plan)`.
    """

    data: Mapping[str, Any]

    @property
    def panels(self) -> list[dict[str, Any]]:
        """One row for each model and task: calls, tokens, cost, the scorer and why."""
        return list(self.data["panels"])

    @property
    def cells(self) -> int:
        """How many answers the run needs."""
        return sum(row["cells"] for row in self.panels)

    @property
    def stored(self) -> int:
        """How many of these are in the store."""
        return sum(row["stored"] for row in self.panels)

    @property
    def calls(self) -> int:
        """How many requests would be sent; those of judges are not among them."""
        return sum(row["calls"] for row in self.panels)

    @property
    def prompt_tokens(self) -> int:
        """The tokens of all prompts, at four characters each."""
        return sum(row["prompt_tokens"] for row in self.panels)

    @property
    def completion_tokens_at_most(self) -> int:
        """The tokens of all answers, if each reaches its limit."""
        return sum(row["completion_tokens_at_most"] for row in self.panels)

    @property
    def cost_at_most(self) -> dict[str, float] | None:
        """The highest cost by currency; None where a panel has no price, which is no cost of 0."""
        sums: dict[str, float] = {}
        for row in self.panels:
            if row["cost_at_most"] is None:
                return None
            amount = row["cost_in_batches" if row["batch"] else "cost_at_most"]
            sums[row["currency"]] = sums.get(row["currency"], 0.0) + amount
        return sums

    @property
    def prompts(self) -> list[dict[str, Any]]:
        """The prompts of the first items as they would be sent; as many as `show` said."""
        return list(self.data["prompts"])

    @property
    def notes(self) -> list[str]:
        """What is worth knowing before the run."""
        return list(self.data["notes"])

    def __str__(self) -> str:
        return "\n".join((*plan_lines(self.data), *plan_remarks(self.data)))

    def __repr__(self) -> str:
        return f"<falter plan: {self.calls:,} calls, {self.stored:,} of {self.cells:,} stored>"


def plan(
    experiment: Experiment | Mapping[str, Any] | None = None,
    /,
    *,
    store: Path | str = "falter.db",
    prices: str | None = None,
    show: int = 0,
    **settings: Unpack[ExperimentSettings],
) -> Plan:
    """What `falter.run` would send with the same settings; sends nothing and writes nothing.

    >>> plan = falter.plan(task="basics", models=["simulated"], recipes=["typos"], limit=50)
    >>> plan.calls, plan.cost_at_most
    >>> print(plan)

    `prices` names a price list (2025-11, or a file) for models without a price of their own; `show`
    is of how many items the prompts are kept as they would be sent.
    """
    if isinstance(show, bool) or not isinstance(show, int) or show < 0:
        raise InvalidValue("show", show, "a number of items, 0 or more")
    spec, path = given_study(experiment, settings, store)
    return plan_of(spec, path, prices, show)


def plan_of(spec: StudySpec, store: Path, prices: str | None, show: int) -> Plan:
    """The plan of a study that has been read."""
    price_list = None
    if prices is not None:
        listed = read_prices(prices)
        spec = replace(spec, experiment=with_prices(spec.experiment, listed))
        price_list = listed.name
    with sized_by_description() as described, study_in(spec, store) as study:
        planned = _planned(study, store, price_list, described)
        planned["prompts"] = planned_prompts(study, show)
    planned["described"] = list(described.rows)
    return Plan(planned)


def _planned(
    study: ResolvedStudy, store_path: Path, price_list: str | None, described: Described
) -> dict[str, Any]:
    """The plan as plain data, part by part."""
    protocol = study.spec.protocol
    store = Store(store_path, writes=False) if store_path.exists() else None
    try:
        costs = list(planned_study(study, store))
    finally:
        if store is not None:
            store.close()
    limits = {part.name: resolved.experiment.limit for part, resolved in study.parts}
    rows = [
        ({"part": part.name} if protocol.name else {})
        | panel_row(
            panel,
            cost,
            price_list,
            study.spec.experiment.batch,
            of_all=_of_all(panel, limits[part.name], described),
        )
        for part, panels in costs
        for panel, cost in panels
    ]
    cells: dict[tuple[str, str], int] = {}
    for part, panels in costs:
        for panel, cost in panels:
            place = part.name, panel.panel.task
            factor = _of_all(panel, limits[part.name], described)
            cells[place] = cells.get(place, 0) + round(factor * cost.cells)
    needs = [resolved.rewrites for _, resolved in study.parts if resolved.rewrites is not None]
    return {
        "protocol": protocol.name or None,
        "preset": study.spec.preset or None,
        "runs": [resolved.run.id for _, resolved in study.parts],
        "panels": rows,
        "judges": len(study.judges),
        "judge_calls_at_most": {
            judging.part.name: len(study.judges) * protocol.judge_calls(judging.part, cells)
            for judging in study.judging
        },
        "missing_rewrites": sum(len(need.missing) for need in needs),
        "missing": list(dict.fromkeys(line for need in needs for line in need.shortfall())),
        "texts_left_out": sum(len(need.left_out) for need in needs),
        "bundled": list(dict.fromkeys(line for need in needs for line in need.bundled())),
        "demonstrations": [
            to_json(change)
            for _, resolved in study.parts
            for change in demonstration_changes(resolved)
        ],
        "notes": [*study.notes, *protocol.notes(study.spec.preset)],
    }


def _of_all(panel: PanelPlan, limit: int | None, described: Described) -> float:
    """How many times its items a panel would really ask, where filler stands for more of them."""
    times = described.times(panel.panel.task)
    return times if limit is None else max(1.0, min(times, limit / max(1, len(panel.items))))
