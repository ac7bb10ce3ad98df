"""The result of a gate: its verdict, its criteria in words, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from falter.analysis.results import MAX_FAILED_SHARE
from falter.gate.decision import CriterionResult, Verdict, gate_verdict
from falter.gate.feasibility import CriterionPlan, GatePlan
from falter.gate.requirements import CLEAN
from falter.records import numbers as n
from falter.records.types import Estimate

EXIT_CODES: Mapping[Verdict, int] = {"pass": 0, "fail": 3, "undecided": 4}
INCOMPLETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCost:
    """The cost of one more item: a number of requests, and an amount if the price is known."""

    calls: float
    amount: float | None = None
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GateResult:
    """The verdict of a gate with all that it rests on; `str()` gives it in words.

    - `lines` are the results of the criteria.
    - `items` of the `available` items were sent. `calls` requests were sent now; the other
      responses were stored before.
    - `noise` is the share of outcomes that flipped when the clean prompt was repeated.
    - `cells` is the number of planned responses, of which `failed` are missing. A missing response
      leaves the gate incomplete.
    - `store` is None for another tool's results, for which nothing was sent.
    """

    lines: tuple[CriterionResult, ...]
    run: str
    store: Path | None
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
    cost: ItemCost
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
    def verdict(self) -> Verdict:
        """The verdict on all criteria: `pass`, `fail` or `undecided`."""
        return gate_verdict(self.lines)

    @property
    def mostly_failed(self) -> bool:
        """Return True if so many requests failed that no criterion has a verdict."""
        return self.failed > MAX_FAILED_SHARE * self.cells

    @property
    def passed(self) -> bool:
        """True if the exit code is 0, so that a build may continue."""
        return self.exit_code == 0

    @property
    def exit_code(self) -> int:
        """The exit code: 0 pass, 1 incomplete, 3 fail, 4 undecided.

        An undecided gate exits with 0 if the settings count it as neutral or as a pass. A failed
        criterion stays failed even if responses are missing. If most responses are missing, no
        criterion has a verdict and the code is always 4.
        """
        if self.mostly_failed:
            return EXIT_CODES["undecided"]
        if self.verdict == "fail":
            return EXIT_CODES["fail"]
        if self.failed:
            return INCOMPLETE
        if self.verdict == "undecided" and self.undecided != "fail":
            return 0
        return EXIT_CODES[self.verdict]

    @property
    def headline(self) -> str:
        """The verdict in words: `Gate failed. Of 4 criteria: 3 pass, 1 fail.`"""
        word = {"pass": "passed", "fail": "failed", "undecided": "is undecided"}[self.verdict]
        if self.failed and self.verdict != "fail" and not self.mostly_failed:
            word = "is incomplete"
        verdicts = [line.verdict for line in self.lines]
        counts = [f"{verdicts.count(each)} {each}" for each in EXIT_CODES if each in verdicts]
        criteria = "1 criterion" if len(self.lines) == 1 else f"{len(self.lines)} criteria"
        return f"Gate {word}. Of {criteria}: {', '.join(counts)}."

    def __repr__(self) -> str:
        # pytest shows the repr of the message in 'assert verdict.passed, verdict'.
        return str(self)

    def __str__(self) -> str:
        texts = [self.headline, *map(self.criterion_text, self.lines)]
        if self.failed:
            texts.append(self.failed_text)
        return "\n".join(texts)

    @property
    def failed_text(self) -> str:
        """The number of missing responses, with the reasons and advice."""
        why = "; ".join(f"{reason} ({count:,})" for reason, count in self.failures.items())
        if self.store is None:
            return (
                f"{self.failed:,} of {self.cells:,} answers failed or have no score. Run the tool "
                "that made the results again."
            )
        return (
            f"{self.failed:,} of {self.cells:,} answers failed and are missing: {why[:400]}. "
            "Run the same command again to retry them."
        )

    def criterion_text(self, line: CriterionResult) -> str:
        """Return a criterion in words: its verdict, then `loss_text`."""
        return f"{line.verdict}: {self.loss_text(line)}"

    def loss_text(self, line: CriterionResult) -> str:
        """Return the loss of a criterion in words, with its limits, margin and items.

        `typos: the score falls by 12.0 points, between 5.1 and 19.3; the limit is 5.0 points.`
        """
        name = line.name.removesuffix(f", {line.kind}")
        text = f"{name}: {_loss_text(line)}. {_count_text(line)}"
        return f"{text} {self._further_items_text(line)}".rstrip()

    def _further_items_text(self, criterion: CriterionResult) -> str:
        """Return the number of items that would decide an undecided criterion, in words."""
        if criterion.verdict != "undecided":
            return ""
        if criterion.why:
            return f"Undecided: {criterion.why}."
        if criterion.more is None:
            return "No number of items would show that all is well if this stays as it is."
        cost = f" ({round(criterion.more * self.cost.calls):,} calls)" if self.cost.calls else ""
        if self.cost.amount is not None:
            cost = cost.replace(
                ")", f", {criterion.more * self.cost.amount:,.2f} {self.cost.currency})"
            )
        return f"About {criterion.more:,} more items{cost} would show it if this stays as it is."

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain data; losses and margins are fractions."""
        return {
            **{name: getattr(self, name) for name in _RESULT_FIELDS},
            "calls_sent": self.calls,
            "failed": self.failed,
            "asked_again": None if self.noise is None else self.noise.value,
            "against": self.against or None,
            "signature": self.signature,
            "lines": [
                {
                    **{name: getattr(line, name) for name in _CRITERION_FIELDS},
                    "more_items": line.more,
                    "text": self.criterion_text(line),
                }
                for line in self.lines
            ],
            "notes": list(self.notes),
        }


_RESULT_FIELDS = (
    "verdict", "passed", "exit_code", "run", "model", "task", "scorer", "items", "available",
    "look", "looks",
)  # fmt: skip
_CRITERION_FIELDS = (
    "name", "kind", "verdict", "value", "low", "high", "margin", "items", "excluded", "fell",
    "rose", "look", "method",
)  # fmt: skip
# A loss and a gain of each kind of criterion, in words.
_LOSS_WORDS = {
    "drop": ("the score falls by {} points", "the score rises by {} points"),
    "average": ("the score falls by {} points on average", "the score rises by {} on average"),
    "unread": ("{} points more answers cannot be read", "{} points fewer answers cannot be read"),
    "regression": (
        "the score is {} points below the baseline's", "the score is {} points above the baseline's"
    ),
}  # fmt: skip


def _loss_text(criterion: CriterionResult) -> str:
    """Return the loss, its interval and the limit in words."""
    margin, loss = n.decimal(100 * criterion.margin), criterion.value
    is_score = criterion.kind == "score"
    needed = f"it must be above {margin} %" if is_score else f"the limit is {margin} points"
    if loss is None:
        return f"nothing is known; {needed}"
    if is_score:
        what = "score" if _is_clean_score(criterion) else "share"
        interval = _interval_text(criterion.low, criterion.high)
        return f"the {what} is {n.percent(loss)} %{interval}; {needed}"
    low, high = criterion.low, criterion.high
    if gains := loss < 0.0:
        low, high = (None if end is None else -end for end in (high, low))
    phrase = _LOSS_WORDS[criterion.kind][gains].format(n.decimal(abs(100 * loss)))
    return f"{phrase}{_interval_text(low, high)}; {needed}"


def _is_clean_score(criterion: CriterionResult) -> bool:
    """Return True for the score of the clean prompt, whose items are right or wrong."""
    return criterion.name == f"{CLEAN}, {criterion.kind}"


def _interval_text(low: float | None, high: float | None) -> str:
    """Return the limits as `, between 5.1 and 19.3`; an empty text if a limit is missing."""
    if low is None or high is None:
        return ""
    return f", between {n.decimal(100 * low)} and {n.decimal(100 * high)}"


def _count_text(criterion: CriterionResult) -> str:
    """Return the number of items in words, and of 0/1 outcomes how many got worse or better."""
    items = f"{criterion.items:,} items"
    if criterion.clusters is not None:
        items += f" in {criterion.clusters:,} clusters"
    if criterion.fell is None or criterion.rose is None:
        return f"Over {items}."
    if criterion.kind == "score":
        phrase = "are right" if _is_clean_score(criterion) else "hold in all of their versions"
        return f"{criterion.items - criterion.fell:,} of {items} {phrase}."
    return f"{criterion.fell:,} of {items} got worse, {criterion.rose:,} better."


def infeasible_text(plan: GatePlan, budget: str) -> str:
    """Return the reason why a gate is refused: the criterion that needs most items, in words."""
    worst, others = plan.refused[0], len(plan.refused) - 1
    text = _criterion_refusal(worst)
    if others:
        text += f" ({worst.criterion.name}; {others} more cannot either)"
    elif len(plan.criteria) > 1:
        text += f" ({worst.criterion.name})"
    return f"{text}{budget}"


def _criterion_refusal(plan: CriterionPlan) -> str:
    """Return the reason why one criterion cannot pass, with the number of items that it needs."""
    criterion = plan.criterion
    margin = f"{100 * criterion.margin:.4g}"
    if criterion.kind != "score":
        goal = f"for a {margin}-point margin"
        best = f"The smallest margin that they can show is {n.decimal(100 * plan.best)} points"
    elif plan.needed is not None:
        goal = f"to show a score above {margin} %"
        best = f"The highest limit that they can show is {n.percent(plan.best)} %"
    else:
        return (
            f"The score is {n.percent(criterion.score)} % in {criterion.source}; no number of "
            f"items can show more than {margin} %"
        )
    too_few = f"{criterion.items:,} items are too few {goal}"
    return f"{too_few}; about {plan.needed or 0:,} are needed. {best}"
