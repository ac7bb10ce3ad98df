"""Of this drop, how much is real: the parts of each recipe's drop, and its churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.analysis._results import PanelResult, RecipeParts
from falter.core.records import Estimate
from falter.figures import Breakdown, BreakdownRow, Column, Figure, Statement
from falter.figures import numbers as n

__all__ = ["NOT_THE_WORDING", "PARTS", "parts_figures"]

PARTS = "parts"
NOT_THE_WORDING = "not-the-wording"
_NAMES = ("reading", "meaning", "serving", "wording")
_LOOK = {
    "reading": "how the answers are read",
    "meaning": "the prompts that say something else now",
    "serving": "who served the answers",
}


def parts_figures(panel: PanelResult) -> Iterator[Figure]:
    """The sentences of the recipes whose drop is not shown to be the wording's, then all parts."""
    split = [parts for parts in panel.parts if parts.split.drop.value is not None]
    split.sort(key=lambda parts: -_value(parts.split.drop))
    everyday = {recipe.label: recipe.everyday for recipe in panel.recipes}
    if not split:
        return
    found = [sentence for parts in split for sentence in _not_the_wording(parts)]
    if found:
        yield Statement(
            name=NOT_THE_WORDING, title="Not shown to be the wording", text=tuple(found)
        )
    yield Breakdown(
        name=PARTS,
        title="Of this drop, how much is real?",
        text=(_conclusion(split), _about(split)),
        whole="drop",
        of="recipe",
        parts=_NAMES,
        columns=(
            *(Column(name=name, unit="count", over="Items corrected") for name in _NAMES[:3]),
            Column(name="lost", unit="count", over="Items", about="their answer turned wrong"),
            Column(name="gained", unit="count", over="Items", about="their answer turned right"),
            Column(name="each way when asked again", unit="count", over="Items"),
            Column(name="Churn ratio", unit="coefficient",
                   about="what turns under the recipe for each that turns when asked again"),
        ),
        rows=tuple(_row(parts, everyday.get(parts.label, "")) for parts in split),
    )  # fmt: skip


def _conclusion(split: Sequence[RecipeParts]) -> str:
    """How many of the clear changes are left when only the wording counts."""
    doubtful = sum(parts.split.not_the_wording for parts in split)
    clear = sum(parts.split.leaves_out_zero for parts in split)
    if not clear:
        return "No drop leaves out zero by itself, so there is nothing to put down to the wording."
    if not doubtful and all(p.split.wording_known for p in split if p.split.leaves_out_zero):
        subject = "The one drop that leaves" if clear == 1 else "Every drop that leaves"
        return f"{subject} out zero by itself still does when only the wording is counted."
    if not doubtful:
        return "How much of the drops that leave out zero is the wording cannot be said for all."
    changes = "change" if doubtful == 1 else "changes"
    return f"{n.whole(doubtful)} clear {changes} cannot be put down to the wording alone."


def _about(split: Sequence[RecipeParts]) -> str:
    """What the parts are; who read again."""
    reader = split[0].reader
    reread = (
        f"when {reader} reads them again, or both sides are left out where it cannot either"
        if reader
        else "when both sides of them are left out"
    )
    return (
        "The drop counts unread answers as wrong and every answer as it was served. Reading is "
        f"what goes away of cut, unread and badly read answers {reread}; meaning, what goes away "
        "without the items whose changed prompt fails a check of its meaning; serving, without "
        "answers of another server or model version than the baseline's. Wording is what is left. "
        "The parts add up to the drop; the order of the corrections is averaged out."
    )


def _row(parts: RecipeParts, everyday: str) -> BreakdownRow:
    split, churn = parts.split, parts.churn
    return BreakdownRow(
        label=parts.label,
        everyday=everyday,
        whole=split.drop,
        parts=split.parts,
        cells=(*split.corrected, churn.lost, churn.gained, churn.again, churn.ratio),
        lines=tuple(
            filter(None, (_corrected(parts), _turned(parts), " ".join(_not_the_wording(parts))))
        ),
    )


def _corrected(parts: RecipeParts) -> str:
    """How many items each correction touched; which had nothing to do, which were not made."""
    split = parts.split
    named = list(zip(_NAMES, split.parts, split.corrected, strict=False))
    unknown = [name for name, part, _ in named if part.status == "not_identified"]
    idle = [name for name, _, count in named if not count and name not in unknown]
    done = [f"{name} {n.whole(count)}" for name, _, count in named if count]
    sentences = [
        f"Items corrected: {', '.join(done)}." if done else "",
        f"Nothing to correct: {', '.join(idle)}." if idle and done else "",
        "Nothing to correct." if idle and not done else "",
        f"Not looked at, so part of wording: {', '.join(unknown)}." if unknown else "",
    ]
    return " ".join(filter(None, sentences))


def _turned(parts: RecipeParts) -> str:
    """The churn line."""
    churn = parts.churn
    turned = (
        f"Of {n.whole(churn.items)} items {n.count(churn.lost)} were lost and "
        f"{n.count(churn.gained)} gained"
    )
    if churn.again.value is None:
        return f"{turned}; nothing was asked twice, so how many of them are chance is not known."
    if churn.ratio.value is None:
        return f"{turned}; asking again turned none."
    again = n.shown(churn.again, "count")
    ratio = n.shown(churn.ratio, "coefficient")
    return (
        f"{turned}; asking again by itself turns {again.text} each way. Churn ratio {ratio.text}."
    )


def _not_the_wording(parts: RecipeParts) -> Iterator[str]:
    """The sentence of a recipe whose drop is clear and whose wording part is not."""
    split = parts.split
    if not split.not_the_wording:
        return
    largest = max(_LOOK, key=lambda name: abs(_value(getattr(split, name))))
    kind = "drop" if _value(split.drop) > 0 else "gain"
    yield (
        f"The {kind} of {n.shown(split.drop, 'points').text} points under {parts.label} is not "
        f"shown to come from its wording, which is left with "
        f"{n.shown(split.wording, 'points').text}: look first at {_LOOK[largest]} "
        f"({n.shown(getattr(split, largest), 'points').text})."
    )


def _value(estimate: Estimate) -> float:
    return estimate.value if estimate.value is not None else 0.0
