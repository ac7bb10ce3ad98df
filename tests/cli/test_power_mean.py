"""`falter power --mean`: the error of a mean from variance components, before anything is asked."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falter.cli.app import invoke
from falter.engine.analyze import analyze_files
from falter.engine.power import components_in, components_of, design_errors
from falter.records.errors import FalterError, InvalidValue, UnknownName, UsageError
from falter.stats.variance import Design, VarianceParts, components, mean_error

DATA = Path(__file__).parents[1] / "data"
LANGUAGES = DATA / "truthfulqa_multi_languages.csv"
Capture = pytest.CaptureFixture[str]
PARTS = VarianceParts(item=0.12, condition=0.001, interaction=0.05, draw=0.02, run=0.04)


def falter_cli(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = invoke(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_the_error_by_hand() -> None:
    """.12/100 + (.05 + .02/2 + .04/(2 · 4))/(100 · 5), and .001/5 for conditions like these."""
    design = Design(items=100, conditions=5, draws=2, repeats=4)
    these = 0.12 / 100 + (0.05 + 0.01 + 0.005) / 500
    assert mean_error(PARTS, design) == pytest.approx(math.sqrt(these))
    like = mean_error(PARTS, design, like_these=True)
    assert like == pytest.approx(math.sqrt(these + 0.001 / 5))
    assert design.calls == 4000


def test_what_is_not_known_counts_in_the_interaction() -> None:
    design = Design(items=10, conditions=2, draws=3)
    found = mean_error(VarianceParts(item=0.1, interaction=0.05), design)
    assert found == pytest.approx(math.sqrt(0.01 + 0.05 / 20))
    assert mean_error(VarianceParts(item=0.0), design) == 0.0


def test_means_of_a_simulated_design_vary_as_the_error_says() -> None:
    """4,000 studies of random items and conditions with known parts: within 4 % of the formula."""
    rng = np.random.default_rng(7)
    design = Design(items=20, conditions=4, draws=2, repeats=3)
    size = (4000, design.items, design.conditions, design.draws, design.repeats)

    def part(name: str, *axes: int) -> Any:
        kept = tuple(size[n] if n in (0, *axes) else 1 for n in range(5))
        return rng.normal(0.0, math.sqrt(getattr(PARTS, name)), kept)

    fixed = part("item", 1) + part("interaction", 1, 2) + part("draw", 1, 2, 3)
    scores = fixed + part("run", 1, 2, 3, 4)
    means = scores.mean(axis=(1, 2, 3, 4))
    assert means.std() == pytest.approx(mean_error(PARTS, design), rel=0.04)
    both = (scores + part("condition", 2)).mean(axis=(1, 2, 3, 4))
    assert both.std() == pytest.approx(mean_error(PARTS, design, like_these=True), rel=0.04)


def test_the_planned_error_of_a_study_is_the_one_it_had() -> None:
    """Over these conditions the D-study of a table is the standard error of its items' means."""
    rng = np.random.default_rng(3)
    table = (rng.random((300, 6)) < rng.random((300, 1))).astype(float)
    own = components(table[:, :, None])
    parts = VarianceParts(item=float(own.item[0]), interaction=float(own.interaction[0]))
    means = table.mean(axis=1)
    expected = means.std(ddof=1) / math.sqrt(300)
    assert mean_error(parts, Design(items=300, conditions=6)) == pytest.approx(expected)


def test_designs_are_the_planned_one_and_twice_each_part() -> None:
    found = design_errors(PARTS, Design(items=100, conditions=5, draws=2, repeats=4))
    assert [e.change for e in found] == [
        "as planned", "2 × items", "2 × conditions", "2 × draws", "2 × repeats",
    ]  # fmt: skip
    assert found[1].these == pytest.approx(found[0].these / math.sqrt(2))
    assert [e.design.calls for e in found] == [4000, 8000, 8000, 8000, 8000]
    assert all(e.these < found[0].these for e in found[1:])


def test_components_are_read_from_text() -> None:
    found = components_in("item=0.12, run=4e-2")
    assert found == VarianceParts(item=0.12, run=0.04)
    assert found.draw is None


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", InvalidValue, "item=VARIANCE"),
        ("run=0.1", InvalidValue, "item=VARIANCE"),
        ("item=0.1,rum=0.2", UnknownName, "'rum'"),
        ("item=0.1,item=0.2", InvalidValue, "not 'item' twice"),
        ("item=ten", InvalidValue, "--components item is 'ten'"),
        ("item=-0.1", InvalidValue, "item is -0.1"),
        ("item=12", InvalidValue, "a variance of scores"),
        ("item=nan", InvalidValue, "a variance of scores"),
    ],
)
def test_components_that_cannot_be_are_named(
    text: str, error: type[FalterError], message: str
) -> None:
    with pytest.raises(error, match=r"component|item") as bad:
        components_in(text)
    assert message in str(bad.value)


def test_a_design_of_nothing_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="repeats is 0"):
        Design(items=10, conditions=2, repeats=0)


def test_components_come_from_results() -> None:
    """A table without runs says nothing of them; what came out below 0 counts as 0 and is told."""
    analysis = analyze_files([LANGUAGES], baseline="en")
    parts, notes = components_of(analysis)
    crossed = analysis.panels[0].components["crossed"]
    assert parts.item == crossed["item"].value
    assert parts.interaction == crossed["interaction"].value
    assert (parts.draw, parts.run) == (None, None)
    assert "From the results: item " in notes[0] and "(1 panel)" in notes[0]


def test_results_without_components_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("item,score\na,1\nb,0\nc,1\n", "utf-8")
    with pytest.raises(UsageError, match="no variance components"):
        components_of(analyze_files([path]))


def test_the_command_prints_a_small_table(capsys: Capture) -> None:
    code, out, err = falter_cli(
        capsys, "power", "--components", "item=0.12,interaction=0.05,run=0.04", "--items", "500"
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].split()[:2] == ["as", "planned"]
    assert "±3.11" in lines[1]
    assert "Not estimated, and therefore included in the others: draw" in out


def test_the_command_has_objects_and_takes_results(capsys: Capture) -> None:
    code, out, err = falter_cli(
        capsys, "power", "--mean", "--from", str(LANGUAGES), "--items", "817", "--json"
    )
    assert code == 0, err
    rows = json.loads(out)
    assert [row["goal"] for row in rows] == ["mean"] * 5
    assert (rows[0]["items"], rows[0]["conditions"], rows[0]["calls"]) == (817, 5, 4085)
    assert rows[0]["half_width_like_these_points"] > rows[0]["half_width_these_points"] > 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mean", "--items", "10"], "--mean needs variances"),
        (["--mean", "--components", "item=0.1"], "--mean needs --items"),
        (["--components", "item=0.1", "--items", "0"], "items is 0"),
    ],
)
def test_mistakes_are_named_and_exit_with_2(
    capsys: Capture, arguments: list[str], message: str
) -> None:
    code, out, err = falter_cli(capsys, "power", *arguments)
    assert (code, out) == (2, "")
    assert message in err
