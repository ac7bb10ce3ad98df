"""`falter rescore`: the same stored answers, read by two scorers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import falter
from every_estimate import every_estimate
from falter.analysis.rescore import rescored_panels
from falter.analysis.results import Settings
from falter.cli.app import cli
from falter.engine.answers import rescored_study
from falter.records.errors import StoreError, UnknownName, UsageError
from falter.records.figures import estimates
from falter.records.types import Estimate
from falter.report.tables import figure_table
from falter.scorers import scorers
from falter.scorers.answers import Label
from falter.store.store import Store

QUEUES = ("billing", "delivery", "returns")
TICKETS = [
    {"ticket": f"About {queue}, number {n}: what do I do now?", "queue": queue}
    for n in range(4)
    for queue in QUEUES
]


def router(prompt: str) -> str:
    """Talks when it is right; with blank lines at hand it names two queues now and then."""
    queue = next((q for q in QUEUES if q in prompt), "")
    if "number 0" in prompt:
        return queue
    if "\n\n\n" in prompt and "number 1" in prompt:
        return f"{queue}, or perhaps {QUEUES[queue == QUEUES[0]]}"
    return f"This should go to **{queue}**."


def value(estimate: Estimate) -> float:
    assert estimate.value is not None
    return estimate.value


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve tickets as asked and with blank lines, scored by the whole reply."""
    folder = tmp_path_factory.mktemp("rescore")
    data = folder / "tickets.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in TICKETS))
    falter.run(
        data={"path": str(data), "target": "queue"},
        template="Which queue?\n{ticket}",
        models=[router],
        recipes=["pad_newlines"],
        scorer="exact",
        store=folder / "s.db",
    )
    return folder / "s.db"


def called(store: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["rescore", "--store", str(store), *arguments])


def test_both_readings_stand_side_by_side(store: Path) -> None:
    """Three answers are the bare label, all others are sentences."""
    study = rescored_study(store, None, "label")
    tables = {figure.name: figure_table(figure) for figure in study.figures}
    readings = tables["readings"]
    assert [row["read_by"] for row in readings] == ["exact", "label", "label less exact"]
    assert [row["baseline"] for row in readings] == [0.25, 1.0, 0.75]
    turned = {(row["exact"], row["label"]): row["answers"] for row in tables["judged-differently"]}
    assert turned == {("wrong", "right"): 15}
    first = tables["replies-judged-differently"][0]
    assert first["reply"].startswith("This should go to")
    assert first["label"] == f"right: {first['right_answer']}"
    said = study.figures[0].text[0]
    assert "15 of 24 answers (62.5 %)" in said and "label cannot read 3 that exact reads" in said


def test_differences_are_those_of_the_two_readings(store: Path) -> None:
    """Of the clean prompt, the average and every recipe; each has an interval and a signature."""
    with Store(store) as opened:
        (stored,) = opened.runs()
        run = stored.run
        labels = Label({panel.task: QUEUES for panel in run.panels})
        settings = Settings(run=run.id, version=run.version, created_at=0.0)
        chosen = {"exact": scorers.get("exact")}
        (twice,) = rescored_panels(
            opened, run, chosen, dict.fromkeys(chosen, labels), [0], settings
        )
    assert value(twice.second.baseline) - value(twice.first.baseline) == value(twice.accuracy)
    assert value(twice.second.micro) - value(twice.first.micro) == pytest.approx(
        value(twice.average)
    )
    for one, other, more in zip(
        twice.first.recipes, twice.second.recipes, twice.drops, strict=True
    ):
        assert value(other.drop) - value(one.drop) == pytest.approx(value(more))
        assert more.low is not None and more.high is not None
        assert more.low <= value(more) <= more.high
    assert sum(twice.by_recipe.values()) == twice.different == sum(twice.turned.values())
    own = [twice.accuracy, twice.average, *twice.drops]
    assert all("less exact" in estimate.estimand for estimate in own)
    assert all(estimate.signature for estimate in every_estimate(own))


@pytest.mark.parametrize("form", ["--json", "--csv", "--md", "--latex"])
def test_every_form_has_it(form: str, store: Path) -> None:
    """With the difference of the two accuracies."""
    shown = called(store, "--scorer", "label", form)
    assert shown.exit_code == 0, shown.output
    assert "label less exact" in shown.stdout
    assert "75" in shown.stdout


def test_a_page_and_numbers_are_written(store: Path, tmp_path: Path) -> None:
    page, numbers = tmp_path / "r.html", tmp_path / "r.parquet"
    shown = called(store, "-s", "label", "--html", str(page), "--parquet", str(numbers))
    assert shown.exit_code == 0, shown.output
    assert "label less exact" in page.read_text("utf-8")
    assert numbers.stat().st_size > 0


def test_the_run_keeps_its_scorer(store: Path) -> None:
    """Nothing is written: neither a run nor a score."""
    before = store.read_bytes()
    assert called(store, "--scorer", "includes").exit_code == 0
    assert store.read_bytes() == before
    assert falter.open(store).newest.analysis.panels[0].panel.scorer == "exact"


def test_labels_can_be_named(store: Path) -> None:
    """One more of them changes nothing here."""
    study = rescored_study(store, None, "label", labels=["billing", "delivery", "returns", "x"])
    assert "15 of 24" in study.figures[0].text[0]
    levels = {estimate.level for figure in study.figures for estimate in estimates(figure)}
    assert levels <= {0.95, 0.96, 0.99}  # recipes and their average share the error


@pytest.mark.parametrize(
    ("scorer", "error", "message"),
    [
        ("lable", UnknownName, "Unknown scorer 'lable'"),
        ("exact", UsageError, "was already scored by it"),
        ("choice_letter", UsageError, "it needs choices, which 'tickets' does not have"),
        ("choice_likelihood", UsageError, "it needs log-probabilities of the options"),
        ("numeric", UsageError, "the target is not a number"),
    ],
)
def test_a_scorer_that_cannot_read_it_is_refused(
    scorer: str, error: type[Exception], message: str, store: Path
) -> None:
    with pytest.raises(error, match=message):
        rescored_study(store, None, scorer)


def test_labels_are_for_a_scorer_of_labels(store: Path) -> None:
    with pytest.raises(UsageError, match="does not use labels"):
        rescored_study(store, None, "includes", labels=["a", "b"])


def test_an_unfinished_run_is_refused_unless_it_may_be(store: Path, tmp_path: Path) -> None:
    """Cells that were never asked would look like a smaller experiment."""
    part = tmp_path / "part.db"
    part.write_bytes(store.read_bytes())
    with Store(part) as opened:
        opened.db.execute("DELETE FROM responses WHERE key IN (SELECT key FROM responses LIMIT 1)")
    with pytest.raises(StoreError, match="not finished"):
        rescored_study(part, None, "label")
    assert rescored_study(part, None, "label", incomplete=True).figures
