"""A gate: read, planned, carried out look by look. What it decides is in the room `gate`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import UsageError
from falter.core.interfaces import Client, RewriteBank
from falter.core.records import Item, Recipe, Request
from falter.experiment._baseline import Baseline, read_baseline
from falter.experiment._gate_checks import (
    check_baseline,
    check_cluster,
    check_other,
    compared,
    require_one_panel,
)
from falter.experiment._gate_lines import (
    Requirement,
    planned_lines,
    requirements,
)
from falter.experiment._gate_result import LineCost, infeasible_text
from falter.experiment._gate_settings import GateSpec
from falter.experiment._rewrites import bank_in
from falter.experiment.budgets import refuse_with_gate
from falter.experiment.config import Experiment
from falter.experiment.connections import connect_all
from falter.experiment.experiment_file import check_permits, read_settings
from falter.experiment.resolving import PanelPlan, Resolved, resolve
from falter.experiment.study import read_study
from falter.experiment.task_loading import load_tasks
from falter.gate import GatePlan, Schedule, plan_gate, schedule
from falter.planning import Cost, count_cells, estimate_cost, plan
from falter.tasks import Task, hash_order

__all__ = [
    "AGAIN",
    "ASKED_AGAIN",
    "Gate",
    "Infeasible",
    "OpenGate",
    "asks_again",
    "gate_in",
    "read_gate",
]

Floats = NDArray[np.float64]
ASKED_AGAIN = 0.05
"""The share of the items whose clean prompt is asked once more."""
AGAIN = Recipe(label="asked again", repeat=1)
YAML = (".yaml", ".yml")


class Infeasible(UsageError):
    """The items cannot show what the gate asks for; nothing was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate as it was read: the experiment, what must hold, and what it is held against."""

    experiment: Experiment
    spec: GateSpec
    baseline: Baseline | None = None
    other: Experiment | None = None


def read_gate(
    settings: Mapping[str, Any], *, folder: Path = Path(), against: Path | None = None
) -> Gate:
    """Read the settings of an experiment with a gate, and what it is held against.

    `against` is a baseline file, whose answers are taken as they are, or another experiment file,
    which is asked beside this one.
    """
    study = read_study(settings, folder=folder)
    if study.protocol.name:
        raise UsageError(
            "A gate is about one experiment, not a protocol",
            hint="name a task or data, a model and recipes",
        )
    if study.gate is None:
        raise UsageError(
            "The experiment says nothing of what must hold",
            hint="add 'gate:' with 'max_drop: 5' to the file",
        )
    gate = Gate(experiment=study.experiment, spec=study.gate)
    if against is None:
        if gate.spec.max_regression is not None and _only_regression(gate.spec):
            raise UsageError(
                "max_regression needs a version to compare with",
                hint="give --against with a baseline file or another experiment file",
            )
        return gate
    if against.suffix.lower() in YAML:
        other = read_settings(against)
        check_permits(other, against)
        rest = {name: value for name, value in other.items() if name != "gate"}
        return replace(gate, other=read_study(rest, folder=against.parent).experiment)
    return replace(gate, baseline=read_baseline(against))


def _only_regression(spec: GateSpec) -> bool:
    return spec.max_drop is None and spec.min_score is None and spec.max_unread is None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenGate:
    """A gate with every name turned into an object, and what it can decide. Nothing is sent.

    `order` has the items' keys in the order in which they are asked; `full` and `other` are the
    runs of all items, `arms` what makes those of fewer.
    """

    gate: Gate
    full: Resolved
    other: Resolved | None
    arms: tuple[_Arm, ...]
    order: tuple[str, ...]
    available: int
    lines: tuple[Requirement, ...]
    plan: GatePlan
    schedule: Schedule
    cost: LineCost
    planned_cost: Cost
    notes: tuple[str, ...]

    @property
    def panel(self) -> PanelPlan:
        """The model on the task."""
        return self.full.panels[0]

    @property
    def items(self) -> int:
        """How many items it may ask: those there are, or what the budget allows."""
        return len(self.order)

    @property
    def strict(self) -> bool:
        """Whether unreadable answers are wrong."""
        return self.gate.experiment.unparsed == "wrong"

    @property
    def refusal(self) -> str | None:
        """Why it cannot pass even if nothing changed; None if it can."""
        if not self.plan.refused:
            return None
        budget = ""
        if self.items < self.available:
            budget = f"; the budget allows {self.items:,} of {self.available:,} items"
        return infeasible_text(self.plan, budget)

    def require(self) -> None:
        """Raise `Infeasible` where the gate cannot pass."""
        if self.refusal is not None:
            raise Infeasible(
                self.refusal,
                hint="more items, a wider margin or fewer looks; 'falter gate --plan' shows what "
                "each line needs",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Arm:
    """A version that is asked: its experiment with tasks, clients and rewrites at hand."""

    experiment: Experiment
    bank: RewriteBank | None
    tasks: Sequence[Task]
    clients: Sequence[Client]

    def run(self, items: int | None, recipes: tuple[Recipe, ...] | None = None) -> Resolved:
        """The run of the first so many items."""
        experiment = self.experiment
        if items is not None:
            experiment = replace(experiment, limit=items)
        return resolve(
            experiment, self.bank, loaded=self.tasks, clients=self.clients, recipes=recipes
        )


@contextlib.contextmanager
def gate_in(gate: Gate, store_path: Path) -> Iterator[OpenGate]:
    """The gate resolved and planned, with the store open for as long as rewrites may be read."""
    refuse_with_gate(gate.experiment)
    with contextlib.ExitStack() as stack:
        arms = tuple(
            _Arm(
                experiment=experiment,
                bank=stack.enter_context(bank_in(experiment, store_path)),
                tasks=load_tasks(experiment),
                clients=connect_all(experiment),
            )
            for experiment in (gate.experiment, gate.other)
            if experiment is not None
        )
        yield _opened(gate, arms)


def _opened(gate: Gate, arms: tuple[_Arm, ...]) -> OpenGate:
    full = arms[0].run(None)
    other = arms[1].run(None) if len(arms) > 1 else None
    for resolved in (full, other):
        if resolved is not None:
            require_one_panel(resolved)
            if resolved.rewrites is not None:
                resolved.rewrites.require()
    panel = full.panels[0]
    check_cluster(gate.spec, gate.experiment.data)
    if gate.baseline is not None:
        check_baseline(gate.baseline, full, arms[0].tasks[0])
    if other is not None:
        check_other(full, other)
    looks = schedule(gate.spec.looks, level=gate.spec.level, fail_level=gate.spec.fail_level)
    ordered = hash_order(panel.items, gate.experiment.seed)
    planned_cost, statuses = _counted(full, ordered)
    cost = _cost_of_an_item(gate, full, planned_cost, len(arms))
    most = _affordable(gate.spec, cost, len(ordered))
    order = tuple(item.key for item in ordered[:most])
    both_have, notes = compared(gate.spec, gate.baseline, full, other)
    lines = requirements(gate.spec, full.run.recipes, compared=both_have)
    planned = planned_lines(
        lines,
        gate.spec,
        items=most,
        changed={
            recipe.id: sum(recipe.id in changed for changed in statuses[:most])
            for recipe in full.run.recipes
            if recipe.perturbs
        },
        baseline=gate.baseline,
        strict=gate.experiment.unparsed == "wrong",
    )
    return OpenGate(
        gate=gate,
        full=full,
        other=other,
        arms=arms,
        order=order,
        available=len(ordered),
        lines=lines,
        plan=plan_gate(planned, looks, items=most),
        schedule=looks,
        cost=cost,
        planned_cost=planned_cost,
        notes=tuple(notes),
    )


# Cost and budget


def _counted(full: Resolved, ordered: Sequence[Item]) -> tuple[Cost, list[set[str]]]:
    """The cost of all items with nothing stored, and the recipes that changed each of them."""
    panel, run = full.panels[0], full.run
    changed: dict[str, set[str]] = {item.key: set() for item in ordered}

    def requests() -> Iterator[Request]:
        for request in plan(
            ordered, panel.conditions, panel.target, draws=run.draws, repeats=run.repeats
        ):
            if request.variant.status == "changed":
                changed[request.variant.item.key].add(request.variant.recipe.id)
            yield request

    cost = estimate_cost(requests(), panel.target, set)
    return cost, [changed[item.key] for item in ordered]


def _cost_of_an_item(gate: Gate, full: Resolved, cost: Cost, arms: int) -> LineCost:
    """What an item takes in all its conditions, the share that is asked again included."""
    panel, run = full.panels[0], full.run
    calls = count_cells(1, panel.conditions, run.draws, run.repeats)
    again = 0.0 if asks_again(run.recipes) else ASKED_AGAIN * run.repeats
    amount = None
    if cost.amount is not None:
        amount = cost.amount / max(1, len(panel.items)) * arms * (1.0 + again / calls)
    return LineCost(calls=arms * calls + again, amount=amount, currency=cost.currency or "USD")


def asks_again(recipes: Sequence[Recipe]) -> bool:
    """Whether the user's own recipes ask the clean prompt again."""
    return any(recipe.repeat and not recipe.perturbs for recipe in recipes)


def _affordable(spec: GateSpec, cost: LineCost, items: int) -> int:
    """How many items the budget allows, whether or not their answers are stored."""
    budget, most = spec.budget, items
    if budget is None:
        return most
    if budget.calls is not None:
        most = min(most, math.floor(budget.calls / cost.calls))
    if budget.usd is not None:
        if cost.amount is None or cost.currency != "USD":
            raise UsageError(
                "budget.usd needs the model's price in USD",
                hint="give the model 'price: {input: 0.15, output: 0.60}'",
            )
        if cost.amount > 0.0:
            most = min(most, math.floor(budget.usd / cost.amount))
    if most < 2:
        raise Infeasible("The budget does not pay for two items", hint="raise gate.budget")
    return most
