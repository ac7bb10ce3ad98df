"""Analysis of variance of scores by the factors of a configuration, if wanted within items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue
from falter.core.records import EstimateStatus
from falter.stats._clusters import cluster_codes, cluster_table, too_few_clusters
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
    """The terms in the order of the factors, the block last, and the residual beneath their F."""

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
    clusters: int | None = None
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
    clusters: Sequence[Hashable] | None = None,
    eta: Literal["total", "with_intercept"] = "total",
) -> Anova:
    """What share of the differences between scores each factor explains, with F tests.

        SS_term = RSS(without the term) − RSS(with it)
        F = (SS_term/df_term) / (SS_residual/df_residual)
        η² = SS_term/SS_total        partial η² = SS_term/(SS_term + SS_residual)

    One score per row; `factors` gives each row's level of every factor; `order` 2 adds all products
    of two factors, and so on. RSS is the residual sum of squares: `typ` 2 leaves out all products
    that contain the term, from both; 3 leaves out only the term's own columns, under sum contrasts.
    With `order=1` they are the same. `block` (the item) takes differences between items out of the
    error term, where they make every test blunt. `eta="with_intercept"` adds SS_intercept to
    SS_total, which makes η² smaller and not comparable.

    `clusters` names each row's, and a block lies in one: F and p of a term with q columns are then
    Hotelling's, of its coefficients b with the covariance V of the sums over G clusters,

        F = (G − q)/(q(G − 1)) b'V⁻¹b    on q and G − q degrees of freedom

    and those of block and intercept are not given; fewer than 6 clusters: too_few_clusters, no F.

    NaN scores are left out and counted. A level, or a cell that a product needs, that cannot be
    told apart from others is an error that names it. No degrees of freedom left: insufficient_data;
    no residual: undefined_zero_variance; in both there is no F. Source: Yates (1934); Langsrud
    (2003).
    """
    from scipy.special import fdtrc

    _check(typ, order, eta)
    y, levels, blocks, excluded = _rows(scores, factors, block)
    codes = _cluster_rows(scores, clusters, blocks)
    count = None if codes is None else len(np.unique(codes))
    plan = design(levels, order, blocks)
    y_within = y if blocks is None else y - _block_means(y[:, None], blocks)[blocks, 0]
    # SS_total and SS_residual, 0 where only rounding is left of them
    rounding = 1e-24 * float(y @ y)
    total = float(np.square(y - y.mean()).sum())
    total = 0.0 if total <= rounding else total
    residual = _residual(plan.columns, y_within)
    residual = 0.0 if residual <= 1e-12 * total + rounding else residual
    residual_freedom = len(y) - plan.rank
    status: EstimateStatus = "ok" if residual > 0.0 else "undefined_zero_variance"
    if residual_freedom < 1:
        status = "insufficient_data"
    elif status == "ok" and too_few_clusters(count):
        status = "too_few_clusters"
    intercept = _intercept(plan, y, y_within, blocks)
    denominator = total + (intercept if eta == "with_intercept" else 0.0)

    def row(name: str, sum_squares: float, freedom: int) -> AnovaTerm:
        f = None
        if status == "ok":
            f = sum_squares / freedom / (residual / residual_freedom)
        partial = sum_squares + residual
        return AnovaTerm(
            name=name,
            sum_squares=sum_squares,
            freedom=freedom,
            f=f,
            p_value=None if f is None else float(fdtrc(freedom, residual_freedom, f)),
            eta_squared=sum_squares / denominator if denominator > 0.0 else None,
            partial_eta_squared=sum_squares / partial if partial > 0.0 else None,
        )

    terms = []
    for term in plan.terms:
        found = row(term.name, _sum_squares(term, plan, y_within, typ), len(term.places))
        if codes is not None and status == "ok":
            f, p = _of_clusters(term, plan, y_within, typ, codes)
            found = replace(found, f=f, p_value=p)
        terms.append(found)
    if blocks is not None:
        without_blocks = _residual(np.hstack([np.ones((len(y), 1)), plan.raw]), y)
        terms.append(row("block", max(0.0, without_blocks - residual), plan.blocks - 1))
    whole = row("intercept", intercept, 1)
    if codes is not None:
        whole = replace(whole, f=None, p_value=None)
        terms = [replace(t, f=None, p_value=None) if t.name == "block" else t for t in terms]
    return Anova(
        terms=tuple(terms),
        intercept=whole,
        status=status,
        residual=residual,
        residual_freedom=residual_freedom,
        total=total,
        typ=typ,
        eta=eta,
        items=len(y),
        excluded=excluded,
        clusters=count,
    )


def _of_clusters(
    term: Term, plan: Design, y: Floats, typ: int, codes: NDArray[np.intp]
) -> tuple[float | None, float | None]:
    """F and p of a term from how its coefficients vary over clusters; None where these are few."""
    from scipy.special import fdtrc

    places = _beside(term, plan, typ)
    columns = plan.columns[:, places]
    own = [places.index(place) for place in term.places]
    inverse = np.linalg.inv(columns.T @ columns)
    coefficients = inverse @ (columns.T @ y)
    scores = columns * (y - columns @ coefficients)[:, None]
    parts = (cluster_table(scores, codes) @ inverse)[:, own]
    groups, q = len(parts), len(own)
    covariance = groups / (groups - 1) * parts.T @ parts
    if groups <= q or np.linalg.matrix_rank(covariance) < q:
        return None, None
    b = coefficients[own]
    wald = float(b @ np.linalg.solve(covariance, b))
    f = (groups - q) / (q * (groups - 1)) * wald
    return f, float(fdtrc(q, groups - q, f))


def _beside(term: Term, plan: Design, typ: int) -> list[int]:
    """The columns that a term is tested beside, its own among them."""
    columns = set(range(plan.columns.shape[1]))
    if typ == 2:
        products = [t for t in plan.terms if set(t.factors) > set(term.factors)]
        columns -= {place for product in products for place in product.places}
    return sorted(columns)


def _cluster_rows(
    scores: ArrayLike, clusters: Sequence[Hashable] | None, blocks: NDArray[np.intp] | None
) -> NDArray[np.intp] | None:
    """The clusters of the rows that have a score, numbered; a block in two of them is refused."""
    if clusters is None:
        return None
    present = ~np.isnan(np.asarray(scores, dtype=np.float64))
    codes = cluster_codes(clusters, len(present))[present]
    if blocks is not None and len(np.unique(np.stack([blocks, codes]), axis=1).T) > len(
        np.unique(blocks)
    ):
        raise InvalidValue("clusters", "a block in two clusters", "one cluster for each block")
    return codes


def _sum_squares(term: Term, plan: Design, y: Floats, typ: int) -> float:
    """How much the residual sum of squares grows without the term."""
    with_it = _beside(term, plan, typ)
    without = sorted(set(with_it) - set(term.places))
    growth = _residual(plan.columns[:, without], y) - _residual(plan.columns[:, with_it], y)
    return max(0.0, growth)


def _intercept(plan: Design, y: Floats, y_within: Floats, blocks: NDArray[np.intp] | None) -> float:
    """The sum of squares of the mean of all cells, or of all blocks at the mean of all levels.

    With blocks it is μ²/(Var(μ)/σ²): μ is the mean of the block means, less what the columns' own
    block means c explain of it, and Var(μ)/σ² = mean(1/n_block)/blocks + c'(X'X)⁻¹c.
    """
    if blocks is None:
        return max(0.0, _residual(plan.columns[:, 1:], y) - _residual(plan.columns, y))
    slopes = np.linalg.lstsq(plan.columns, y_within, rcond=None)[0]
    c = _block_means(plan.raw, blocks).mean(axis=0)
    mu = _block_means(y[:, None], blocks).mean() - c @ slopes
    inverse_c = np.linalg.solve(plan.columns.T @ plan.columns, c) if len(c) else c
    return float(mu**2 / (np.mean(1.0 / np.bincount(blocks)) / plan.blocks + c @ inverse_c))


def _residual(columns: Floats, y: Floats) -> float:
    """The residual sum of squares: the square of the last diagonal entry of R in [X y] = QR."""
    if len(y) <= columns.shape[1]:
        return 0.0
    upper = np.asarray(np.linalg.qr(np.column_stack([columns, y]), mode="r"))
    return float(upper[-1, -1] ** 2)


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
        raise InvalidValue("factors", factors, "for every factor, the level of each row")
    for name, labels in factors.items():
        if len(labels) != len(y):
            raise InvalidValue(
                f"factors[{name!r}]", f"{len(labels)} levels", f"a level for each of {len(y)} rows"
            )
    if block is not None and len(block) != len(y):
        raise InvalidValue("block", f"{len(block)} labels", f"a label for each of {len(y)} scores")
    rows = np.flatnonzero(~np.isnan(y)).tolist()
    if len(rows) == 0:
        raise InvalidValue("scores", "no score at all", "two scores or more")
    levels = {name: [labels[row] for row in rows] for name, labels in factors.items()}
    blocks = None if block is None else cluster_codes([block[row] for row in rows], len(rows))
    return y[rows], levels, blocks, len(y) - len(rows)


def _check(typ: int, order: int, eta: str) -> None:
    if typ not in (2, 3):
        raise InvalidValue("typ", typ, "2 or 3")
    if order < 1:
        raise InvalidValue("order", order, "1 for main effects, 2 with products of two, …")
    if eta not in ("total", "with_intercept"):
        raise InvalidValue("eta", eta, "'total' or 'with_intercept'")
