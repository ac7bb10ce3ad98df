"""The figures of a gate, of its plan and of its examples, for every form of a report."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from falter.analysis.declared import Cell, Declared
from falter.engine.answers import AnswerFilter, pick_answers
from falter.gate.decision import CriterionResult
from falter.gate.preparation import PreparedGate
from falter.gate.result import GateResult
from falter.records import numbers as n
from falter.records.errors import printable
from falter.records.figures import Example, Examples, Figure, Statement, Study
from falter.records.types import Estimate

MAX_EXAMPLES = 3
"""Number of items shown for a failed criterion."""
MAX_CHARACTERS = 240
"""Length at which a text of an example is truncated."""
KIND_NAMES = {
    "drop": "drop",
    "average": "average drop",
    "unread": "more unreadable",
    "regression": "below the baseline",
    "score": "score",
}
"""Words for the kinds of criteria, in the table's column."""
declared = Declared("falter.gate")


def gate_study(result: GateResult) -> Study:
    """Return a gate's figures: the verdict, the criteria, the noise floor, and lost items."""
    figures = tuple(_gate_figures(result))
    return Study(
        id=result.run,
        title=f"Gate: {result.model} on {result.task}",
        version=result.version,
        created_at=result.created_at,
        seed=result.seed,
        level=result.level,
        unparsed=result.unparsed,
        models=(result.model,),
        simulated=(result.model,) if result.simulated else (),
        figures=figures,
        headline=tuple(figure.name for figure in figures if not isinstance(figure, Examples)),
        notes=result.notes,
    )


def _gate_figures(result: GateResult) -> Iterator[Figure]:
    """Yield the figures of a gate in reading order; figures without content are left out."""
    yield Statement(name="verdict", title="Verdict", text=(result.headline, _items_asked(result)))
    losses = [line for line in result.lines if line.kind != "score"]
    if losses:
        levels = {"level": n.level(result.level), "fail_level": n.level(result.fail_level)}
        yield declared.grid("gate", losses, _cell_functions(result), **levels)
    scores = [line for line in result.lines if line.kind == "score"]
    yield from declared.grids("gate-score", scores, cells=_cell_functions(result))
    texts = [result.criterion_text(line) for line in result.lines if line.verdict != "pass"]
    if texts:
        yield Statement(name="open-lines", title="What does not pass", text=tuple(texts))
    if result.noise is not None:
        signed = replace(result.noise, signature=result.signature, seed=result.seed)
        row = {"condition": "the same prompt again", "turned": signed, "items": signed.items}
        yield declared.grid("asked-again", [row])
    if result.failed:
        yield Statement(name="missing", kind="warning", text=(result.failed_text,))
    examples = [
        example
        for line in result.lines
        if line.verdict == "fail"
        for example in lost_examples(result, line)
    ]
    if examples:
        yield Examples(name="examples", title="Answers that became wrong", examples=tuple(examples))


def _items_asked(result: GateResult) -> str:
    """Return a sentence on the items sent, the look at which the gate stopped, and the calls."""
    looks = "one look" if result.looks == 1 else f"look {result.look} of {result.looks}"
    calls = "no call was made" if not result.calls else f"{result.calls:,} calls were made"
    against = f" Held against {result.against}." if result.against else ""
    return (
        f"{n.whole(result.items)} of {n.whole(result.available)} items, {looks}; {calls}.{against}"
    )


def _cell_functions(result: GateResult) -> dict[str, Cell]:
    """Return the functions that fill the columns which are no attribute of a criterion."""
    return {
        "label": lambda line: line.name.partition(", ")[0],
        "what": lambda line: KIND_NAMES[line.kind],
        "value": lambda line: _estimate(result, line),
    }


def _estimate(result: GateResult, criterion: CriterionResult) -> Estimate:
    """Return the value of a criterion; its two limits are one-sided, each with its own error."""
    return Estimate(
        measure=f"gate.{criterion.kind}",
        value=criterion.value,
        status="insufficient_data" if criterion.value is None else "ok",
        group={"line": criterion.name, "model": result.model, "task": result.task},
        estimand="mean over items like these of how much worse the outcome is"
        if criterion.kind != "score"
        else f"mean over items like these: {criterion.name}",
        low=criterion.low,
        high=criterion.high,
        # Bonferroni: at worst the errors of the two one-sided limits add up.
        level=round(result.level + result.fail_level - 1.0, 9),
        method=f"{criterion.method}; one-sided: one criterion {result.level:g}, all criteria "
        f"{result.fail_level:g}; look {criterion.look} of {result.looks}",
        items=criterion.items,
        conditions=1 if criterion.kind == "score" else 2,
        excluded=criterion.excluded,
        clusters=criterion.clusters,
        design_effect=criterion.design_effect,
        seed=result.seed,
        signature=result.signature,
    )


def lost_examples(result: GateResult, line: CriterionResult) -> tuple[Example, ...]:
    """Return items that were right with the clean prompt and became wrong.

    Only a recipe's drop has examples, and only in a stored run: otherwise the result is empty.
    """
    if line.kind != "drop" or result.store is None:
        return ()
    picked = AnswerFilter(kinds=("lost",), recipe=line.name)
    found = pick_answers(result.store, result.run, picked, limit=MAX_EXAMPLES)
    return tuple(answer.example for answer in found.answers)


def example_text(example: Example) -> str:
    """Return a lost item for a log: its prompt, the expected answer, and both responses."""
    prompt = "".join(segment.after for segment in example.segments)
    said = {
        "prompt": prompt,
        "expected": example.expected,
        "answer to it": example.perturbed.answer,
        "answer as asked": example.baseline.answer,
    }
    return "\n".join([example.item, *(f"  {name}: {_short(text)}" for name, text in said.items())])


def _short(text: str) -> str:
    """Return the text on one line, without control characters, truncated at `MAX_CHARACTERS`."""
    text = printable(" ".join(text.split())) or "(nothing)"
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


# Before anything is sent


def plan_study(ready: PreparedGate) -> Study:
    """Return the plan of a gate as figures: its chance of a pass, its items and its cost."""
    plan, cost, panel = ready.plan, ready.cost, ready.panel.panel
    calls = round(ready.items * cost.calls)
    price = ""
    if cost.amount is not None:
        price = f", at most about {ready.items * cost.amount:,.2f} {cost.currency}"
    looks = [ready.schedule.items(look + 1, ready.items) for look in range(ready.schedule.looks)]
    sentences = [
        ready.refusal
        or f"Where nothing changed this gate passes in at least {n.percent(plan.chance)} % of the "
        "cases.",
        f"{n.whole(ready.items)} items ({n.whole(calls)} calls{price}); "
        f"{n.decimal(cost.calls, 2)} calls an item, looks after {', '.join(map(n.whole, looks))} "
        "items.",
    ]
    if plan.planned is not None:
        sentences.append(
            f"For 95 % it takes about {n.whole(plan.planned)} items "
            f"({n.whole(round(plan.planned * cost.calls))} calls)."
        )
    grid = declared.grid("gate-plan", plan.criteria)
    return Study(
        id=ready.full.run.id,
        title=f"Plan of a gate: {panel.model.label} on {panel.task}",
        version=ready.full.run.version,
        created_at=time.time(),
        seed=ready.full.run.seed,
        level=ready.gate.spec.level,
        unparsed=ready.gate.experiment.unparsed,
        models=(panel.model.label,),
        figures=(Statement(name="plan", title="Can it decide?", text=tuple(sentences)), grid),
        notes=ready.notes,
    )
