"""What is wrong with a gate, or with what it is held against, said before anything is sent."""

from __future__ import annotations

from falter.core.errors import UsageError
from falter.core.records import BASELINE, Recipe
from falter.experiment._baseline import Baseline, manifest_hash
from falter.experiment._gate_settings import GateSpec
from falter.experiment.resolving import Resolved
from falter.gate import ANYTIME
from falter.tasks import DataSpec, Task

__all__ = ["check_baseline", "check_cluster", "check_other", "compared", "require_one_panel"]


def require_one_panel(resolved: Resolved) -> None:
    if len(resolved.panels) != 1:
        names = ", ".join(
            f"{p.panel.model.label} on {p.panel.task} by {p.panel.scorer}" for p in resolved.panels
        )
        raise UsageError(
            f"A gate is about one model on one task with one scorer, and here are "
            f"{len(resolved.panels)}: {names}",
            hint="write a gate file for each",
        )
    if not any(recipe.perturbs for recipe in resolved.run.recipes):
        raise UsageError("The gate has no recipe that changes a prompt", hint="such as typos")


def check_cluster(spec: GateSpec, data: DataSpec | None) -> None:
    """The column whose items belong together is kept with the items."""
    name = spec.cluster
    if name is None:
        return
    if data is None or name not in data.tags:
        raise UsageError(
            f"gate.cluster names '{name}', which is not kept with the items",
            hint=f"add it to 'data:' as 'tags: [{name}]'",
        )
    if spec.looks == ANYTIME:
        raise UsageError(
            "gate.cluster and 'looks: anytime' do not go together", hint="plan 1 to 6 looks"
        )


def check_baseline(baseline: Baseline, full: Resolved, task: Task) -> None:
    """The baseline is of these items, recipes, seed and draws, or the variants would be others."""
    where, run = baseline.path or "the baseline", full.run
    again = "save a baseline of a run with these settings: 'falter baseline save RUN -o FILE'"
    for name, theirs, ours in (
        ("seed", baseline.seed, run.seed),
        ("draws", baseline.draws, run.draws),
        ("repeats", baseline.repeats, run.repeats),
        ("scorer", baseline.scorer, full.panels[0].panel.scorer),
        ("task", baseline.task, full.panels[0].panel.task),
    ):
        if theirs != ours:
            raise UsageError(f"{where} has the {name} {theirs}, this gate {ours}", hint=again)
    by_key = {item.key: item for item in task.items}
    gone = [key for key in baseline.rows if key not in by_key]
    if gone:
        raise UsageError(
            f"{where} has {len(gone):,} items that the data lack, such as '{gone[0][:60]}'",
            hint=again,
        )
    identities = [identity for _, identity in baseline.conditions]
    items = {key: by_key[key] for key in baseline.rows}
    if manifest_hash(items, identities, baseline.seed, baseline.draws) != baseline.manifest:
        raise UsageError(
            f"{where} is of other items: a text, an option or a target was changed since",
            hint=again,
        )


def check_other(full: Resolved, other: Resolved) -> None:
    """The other version answers the same items; it is not this one."""
    ours, theirs = full.panels[0], other.panels[0]
    if {item.id for item in ours.items} != {item.id for item in theirs.items}:
        raise UsageError(
            "The two versions do not have the same items",
            hint="use the same data, limit and seed in both files",
        )
    if full.run.seed != other.run.seed or full.run.draws != other.run.draws:
        raise UsageError("The two versions differ in seed or draws", hint="use the same in both")
    if full.run.id == other.run.id:
        raise UsageError(
            "The two versions are the same", hint="--against names another prompt or model"
        )


def compared(
    spec: GateSpec, baseline: Baseline | None, full: Resolved, other: Resolved | None
) -> tuple[list[Recipe], list[str]]:
    """The recipes, the clean prompt first, that both versions have; and what is to be said."""
    recipes = [r for r in full.run.recipes if r.id == BASELINE.id or r.perturbs]
    if baseline is None and other is None:
        return [], []
    if spec.max_regression is None:
        raise UsageError(
            "--against compares by max_regression, which the gate does not set",
            hint="add 'max_regression: 2' to 'gate:'",
        )
    theirs = (
        {identity for _, identity in baseline.conditions}
        if baseline is not None
        else {recipe.id for recipe in (other.run.recipes if other is not None else ())}
    )
    lacking = [recipe.label for recipe in recipes if recipe.id not in theirs]
    notes = []
    if lacking:
        notes.append(f"The baseline has no {', '.join(lacking)}: not compared with it.")
    if baseline is not None:
        fresh = sum(item.key not in baseline.rows for item in full.panels[0].items)
        if fresh:
            notes.append(f"{fresh:,} items are new since the baseline: not compared with it.")
    return [recipe for recipe in recipes if recipe.id in theirs], notes
