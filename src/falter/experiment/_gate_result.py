"""What a gate came to: its verdict, its lines in words, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from falter.core.records import Estimate
from falter.figures import numbers as n
from falter.gate import GatePlan, LinePlan, LineResult, LineVerdict, gate_verdict

__all__ = ["GateResult", "LineCost", "infeasible_text", "line_text", "more_text"]

EXIT_CODES: Mapping[LineVerdict, int] = {"pass": 0, "fail": 3, "undecided": 4}
INCOMPLETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCost:
    """What one more item takes: requests, and an amount where the price is known."""

    calls: float
    amount: float | None = None
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateResult:
    """The verdict of a gate with all that it rests on. `str()` of it says what happened.

    `items` were asked of `available`; `calls` were sent now, the rest of the answers was stored.
    `noise` is the share of outcomes that asking again turned. `cells` count how many of them
    `failed`, which leaves the gate incomplete.
    """

    lines: tuple[LineResult, ...]
    plan: GatePlan
    run: str
    store: Path
    model: str
    task: str
    scorer: str
    recipes: tuple[str, ...]
    items: int
    available: int
    look: int
    looks: int
    calls: int
    cells: int
    failed: int
    cost: LineCost
    level: float
    fail_level: float
    undecided: Literal["fail", "neutral", "pass"]
    signature: str
    version: str
    seed: int
    unparsed: Literal["wrong", "excluded"]
    created_at: float
    noise: Estimate | None = None
    simulated: bool = False
    against: str = ""
    failures: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> LineVerdict:
        """`pass`, `fail` or `undecided`."""
        return gate_verdict(self.lines)

    @property
    def passed(self) -> bool:
        """Whether a build may go on."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """0 pass, 1 incomplete, 3 fail, 4 undecided (0 where that counts as neutral or a pass).

        Answers that are missing cannot undo a line that failed.
        """
        if self.verdict == "fail":
            return EXIT_CODES["fail"]
        if self.failed:
            return INCOMPLETE
        if self.verdict == "undecided" and self.undecided != "fail":
            return 0
        return EXIT_CODES[self.verdict]

    @property
    def headline(self) -> str:
        """One sentence: `Gate failed: 1 of 4 lines fails, 3 pass.`"""
        word = {"pass": "passed", "fail": "failed", "undecided": "is undecided"}[self.verdict]
        if self.failed and self.verdict != "fail":
            word = "is incomplete"
        counts = [
            f"{sum(line.verdict == verdict for line in self.lines)} {verdict}"
            for verdict in ("pass", "fail", "undecided")
            if any(line.verdict == verdict for line in self.lines)
        ]
        lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
        return f"Gate {word}. Of {lines}: {', '.join(counts)}."

    def __repr__(self) -> str:
        # pytest shows the repr of what stands behind 'assert verdict.passed, verdict'.
        return str(self)

    def __str__(self) -> str:
        texts = [self.headline, *(line_text(self, line) for line in self.lines)]
        if self.failed:
            texts.append(self.failed_text)
        return "\n".join(texts)

    @property
    def failed_text(self) -> str:
        """How many answers are missing, and why."""
        why = "; ".join(f"{reason} ({count:,})" for reason, count in self.failures.items())
        return (
            f"{self.failed:,} of {self.cells:,} answers failed and are missing: {why[:400]}. "
            "The same command asks them again."
        )

    def as_json(self) -> dict[str, Any]:
        """Everything as plain data, fractions as fractions."""
        return {
            "verdict": self.verdict,
            "passed": self.passed,
            "exit_code": self.exit_code,
            "run": self.run,
            "model": self.model,
            "task": self.task,
            "scorer": self.scorer,
            "items": self.items,
            "available": self.available,
            "look": self.look,
            "looks": self.looks,
            "calls_sent": self.calls,
            "failed": self.failed,
            "asked_again": None if self.noise is None else self.noise.value,
            "against": self.against or None,
            "signature": self.signature,
            "lines": [_plain(self, line) for line in self.lines],
            "notes": list(self.notes),
        }


def _plain(result: GateResult, line: LineResult) -> dict[str, Any]:
    return {
        "name": line.name,
        "kind": line.kind,
        "verdict": line.verdict,
        "value": line.value,
        "low": line.low,
        "high": line.high,
        "margin": line.margin,
        "items": line.items,
        "excluded": line.excluded,
        "fell": line.fell,
        "rose": line.rose,
        "look": line.look,
        "method": line.method,
        "more_items": line.more,
        "text": line_text(result, line),
    }


_SAID = {
    "drop": "the drop is {value} points",
    "average": "the average drop is {value} points",
    "unread": "{value} points more answers cannot be read",
    "regression": "the score is {value} points below the baseline's",
    "score": "the score is {value} %",
}


def line_text(result: GateResult, line: LineResult) -> str:
    """A line in one or two sentences: how much, how sure, of how many, and what now."""
    show = n.percent if line.kind == "score" else n.points
    margin = n.decimal(100 * line.margin)
    said = _SAID[line.kind].format(value=show(line.value))
    limits = f"at least {show(line.low)} and at most {show(line.high)}"
    needed = f"it must be above {margin}" if line.kind == "score" else f"the margin is {margin}"
    text = f"{line.verdict}: {line.name}: {said}, {limits}; {needed}. {_counted(line)}"
    return f"{text} {more_text(result, line)}".rstrip()


def _counted(line: LineResult) -> str:
    """How many items it is of; what an outcome turned to where outcomes are 0 or 1."""
    items = f"{line.items:,} items"
    if line.clusters is not None:
        items += f" in {line.clusters:,} clusters"
    if line.fell is None or line.rose is None:
        return f"({items})"
    if line.kind == "score":
        return f"({line.items - line.fell:,} right of {items})"
    return f"({line.fell:,} of {items} got worse, {line.rose:,} better)"


def more_text(result: GateResult, line: LineResult) -> str:
    """What would decide an undecided line."""
    if line.verdict != "undecided":
        return ""
    if line.why:
        return f"Undecided: {line.why}."
    if line.more is None:
        return "No number of items would show that all is well if this stays as it is."
    calls = round(line.more * result.cost.calls)
    price = ""
    if result.cost.amount is not None:
        price = f", {line.more * result.cost.amount:,.2f} {result.cost.currency}"
    return (
        f"About {line.more:,} more items ({calls:,} calls{price}) would show it if this stays as "
        "it is."
    )


def infeasible_text(plan: GatePlan, budget: str = "") -> str:
    """Why a gate that cannot pass is refused: the line that needs most, in one sentence."""
    line, others = plan.refused[0], len(plan.refused) - 1
    text = _infeasible(line)
    if others:
        text += f" ({line.line.name}; {others} more cannot either)"
    elif len(plan.lines) > 1:
        text += f" ({line.line.name})"
    return f"{text}{budget}"


def _infeasible(line: LinePlan) -> str:
    wanted, items = line.line, f"{line.line.items:,} items"
    margin = _short(100 * wanted.margin)
    if wanted.kind == "score":
        if line.needed is None:
            return (
                f"The score is {n.percent(wanted.score)} % in {wanted.source}; no number of items "
                f"can show more than {margin} %"
            )
        return (
            f"{items} cannot show a score above {margin} %; it needs about {line.needed:,}; the "
            f"best that {wanted.items:,} can show is {n.percent(line.best)}"
        )
    return (
        f"{items} cannot show a {margin}-point margin; it needs about {line.needed or 0:,}; the "
        f"best that {wanted.items:,} can show is {n.decimal(100 * line.best)}"
    )


def _short(value: float) -> str:
    return f"{value:.4g}"
