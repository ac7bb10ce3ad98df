"""The run of a gate: send, test at each look, and stop as soon as every criterion is decided."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from falter import __version__
from falter.analysis.results import MAX_FAILED_SHARE
from falter.analysis.table import Table, run_tables
from falter.engine.execution import (
    Watch,
    check_scorers,
    opened,
    record_run,
    run_async,
    run_missing_together,
)
from falter.engine.resolving import Resolved
from falter.engine.scoring import run_scorers
from falter.gate.decision import CriterionResult, decide, without_verdict
from falter.gate.preparation import (
    REPEAT_SHARE,
    Gate,
    Infeasible,
    PreparedGate,
    prepared,
    repeats_clean_prompt,
)
from falter.gate.requirements import measured_criteria, scores_by_recipe
from falter.gate.result import GateResult
from falter.measures.flips import noise_floor
from falter.records.ids import short
from falter.records.types import BASELINE, Estimate, Recipe
from falter.store.store import Store

Floats = NDArray[np.float64]
REPEATED_BASELINE = Recipe(label="asked again", repeat=1)


def run_gate(gate: Gate, store_path: Path, *, watch: Watch | None = None) -> GateResult:
    """Run a gate up to the look that decides every criterion; send no stored request again.

    Raises `Infeasible`, before anything is sent, if the gate could not pass even if nothing
    changed.
    """
    with prepared(gate, store_path) as ready:
        if ready.refusal is not None:
            raise Infeasible(
                ready.refusal,
                hint="more items, a wider margin or fewer looks; 'falter gate --plan' shows what "
                "each criterion needs",
            )
        for resolved in ready.runs:
            check_scorers(resolved)
        with Store(store_path) as store:
            return run_async(lambda: _GateRun(ready, store, store_path, watch).result())


class _GateRun:
    """The interim analyses of one gate, one after another, with their store."""

    def __init__(self, ready: PreparedGate, store: Store, path: Path, watch: Watch | None) -> None:
        self.ready, self.store, self.path, self.watch = ready, store, path, watch
        self.sent, self.amount = 0, 0.0
        self._stack = contextlib.AsyncExitStack()
        self._opened_clients: set[int] = set()

    async def result(self) -> GateResult:
        """Send items and test the criteria look by look; return the deciding look's result."""
        ready, labels = self.ready, self.ready.clusters
        results: tuple[CriterionResult, ...] = ()
        async with self._stack:
            for look in range(1, ready.schedule.looks + 1):
                items = ready.schedule.items(look, ready.items)
                repeated = await self._send_repeats(items)
                # With all items, this is the run that 'falter run' plans from the same file, so
                # both have one id.
                runs = [arm.run(None if items == ready.available else items) for arm in ready.arms]
                await self._send(runs)
                tables = [self._table(run) for run in runs]
                present = set(tables[0].items)
                order = [key for key in ready.order[:items] if key in present]
                last = look == ready.schedule.looks or self._is_spent
                results = decide(
                    measured_criteria(
                        ready.requirements,
                        tables[0],
                        order,
                        strict=ready.strict,
                        other=_other_scores(ready, tables, order),
                        held=_provider_changed(ready, tables),
                    ),
                    ready.schedule,
                    look,
                    clusters=None if labels is None else [labels[key] for key in order],
                    fail_above=ready.gate.spec.fail_above,
                    before=results,
                    last=last,
                    seed=ready.gate.experiment.seed,
                )
                if last or all(result.verdict != "undecided" for result in results):
                    return self._gate_result(results, runs[0], tables, repeated, items, look)
        raise AssertionError("the last look ends it")

    async def _send_repeats(self, items: int) -> Table | None:
        """Repeat the clean prompt for a share of the items; return the table of the repeats.

        None if the user's own recipes repeat the clean prompt.
        """
        if repeats_clean_prompt(self.ready.full.run.recipes):
            return None
        share = max(1, math.ceil(REPEAT_SHARE * items))
        run = self.ready.arms[0].run(share, (BASELINE, REPEATED_BASELINE))
        await self._send([run])
        return self._table(run)

    async def _send(self, runs: Sequence[Resolved]) -> None:
        """Send the missing requests of the runs, and count them and their cost."""
        missing = [run for run in runs if not record_run(run, self.store)]
        if not missing:
            return
        for client in [client for run in missing for client in run.clients]:
            if id(client) not in self._opened_clients:
                await self._stack.enter_async_context(opened([client]))
                self._opened_clients.add(id(client))
        price = self.ready.panel.target.price
        for progress in await run_missing_together(missing, self.store, self.watch):
            self.sent += progress.sent
            if price is not None:
                prompt, completion = progress.prompt_tokens, progress.completion_tokens
                self.amount += (prompt * price.input + completion * price.output) / 1e6

    @property
    def _is_spent(self) -> bool:
        """Return True if the amount paid has reached the budget; the plan only estimated it."""
        budget = self.ready.gate.spec.budget
        return budget is not None and budget.usd is not None and self.amount >= budget.usd

    def _table(self, resolved: Resolved) -> Table:
        """Return the table of scores of a run, from its stored responses."""
        return run_tables(self.store, resolved.run, run_scorers(resolved.run))[0]

    def _gate_result(
        self,
        results: tuple[CriterionResult, ...],
        run: Resolved,
        tables: Sequence[Table],
        repeated: Table | None,
        items: int,
        look: int,
    ) -> GateResult:
        """Return the result of the gate; no criterion has a verdict if too many requests failed."""
        ready, spec, experiment = self.ready, self.ready.gate.spec, self.ready.gate.experiment
        sent_tables = [*tables, *([] if repeated is None else [repeated])]
        failures: Counter[str] = Counter()
        for table in sent_tables:
            failures.update(table.failures)
        notes = list(ready.notes)
        is_open = any(result.verdict == "undecided" for result in results)
        if self._is_spent and is_open and look < ready.schedule.looks:
            notes.append("It stopped before its last interim analysis because the budget is spent.")
        panel = ready.panel.panel
        cells = sum(table.planned for table in sent_tables)
        # Outcome 4 is failed, 5 missing (`OUTCOMES`).
        failed = sum(int((table.in_plan & (table.outcome >= 4)).sum()) for table in sent_tables)
        if failed > MAX_FAILED_SHARE * cells:
            results = tuple(map(without_verdict, results))
        return GateResult(
            lines=results,
            run=run.run.id,
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
            cells=cells,
            failed=failed,
            cost=ready.cost,
            level=spec.level,
            fail_level=spec.fail_level,
            undecided=spec.undecided,
            signature=_signature(ready),
            version=__version__,
            seed=experiment.seed,
            unparsed=experiment.unparsed,
            created_at=time.time(),
            noise=_noise_floor(tables[0] if repeated is None else repeated, ready),
            simulated=panel.model.simulated,
            against=_compared_version(ready),
            failures=failures,
            notes=tuple(notes),
        )


def _other_scores(
    ready: PreparedGate, tables: Sequence[Table], order: Sequence[str]
) -> dict[str, Floats]:
    """Return the scores of the version compared with, by recipe id, in the order of `order`."""
    baseline = ready.gate.baseline
    if baseline is not None:
        return {
            identity: baseline.scores(order, column, strict=ready.strict)
            for column, (_, identity) in enumerate(baseline.conditions)
        }
    if len(tables) < 2:
        return {}
    return scores_by_recipe(tables[1], order, strict=ready.strict)


def _provider_changed(ready: PreparedGate, tables: Sequence[Table]) -> str:
    """Return the reason not to fail a regression: the same model was served by another provider.

    Empty if the providers are the same or unknown, or if the model differs.
    """
    baseline = ready.gate.baseline
    if baseline is not None:
        other_providers, model = set(baseline.served_by), baseline.model
    elif len(tables) > 1:
        other_providers, model = set(tables[1].served_by), tables[1].panel.model
    else:
        return ""
    providers, own_model = set(tables[0].served_by), tables[0].panel.model
    same = (model.client, model.name) == (own_model.client, own_model.name)
    if not same or not providers or not other_providers or providers == other_providers:
        return ""
    return (
        f"the baseline was served by {', '.join(sorted(other_providers))}, this version by "
        f"{', '.join(sorted(providers))}"
    )


def _noise_floor(table: Table, ready: PreparedGate) -> Estimate | None:
    """Return the share of outcomes that flip in a repeat of the clean prompt, or None."""
    columns = [n for n, recipe in enumerate(table.recipes) if recipe.repeat]
    if not columns:
        return None
    scores, labels = table.scores(strict=ready.strict)[:, :, 0], ready.clusters
    clusters = None if labels is None else [labels[key] for key in table.items]
    return noise_floor(scores[:, 0], scores[:, columns[0]], clusters=clusters)


def _compared_version(ready: PreparedGate) -> str:
    """Return the version compared with in words; empty if there is none."""
    baseline = ready.gate.baseline
    if baseline is not None:
        return f"{baseline.model.label}, falter {baseline.version}, {Path(baseline.path).name}"
    if len(ready.runs) > 1:
        return f"{ready.runs[1].panels[0].panel.model.label}, asked beside it"
    return ""


def _signature(ready: PreparedGate) -> str:
    """Return everything that the verdicts depend on, in one line."""
    panel, spec, experiment = ready.panel.panel, ready.gate.spec, ready.gate.experiment
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
            f"looks {ready.schedule.looks}, O'Brien-Fleming, at most {ready.items} items",
            f"seed {experiment.seed}",
        )
    )
