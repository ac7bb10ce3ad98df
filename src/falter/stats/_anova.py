"""Analysis of variance of scores by the factors of a configuration, if wanted within items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._clusters import cluster_codes
from falter.stats._design import Design, Term, design

__all__ = ["Anova", "AnovaTerm", "anova"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnovaTerm:
    """A row of the table. F and p are None where there is no error to compare with."""

    name: str
    sum_squares: float
    freedom: int
    f: float | None
    p_value: float | None
    eta_squared: float | None
    partial_eta_squared: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anova:
    """The terms in the order of the factors, the block last, and what they are compared with."""

    terms: tuple[AnovaTerm, ...]
    intercept: AnovaTerm
    status: EstimateStatus
    residual: float
    residual_freedom: int
    total: float
    typ: Literal[2, 3]
    eta: Literal["total", "with_intercept"]
    items: int
    excluded: int
    estimand: str = "these levels; cells as they are sampled"

    def __getitem__(self, name: str) -> AnovaTerm:
        """The row of a term by its name, `demos` or `demos:noise`."""
        return {term.name: term for term in (*self.terms, self.intercept)}[name]


def anova(
    scores: ArrayLike,
    factors: Mapping[str, Sequence[Hashable]],
    *,
    typ: Literal[2, 3] = 2,
    order: int = 1,
    block: Sequence[Hashable] | None = None,
    eta: Literal["total", "with_intercept"] = "total",
) -> Anova:
    """What share of the differences between scores each factor explains, with F tests.

    One score a row; `factors` gives each row's level of every factor; `order` 2 adds all products
    of two factors, and so on. The sum of squares of a term is how much the residual grows without
    it: `typ` 2 leaves out all products that contain the term, before and after; 3 leaves out only
    its own columns, under sum contrasts. With `order=1` they are the same. `block` (the item)
    takes differences between items out of the error term, where they make every test blunt.

    eta_squared = SS/SS_total, or with `with_intercept` SS/(SS_total + SS_intercept), which is
    smaller and not comparable; partial_eta_squared = SS/(SS + SS_residual). NaN scores are left out
    and counted. A level, or a cell that a product needs, that cannot be told apart from others is
    an error that names it. No degrees of freedom left: insufficient_data; no residual:
    undefined_zero_variance; in both there is no F. Source: Yates (1934); Langsrud (2003).
    """
    _check(typ, order, eta)
    y, levels, blocks, excluded = _rows(scores, factors, block)
    plan = design(levels, order, blocks)
    x, y_within = plan.columns, y
    if blocks is not None:
        y_within = y - _block_means(y[:, None], blocks)[blocks, 0]
    full = _residual(x, y_within)
    freedom = len(y) - plan.rank
    rounding = 1e-24 * float(y @ y)
    total = float(np.square(y - y.mean()).sum())
    total = 0.0 if total <= rounding else total
    full = 0.0 if full <= 1e-12 * total + rounding else full
    status: EstimateStatus = "ok" if full > 0.0 else "undefined_zero_variance"
    if freedom < 1:
        status = "insufficient_data"
    sums = [(term, _sum_squares(term, plan, y_within, typ)) for term in plan.terms]
    if blocks is not None:
        sums.append((Term(name="block", factors=(), places=()), _block_sum(plan, y, full)))
    intercept = _intercept(plan, y, y_within, blocks)
    denominator = total + (intercept if eta == "with_intercept" else 0.0)
    error = full / freedom if status == "ok" else None

    def row(name: str, size: float, own: int) -> AnovaTerm:
        return _term(name, size, own, error, freedom, full, denominator)

    return Anova(
        terms=tuple(
            row(term.name, size, len(term.places) or plan.blocks - 1) for term, size in sums
        ),
        intercept=row("intercept", intercept, 1),
        status=status,
        residual=full,
        residual_freedom=freedom,
        total=total,
        typ=typ,
        eta=eta,
        items=len(y),
        excluded=excluded,
    )


def _sum_squares(term: Term, plan: Design, y: Floats, typ: int) -> float:
    """How much the residual grows without the term."""
    kept = set(range(plan.columns.shape[1]))
    if typ == 2:
        above = [t for t in plan.terms if set(t.factors) > set(term.factors)]
        kept -= {place for other in above for place in other.places}
    with_it, without = sorted(kept), sorted(kept - set(term.places))
    gain = _residual(plan.columns[:, without], y) - _residual(plan.columns[:, with_it], y)
    return max(0.0, gain)


def _block_sum(plan: Design, y: Floats, full: float) -> float:
    ones = np.ones((len(y), 1))
    return max(0.0, _residual(np.hstack([ones, plan.raw]), y) - full)


def _intercept(plan: Design, y: Floats, y_within: Floats, blocks: NDArray[np.intp] | None) -> float:
    """The sum of squares of the mean of all cells, or of all blocks at the mean of all levels."""
    if blocks is None:
        rest = _residual(plan.columns[:, 1:], y) - _residual(plan.columns, y)
        return max(0.0, rest)
    slopes = np.linalg.lstsq(plan.columns, y_within, rcond=None)[0]
    centre = _block_means(plan.raw, blocks).mean(axis=0)
    value = _block_means(y[:, None], blocks).mean() - centre @ slopes
    spread = np.linalg.solve(plan.columns.T @ plan.columns, centre) if len(centre) else centre
    return float(value**2 / (np.mean(1.0 / np.bincount(blocks)) / plan.blocks + centre @ spread))


def _residual(columns: Floats, y: Floats) -> float:
    """The residual sum of squares: the square of the last diagonal entry of R in [X y] = QR."""
    if len(y) <= columns.shape[1]:
        return 0.0
    upper = np.asarray(np.linalg.qr(np.column_stack([columns, y]), mode="r"))
    return float(upper[-1, -1] ** 2)


def _term(
    name: str,
    size: float,
    own: int,
    error: float | None,
    freedom: int,
    residual: float,
    denominator: float,
) -> AnovaTerm:
    from scipy.special import fdtrc

    f = None if error is None else size / own / error
    partial = size + residual
    return AnovaTerm(
        name=name,
        sum_squares=size,
        freedom=own,
        f=f,
        p_value=None if f is None else float(fdtrc(own, freedom, f)),
        eta_squared=size / denominator if denominator > 0.0 else None,
        partial_eta_squared=size / partial if partial > 0.0 else None,
    )


def _block_means(columns: Floats, blocks: NDArray[np.intp]) -> Floats:
    sizes = np.bincount(blocks)
    sums = np.zeros((len(sizes), columns.shape[1]))
    np.add.at(sums, blocks, columns)
    return np.asarray(sums / sizes[:, None])


def _rows(
    scores: ArrayLike,
    factors: Mapping[str, Sequence[Hashable]],
    block: Sequence[Hashable] | None,
) -> tuple[Floats, dict[str, list[Hashable]], NDArray[np.intp] | None, int]:
    """The rows that have a score: scores, levels, block numbers, and how many have none."""
    y = np.asarray(scores, dtype=np.float64)
    if y.ndim != 1 or np.isinf(y).any():
        raise InvalidValue("scores", y.shape, "a vector of finite numbers, NaN where missing")
    if not factors:
        raise InvalidValue("factors", factors, "each row's level, by the name of a factor")
    for name, labels in factors.items():
        if len(labels) != len(y):
            raise InvalidValue(f"factors[{name!r}]", f"{len(labels)} levels", f"{len(y)}")
    if block is not None and len(block) != len(y):
        raise InvalidValue("block", f"{len(block)} labels", f"one label a score, {len(y)}")
    there = np.flatnonzero(~np.isnan(y)).tolist()
    if len(there) == 0:
        raise InvalidValue("scores", "no score at all", "two scores or more")
    levels = {name: [labels[row] for row in there] for name, labels in factors.items()}
    blocks = None if block is None else cluster_codes([block[row] for row in there], len(there))
    return y[there], levels, blocks, len(y) - len(there)


def _check(typ: int, order: int, eta: str) -> None:
    if typ not in (2, 3):
        raise InvalidValue("typ", typ, "2 or 3")
    if order < 1:
        raise InvalidValue("order", order, "1 for main effects, 2 with products of two, …")
    if eta not in ("total", "with_intercept"):
        raise InvalidValue("eta", eta, "'total' or 'with_intercept'")
