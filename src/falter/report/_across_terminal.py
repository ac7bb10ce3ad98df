"""The section across panels, as tables of a terminal."""

from __future__ import annotations

from falter.analysis import Across
from falter.report import _numbers as n
from falter.report._across import VERDICTS, PanelSummary, ranks_text, shown_pools, summaries
from falter.report._escape import line
from falter.report._flow import Column
from falter.report._terminal_table import Plain, Row, styled_rows

__all__ = ["panel_rows", "pooled_rows", "rank_rows", "ranking_rows"]

MOST_RANKS = 20


def panel_rows(found: Across, width: int, plain: Plain) -> list[Row]:
    """Verdicts, the largest drop, whether conditions differ at all, and what stays the same."""
    told = summaries(found)
    if not told:
        return []
    columns = [
        Column(head=word, cells=[_count(one, word) for one in told], rank=rank)
        for rank, word in enumerate(VERDICTS, start=1)
    ]
    worst = [n.shown(one.worst.drop, "points").text if one.worst else n.NONE for one in told]
    names = [plain(line(one.worst.recipe or "", 24)) if one.worst else "" for one in told]
    tests = [n.p_value(one.omnibus.p_value) if one.omnibus else n.NONE for one in told]
    columns += [
        Column(head="largest drop", cells=worst, rank=4),
        Column(head="of", cells=names, rank=5, left=True),
        Column(head="p any differ", cells=tests, rank=6),
        Column(head="same answer, %", cells=[_same(one) for one in told], rank=7),
        Column(head="item SD", cells=[_spread(one) for one in told], rank=8),
    ]
    if not found.verdicts:
        columns = columns[len(VERDICTS) + 2 :]
    labels = [plain(line(one.name, 100)) for one in told]
    return styled_rows("panel", labels, columns, width)


def _count(one: PanelSummary, word: str) -> str:
    return n.whole(one.verdicts[word]) if one.verdicts else n.NONE


def _same(one: PanelSummary) -> str:
    found = one.consistency
    return n.shown(found.output, "percent").text if found and found.output else n.NONE


def _spread(one: PanelSummary) -> str:
    return n.coefficient(one.consistency.spread.value) if one.consistency else n.NONE


def pooled_rows(found: Across, width: int, plain: Plain) -> list[Row]:
    """Brittleness of every model over its tasks, and of every task over its models."""
    pools = shown_pools(found)
    if not pools:
        return []
    columns = [
        Column(head="brittleness, %", rank=0,
               cells=[n.shown(one.brittleness, "percent").text for _, one in pools]),
        Column(head="pooled", rank=1, left=True,
               cells=[f"{kind}: {len(one.pooled)}" for kind, one in pools]),
    ]  # fmt: skip
    return styled_rows("", [plain(line(one.name, 100)) for _, one in pools], columns, width)


def ranking_rows(found: Across, width: int, plain: Plain) -> list[Row]:
    """How far a recipe keeps the order of the models; nothing where no rank correlation exists."""
    known = [one for one in found.rankings if one.agreement.value is not None]
    if not known:
        return []
    columns = [
        Column(head="rank correlation", rank=0,
               cells=[n.shown(one.agreement, "coefficient").text for one in known]),
        Column(head="by noise alone", rank=1,
               cells=[n.shown(one.noise, "coefficient").text for one in known]),
        Column(head="p", rank=2, cells=[n.p_value(one.noise.p_value) for one in known]),
    ]  # fmt: skip
    return styled_rows("recipe", [plain(line(one.recipe, 60)) for one in known], columns, width)


def rank_rows(found: Across, width: int, plain: Plain) -> list[Row]:
    """The ranks that the data leave every model; not where that would be a long list."""
    ranks = sorted(found.ranks, key=lambda one: (one.task, one.best, one.worst))
    if not 1 < len(ranks) <= MOST_RANKS:
        return []
    columns = [
        Column(head="mean, %", rank=1,
               cells=[n.shown(one.mean, "percent").text for one in ranks]),
        Column(head="ranks left", rank=0,
               cells=[ranks_text(one.best, one.worst) for one in ranks]),
    ]  # fmt: skip
    labels = [plain(line(f"{one.model} on {one.task}", 100)) for one in ranks]
    return styled_rows("model", labels, columns, width)
