"""Mixed models and differences in drops: by hand, against a second fit, and their coverage."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.optimize
import statsmodels.api as sm
from scipy.stats import binomtest

from falter.records.errors import InvalidValue, MissingExtra
from falter.stats.mixed import difference_in_drops, mixed_effects
from falter.stats.paired import paired_difference

NAN = float("nan")
TRUE = {"intercept": 0.7, "cot": 0.08, "perturbed": -0.12, "cot:perturbed": 0.05}


def study(seed: int, *, benchmarks: int = 5, perturbations: int = 4, items: int = 4):
    """Scores of every benchmark, perturbation (0 is the baseline) and arm, from a known model."""
    rng = np.random.default_rng(seed)
    b, p, cot = (
        x.ravel()
        for x in np.meshgrid(
            range(benchmarks), range(perturbations + 1), np.repeat((0, 1), items), indexing="ij"
        )
    )
    perturbed = (p > 0).astype(float)
    mean = TRUE["intercept"] + TRUE["cot"] * cot + TRUE["perturbed"] * perturbed
    mean = mean + TRUE["cot:perturbed"] * cot * perturbed
    mean = (
        mean + rng.normal(size=benchmarks)[b] * 0.1 + rng.normal(size=perturbations + 1)[p] * 0.05
    )
    scores = mean + rng.normal(size=len(b)) * 0.3
    fixed = {"cot": cot, "perturbed": perturbed}
    return scores, fixed, {"benchmark": b.tolist(), "perturbation": p.tolist()}


def by_likelihood(scores, fixed, random):
    """REML from the n x n covariance matrix itself, minimised over two standard deviations."""
    cot, perturbed = fixed["cot"], fixed["perturbed"]
    x = np.column_stack([np.ones(len(scores)), cot, perturbed, cot * perturbed])
    shared = [
        np.equal.outer(labels, labels).astype(float) for labels in map(np.array, random.values())
    ]

    def parts(ratios):
        v = np.eye(len(scores)) + sum(r**2 * s for r, s in zip(ratios, shared, strict=True))
        inner = x.T @ np.linalg.solve(v, x)
        beta = np.linalg.solve(inner, x.T @ np.linalg.solve(v, scores))
        rest = scores - x @ beta
        scale = rest @ np.linalg.solve(v, rest) / (len(scores) - 4)
        return v, inner, beta, scale

    def loss(ratios):
        v, inner, _, scale = parts(ratios)
        logs = np.linalg.slogdet(v)[1] + np.linalg.slogdet(inner)[1]
        return logs + (len(scores) - 4) * np.log(scale)

    best = scipy.optimize.minimize(
        loss, [0.3, 0.2], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
    ).x
    _, inner, beta, scale = parts(best)
    return beta, np.sqrt(scale * np.diag(np.linalg.inv(inner))), [*(best**2 * scale), scale]


@pytest.mark.parametrize("seed", [1, 2])
def test_is_the_maximum_of_the_restricted_likelihood(seed):
    """Effects, errors and variances are those of a dense fit by another route."""
    data = study(seed, benchmarks=4, perturbations=3, items=2)
    found = mixed_effects(*data)
    beta, errors, variances = by_likelihood(*data)
    assert [e.name for e in found.effects] == list(TRUE)
    assert [e.value for e in found.effects] == pytest.approx(beta, abs=1e-5)
    assert [e.standard_error for e in found.effects] == pytest.approx(errors, rel=2e-3)
    assert list(found.variances.values()) == pytest.approx(variances, rel=2e-2, abs=1e-5)
    assert (found.converged, found.status, found.items) == (True, "ok", 64)


def test_a_balanced_design_by_hand():
    """With equal cells an effect within all levels is a difference of means with an OLS error."""
    scores, fixed, random = study(3)
    found = mixed_effects(scores, {"cot": fixed["cot"]}, random)
    cot = fixed["cot"] == 1
    assert found["cot"].value == pytest.approx(scores[cot].mean() - scores[~cot].mean())
    expected = np.sqrt(4 * found.variances["residual"] / len(scores))
    assert found["cot"].standard_error == pytest.approx(expected, rel=1e-4)
    half = 1.959963984540054 * found["cot"].standard_error
    assert found["cot"].interval.high == pytest.approx(found["cot"].value + half)
    assert found["cot"].value in found["cot"].interval
    assert 0.0 <= found["cot"].p_value <= 1.0


def test_mixed_edges(monkeypatch):
    """Gaps are counted, too little is said, a copy of a column and a missing extra are named."""
    scores, fixed, random = study(4)
    more = mixed_effects(
        [*scores, NAN],
        {name: [*column, 1.0] for name, column in fixed.items()},
        {name: [*labels, 99] for name, labels in random.items()},
    )
    plain = mixed_effects(scores, fixed, random)
    assert (more.items, more.excluded) == (200, 1)
    assert more.effects == plain.effects
    few = mixed_effects([1.0, 0.0], {"cot": [0, 1]}, {"benchmark": [0, 1]})
    assert (few.status, few.effects, few.converged) == ("insufficient_data", (), False)
    same = mixed_effects(0 * scores, fixed, random)
    assert (same.status, same.message) == ("undefined_zero_variance", "not fitted")
    with pytest.raises(InvalidValue, match="fixed is 'again'"):
        mixed_effects(scores, {**fixed, "again": fixed["cot"]}, random)
    with pytest.raises(InvalidValue, match=r"fixed\['cot'\] is"):
        mixed_effects(scores, {"cot": [1.0]}, random)
    with pytest.raises(InvalidValue, match=r"random is \{\}"):
        mixed_effects(scores, fixed, {})
    with pytest.raises(InvalidValue, match="scores is"):
        mixed_effects([[1.0]], fixed, random)
    monkeypatch.setitem(sys.modules, "statsmodels.regression.mixed_linear_model", None)
    with pytest.raises(MissingExtra, match=r"pip install 'falter\[stats\]'"):
        mixed_effects(scores, fixed, random)


def test_intervals_of_the_interaction_cover():
    """Of 30 studies with a known interaction, nearly all intervals hold it."""
    held = 0
    for seed in range(30):
        found = mixed_effects(*study(100 + seed, benchmarks=4, perturbations=3, items=2))
        held += TRUE["cot:perturbed"] in found["cot:perturbed"].interval
    assert binomtest(held, 30, 0.95).pvalue > 1e-3


def test_a_variance_of_zero():
    """Where benchmarks do not differ beyond chance, their variance is 0."""
    rng = np.random.default_rng(5)
    scores = np.tile([0.0, 0.2, 0.4, 0.6], 10) + 1e-3 * rng.normal(size=40)
    found = mixed_effects(
        scores, {"cot": np.tile([0, 0, 1, 1], 10)}, {"benchmark": np.repeat(range(10), 4).tolist()}
    )
    assert found.variances["benchmark"] <= 1e-6 * found.variances["residual"]
    assert found.converged


def test_difference_in_drops_by_hand():
    """The plain prompt loses 6 of 20 and the treated one 2: 20 points less."""
    base = np.ones(20)
    plain, treated = base.copy(), base.copy()
    plain[:6], treated[5:7] = 0.0, 0.0
    found = difference_in_drops(base, plain, base, treated)
    assert (found.value, found.items, found.excluded) == (pytest.approx(0.2), 20, 0)
    # Equal baselines: it is the paired difference of the two perturbed columns.
    paired = paired_difference(treated, plain)
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (paired.interval.low, paired.interval.high)
    )
    plain[0] = NAN
    gap = difference_in_drops(base, plain, base, treated)
    assert (gap.items, gap.excluded) == (19, 1)
    assert gap.value == pytest.approx(5 / 19 - 2 / 19)


def test_difference_in_drops_is_a_clustered_regression():
    """Value, error, interval and p are those of the interaction in OLS with clusters of items."""
    rng = np.random.default_rng(6)
    items, width = 60, 3
    ability = rng.normal(size=(items, 1)) + np.repeat(rng.normal(size=(12, 1)), 5, axis=0)
    plain_base, treated_base = (ability + rng.normal(size=(items, 1)) for _ in range(2))
    plain, treated = (ability + rng.normal(size=(items, width)) - x for x in (0.5, 0.2))
    codes = np.arange(items) // 5
    found = difference_in_drops(
        plain_base[:, 0], plain, treated_base[:, 0], treated, clusters=codes.tolist()
    )
    # One row an item, arm and condition; the perturbed mean of an item counts as one row.
    y = np.concatenate([x.mean(axis=1) for x in (plain_base, plain, treated_base, treated)])
    arm, perturbed = np.repeat([0, 0, 1, 1], items), np.repeat([0, 1, 0, 1], items)
    x = np.column_stack([np.ones(len(y)), arm, perturbed, arm * perturbed])
    fit = sm.OLS(y, x).fit(
        cov_type="cluster", cov_kwds={"groups": np.tile(codes, 4), "use_correction": False}
    )
    assert found.value == pytest.approx(fit.params[3])
    assert found.standard_error == pytest.approx(fit.bse[3] * np.sqrt(12 / 11))
    assert (found.clusters, found.interval.method) == (12, "t over clusters, CR2")
    alone = difference_in_drops(plain_base[:, 0], plain, treated_base[:, 0], treated)
    gaps = (plain_base - plain - treated_base + treated).mean(axis=1)
    assert alone.standard_error == pytest.approx(gaps.std(ddof=1) / np.sqrt(items))


def test_difference_in_drops_edges():
    """Nothing lost is nothing saved; too little is said."""
    base = np.ones(20)
    assert difference_in_drops(base, base, base, base).value == 0.0
    nothing = difference_in_drops([1.0], [0.0], [1.0], [NAN])
    assert (nothing.value, nothing.status, nothing.excluded) == (None, "insufficient_data", 1)
    with pytest.raises(InvalidValue, match="plain_baseline, plain_perturbed is"):
        difference_in_drops([1.0, 1.0], [1.0], [1.0], [1.0])
    with pytest.raises(InvalidValue, match="plain, treated is"):
        difference_in_drops([1.0], [1.0], [1.0, 1.0], [1.0, 1.0])


def test_difference_in_drops_covers_where_rows_are_not_independent():
    """Items differ in how much they lose: intervals over items cover in 95 %."""
    rng = np.random.default_rng(91)
    held = 0
    for _ in range(600):
        base = rng.normal(size=40)
        own = rng.normal(size=(40, 1)) * 0.5
        plain = base[:, None] - 0.3 - own + 0.3 * rng.normal(size=(40, 4))
        treated = base[:, None] - 0.1 + 0.3 * rng.normal(size=(40, 4))
        held += 0.2 in difference_in_drops(base, plain, base, treated).interval
    assert binomtest(held, 600, 0.95).pvalue > 1e-3
