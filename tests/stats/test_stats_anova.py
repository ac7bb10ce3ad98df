"""Analysis of variance: by hand, against statsmodels, as printed, and how often it errs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.stats import binomtest, f_oneway, ttest_ind, ttest_rel
from statsmodels.stats.anova import anova_lm

from falter.records.errors import InvalidValue
from falter.stats.factorial import anova
from probit import ProbitModel, simulate_outcomes

NAN = float("nan")
# (factor SS, intercept SS, eta squared of table C.1, eta squared of table C.2), MMLU and others.
PRINTED = [
    (0.869, 12630.152, 2.236e-4, 5.261e-5),
    (0.570, 12630.152, 1.468e-4, 3.454e-5),
    (1.197, 8007.085, 2.328e-4, 9.103e-5),
    (2.968, 8007.085, 5.771e-4, 2.257e-4),
    (0.633, 4187.914, 1.224e-4, 6.761e-5),
    (0.144, 4187.914, 2.785e-5, 1.539e-5),
    (2.037, 825.159, 4.799e-4, 4.018e-4),
]


def two_by_two() -> tuple[list[float], dict[str, list[str]]]:
    """Cells with means 1, 2, 3 and 6, two scores each."""
    scores = [0.0, 2.0, 1.0, 3.0, 2.0, 4.0, 5.0, 7.0]
    return scores, {"demos": list("aaaabbbb"), "noise": list("ccddccdd")}


def unbalanced(seed: int, rows: int = 160) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.choice(["x", "y", "z"], rows, p=[0.5, 0.3, 0.2]),
            "b": rng.choice([0.0, 1.0], rows),
            "c": rng.choice(["p", "q"], rows, p=[0.3, 0.7]),
            "item": rng.integers(0, 20, rows),
        }
    )
    frame["y"] = 1.0 + 0.4 * (frame.a == "x") * frame.b + 0.05 * frame.item + rng.normal(size=rows)
    return frame


def test_by_hand():
    """Means 1.5 and 4.5 give 8 x 1.5^2 = 18; 2 and 4 give 8; the rest is 10 of 36."""
    scores, factors = two_by_two()
    found = anova(scores, factors)
    assert [t.name for t in found.terms] == ["demos", "noise"]
    assert [t.sum_squares for t in found.terms] == pytest.approx([18, 8])
    assert [t.f for t in found.terms] == pytest.approx([9, 4])
    assert (found.residual, found.residual_freedom, found.total) == pytest.approx((10, 5, 36))
    assert found.intercept.sum_squares == pytest.approx(8 * 9)
    assert found["demos"].eta_squared == pytest.approx(18 / 36)
    assert found["demos"].partial_eta_squared == pytest.approx(18 / 28)
    other = anova(scores, factors, eta="with_intercept")["demos"]
    assert other.eta_squared == pytest.approx(18 / (36 + 72))
    assert other.partial_eta_squared == pytest.approx(18 / 28)


@pytest.mark.parametrize("typ", [2, 3])
@pytest.mark.parametrize("blocked", [False, True])
def test_is_that_of_statsmodels(typ, blocked):
    """Unbalanced data, with and without items: SS, df, F and p of each term, of both types."""
    frame = unbalanced(1)
    formula = "y ~ C(a, Sum) + C(b, Sum) + C(c, Sum)"
    fit = smf.ols(formula + (" + C(item, Sum)" if blocked else ""), frame).fit()
    theirs = anova_lm(fit, typ=typ)
    found = anova(
        frame.y,
        {name: frame[name].tolist() for name in "abc"},
        block=frame["item"].tolist() if blocked else None,
    )
    rows = {f"C({t.name}, Sum)": t for t in found.terms}
    if blocked:
        rows["C(item, Sum)"] = rows.pop("C(block, Sum)")
    if typ == 3:
        rows["Intercept"] = found.intercept
    assert {*rows, "Residual"} == set(theirs.index)
    for name, term in rows.items():
        numbers = (term.sum_squares, term.freedom, term.f, term.p_value)
        assert numbers == pytest.approx(tuple(theirs.loc[name]), rel=1e-7), name
    assert (found.residual, found.residual_freedom) == pytest.approx(
        tuple(theirs.loc["Residual"][["sum_sq", "df"]])
    )
    assert found.total == pytest.approx(fit.centered_tss)


def test_simple_designs_are_the_usual_tests():
    """One factor is scipy's one-way F; two levels are t squared; items make it the paired t."""
    rng = np.random.default_rng(4)
    groups = rng.normal(size=(3, 12)) + np.array([[0.0], [0.3], [0.9]])
    found = anova(groups.ravel(), {"level": np.repeat(range(3), 12).tolist()})
    theirs = f_oneway(*groups)
    assert (found["level"].f, found["level"].p_value) == pytest.approx(tuple(theirs))
    first, second = groups[:2] + rng.normal(size=12) * 3
    scores = np.concatenate([first, second])
    factor = {"arm": ["one"] * 12 + ["two"] * 12}
    loose = anova(scores, factor)["arm"]
    tight = anova(scores, factor, block=[*range(12), *range(12)])["arm"]
    assert (loose.f, loose.p_value) == pytest.approx(
        (ttest_ind(first, second).statistic ** 2, ttest_ind(first, second).pvalue)
    )
    assert (tight.f, tight.p_value) == pytest.approx(
        (ttest_rel(first, second).statistic ** 2, ttest_rel(first, second).pvalue)
    )


def test_a_single_block_has_no_test_and_changes_no_other():
    """One item's block has no degrees of freedom; the factors are tested as without a block."""
    scores, factors = two_by_two()
    plain, single = anova(scores, factors), anova(scores, factors, block=["item"] * 8)
    assert [t.f for t in single.terms] == pytest.approx([*(t.f for t in plain.terms), None])
    block = single["block"]
    assert (block.freedom, block.f, block.p_value) == (0, None, None)
    assert block.sum_squares == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("size", "intercept", "without", "with_it"), PRINTED)
def test_the_two_printed_eta_squared_differ_by_the_intercept(size, intercept, without, with_it):
    """Tables C.1 and C.2: SS over SS_total, and over SS_total + SS_intercept, the same SS."""
    total = size / without
    assert size / (total + intercept) == pytest.approx(with_it, rel=2e-3)


def test_both_conventions_on_one_table():
    """0/1 scores of 24 configurations: the switch divides by what the second table divides by."""
    outcomes = simulate_outcomes(ProbitModel(ability=1.0, effects=(0.0, 0.05, 0.1) * 8), 60, seed=5)
    grid = [(d, n, t) for d in (0, 4) for n in "abc" for t in range(4)]
    columns = dict(zip(("demos", "noise", "template"), zip(*grid, strict=True), strict=True))
    factors = {name: list(column) * 60 for name, column in columns.items()}
    plain = anova(outcomes.ravel(), factors)
    other = anova(outcomes.ravel(), factors, eta="with_intercept")
    for ours, theirs in zip(plain.terms, other.terms, strict=True):
        assert ours.sum_squares == pytest.approx(theirs.sum_squares)
        assert ours.partial_eta_squared == pytest.approx(theirs.partial_eta_squared)
        scale = plain.total / (plain.total + other.intercept.sum_squares)
        assert theirs.eta_squared == pytest.approx(ours.eta_squared * scale)
    # With every configuration of every item there, SS_intercept is N times the squared mean.
    assert other.intercept.sum_squares == pytest.approx(outcomes.size * outcomes.mean() ** 2)


def test_aliased_levels_are_named():
    """What cannot be told apart is an error with the names of the levels."""
    scores = [0.0, 1.0, 2.0, 3.0, 1.0, 0.0]
    factors = {"template": list("AABBAB"), "temperature": [0, 0, 1, 1, 0, 1]}
    with pytest.raises(InvalidValue, match=r"'temperature=1'; .* separately from template=B"):
        anova(scores, factors)
    with pytest.raises(InvalidValue, match=r"'noise=d'; .* separately from the block"):
        anova(scores, {"noise": list("ccddcd")}, block=list("uuvvuv"))
    three = {"a": list("xxyyzz"), "b": list("ppqqqq")}
    with pytest.raises(InvalidValue, match=r"'b=q'; .* separately from a=y, a=z"):
        anova(scores, three)
    with pytest.raises(InvalidValue, match=r"factors\['noise'\] is \['c'\]; expected two levels"):
        anova([0.0, 1.0, NAN], {"noise": list("ccd")})


def test_edges():
    """Gaps are counted; nothing to compare with has no F; impossible requests are refused."""
    scores, factors = two_by_two()
    gaps = anova([*scores, NAN], {name: [*labels, "e"] for name, labels in factors.items()})
    assert (gaps.items, gaps.excluded) == (8, 1)
    assert gaps.terms == anova(scores, factors).terms
    full = anova([1.0, 2.0, 4.0], {"a": list("xxy"), "b": list("pqp")})
    assert (full.status, full["a"].f, full.residual_freedom) == ("insufficient_data", None, 0)
    assert full["a"].sum_squares == pytest.approx(4.5)
    exact = anova([1.0, 1.0, 3.0, 3.0], {"a": list("xxyy")})
    assert (exact.status, exact["a"].f) == ("undefined_zero_variance", None)
    assert exact["a"].eta_squared == pytest.approx(1.0)
    flat = anova([1.0, 1.0, 1.0, 1.0], {"a": list("xxyy")})
    assert (flat.status, flat["a"].eta_squared) == ("undefined_zero_variance", None)
    mixed = anova([1.0, 2.0, 4.0, 4.5], {"a": [None, "x", None, "x"]})
    assert mixed["a"].freedom == 1
    for change, message in (
        ({"eta": "partial"}, "eta is 'partial'"),
        ({"block": ["u"]}, "block is '1 labels'"),
    ):
        with pytest.raises(InvalidValue, match=message):
            anova(scores, factors, **change)
    with pytest.raises(InvalidValue, match=r"factors\['a'\] is '1 levels'"):
        anova(scores, {"a": ["x"]})
    with pytest.raises(InvalidValue, match=r"factors is \{\}"):
        anova(scores, {})
    with pytest.raises(InvalidValue, match="no score at all"):
        anova([NAN], {"a": ["x"]})
    with pytest.raises(InvalidValue, match="scores is"):
        anova([[1.0]], {"a": ["x"]})


def test_items_in_the_error_term_make_the_test_blunt():
    """Without an effect the blocked F errs in 5 % and the plain one hardly ever."""
    model = ProbitModel(ability=0.3, effects=(0.0,) * 4, difficulty=1.5, interaction=0.7)
    rng = np.random.default_rng(81)
    items = 40
    factor = {"noise": list("abcd") * items}
    block = np.repeat(range(items), 4).tolist()
    blocked = plain = 0
    for _ in range(400):
        scores = simulate_outcomes(model, items, seed=rng).ravel()
        blocked += anova(scores, factor, block=block)["noise"].p_value < 0.05
        plain += anova(scores, factor)["noise"].p_value < 0.05
    assert binomtest(blocked, 400, 0.05).pvalue > 1e-3
    assert binomtest(plain, 400, 0.05, alternative="less").pvalue < 1e-3
