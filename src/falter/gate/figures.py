"""A gate as figures, so that every form of a report has it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from falter.engine.answers import PickedAnswers, pick_answers
from falter.gate.decision import CriterionResult
from falter.gate.preparation import PreparedGate
from falter.gate.result import GateResult
from falter.records import numbers as n
from falter.records.errors import printable
from falter.records.figures import Column, Example, Examples, Figure, Grid, Statement, Study, Value
from falter.records.types import Estimate

MAX_EXAMPLES = 3
MAX_CHARACTERS = 240
KINDS = {
    "drop": "drop",
    "average": "average drop",
    "unread": "more unreadable",
    "regression": "below the baseline",
    "score": "score",
}
LOSS_COLUMNS = (
    Column(name="Line"),
    Column(name="What"),
    Column(name="Verdict"),
    Column(name="Points", unit="points", about="at least and at most"),
    Column(name="Margin", unit="points"),
    Column(name="Items", unit="count"),
    Column(name="Worse", unit="count"),
    Column(name="Better", unit="count"),
    Column(name="Look", unit="count"),
)
SCORE_COLUMNS = (
    Column(name="Line"),
    Column(name="Verdict"),
    Column(name="Score, %", unit="percent", about="at least and at most"),
    Column(name="Must be above, %", unit="percent"),
    Column(name="Items", unit="count"),
    Column(name="Look", unit="count"),
)


def gate_study(result: GateResult) -> Study:
    """Show the verdict, the criteria, what asking again turns, and examples of what fell."""
    figures = tuple(_figures(result))
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


def _figures(result: GateResult) -> Iterator[Figure]:
    yield Statement(name="verdict", title="Verdict", text=(result.headline, _asked(result)))
    losses = [line for line in result.lines if line.kind != "score"]
    if losses:
        text = (
            f"A line passes when its upper limit ({n.level(result.level)}, one-sided) is below the "
            f"margin, and fails when the lower limit that holds for all lines at once "
            f"({n.level(result.fail_level)}, one-sided) shows a loss and it does not pass."
        )
        rows = _rows(result, losses, LOSS_COLUMNS)
        yield Grid(
            name="gate",
            title="The lines of the gate",
            columns=LOSS_COLUMNS,
            rows=rows,
            text=(text,),
        )
    scores = [line for line in result.lines if line.kind == "score"]
    if scores:
        rows = _rows(result, scores, SCORE_COLUMNS)
        yield Grid(name="gate-score", title="Scores and shares", columns=SCORE_COLUMNS, rows=rows)
    texts = [result.line_text(line) for line in result.lines if line.verdict != "pass"]
    if texts:
        yield Statement(name="open-lines", title="What does not pass", text=tuple(texts))
    if result.noise is not None:
        yield _noise_grid(result, result.noise)
    if result.failed:
        yield Statement(name="missing", kind="warning", text=(result.failed_text,))
    examples = [
        example
        for line in result.lines
        if line.verdict == "fail"
        for example in lost_examples(result, line)
    ]
    if examples:
        yield Examples(name="examples", title="Answers that were lost", examples=tuple(examples))


def _asked(result: GateResult) -> str:
    """How many items were asked, when it stopped, and what it cost."""
    looks = "one look" if result.looks == 1 else f"look {result.look} of {result.looks}"
    calls = "no call was made" if not result.calls else f"{result.calls:,} calls were made"
    against = f" Held against {result.against}." if result.against else ""
    return (
        f"{n.whole(result.items)} of {n.whole(result.available)} items, {looks}; {calls}.{against}"
    )


def _rows(
    result: GateResult, lines: list[CriterionResult], columns: tuple[Column, ...]
) -> tuple[tuple[Value, ...], ...]:
    def row(line: CriterionResult) -> dict[str, Value]:
        value = _estimate(result, line)
        return {
            "Line": line.name.partition(", ")[0],
            "What": KINDS[line.kind],
            "Verdict": line.verdict,
            "Points": value,
            "Score, %": value,
            "Margin": line.margin,
            "Must be above, %": line.margin,
            "Items": line.items,
            "Worse": line.fell,
            "Better": line.rose,
            "Look": line.look,
        }

    return tuple(tuple(row(line)[column.name] for column in columns) for line in lines)


def _estimate(result: GateResult, line: CriterionResult) -> Estimate:
    """The value of a criterion. Its two limits are one-sided, each with its own error."""
    return Estimate(
        measure=f"gate.{line.kind}",
        value=line.value,
        status="insufficient_data" if line.value is None else "ok",
        group={"line": line.name, "model": result.model, "task": result.task},
        estimand="mean over items like these of how much worse the outcome is"
        if line.kind != "score"
        else f"mean over items like these: {line.name}",
        low=line.low,
        high=line.high,
        # The two ends err independently of each other at worst: together they hold for the rest.
        level=round(result.level + result.fail_level - 1.0, 9),
        method=f"{line.method}; one-sided: one line {result.level:g}, all lines "
        f"{result.fail_level:g}; look {line.look} of {result.looks}",
        items=line.items,
        conditions=1 if line.kind == "score" else 2,
        excluded=line.excluded,
        clusters=line.clusters,
        design_effect=line.design_effect,
        seed=result.seed,
        signature=result.signature,
    )


def _noise_grid(result: GateResult, noise: Estimate) -> Grid:
    signed = replace(noise, signature=result.signature, seed=result.seed)
    return Grid(
        name="asked-again",
        title="What asking again turns by itself",
        columns=(
            Column(name="Condition"),
            Column(name="Outcomes turned, %", unit="percent"),
            Column(name="Items", unit="count"),
        ),
        rows=(("the same prompt again", signed, noise.items),),
    )


def lost_examples(result: GateResult, line: CriterionResult) -> tuple[Example, ...]:
    """Items that were right with the clean prompt and became wrong; of a recipe's drop only."""
    if line.kind != "drop" or result.store is None:
        return ()
    picked = PickedAnswers(kinds=("lost",), recipe=line.name)
    found = pick_answers(result.store, result.run, picked, limit=MAX_EXAMPLES)
    return tuple(answer.example for answer in found.answers)


def example_text(example: Example) -> str:
    """An item that was lost, for a log: its prompt, what was expected, and both answers."""
    prompt = "".join(segment.after for segment in example.segments)
    said = {
        "prompt": prompt,
        "expected": example.expected,
        "answer to it": example.perturbed.answer,
        "answer as asked": example.baseline.answer,
    }
    return "\n".join([example.item, *(f"  {name}: {_short(text)}" for name, text in said.items())])


def _short(text: str) -> str:
    """One line without control characters."""
    text = printable(" ".join(text.split())) or "(nothing)"
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"


# Before anything is asked


def plan_study(ready: PreparedGate) -> Study:
    """Show what the gate can decide and what it costs."""
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
    rows: list[tuple[Value, ...]] = [
        (
            each.criterion.name,
            each.criterion.margin,
            each.criterion.items,
            each.criterion.discordance,
            each.criterion.source,
            each.needed,
            each.best,
            each.chance,
        )
        for each in plan.criteria
    ]
    grid = Grid(
        name="gate-plan",
        title="What each line needs",
        columns=(
            Column(name="Line"),
            Column(name="Margin", unit="percent"),
            Column(name="Items", unit="count"),
            Column(name="Answers that flip, %", unit="percent"),
            Column(name="Known from"),
            Column(name="Needs", unit="count", about="items for 80 % power"),
            Column(name="Best", unit="percent", about="that these items can show"),
            Column(name="Passes, %", unit="percent", about="where nothing changed"),
        ),
        rows=tuple(rows),
    )
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
