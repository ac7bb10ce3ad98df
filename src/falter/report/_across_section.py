"""The section across panels, as a part of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from falter.analysis import Across
from falter.core.records import Estimate
from falter.report import _numbers as n
from falter.report._across import (
    PanelSummary,
    changed_text,
    concordance_text,
    failures_text,
    left_out,
    ranks_text,
    shown_pools,
    summaries,
    verdict_text,
)
from falter.report._escape import Html
from falter.report._markup import cell, dash, head, label, number, tag
from falter.report._numbers import Kind
from falter.report._tables import scroll

__all__ = ["across_section"]

PAIRS = 200
Cells = Sequence[Html]


def across_section(found: Across, level: float) -> list[Html]:
    """Everything that takes more than one panel or recipe; empty where there is nothing."""
    parts: list[Html] = []
    if told := summaries(found):
        about = tag("p", verdict_text(found), class_="small muted")
        parts += [tag("h3", "Panel by panel"), _panels(found, told), about]
        parts += _verdicts(found)
    parts += _failures(found, level)
    parts += _pooled(found)
    parts += _rankings(found)
    if found.notes:
        notes = [tag("li", label(note, 1_000)) for note in found.notes]
        parts += [tag("h3", "What was assumed, and what cannot be said"), tag("ul", *notes)]
    if not parts:
        return []
    heading = tag("h2", "Across recipes, models and tasks")
    return [tag("section", heading, *parts, id="across", class_="panel")]


def _table(about: str, heads: Sequence[str], rows: Iterable[Cells], names: int = 1) -> Html:
    """A table whose first columns are names and whose others are numbers."""
    first, others = heads[:names], heads[names:]
    top = tag("tr", *[head(name) for name in first], *[head(name, class_="r") for name in others])
    body = [tag("tr", *row) for row in rows]
    return scroll(tag("table", tag("thead", top), tag("tbody", *body), class_="plain full"), about)


def _name(text: str, limit: int = 100) -> Html:
    return tag("th", label(text, limit), scope="row")


def _right(content: str) -> Html:
    return cell(content, class_="r")


def _number(estimate: Estimate | None, kind: Kind) -> Html:
    return _right(n.NONE if estimate is None else number(estimate, kind))


def _panels(found: Across, told: Sequence[PanelSummary]) -> Html:
    heads = ["Panel", "Degraded", "Equivalent", "Undecided", "Largest drop, points",
             "p, any differ", "Same answer, %", "same and right, %", "SD of an item"]  # fmt: skip
    return _table("verdicts", heads, [_panel(one) for one in told])


def _panel(one: PanelSummary) -> list[Html]:
    counts = [n.whole(one.verdicts[w]) if one.verdicts else n.NONE
              for w in ("degraded", "equivalent", "undecided")]  # fmt: skip
    same = one.consistency
    worst = cell(n.NONE, class_="r")
    if one.worst is not None:
        worst = cell(number(one.worst.drop, "points"), " ", label(one.worst.recipe or "", 60),
                     class_="r")  # fmt: skip
    test = n.NONE
    if one.omnibus is not None:
        known = one.omnibus.p_value is not None
        test = n.p_value(one.omnibus.p_value) if known else dash(one.omnibus)
    return [
        _name(one.name),
        *[_right(count) for count in counts],
        worst,
        _right(test),
        _number(same.output if same else None, "percent"),
        _number(same.right if same else None, "percent"),
        _number(same.spread if same else None, "coefficient"),
    ]


def _verdicts(found: Across) -> list[Html]:
    if not found.verdicts:
        return []
    level = n.level(found.verdicts[0].drop.level)
    heads = ["Recipe", "Panel", "Verdict", f"Drop, points, {level} interval", "p, equivalence"]
    rows = [
        [
            _name(v.recipe, 80),
            cell(label(f"{v.model} on {v.task}", 100)),
            _right(v.verdict or n.NONE),
            _number(v.drop, "points"),
            _right(_equivalence(v.drop.p_value)),
        ]
        for v in found.verdicts
    ]
    return [_folded("Every verdict", _table("every verdict", heads, rows, 2))]


def _equivalence(p: float | None) -> str:
    """A p-value of two one-sided tests, which is not followed beyond one half."""
    return "≥0.5" if p is not None and p >= 0.5 else n.p_value(p)


def _folded(summary: str, content: Html) -> Html:
    return tag("details", tag("summary", summary), content)


def _failures(found: Across, level: float) -> list[Html]:
    if not found.failures:
        return []
    heads = ["Recipe", "Panel", "Unreadable, points more", "p"]
    rows = [
        [
            _name(f.recipe, 80),
            cell(label(f"{f.model} on {f.task}", 100)),
            _number(f.difference, "points"),
            _right(n.p_value(f.difference.p_value)),
        ]
        for f in found.failures
    ]
    told = tag("p", label(failures_text(found, level), 1_000))
    return [told, _folded("Every comparison", _table("unreadable answers", heads, rows, 2))]


def _pooled(found: Across) -> list[Html]:
    pools = shown_pools(found)
    if not pools:
        return []
    rows = [
        [
            _name(one.name),
            _right(f"{kind}, {len(one.pooled)}"),
            _number(one.brittleness, "percent"),
            cell(label(left_out(one), 300), class_="r"),
        ]
        for kind, one in pools
    ]
    heads = ["Model or task", "Pooled", "Brittleness, %", "Left out, or constant"]
    about = (
        "Variances are summed over panels before they are divided; each panel counts the same. "
        "Only conditions that all models have take part."
    )
    return [
        tag("h3", "Brittleness, pooled"),
        _table("pooled brittleness", heads, rows),
        tag("p", about, class_="small muted"),
    ]


def _rankings(found: Across) -> list[Html]:
    parts: list[Html] = []
    if any(one.agreement.value is not None for one in found.rankings):
        rows = [
            [
                _name(one.recipe, 80),
                _number(one.agreement, "coefficient"),
                _number(one.noise, "coefficient"),
                _right(n.p_value(one.noise.p_value)),
            ]
            for one in found.rankings
        ]
        heads = ["Recipe", "Rank correlation", "By noise alone", "p"]
        parts.append(_table("rank correlations", heads, rows))
    texts = [text for text in (changed_text(found), concordance_text(found)) if text]
    parts += [tag("p", label(text, 2_000)) for text in texts]
    parts += _ranks(found)
    return [tag("h3", "The order of the models"), *parts] if parts else []


def _ranks(found: Across) -> list[Html]:
    parts = []
    if found.ranks:
        ranks = sorted(found.ranks, key=lambda one: (one.task, one.best, one.worst))
        rows = [
            [
                _name(f"{one.model} on {one.task}"),
                _number(one.mean, "percent"),
                _right(ranks_text(one.best, one.worst)),
            ]
            for one in ranks
        ]
        table = _table("ranks", ["Model", "Mean over conditions, %", "Ranks left"], rows)
        parts.append(_folded("The ranks that simultaneous tests leave every model", table))
    if found.survival:
        pairs = sorted(found.survival, key=lambda s: (s.survival.value is None, s.survival.value))
        rows = [
            [
                _name(f"{s.better} before {s.worse}, {s.task}", 160),
                _number(s.survival, "percent"),
                _right(n.whole(s.tied)),
            ]
            for s in pairs[:PAIRS]
        ]
        heads = ["Order at the baseline", "Recipes that keep it, %", "Ties"]
        parts.append(_folded("How often two models keep their order", _table("pairs", heads, rows)))
        if len(pairs) > PAIRS:
            text = f"{n.whole(len(pairs) - PAIRS)} more pairs keep their order at least as often."
            parts.append(tag("p", text, class_="small muted"))
    return parts
