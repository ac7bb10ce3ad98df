"""A gate over results of another tool: nothing is sent, and there is a single look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from falter import __version__
from falter.analysis.table import Table
from falter.engine.analyze import find_baseline, tables_of
from falter.engine.gate_settings import GateSpec
from falter.gate.decision import decide, schedule
from falter.gate.requirements import Floats, measured_criteria, requirements, scores_by_recipe
from falter.gate.result import GateResult, ItemCost
from falter.readers.results import read_sides
from falter.readers.tables import ColumnMap
from falter.records.errors import UsageError, refusal
from falter.records.ids import digest
from falter.records.types import BASELINE, Recipe


def gate_results(
    spec: GateSpec,
    path: Path,
    *,
    against: Path | None = None,
    unparsed: Literal["wrong", "excluded"] = "wrong",
    seed: int = 0,
    baseline: str | None = None,
    columns: ColumnMap | None = None,
    **reading: Any,
) -> GateResult:
    """Decide the criteria of a gate over the results in a file, or in a folder of files.

    `against` has the results of an earlier version. `baseline` names the condition that is the
    clean prompt. The other options are the same as in `analyze_files`.
    """
    _check_against(spec, against)
    cluster = () if spec.cluster is None else (spec.cluster,)
    columns = columns or ColumnMap(cluster=cluster)
    paths = [path] if against is None else [path, against]
    sides = read_sides([[file] for file in paths], columns, **reading)
    tables = [
        _single_table(
            tables_of(cells, _clean_condition(cells.condition.names, baseline, cells)), file, spec
        )
        for cells, file in zip(sides, paths, strict=True)
    ]
    table, single_look = tables[0], schedule(1, level=spec.level, fail_level=spec.fail_level)
    others = {recipe.id: recipe for recipe in tables[-1].recipes}
    compared = [r for r in table.recipes if r.id in others] if against is not None else []
    required = requirements(spec, table.recipes, compared=compared)
    strict = unparsed == "wrong"
    criteria = measured_criteria(
        required, table, table.items, strict=strict, other=_earlier_scores(tables, strict), held=""
    )
    results = decide(
        criteria,
        single_look,
        1,
        clusters=table.clusters if spec.cluster is not None else None,
        fail_above=spec.fail_above,
        last=True,
        seed=seed,
    )
    panel = table.panel
    run = digest("gate", [cells.digest for cells in sides], __version__, repr(spec), baseline)
    return GateResult(
        lines=results,
        run=run,
        store=None,
        model=panel.model.label,
        task=panel.task,
        scorer=panel.scorer,
        recipes=tuple(recipe.label for recipe in table.recipes if recipe.perturbs),
        items=len(table.items),
        available=len(table.items),
        look=1,
        looks=1,
        calls=0,
        cells=table.planned,
        failed=int((table.in_plan & (table.outcome >= 4)).sum()),
        cost=ItemCost(calls=0.0),
        level=spec.level,
        fail_level=spec.fail_level,
        undecided=spec.undecided,
        signature=f"falter {__version__} gate | {path.name} | {panel.scorer} | unparsed {unparsed} "
        f"| pass {spec.level:g} | fail {spec.fail_level:g} max-t above {spec.fail_above} | "
        f"seed {seed}",
        version=__version__,
        seed=seed,
        unparsed=unparsed,
        created_at=path.stat().st_mtime,
        against="" if against is None else str(against),
        notes=tuple(dict.fromkeys([*sides[0].notes, *_unshared_notes(tables, against)])),
    )


def _check_against(spec: GateSpec, against: Path | None) -> None:
    """Raise if earlier results or the maximum regression lack the other, on which they depend."""
    if spec.max_regression is not None and against is None and not spec.stands_alone:
        raise refusal(UsageError, "gate.no_earlier_results")
    if against is not None and spec.max_regression is None:
        raise refusal(UsageError, "gate.no_max_regression")


def _clean_condition(names: Sequence[str], baseline: str | None, cells: Any) -> str | None:
    """Return the clean condition: the only one, or the one that `baseline` names.

    Without a name, it is the condition called "baseline". Raises `UsageError` if there is none.
    """
    if len(names) == 1 and baseline is None:
        return names[0]
    found = find_baseline(cells, baseline)
    if found is None:
        raise refusal(
            UsageError, "gate.no_clean_prompt", names=", ".join(names[:10]), first=names[0]
        )
    return found


def _single_table(tables: Sequence[Table], path: Path, spec: GateSpec) -> Table:
    """Return the only table; raise if there are several, or if a drop lacks a second condition."""
    if len(tables) != 1:
        names = ", ".join(f"{t.panel.model.label} on {t.panel.task}" for t in tables[:6])
        raise refusal(UsageError, "gate.several_tables", path=path, count=len(tables), names=names)
    (table,) = tables
    if spec.max_drop is not None and not table.columns:
        raise refusal(UsageError, "gate.no_condition", path=path)
    return table


def _earlier_scores(tables: Sequence[Table], strict: bool) -> Mapping[str, Floats]:
    """Return the scores of the earlier results on the items of the later ones, by recipe id."""
    if len(tables) < 2:
        return {}
    later, earlier = tables
    if not set(earlier.items) & set(later.items):
        raise refusal(UsageError, "gate.no_common_item")
    return scores_by_recipe(earlier, later.items, strict=strict)


def _unshared_notes(tables: Sequence[Table], against: Path | None) -> list[str]:
    """Return notes on the items and conditions that only one of the two results has."""
    if against is None:
        return []
    later, earlier = (set(table.items) for table in tables)
    new_items, removed = len(later - earlier), len(earlier - later)
    recipes = {r.id for r in tables[1].recipes} | {BASELINE.id}
    lacking: list[Recipe] = [r for r in tables[0].recipes if r.id not in recipes]
    notes = []
    if new_items:
        notes.append(f"{new_items:,} items are not in {against}: not compared with it.")
    if removed:
        notes.append(f"{removed:,} items of {against} are not in these results.")
    if lacking:
        names = ", ".join(recipe.label for recipe in lacking)
        notes.append(f"{against} has no {names}: not compared with it.")
    return notes
