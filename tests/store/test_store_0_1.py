"""A store that falter 0.1.0 wrote opens, and its run and its study give the same estimates."""

from __future__ import annotations

import csv
import gzip
import lzma
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from every_estimate import every_estimate
from falter.engine.results import Result, open_result
from falter.records.figures import estimates
from falter.store.maintenance import verify
from falter.store.store import Store

DATA = Path(__file__).parents[1] / "data" / "store_0_1"
Key = tuple[str, ...]
# Changed on purpose: fewer than 6 clusters of cells have no interval and others have CR2's; mid-p
# where as many rose as fell is below 1. Heights of a curve stay between 0 and 1, and its slope is
# what is lost. Ratios without an interval are not shown.
CHANGED = {
    "chain_of_thought_gain",
    "composition.asymmetry",
    "difference_in_drops",
    "differential_failure",
    "intensity_curve.auc",
    "intensity_curve.mean",
    "intensity_curve.retained",
    "intensity_curve.slope",
    "mitigation",
    "noise_floor",
    "quality_gap",
    "reasoning_quality",
    "unreadable",
}
# The same values with other intervals: one rule for every mean on a scale, and the level of the
# family for averages.
AVERAGES = {
    "accuracy", "capability", "family_mean", "group_average", "macro_average", "micro_average",
    "noise_floor",
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("earlier") / "falter.db"
    path.write_bytes(lzma.decompress((DATA / "falter.db.xz").read_bytes()))
    return path


def recorded(figures: set[str] | None = None) -> Counter[Key]:
    """Value, interval, p-value, status and number of items, as 0.1.0 gave them."""
    text = gzip.decompress((DATA / "estimates.csv.gz").read_bytes()).decode()
    rows = list(csv.DictReader(text.splitlines()))
    known = {row["figure"] for row in rows}
    assert len(rows) > 400 and "run" in known
    chosen = figures if figures is not None else known - {"run"}
    return Counter(
        _key(*(row[n] for n in ("measure", "value", "low", "high", "p_value", "status", "items")))
        for row in rows
        if row["figure"] in chosen
    )


def _key(measure: str, *numbers: object) -> Key:
    """Twelve digits of each number, seven of a mixed model's.

    A mixed model is fitted by an optimiser that stops near the optimum; how near depends on the
    processor's floating-point instructions.
    """
    digits = 7 if measure.startswith("mixed_effects") else 12
    return measure, *(f"{float(n):.{digits}g}" if _is_number(n) else str(n or "") for n in numbers)


def _is_number(text: object) -> bool:
    try:
        float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def held(result: Result, *, everywhere: bool) -> Counter[Key]:
    found = (
        (e for part in result.parts for e in every_estimate(part.analysis))
        if everywhere
        else (e for figure in result.figures for e in estimates(figure))
    )
    return Counter(
        _key(e.measure, e.value, e.low, e.high, e.p_value, e.status, e.items) for e in found
    )


def values_of(keys: Iterable[Key]) -> set[tuple[object, object]]:
    """The averages without what is said of how sure they are."""
    return {(key[0], key[1]) for key in keys if key[0] in {*AVERAGES, "group_average", "mean_drop"}}


def test_the_store_is_whole(store: Path) -> None:
    with Store(store) as opened:
        assert verify(opened).problems == ()


def test_its_run_gives_the_same_estimates(store: Path) -> None:
    """Every number of the analysis, to twelve digits, but for those that have a new rule."""
    result = open_result(store, "937e30456c")
    found = held(result, everywhere=True)
    gone = recorded({"run"}) - found
    # The worst drop is shrunken, verdicts are adjusted for the family, and rank correlations need
    # four models.
    ranks = {"rank_agreement", "rank_agreement.noise"}
    assert {measure for measure, *_ in gone} == {"paired_drops.worst", "tost"} | AVERAGES | ranks
    assert values_of(gone) <= values_of(found)


def test_its_study_gives_the_same_estimates(store: Path) -> None:
    """Every number of every figure, but for those of clusters, averages and one p-value."""
    result = open_result(store, "cd0da75bd8")
    assert result.study.title == "brittlebench, preset quick"
    found = held(result, everywhere=False)
    gone = recorded().keys() - found.keys()
    more = {"group_average", "mean_drop", "micro_average", "macro_average"}
    assert {measure for measure, *_ in gone} == CHANGED | more
    assert values_of(key for key in gone if key[0] in more) <= values_of(found)
