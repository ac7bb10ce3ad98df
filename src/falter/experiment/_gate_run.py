"""A gate carried out: ask, look, and stop as soon as every line is decided."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter import __version__
from falter.analysis import Table, run_tables
from falter.core.ids import short
from falter.core.records import BASELINE
from falter.experiment._gate import AGAIN, ASKED_AGAIN, Gate, OpenGate, asks_again, gate_in
from falter.experiment._gate_lines import (
    gate_lines,
)
from falter.experiment._gate_result import GateResult
from falter.experiment.execution import (
    Watch,
    carry_out_together,
    check_scorers,
    opened,
    record_run,
    run_async,
)
from falter.experiment.resolving import Resolved
from falter.experiment.scoring import run_scorers
from falter.gate import LineResult, decide
from falter.measures import noise_floor
from falter.runner import Progress
from falter.store import Store

__all__ = ["run_gate"]

Floats = NDArray[np.float64]


def run_gate(gate: Gate, store_path: Path, *, watch: Watch | None = None) -> GateResult:
    """Ask, look, and stop as soon as every line is decided. Stored answers are not asked again.

    Raises `Infeasible` before anything is sent where the gate could not pass if nothing changed.
    """
    with gate_in(gate, store_path) as ready:
        ready.require()
        for resolved in (ready.full, ready.other):
            if resolved is not None:
                check_scorers(resolved)
        with Store(store_path) as store:
            return run_async(lambda: _Looking(ready, store, store_path, watch).result())


class _Looking:
    """The looks of a gate, one after another, over a store."""

    def __init__(self, ready: OpenGate, store: Store, path: Path, watch: Watch | None) -> None:
        self.ready, self.store, self.path, self.watch = ready, store, path, watch
        self.sent, self.amount = 0, 0.0
        self._stack = contextlib.AsyncExitStack()
        self._open: set[int] = set()

    async def result(self) -> GateResult:
        ready = self.ready
        results: tuple[LineResult, ...] = ()
        async with self._stack:
            for look in range(1, ready.schedule.looks + 1):
                items = ready.schedule.items(look, ready.items)
                again = await self._again(items)
                # Of all items it is the run that 'falter run' makes of the same file.
                runs = [arm.run(None if items == ready.available else items) for arm in ready.arms]
                await self._ask(runs)
                tables = [self._table(run) for run in runs]
                last = look == ready.schedule.looks or self._spent
                results = self._decided(tables, items, look, last, results)
                if last or all(line.verdict != "undecided" for line in results):
                    return self._result(results, runs, tables, again, items, look)
        raise AssertionError("the last look ends it")

    async def _again(self, items: int) -> Table | None:
        """The clean prompt of a share of the items, asked once more."""
        if asks_again(self.ready.full.run.recipes):
            return None
        share = max(1, math.ceil(ASKED_AGAIN * items))
        run = self.ready.arms[0].run(share, (BASELINE, AGAIN))
        await self._ask([run])
        return self._table(run)

    async def _ask(self, runs: Sequence[Resolved]) -> None:
        missing = [run for run in runs if not record_run(run, self.store)]
        if not missing:
            return
        for run in missing:
            for client in run.clients:
                if id(client) not in self._open:
                    await self._stack.enter_async_context(opened([client]))
                    self._open.add(id(client))
        for lane in await carry_out_together(missing, self.store, self.watch):
            self._count(lane)

    def _count(self, lane: Progress) -> None:
        self.sent += lane.sent
        price = self.ready.panel.target.price
        if price is not None:
            tokens = lane.prompt_tokens * price.input + lane.completion_tokens * price.output
            self.amount += tokens / 1e6

    @property
    def _spent(self) -> bool:
        """Whether what was paid reached the budget, which was planned by an estimate."""
        budget = self.ready.gate.spec.budget
        return budget is not None and budget.usd is not None and self.amount >= budget.usd

    def _table(self, resolved: Resolved) -> Table:
        run = resolved.run
        return run_tables(self.store, run, run_scorers(run))[0]

    def _decided(
        self,
        tables: Sequence[Table],
        items: int,
        look: int,
        last: bool,
        before: Sequence[LineResult],
    ) -> tuple[LineResult, ...]:
        ready, spec = self.ready, self.ready.gate.spec
        order = ready.order[:items]
        lines = gate_lines(
            ready.lines,
            tables[0],
            order,
            strict=ready.strict,
            other=self._other(tables, order),
            held=_held(ready, tables),
        )
        return decide(
            lines,
            ready.schedule,
            look,
            clusters=self._clusters(tables[0], order),
            fail_above=spec.fail_above,
            before=before,
            last=last,
            seed=ready.gate.experiment.seed,
        )

    def _other(self, tables: Sequence[Table], order: Sequence[str]) -> dict[str, Floats]:
        """What the other version scored on these items, by recipe."""
        ready, baseline = self.ready, self.ready.gate.baseline
        if baseline is not None:
            return {
                identity: baseline.scores(order, column, strict=ready.strict)
                for column, (_, identity) in enumerate(baseline.conditions)
            }
        if len(tables) < 2:
            return {}
        table = tables[1]
        rows = {key: n for n, key in enumerate(table.items)}
        scores = table.matrix(strict=ready.strict)
        return {
            recipe.id: np.array(
                [scores[rows[key], n] if key in rows else math.nan for key in order]
            )
            for n, recipe in enumerate(table.recipes)
        }

    def _clusters(self, table: Table, order: Sequence[str]) -> list[str] | None:
        gate = self.ready.gate
        name, data = gate.spec.cluster, gate.experiment.data
        if name is None or data is None:
            return None
        tag = data.tags.index(name)
        labels = {item.key: item.tags[tag] for item in self.ready.panel.items}
        present = set(table.items)
        return [labels[key] for key in order if key in present]

    def _result(
        self,
        results: tuple[LineResult, ...],
        runs: Sequence[Resolved],
        tables: Sequence[Table],
        again: Table | None,
        items: int,
        look: int,
    ) -> GateResult:
        ready, spec, experiment = self.ready, self.ready.gate.spec, self.ready.gate.experiment
        scored = [*tables, *([again] if again is not None else [])]
        reasons: dict[str, int] = {}
        for table in scored:
            for reason, count in table.failures.items():
                reasons[reason] = reasons.get(reason, 0) + count
        unanswered = sum(int((table.in_plan & (table.outcome >= 4)).sum()) for table in scored)
        panel = ready.panel.panel
        return GateResult(
            lines=results,
            plan=ready.plan,
            run=runs[0].run.id,
            store=self.path,
            model=panel.model.label,
            task=panel.task,
            scorer=panel.scorer,
            recipes=tuple(r.label for r in ready.full.run.recipes if r.id != BASELINE.id),
            items=items,
            available=ready.available,
            look=look,
            looks=ready.schedule.looks,
            calls=self.sent,
            cells=sum(table.planned for table in scored),
            failed=unanswered,
            cost=ready.cost,
            level=spec.level,
            fail_level=spec.fail_level,
            undecided=spec.undecided,
            signature=_signature(ready),
            version=__version__,
            seed=experiment.seed,
            unparsed=experiment.unparsed,
            created_at=time.time(),
            noise=_noise(tables[0], again, ready.strict),
            simulated=panel.model.simulated,
            against=_against(ready),
            failures=reasons,
            notes=(*ready.notes, *self._stopped(look)),
        )

    def _stopped(self, look: int) -> list[str]:
        if self._spent and look < self.ready.schedule.looks:
            return ["It stopped before its last look because the budget is spent."]
        return []


def _held(ready: OpenGate, tables: Sequence[Table]) -> str:
    """Why a regression must not count as a failure: the same model, served by somebody else."""
    baseline = ready.gate.baseline
    if baseline is not None:
        theirs, model = set(baseline.served_by), baseline.model
    elif len(tables) > 1:
        theirs, model = set(tables[1].served_by), tables[1].panel.model
    else:
        return ""
    ours = set(tables[0].served_by)
    same = (model.client, model.name) == (
        tables[0].panel.model.client,
        tables[0].panel.model.name,
    )
    if not same or not ours or not theirs or ours == theirs:
        return ""
    return (
        f"the baseline was served by {', '.join(sorted(theirs))}, this version by "
        f"{', '.join(sorted(ours))}"
    )


def _noise(table: Table, again: Table | None, strict: bool) -> Any:
    """The share of outcomes that asking again turned: of the user's own repeats, or of ours."""
    source = table if again is None else again
    columns = [n for n, recipe in enumerate(source.recipes) if recipe.repeat]
    if not columns:
        return None
    scores = source.scores(strict=strict)[:, :, 0]
    return noise_floor(scores[:, 0], scores[:, columns[0]])


def _against(ready: OpenGate) -> str:
    if ready.gate.baseline is not None:
        baseline = ready.gate.baseline
        return f"{baseline.model.label}, falter {baseline.version}, {Path(baseline.path).name}"
    if ready.other is not None:
        return f"{ready.other.panels[0].panel.model.label}, asked beside it"
    return ""


def _signature(ready: OpenGate) -> str:
    """Everything that the verdicts depend on, in one line."""
    panel, spec, experiment = ready.panel.panel, ready.gate.spec, ready.gate.experiment
    looks = "anytime" if ready.schedule.anytime else f"{ready.schedule.looks}, O'Brien-Fleming"
    return " | ".join(
        (
            f"falter {__version__} gate",
            f"{panel.task}@{short(panel.revision)}",
            f"{panel.model.label}@{short(panel.model.id)}",
            panel.scorer,
            f"draws {experiment.draws}",
            f"repeats {experiment.repeats}",
            f"unparsed {experiment.unparsed}",
            f"pass {spec.level:g}",
            f"fail {spec.fail_level:g} max-t above {spec.fail_above}",
            f"looks {looks}, at most {ready.items} items",
            f"seed {experiment.seed}",
        )
    )
