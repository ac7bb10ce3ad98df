"""The sentence about answers kept and meanings noticed."""

from __future__ import annotations

from falter.analysis.results import PanelResult
from falter.analysis.sentences import noun, sentence
from falter.measures.keeps_and_reads import RESTLESS, Condition, KeepsAndReads
from falter.records import numbers as n
from falter.records.types import Estimate


def keeping_sentence(title: str, panel: PanelResult) -> str:
    """The word for a panel, with both numbers and what is weakest."""
    keeping = panel.keeping
    if keeping is None:
        return ""
    again = keeping.again.value if keeping.again is not None else None
    moved = 0.0 if again is None else 1.0 - again
    first = sentence("keeping.restless", share=n.percent(moved)) if moved > RESTLESS else ""
    kept = _kept(title, keeping, again)
    if keeping.word == "not asked":
        kept = kept[:1].upper() + kept[1:]
    return (
        first
        + sentence(
            f"keeping.{keeping.word.replace(' ', '_')}",
            keeps=kept,
            reads="" if keeping.reads is None else _share(keeping.reads),
            weakest=_weakest(keeping.weakest(control=False), panel),
            least=_least(keeping.weakest(control=True), panel),
            needed="" if keeping.needed is None else _needed(keeping.needed),
        )
        + _deaf_to(keeping)
        + _lines(keeping)
    )


def _kept(title: str, keeping: KeepsAndReads, again: float | None) -> str:
    harmless = [c for c in keeping.conditions if not c.control]
    if not harmless or keeping.keeps.value is None:
        return sentence("keeping.no_change", panel=title)
    changes = noun(len(harmless), "harmless change")
    asked = "" if again is None else sentence("keeping.again", share=n.percent(again))
    return sentence(
        "keeping.keeps", changes=changes, panel=title, share=_share(keeping.keeps), again=asked
    )


def _share(share: Estimate) -> str:
    if share.low is None or share.high is None:
        return f"{n.percent(share.value)} %"
    value, low, high = (n.percent(max(0.0, v or 0.0)) for v in (share.value, share.low, share.high))
    return sentence("keeping.shared", value=value, low=low, high=high)


def _weakest(weakest: Condition | None, panel: PanelResult) -> str:
    if weakest is None or weakest.share.value is None or weakest.share.value == 1.0:
        return ""
    everyday = {r.label: r.everyday for r in panel.recipes}.get(weakest.label) or weakest.label
    return sentence("keeping.weakest", name=everyday, share=n.percent(weakest.share.value))


def _least(least: Condition | None, panel: PanelResult) -> str:
    if least is None or least.share.value is None or least.share.value == 1.0:
        return ""
    return sentence("keeping.least", name=least.label, count=least.count, items=least.items)


def _deaf_to(keeping: KeepsAndReads) -> str:
    ignored = [f"{c.label}, noticed in {c.count} of {c.items}" for c in keeping.deaf_to]
    if not ignored or keeping.word in ("deaf", "undecided"):
        return ""
    return sentence("keeping.deaf_to", names="; ".join(ignored))


def _lines(keeping: KeepsAndReads) -> str:
    if keeping.word == "not asked":
        return ""
    keep, read = (n.percent(line) for line in keeping.lines)
    return sentence("keeping.lines", keep=keep, read=read)


def _needed(items: int) -> str:
    return sentence("keeping.needed", items=n.whole(items))
