"""Analysis of variance of scores by the factors of a configuration, optionally within items."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.records.errors import InvalidValue
from falter.records.types import EstimateStatus
from falter.stats.clusters import cluster_codes

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
# An effect counts as aliased if the earlier effects leave at most this share of its length.
ALIAS_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class AnovaTerm:
    """A row of the table: sum of squares, degrees of freedom, F test and effect sizes.

    `f` and `p_value` are None if there is no error term, and for the term of a single block, which
    has no degrees of freedom. The effect sizes are None if their denominator is 0.
    """

    name: str
    sum_squares: float
    freedom: int
    f: float | None
    p_value: float | None
    eta_squared: float | None
    partial_eta_squared: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Anova:
    """The table: the terms in the order of the factors, then the block if there is one.

    `residual` and `total` are sums of squares; F divides by `residual` per `residual_freedom`.
    `excluded` counts the rows without a score.
    """

    terms: tuple[AnovaTerm, ...]
    intercept: AnovaTerm
    status: EstimateStatus
    residual: float
    residual_freedom: int
    total: float
    items: int
    excluded: int

    def __getitem__(self, name: str) -> AnovaTerm:
        """Return the row of a term by its name, or of "intercept"."""
        return {term.name: term for term in (*self.terms, self.intercept)}[name]


def anova(
    scores: ArrayLike,
    factors: Mapping[str, Sequence[Hashable]],
    *,
    block: Sequence[Hashable] | None = None,
    products: bool = False,
    eta: Literal["total", "with_intercept"] = "total",
) -> Anova:
    """Return the analysis of variance of scores by several factors, with an F test for each.

        SS_term = RSS(without the term) − RSS(with it)
        F = (SS_term/df_term) / (SS_residual/df_residual)
        η² = SS_term/SS_total        partial η² = SS_term/(SS_term + SS_residual)

    Parameters
    ----------
    scores : array_like of shape (rows,)
        NaN where missing. Rows without a score are excluded.
    factors : for each factor, its level in each row
    block : for each row its block, usually the item; None for no blocks
        Blocks take the differences between items out of the error term. They become the term
        `block`.
    products : True to add the product of every two factors as a term `a × b`
    eta : "total" or "with_intercept"
        "with_intercept" adds SS_intercept to SS_total, so η² is smaller and not comparable.

    Returns
    -------
    Anova
        No degrees of freedom left: insufficient_data. No residual: undefined_zero_variance. Neither
        has an F test. InvalidValue names a level that is not separately estimable.

    Notes
    -----
    RSS is the residual sum of squares of the model with all terms. Without products the tables of
    types II and III agree; with products the table is of type III.

    References
    ----------
    Yates (1934); Langsrud (2003).
    """
    from scipy.special import fdtrc

    if eta not in ("total", "with_intercept"):
        raise InvalidValue("eta", eta, "'total' or 'with_intercept'")
    y, labels, blocks, excluded = _rows_with_score(scores, factors, block)
    raw, indices = _contrasts(labels, blocks)
    # Within blocks there is no intercept, so no column of ones precedes the terms.
    if products:
        raw, indices = _with_products(raw, indices, offset=0 if blocks is not None else 1)
    columns = np.hstack([np.ones((len(y), 1)), raw]) if blocks is None else _within(raw, blocks)
    y_within = y if blocks is None else _within(y[:, None], blocks)[:, 0]
    # SS_total and SS_residual, set to 0 if only a rounding error is left of them
    rounding = 1e-24 * float(y @ y)
    total = float(np.square(y - y.mean()).sum())
    total = 0.0 if total <= rounding else total
    with_all = _residual(columns, y_within)
    residual = 0.0 if with_all <= 1e-12 * total + rounding else with_all
    block_count = 0 if blocks is None else int(blocks.max()) + 1
    residual_freedom = len(y) - columns.shape[1] - block_count
    status: EstimateStatus = "ok" if residual > 0.0 else "undefined_zero_variance"
    if residual_freedom < 1:
        status = "insufficient_data"
    intercept = _intercept_squares(raw, columns, y, y_within, blocks)
    denominator = total + (intercept if eta == "with_intercept" else 0.0)

    def row(name: str, sum_squares: float, freedom: int) -> AnovaTerm:
        f = None
        if status == "ok" and freedom:
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
    for name, places in indices.items():
        # SS of a term: the increase of the residual sum of squares without it
        without = np.delete(columns, places, axis=1)
        terms.append(row(name, max(0.0, _residual(without, y_within) - with_all), len(places)))
    if blocks is not None:
        without_blocks = _residual(np.hstack([np.ones((len(y), 1)), raw]), y)
        terms.append(row("block", max(0.0, without_blocks - residual), block_count - 1))
    return Anova(
        terms=tuple(terms),
        intercept=row("intercept", intercept, 1),
        status=status,
        residual=residual,
        residual_freedom=residual_freedom,
        total=total,
        items=len(y),
        excluded=excluded,
    )


def _contrasts(
    labels: Mapping[str, Sequence[Hashable]], blocks: Places | None
) -> tuple[Floats, dict[str, list[int]]]:
    """Return the columns of all factors in sum contrasts, and the indices of each factor's columns.

    A sum contrast is 1 for its level, -1 for the last level and 0 for all others. Levels are sorted
    if they are comparable. Without blocks the indices count an intercept before the columns. Raise
    InvalidValue if an effect is a combination of earlier effects.
    """
    levels = {name: _levels(own) for name, own in labels.items()}
    for name, distinct in levels.items():
        if len(distinct) < 2:
            raise InvalidValue(f"factors[{name!r}]", distinct, "two levels or more")
    places = {n: np.array([levels[n].index(label) for label in own]) for n, own in labels.items()}
    _check_aliases(levels, places, blocks)
    columns, own, offset = [], {}, 1 if blocks is None else 0
    for name, distinct in levels.items():
        count = len(distinct) - 1
        columns.append(np.vstack([np.eye(count), -np.ones(count)])[places[name]])
        own[name] = list(range(offset, offset + count))
        offset += count
    return np.hstack(columns), own


def _with_products(
    raw: Floats, indices: Mapping[str, list[int]], offset: int
) -> tuple[Floats, dict[str, list[int]]]:
    """Return the columns and the terms, with the products of every two factors added to both."""
    columns, terms = [*raw.T], dict(indices)
    for (a, places), (b, others) in combinations(indices.items(), 2):
        start = len(columns) + offset
        columns += [raw[:, i - offset] * raw[:, j - offset] for i in places for j in others]
        terms[f"{a} × {b}"] = list(range(start, len(columns) + offset))
    table = np.column_stack(columns)
    # A combination without scores makes its product a combination of the other columns.
    if np.linalg.matrix_rank(table) < table.shape[1]:
        expected = "scores for every combination of two levels"
        raise InvalidValue("factors", "missing combinations", expected, hint="leave products out")
    return table, terms


def _check_aliases(
    levels: Mapping[str, list[Hashable]], places: Mapping[str, Places], blocks: Places | None
) -> None:
    """Raise InvalidValue for the first level indicator that is a combination of earlier effects.

    The first level of a factor has no indicator. Each indicator is orthogonalised against the
    earlier effects by Gram-Schmidt, twice.
    """
    rows = len(next(iter(places.values())))
    effects, basis = ["the intercept"], np.ones((rows, 1)) / np.sqrt(rows)
    columns = np.ones((rows, 1))
    if blocks is not None:
        effects, basis, columns = [], np.empty((rows, 0)), np.empty((rows, 0))
    for name, distinct in levels.items():
        for level in range(1, len(distinct)):
            column = (places[name] == level).astype(np.float64)[:, None]
            size = float(np.linalg.norm(column))
            # An effect that varies only between blocks vanishes here and is reported as aliased
            # with the block.
            column = column if blocks is None else _within(column, blocks)
            effect = f"{name}={distinct[level]}"
            residual = column - basis @ (basis.T @ column)
            # Twice, because the first pass leaves rounding errors as large as a nearly aliased
            # effect.
            residual = residual - basis @ (basis.T @ residual)
            if np.linalg.norm(residual) <= ALIAS_TOLERANCE * size:
                aliases = _aliases(column, columns, effects) + ["the block"] * (blocks is not None)
                raise InvalidValue(
                    "factors",
                    effect,
                    "an effect that can be estimated separately from "
                    f"{', '.join(aliases or effects[:1])}",
                    hint="leave one of the aliased factors out, or add scores that separate them",
                )
            basis = np.hstack([basis, residual / np.linalg.norm(residual)])
            columns, effects = np.hstack([columns, column]), [*effects, effect]


def _aliases(column: Floats, columns: Floats, effects: list[str]) -> list[str]:
    """Return the earlier effects whose combination `column` is, without the intercept."""
    if not effects:
        return []
    weights = np.linalg.lstsq(columns, column, rcond=None)[0][:, 0]
    return [
        effect
        for effect, weight in zip(effects, weights, strict=True)
        if abs(weight) > 1e-6 and effect != "the intercept"
    ]


def _levels(labels: Sequence[Hashable]) -> list[Hashable]:
    """Return the distinct labels, sorted if they are comparable, else in order of appearance."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        return distinct


def _intercept_squares(
    raw: Floats, columns: Floats, y: Floats, y_within: Floats, blocks: Places | None
) -> float:
    """Return the sum of squares of the mean of all cells.

    With blocks the mean is taken at the mean of all levels, and the result is μ²/(Var(μ)/σ²). μ is
    the mean of the block means, less the part that the columns' block means c explain. Var(μ)/σ² =
    mean(1/n_block)/blocks + c'(X'X)⁻¹c.
    """
    if blocks is None:
        return max(0.0, _residual(columns[:, 1:], y) - _residual(columns, y))
    slopes = np.linalg.lstsq(columns, y_within, rcond=None)[0]
    c = _block_means(raw, blocks).mean(axis=0)
    mu = _block_means(y[:, None], blocks).mean() - c @ slopes
    inverse_c = np.linalg.solve(columns.T @ columns, c) if len(c) else c
    sizes = np.bincount(blocks)
    return float(mu**2 / (np.mean(1.0 / sizes) / len(sizes) + c @ inverse_c))


def _residual(columns: Floats, y: Floats) -> float:
    """Return the residual sum of squares, the last diagonal entry of R in [X y] = QR squared."""
    if len(y) <= columns.shape[1]:
        return 0.0
    upper = np.asarray(np.linalg.qr(np.column_stack([columns, y]), mode="r"))
    return float(upper[-1, -1] ** 2)


def _within(columns: Floats, blocks: Places) -> Floats:
    """Return the columns less their means within blocks."""
    return np.asarray(columns - _block_means(columns, blocks)[blocks])


def _block_means(columns: Floats, blocks: Places) -> Floats:
    sizes = np.bincount(blocks)
    sums = np.zeros((len(sizes), columns.shape[1]))
    np.add.at(sums, blocks, columns)
    return np.asarray(sums / sizes[:, None])


def _rows_with_score(
    scores: ArrayLike,
    factors: Mapping[str, Sequence[Hashable]],
    block: Sequence[Hashable] | None,
) -> tuple[Floats, dict[str, list[Hashable]], Places | None, int]:
    """Return scores, levels and block numbers of the rows with a score, and the number without."""
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
