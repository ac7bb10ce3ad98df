"""A gate read from its settings, checked, planned and priced. Nothing is sent."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from falter.engine.budgets import refuse_with_gate
from falter.engine.config import Experiment, read_study_settings
from falter.engine.connections import connect_all
from falter.engine.experiment_file import check_permits, read_settings
from falter.engine.gate_settings import GATE, GateSpec
from falter.engine.resolving import PanelPlan, Resolved, resolve
from falter.engine.results import with_names
from falter.engine.rewriting import bank_in
from falter.engine.study import read_study
from falter.engine.task_loading import load_tasks
from falter.gate.baseline import Baseline, manifest_hash, read_baseline
from falter.gate.decision import Schedule, schedule
from falter.gate.feasibility import GatePlan, plan_gate
from falter.gate.requirements import FOLLOW, KEEP, Requirement, planned_criteria, requirements
from falter.gate.result import ItemCost, infeasible_text
from falter.records.errors import InvalidValue, UsageError, refusal
from falter.records.interfaces import Client, RewriteBank
from falter.records.planning import Cost, count_cells, estimate_cost, plan
from falter.records.types import BASELINE, Item, Recipe, Request
from falter.tasks.task import Task, hash_order

REPEAT_SHARE = 0.05
"""Share of the items whose clean prompt is repeated, to measure the noise floor."""
YAML = (".yaml", ".yml")
NO_GATE = "The experiment says nothing of what must hold"
ADD_GATE = "add 'gate:' with 'max_drop: 5' to the file"


class Infeasible(UsageError):
    """The items or the budget cannot show the margins that the gate requires; nothing was sent."""


# Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate as read from its settings: the experiment and the requirements.

    The version that it is compared with is a `baseline` file or an `other` experiment, if any.
    """

    experiment: Experiment
    spec: GateSpec
    baseline: Baseline | None = None
    other: Experiment | None = None


def read_gate(
    settings: Mapping[str, Any],
    *,
    folder: Path = Path(),
    against: Path | None = None,
    env: Collection[str] = (),
    code: bool = False,
) -> Gate:
    """Read the settings of an experiment with a gate, and the version compared with.

    `against` is a baseline file, whose outcomes are used unchanged, or another experiment file,
    whose requests are sent too. `env` and `code` allow that experiment file environment variables
    and code. Raises `UsageError` for settings that a gate cannot use.
    """
    study = read_study(settings, folder=folder)
    if study.protocol.name:
        raise refusal(UsageError, "gate.protocol")
    if study.gate is None:
        raise UsageError(NO_GATE, hint=ADD_GATE)
    if study.experiment.reader is not None:
        raise refusal(UsageError, "gate.reader")
    gate = Gate(experiment=study.experiment, spec=study.gate)
    if against is None:
        if gate.spec.max_regression is not None and not gate.spec.stands_alone:
            raise refusal(UsageError, "gate.no_version")
        return gate
    if against.suffix.lower() in YAML:
        other = read_settings(against)
        check_permits(other, against, env=env, code=code)
        rest = {name: value for name, value in other.items() if name != "gate"}
        return replace(gate, other=read_study(rest, folder=against.parent).experiment)
    return replace(gate, baseline=read_baseline(against))


def read_spec(
    settings: Mapping[str, Any],
) -> tuple[GateSpec, Literal["wrong", "excluded"], int]:
    """Read a gate's requirements, the setting `unparsed`, and the seed; ignore other settings."""
    study, rest = read_study_settings(settings)
    if study.gate is None:
        raise UsageError(NO_GATE, hint=ADD_GATE)
    unparsed, seed = rest.get("unparsed", "wrong"), rest.get("seed", 0)
    if unparsed not in ("wrong", "excluded"):
        raise InvalidValue("unparsed", unparsed, "'wrong' or 'excluded'")
    return study.gate, unparsed, seed if isinstance(seed, int) else 0


def keyword_gate(settings: Mapping[str, Any], *, folders: Sequence[Path]) -> Gate:
    """Read a gate whose experiment and requirements are in one mapping, as a test's keywords are.

    `falter.run` has the same names. `template` is a text with {placeholders} or a file, `max_calls`
    is the budget's limit of requests, and `against` names a baseline. Paths are looked for in each
    of `folders`.
    """
    rest = dict(settings)
    gate: dict[str, Any] = {s.name: rest.pop(s.name) for s in GATE.settings if s.name in rest}
    if "max_calls" in rest:
        gate["budget"] = {**dict(gate.get("budget") or {}), "calls": rest.pop("max_calls")}
    against = rest.pop("against", None)
    data = rest.get("data")
    if isinstance(data, (str, Path)) and not str(data).startswith("hub:"):
        rest["data"] = str(_find_file(str(data), folders))
    template = rest.get("template")
    if isinstance(template, (str, Path)) and "{" not in str(template):
        rest["template_file"] = str(_find_file(str(rest.pop("template")), folders))
    return read_gate(
        {**with_names(rest), "gate": gate},
        against=None if against is None else _find_file(str(against), folders),
    )


def _find_file(name: str, folders: Sequence[Path]) -> Path:
    """Return a file's path in the first folder that has the file; raise if none has."""
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    where = " or ".join(str(folder) for folder in dict.fromkeys(folders))
    raise UsageError(f"There is no file {name}", hint=f"paths are relative to {where}")


# Prepared


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arm:
    """One version to be tested: its experiment with its tasks, clients and rewrites."""

    experiment: Experiment
    bank: RewriteBank | None
    tasks: Sequence[Task]
    clients: Sequence[Client]

    def run(self, items: int | None, recipes: tuple[Recipe, ...] | None = None) -> Resolved:
        """Return the resolved run of the first `items` items, or of all items if None."""
        experiment = self.experiment
        if items is not None:
            experiment = replace(experiment, limit=items)
        return resolve(
            experiment, self.bank, loaded=self.tasks, clients=self.clients, recipes=recipes
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedGate:
    """A gate with every name resolved to an object, and with the plan of its decisions.

    - `order` has the items' keys in the order in which the items are sent.
    - `runs` are the runs of all items, this version's first. `arms` produce the runs of fewer
      items.
    - `clusters` maps an item's key to its cluster label; None if the gate names no cluster column.
    - `available` is the number of items of the task, before any budget.
    """

    gate: Gate
    arms: tuple[Arm, ...]
    runs: tuple[Resolved, ...]
    clusters: Mapping[str, str] | None
    order: tuple[str, ...]
    available: int
    requirements: tuple[Requirement, ...]
    plan: GatePlan
    schedule: Schedule
    cost: ItemCost
    notes: tuple[str, ...]

    @property
    def full(self) -> Resolved:
        """This version's run of all items."""
        return self.runs[0]

    @property
    def panel(self) -> PanelPlan:
        """This version's plan for its one model on its one task."""
        return self.full.panels[0]

    @property
    def items(self) -> int:
        """The number of items that the gate may send: all, or as many as the budget allows."""
        return len(self.order)

    @property
    def strict(self) -> bool:
        """True if responses without a usable answer count as wrong."""
        return self.gate.experiment.unparsed == "wrong"

    @property
    def refusal(self) -> str | None:
        """The reason why the gate cannot pass even if nothing changed; None if it can pass."""
        if not self.plan.refused:
            return None
        budget = ""
        if self.items < self.available:
            budget = f"; the budget allows {self.items:,} of {self.available:,} items"
        return infeasible_text(self.plan, budget)


@contextlib.contextmanager
def prepared(gate: Gate, store_path: Path) -> Iterator[PreparedGate]:
    """Yield the resolved and planned gate; meanwhile the store is open for its rewrites."""
    refuse_with_gate(gate.experiment)
    with contextlib.ExitStack() as stack:
        arms = tuple(
            Arm(
                experiment=experiment,
                bank=stack.enter_context(bank_in(experiment, store_path)),
                tasks=load_tasks(experiment),
                clients=connect_all(experiment),
            )
            for experiment in (gate.experiment, gate.other)
            if experiment is not None
        )
        yield _prepare(gate, arms)


def _prepare(gate: Gate, arms: tuple[Arm, ...]) -> PreparedGate:
    """Check the versions against each other, then plan and price the gate."""
    spec, runs = gate.spec, tuple(arm.run(None) for arm in arms)
    for run in runs:
        _require_one_panel(run)
        if run.rewrites is not None:
            run.rewrites.require()
    full = runs[0]
    clusters = _cluster_labels(gate, full)
    if gate.baseline is not None:
        _check_baseline(gate.baseline, full, arms[0].tasks[0])
    for other in runs[1:]:
        _check_other_version(full, other)
    looks = schedule(spec.looks, level=spec.level, fail_level=spec.fail_level)
    ordered = hash_order(full.panels[0].items, gate.experiment.seed)
    whole_cost, changing = _total_cost(full, ordered)
    cost = _cost_per_item(full, whole_cost, len(arms))
    affordable = _affordable_items(spec, cost, len(ordered))
    compared, notes = _compared_recipes(gate, runs)
    required = requirements(spec, full.run.recipes, compared=compared)
    planned = planned_criteria(
        required,
        spec,
        full.run.recipes,
        items=affordable,
        changed=_items_changed(full.run.recipes, changing[:affordable]),
        baseline=gate.baseline,
        strict=gate.experiment.unparsed == "wrong",
    )
    return PreparedGate(
        gate=gate,
        arms=arms,
        runs=runs,
        clusters=clusters,
        order=tuple(item.key for item in ordered[:affordable]),
        available=len(ordered),
        requirements=required,
        plan=plan_gate(planned, looks, items=affordable),
        schedule=looks,
        cost=cost,
        notes=tuple(notes),
    )


def _items_changed(recipes: Sequence[Recipe], changing: Sequence[set[str]]) -> dict[str, int]:
    """Return the number of items that each recipe changes, by recipe id.

    `changing` has the ids of the recipes that change an item, item by item. The entries `KEEP` and
    `FOLLOW` count the items that any harmless recipe, or any control, changes.
    """
    perturbing = [recipe for recipe in recipes if recipe.perturbs]
    groups = {recipe.id: {recipe.id} for recipe in perturbing}
    groups[KEEP] = {recipe.id for recipe in perturbing if not recipe.controls}
    groups[FOLLOW] = {recipe.id for recipe in perturbing if recipe.controls}
    return {name: sum(bool(group & ids) for ids in changing) for name, group in groups.items()}


# Checks


def _require_one_panel(run: Resolved) -> None:
    """Raise unless the run has one model on one task, and a recipe that changes prompts."""
    if len(run.panels) != 1:
        names = ", ".join(
            f"{p.panel.model.label} on {p.panel.task} by {p.panel.scorer}" for p in run.panels
        )
        raise refusal(UsageError, "gate.one_panel", count=len(run.panels), names=names)
    if not any(recipe.perturbs for recipe in run.run.recipes):
        raise UsageError("The gate has no recipe that changes a prompt", hint="such as typos")


def _cluster_labels(gate: Gate, full: Resolved) -> dict[str, str] | None:
    """Return the cluster label of every item by key, or None if the gate names no column."""
    name, data = gate.spec.cluster, gate.experiment.data
    if name is None:
        return None
    if data is None or name not in data.tags:
        raise refusal(UsageError, "gate.unknown_cluster", name=name)
    tag = data.tags.index(name)
    return {item.key: item.tags[tag] for item in full.panels[0].items}


def _check_baseline(baseline: Baseline, full: Resolved, task: Task) -> None:
    """Raise unless the baseline has this gate's task, items, scorer, seed, draws and repeats.

    With other settings the prompts would differ, and the comparison would not be paired.
    """
    where, run = baseline.path or "the baseline", full.run
    hint = "save a baseline of a run with these settings: 'falter baseline save RUN -o FILE'"
    for name, saved, current in (
        ("seed", baseline.seed, run.seed),
        ("draws", baseline.draws, run.draws),
        ("repeats", baseline.repeats, run.repeats),
        ("scorer", baseline.scorer, full.panels[0].panel.scorer),
        ("task", baseline.task, full.panels[0].panel.task),
    ):
        if saved != current:
            raise UsageError(f"{where} has the {name} {saved}, this gate {current}", hint=hint)
    ids = {item.key: item.id for item in task.items}
    unknown = [key for key in baseline.rows if key not in ids]
    if unknown:
        raise UsageError(
            f"{where} has {len(unknown):,} items that the data lack, such as '{unknown[0][:60]}'",
            hint=hint,
        )
    items, recipes = [ids[key] for key in baseline.rows], [id for _, id in baseline.conditions]
    if manifest_hash(items, recipes, baseline.seed, baseline.draws) != baseline.manifest:
        raise UsageError(
            f"{where} is of other items: a text, an option or a target was changed since",
            hint=hint,
        )


def _check_other_version(full: Resolved, other: Resolved) -> None:
    """Raise unless the other version has the same items, seed and draws, and another run id."""
    ours, theirs = full.panels[0], other.panels[0]
    if {item.id for item in ours.items} != {item.id for item in theirs.items}:
        raise refusal(UsageError, "gate.other_items")
    if full.run.seed != other.run.seed or full.run.draws != other.run.draws:
        raise UsageError("The two versions differ in seed or draws", hint="use the same in both")
    if full.run.id == other.run.id:
        raise refusal(UsageError, "gate.same_version")


def _compared_recipes(gate: Gate, runs: Sequence[Resolved]) -> tuple[list[Recipe], list[str]]:
    """Return the recipes of both versions, the clean prompt first, and notes on differences."""
    full, baseline = runs[0], gate.baseline
    if baseline is not None:
        other_ids = {identity for _, identity in baseline.conditions}
    elif len(runs) > 1:
        other_ids = {recipe.id for recipe in runs[1].run.recipes}
    else:
        return [], []
    if gate.spec.max_regression is None:
        raise refusal(UsageError, "gate.no_max_regression")
    recipes = [r for r in full.run.recipes if r.id == BASELINE.id or r.perturbs]
    lacking = [recipe.label for recipe in recipes if recipe.id not in other_ids]
    notes = []
    if lacking:
        notes.append(f"The baseline has no {', '.join(lacking)}: not compared with it.")
    if baseline is not None:
        new_items = sum(item.key not in baseline.rows for item in full.panels[0].items)
        if new_items:
            notes.append(f"{new_items:,} items are new since the baseline: not compared with it.")
    return [recipe for recipe in recipes if recipe.id in other_ids], notes


# Cost and budget


def _total_cost(full: Resolved, ordered: Sequence[Item]) -> tuple[Cost, list[set[str]]]:
    """Return the cost of all items, as if none were stored, and the recipes that change each.

    The recipes are sets of ids, item by item. Both results come from a single pass over the plan.
    """
    panel, run = full.panels[0], full.run
    changed: dict[str, set[str]] = {item.key: set() for item in ordered}

    def requests() -> Iterator[Request]:
        for request in plan(
            ordered, panel.conditions, panel.target, draws=run.draws, repeats=run.repeats
        ):
            if request.variant.status == "changed":
                changed[request.variant.item.key].add(request.variant.recipe.id)
            yield request

    return estimate_cost(requests(), panel.target, set), list(changed.values())


def _cost_per_item(full: Resolved, cost: Cost, arms: int) -> ItemCost:
    """Return the cost of one item in all its conditions, with its share of repeated prompts."""
    panel, run = full.panels[0], full.run
    calls = count_cells(1, panel.conditions, run.draws, run.repeats)
    again = 0.0 if repeats_clean_prompt(run.recipes) else REPEAT_SHARE * run.repeats
    amount = None
    if cost.amount is not None:
        amount = cost.amount / max(1, len(panel.items)) * arms * (1.0 + again / calls)
    return ItemCost(calls=arms * calls + again, amount=amount, currency=cost.currency or "USD")


def repeats_clean_prompt(recipes: Sequence[Recipe]) -> bool:
    """Return True if one of the user's own recipes repeats the clean prompt."""
    return any(recipe.repeat and not recipe.perturbs for recipe in recipes)


def _affordable_items(spec: GateSpec, cost: ItemCost, items: int) -> int:
    """Return the number of items that the budget allows, stored responses included.

    Raises `Infeasible` below two items, and `UsageError` for a budget in dollars without a price.
    """
    budget, affordable = spec.budget, items
    if budget is None:
        return affordable
    if budget.calls is not None:
        affordable = min(affordable, math.floor(budget.calls / cost.calls))
    if budget.usd is not None:
        if cost.amount is None or cost.currency != "USD":
            raise refusal(UsageError, "gate.no_price")
        if cost.amount > 0.0:
            affordable = min(affordable, math.floor(budget.usd / cost.amount))
    if affordable < 2:
        raise Infeasible("The budget does not pay for two items", hint="raise gate.budget")
    return affordable
