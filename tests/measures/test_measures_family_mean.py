"""The mean over subjects: by hand, by a loop, by simulation; and where a run shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest, norm
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

import falter
from falter.analysis.table import Table, run_tables
from falter.engine.config import read_experiment
from falter.engine.results import Result
from falter.measures.averages import family_mean
from falter.measures.drops import accuracy
from falter.records.errors import InvalidValue
from falter.report.forms.data import as_json
from falter.report.forms.markdown import as_markdown
from falter.report.page import html
from falter.scorers import scorers
from falter.store.store import Store
from rewrite_samples import write_data

Floats = NDArray[np.float64]


def by_loop(
    scores: Sequence[float], families: Sequence[str], level: float = 0.95
) -> tuple[float, float, float]:
    """The same number in plain Python, with other programs' quantiles and interval."""
    groups: dict[str, list[float]] = {}
    for score, family in zip(scores, families, strict=True):
        if not math.isnan(score):
            groups.setdefault(family, []).append(score)
    count = len(groups)
    value = math.fsum(math.fsum(g) / len(g) for g in groups.values()) / count
    whole = math.fsum(math.fsum((x - value) ** 2 for x in g) / len(g) for g in groups.values())
    variance = upper = lower = 0.0
    for g in groups.values():
        n, mean = len(g), math.fsum(g) / len(g)
        own = math.fsum((x - mean) ** 2 for x in g)
        variance += (own + 2 * whole / count) / (n + 1) / n / count**2
        upper += 1 / n
        lower += 1 / (n * n * (n + 1))
    t = float(student.ppf(0.5 + level / 2, upper**2 / lower))
    if set(scores) - {0.0, 1.0} - {s for s in scores if math.isnan(s)}:
        return value, value - t * math.sqrt(variance), value + t * math.sqrt(variance)
    known = [s for s in scores if not math.isnan(s)]
    weight = min(1.0, min(sum(known), len(known) - sum(known)) / 20)
    own = variance / (value * (1 - value)) if variance else upper / count**2
    items = 1 / (weight * own + (1 - weight) * upper / count**2)
    items *= (float(norm.ppf(0.5 + level / 2)) / t) ** 2
    low, high = proportion_confint(value * items, items, 1 - level, "agresti_coull")
    return value, low, high


# The number


def test_by_hand() -> None:
    """Two of two and one of four: 5/8. S = 5/8 - 25/64 = 15/64; v = (2·0 + 2S)/3 = 10/64 and
    (4·3/16 + 2S)/5 = (3/4 + 30/64)/5 = 78/320; the variance is (10/128 + 78/1280)/4 = 178/5120;
    on (1/2 + 1/4)²/(1/12 + 1/80) = 135/23 degrees of freedom. Three of 20 items carry the rarer
    side: .15 of that variance over 15/64, and .85 of (1/2 + 1/4)/4."""
    found = family_mean([1, 1, 1, 0, 0, 0], list("aabbbb"))
    assert (found.value, found.status, found.items, found.excluded) == (5 / 8, "ok", 6, 0)
    assert found.group == {"families": "2"}
    t, z = student.ppf(0.975, 135 / 23), norm.ppf(0.975)
    items = (z / t) ** 2 / (0.15 * (178 / 5120) / (15 / 64) + 0.85 * 3 / 16)
    low, high = proportion_confint(5 / 8 * items, items, 0.05, "agresti_coull")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, math.nan]), st.sampled_from("abcde")),
             min_size=2, max_size=60),
    st.sampled_from([0.9, 0.95, 0.99]),
)  # fmt: skip
def test_it_is_what_a_loop_gives(rows: list[tuple[float, str]], level: float) -> None:
    """0/1 scores with gaps, families of any size, at three levels."""
    scores, families = [s for s, _ in rows], [f for _, f in rows]
    found = family_mean(scores, families, level=level)
    named = {f for s, f in rows if not math.isnan(s)}
    if not named:
        assert (found.value, found.status) == (None, "insufficient_data")
        return
    value, low, high = by_loop(scores, families, level)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.excluded == sum(map(math.isnan, scores))
    if len(named) > 1:
        assert (found.low, found.high) == pytest.approx(
            (min(max(0.0, low), value), max(min(1.0, high), value)), abs=1e-10
        )


# Squares of smaller numbers are zero, and so is what is made of them here and there.
SCORES = st.floats(-2, 2).filter(lambda score: score == 0.0 or abs(score) > 1e-100)


@given(st.lists(st.tuples(SCORES, st.sampled_from("abc")), min_size=4, max_size=40))
def test_other_scores_too(rows: list[tuple[float, str]]) -> None:
    """Scores beyond 0 and 1 have the t interval of the same variance."""
    scores, families = [s for s, _ in rows], [f for _, f in rows]
    found = family_mean(scores, families)
    if len(set(families)) == 1 or len(set(scores)) == 1:
        return
    if all(0.0 <= score <= 1.0 for score in scores):
        assert found.low is not None and 0.0 <= found.low <= found.high <= 1.0
        return
    value, low, high = by_loop(scores, families)
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high), abs=1e-9)


def test_with_many_items_it_is_the_textbooks_stratified_error() -> None:
    """sqrt(Σ s²/n)/F, which the two borrowed degrees of freedom no longer move."""
    rng = np.random.default_rng(3)
    shares, n = (0.3, 0.6, 0.9), 20_000
    parts = [(rng.random(n) < share).astype(float) for share in shares]
    found = family_mean(np.concatenate(parts), np.repeat(list("abc"), n).tolist())
    error = math.sqrt(sum(p.var(ddof=1) / n for p in parts)) / 3
    assert found.low is not None and found.high is not None
    assert (found.high - found.low) / 2 == pytest.approx(1.959964 * error, rel=1e-3)


def test_one_family_is_accuracy() -> None:
    """The same value and interval, for 0/1 and for other scores."""
    for scores in ([1, 0, 1, 1, 1], [0.2, 0.5, 0.9]):
        found, plain = family_mean(scores, ["a"] * len(scores)), accuracy(scores)
        assert (found.value, found.low, found.high) == (plain.value, plain.low, plain.high)
    assert family_mean([0.5], ["a"]).status == "insufficient_data"


def test_equal_families_have_the_plain_mean_as_value() -> None:
    scores = [1, 0, 1, 1, 0, 0]
    assert family_mean(scores, list("ababab")).value == accuracy(scores).value


def test_the_order_of_items_and_the_names_of_families_mean_nothing() -> None:
    rng = np.random.default_rng(1)
    scores = (rng.random(50) < 0.7).astype(float)
    families = rng.integers(0, 6, 50).tolist()
    order = rng.permutation(50)
    there = family_mean(scores[order], [f"x{families[i]}" for i in order])
    here = family_mean(scores, families)
    assert there.value == pytest.approx(here.value)
    assert (there.low, there.high) == pytest.approx((here.low, here.high))


def test_what_cannot_be_had_has_no_number() -> None:
    """No score: nothing. Families without a score are left out. All right: up to 1, and open
    below. Other scores that are all alike say nothing about the spread."""
    nan = math.nan
    assert family_mean([], []).status == "insufficient_data"
    assert family_mean([nan, nan], ["a", "b"]).value is None
    found = family_mean([1, 0, nan], ["a", "b", "c"])
    assert (found.value, found.group["families"], found.excluded) == (0.5, "2", 1)
    right = family_mean([1.0] * 6, list("aabbcc"))
    assert (right.value, right.high) == (1.0, 1.0) and right.low is not None and right.low < 0.8
    alike = family_mean([0.5] * 6, list("aabbcc"))
    assert (alike.value, alike.low, alike.high) == (0.5, None, None)


@pytest.mark.parametrize(
    ("scores", "families"),
    [([1, 0], ["a"]), ([[1, 0], [0, 1]], ["a", "b"]), ([1, math.inf], ["a", "b"])],
)
def test_what_does_not_fit_is_an_error(scores: object, families: list[str]) -> None:
    with pytest.raises(InvalidValue):
        family_mean(scores, families)  # type: ignore[arg-type]


# The interval

DESIGNS: dict[str, tuple[Sequence[float], Sequence[int]]] = {
    "like basics": (np.linspace(0.3, 0.95, 12).tolist(), [22] * 12),
    "like MMLU": (np.linspace(0.3, 0.95, 57).tolist(), [100 + 10 * (i % 30) for i in range(57)]),
    "very good": ([0.97] * 12, [22] * 12),
    "few items": (np.linspace(0.3, 0.95, 12).tolist(), [5] * 12),
    "one item each": ([0.8] * 60, [1] * 60),
    "two families": ([0.6, 0.8], [22, 22]),
    "one tiny family": ([0.5, 0.9, 0.97], [2, 30, 200]),
    "some tiny families": (np.linspace(0.3, 0.95, 30).tolist(), [3] * 6 + [60] * 24),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_interval_holds_its_level(name: str) -> None:
    """Families fixed, items random: 300 samples, not fewer than 95 % by a binomial test, and no
    bias."""
    shares, sizes = (np.array(part) for part in DESIGNS[name])
    families = np.repeat(np.arange(len(sizes)), sizes).tolist()
    rng, truth, hits, values = np.random.default_rng(17), float(shares.mean()), 0, []
    for _ in range(300):
        found = family_mean((rng.random(len(families)) < shares[families]).astype(float), families)
        assert found.value is not None and found.low is not None and found.high is not None
        values.append(found.value)
        hits += found.low <= truth <= found.high
    assert binomtest(hits, 300, 0.95, alternative="less").pvalue > 1e-3, hits
    assert abs(np.mean(values) - truth) < 4 * np.std(values, ddof=1) / math.sqrt(300)


def test_other_scores_cover_too() -> None:
    """Skewed scores with another spread in every family."""
    rng, hits = np.random.default_rng(23), 0
    sizes, scale = np.array([4, 8, 20, 50]), np.array([1.0, 0.3, 2.0, 0.6])
    families = np.repeat(np.arange(4), sizes)
    for _ in range(300):
        scores = rng.beta(2, 1, len(families)) * scale[families]
        found = family_mean(scores, families.tolist())
        assert found.low is not None and found.high is not None
        hits += found.low <= float(scale.mean()) * 2 / 3 <= found.high
    assert binomtest(hits, 300, 0.95, alternative="less").pvalue > 1e-3, hits


def test_clusters_cover_too() -> None:
    """Questions about one passage go right or wrong together; each passage has one subject."""
    rng, hits = np.random.default_rng(29), 0
    families = np.repeat(np.arange(8), 40).tolist()
    passages = np.repeat(np.arange(80), 4).tolist()
    shares = np.linspace(0.4, 0.9, 8)
    for _ in range(200):
        own = np.repeat(rng.beta(4 * np.repeat(shares, 10), 4 * (1 - np.repeat(shares, 10))), 4)
        scores = (rng.random(320) < own).astype(float)
        found = family_mean(scores, families, clusters=passages)
        assert found.low is not None and found.high is not None
        hits += found.low <= float(shares.mean()) <= found.high
    assert binomtest(hits, 200, 0.945, alternative="less").pvalue > 1e-3, hits


# In a run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Table]:
    path = tmp_path_factory.mktemp("run") / "a.db"
    result = falter.run(
        read_experiment({"task": "basics", "models": ["simulated"], "recipes": ["typos"]}),
        store=path,
    )
    with Store(path) as store:
        (table,) = run_tables(
            store, result.run, {"choice_likelihood": scorers.get("choice_likelihood")}
        )
    return result, table


def test_a_tables_families_are_the_first_tags(run: tuple[Result, Table]) -> None:
    """Twelve subjects of `basics`, beside the items they belong to."""
    _, table = run
    assert table.families is not None and len(table.families) == len(table.items) == 264
    assert len(set(table.families)) == 12
    assert all(
        key.startswith(family) for key, family in zip(table.items, table.families, strict=True)
    )


def test_a_panel_shows_it_beside_the_baseline(run: tuple[Result, Table]) -> None:
    """The value is what the score rows give by hand, and every report has it."""
    result, table = run
    (panel,) = result.analysis.panels
    assert panel.subjects is not None
    rows = [row for row in result.scores() if row["recipe"] == "baseline"]
    subject = dict(zip(table.items, table.families or (), strict=True))
    by_subject: dict[str, list[float]] = {}
    for row in rows:
        by_subject.setdefault(subject[row["item"]], []).append(row["value"])
    means = [sum(values) / len(values) for values in by_subject.values()]
    assert panel.subjects.value == pytest.approx(sum(means) / len(means))
    assert panel.subjects.signature == panel.signature
    assert panel.subjects.group["families"] == "12"
    for text in (result.summary(), html(result.study), as_markdown(result.study)):
        assert "Mean over subjects" in text and "each of 12 counts the same" in text
    assert "each of 12 counts the same" in as_json(result.study)


def test_questions_by_subject_from_a_folder(tmp_path: Path) -> None:
    """MMLU's files: many questions of one subject and few of another are two means of two."""
    folder = tmp_path / "test"
    folder.mkdir()
    for name, count in (("law", 30), ("art", 3)):
        rows = [f"Is this {name} question {i}?,yes,no,perhaps,never,A" for i in range(count)]
        (folder / f"{name}_test.csv").write_text("\n".join(rows) + "\n", "utf-8")
    result = falter.run(
        read_experiment({"task": f"mmlu:{folder}", "models": ["simulated"], "recipes": ["typos"]}),
        store=tmp_path / "a.db",
    )
    (panel,) = result.analysis.panels
    assert panel.subjects is not None and panel.subjects.group["families"] == "2"
    assert panel.subjects.items == panel.baseline.items == 33


def test_items_without_a_subject_have_none(tmp_path: Path) -> None:
    """No tags, or one for each item: nothing beside the baseline."""
    path = write_data(tmp_path)
    base = {
        "models": ["simulated"], "recipes": ["typos"], "template": "{question}\nAnswer:",
        "data": {"path": str(path), "choices": "options", "target": "answer"},
    }  # fmt: skip
    for tags in ({}, {"tags": "question"}):
        data = {**base, "data": {**base["data"], **tags}}  # type: ignore[dict-item]
        result = falter.run(read_experiment(data), store=tmp_path / "a.db")
        (panel,) = result.analysis.panels
        assert panel.subjects is None
        assert "subjects" not in result.summary() + html(result.study)
