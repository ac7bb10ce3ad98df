"""Analysis of variance of scores by the factors of a configuration, if wanted within items."""

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
# An effect of which this share or less is left without the others cannot be told apart from them.
ALIASED = 1e-9


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
    items: int
    excluded: int

    def __getitem__(self, name: str) -> AnovaTerm:
        """The row of a term by its name."""
        return {term.name: term for term in (*self.terms, self.intercept)}[name]


def anova(
    scores: ArrayLike,
    factors: Mapping[str, Sequence[Hashable]],
    *,
    block: Sequence[Hashable] | None = None,
    products: bool = False,
    eta: Literal["total", "with_intercept"] = "total",
) -> Anova:
    """The share of the differences between scores that each factor explains, with F tests.

        SS_term = RSS(without the term) − RSS(with it)
        F = (SS_term/df_term) / (SS_residual/df_residual)
        η² = SS_term/SS_total        partial η² = SS_term/(SS_term + SS_residual)

    One score per row; `factors` gives each row's level of every factor. RSS is the residual sum of
    squares of all factors without their products, so types II and III of the table are the same;
    with `products` those of every two factors are terms of their own, `a × b`, and the table is of
    type III.
    `block` (the item) takes differences between items out of the error term, where they make every
    test blunt. `eta="with_intercept"` adds SS_intercept to SS_total, which makes η² smaller and not
    comparable.

    NaN scores are left out and counted. A level that cannot be told apart from others is an error
    that names it. No degrees of freedom left: insufficient_data; no residual:
    undefined_zero_variance; in both there is no F. Source: Yates (1934); Langsrud (2003).
    """
    from scipy.special import fdtrc

    if eta not in ("total", "with_intercept"):
        raise InvalidValue("eta", eta, "'total' or 'with_intercept'")
    y, labels, blocks, excluded = _rows(scores, factors, block)
    raw, own = _contrasts(labels, blocks)
    # Within blocks there is no intercept, so that no column of ones stands before the terms.
    if products:
        raw, own = _with_products(raw, own, offset=0 if blocks is not None else 1)
    columns = np.hstack([np.ones((len(y), 1)), raw]) if blocks is None else _within(raw, blocks)
    y_within = y if blocks is None else _within(y[:, None], blocks)[:, 0]
    # SS_total and SS_residual, 0 where only rounding is left of them
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
    intercept = _intercept(raw, columns, y, y_within, blocks)
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
    for name, places in own.items():
        # The residual grows by so much without the term.
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
    """The columns of all factors in sum contrasts, and which are a factor's own.

    A sum contrast is 1 for its level, -1 for the last and 0 for the others. Levels are sorted where
    they can be. The places count an intercept before the columns where there are no blocks. Raises
    where an effect is a combination of earlier ones.
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
    raw: Floats, own: Mapping[str, list[int]], offset: int
) -> tuple[Floats, dict[str, list[int]]]:
    """The columns with the products of every two factors', which are terms of their own."""
    columns, terms = [*raw.T], dict(own)
    for (a, places), (b, others) in combinations(own.items(), 2):
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
    """Go through the indicators of all levels but the first, and refuse one that adds nothing.

    Gram-Schmidt, each step twice: what the earlier effects leave of an indicator is a new one.
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
            # An effect that varies only between blocks vanishes here, and is reported as aliased
            # with them.
            column = column if blocks is None else _within(column, blocks)
            effect = f"{name}={distinct[level]}"
            rest = column - basis @ (basis.T @ column)
            # Once more, since the first pass leaves rounding that is as large as a nearly aliased
            # effect.
            rest = rest - basis @ (basis.T @ rest)
            if np.linalg.norm(rest) <= ALIASED * size:
                aliases = _aliases(column, columns, effects) + ["the block"] * (blocks is not None)
                raise InvalidValue(
                    "factors",
                    effect,
                    "an effect that can be estimated separately from "
                    f"{', '.join(aliases or effects[:1])}",
                    hint="leave one of the aliased factors out, or add scores that separate them",
                )
            basis = np.hstack([basis, rest / np.linalg.norm(rest)])
            columns, effects = np.hstack([columns, column]), [*effects, effect]


def _aliases(column: Floats, columns: Floats, effects: list[str]) -> list[str]:
    """The earlier effects that a column is a combination of, the intercept aside."""
    if not effects:
        return []
    weights = np.linalg.lstsq(columns, column, rcond=None)[0][:, 0]
    return [
        effect
        for effect, weight in zip(effects, weights, strict=True)
        if abs(weight) > 1e-6 and effect != "the intercept"
    ]


def _levels(labels: Sequence[Hashable]) -> list[Hashable]:
    """The distinct labels, sorted where they can be compared."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct)  # type: ignore[type-var]
    except TypeError:
        return distinct


def _intercept(
    raw: Floats, columns: Floats, y: Floats, y_within: Floats, blocks: Places | None
) -> float:
    """The sum of squares of the mean of all cells, or of all blocks at the mean of all levels.

    With blocks it is μ²/(Var(μ)/σ²): μ is the mean of the block means, less what the columns' own
    block means c explain of it, and Var(μ)/σ² = mean(1/n_block)/blocks + c'(X'X)⁻¹c.
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
    """The residual sum of squares: the square of the last diagonal entry of R in [X y] = QR."""
    if len(y) <= columns.shape[1]:
        return 0.0
    upper = np.asarray(np.linalg.qr(np.column_stack([columns, y]), mode="r"))
    return float(upper[-1, -1] ** 2)


def _within(columns: Floats, blocks: Places) -> Floats:
    """The columns less their means within blocks."""
    return np.asarray(columns - _block_means(columns, blocks)[blocks])


def _block_means(columns: Floats, blocks: Places) -> Floats:
    sizes = np.bincount(blocks)
    sums = np.zeros((len(sizes), columns.shape[1]))
    np.add.at(sums, blocks, columns)
    return np.asarray(sums / sizes[:, None])


def _rows(
    scores: ArrayLike,
    factors: Mapping[str, Sequence[Hashable]],
    block: Sequence[Hashable] | None,
) -> tuple[Floats, dict[str, list[Hashable]], Places | None, int]:
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
