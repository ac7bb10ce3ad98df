"""Plans for data sets that are not on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from falter.cli.app import cli
from falter.records.errors import FalterError, TaskError
from falter.tasks import data_sets, sizes, tasks
from falter.tasks.sizes import sized_by_description


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """No hub, and a few rows of each data set."""

    def missing(name: str, split: str) -> None:
        raise TaskError(f"no hub for {name}")

    few = {name: {**size, "rows": 8} for name, size in sizes.sizes().items()}
    monkeypatch.setattr(data_sets, "read_hub", missing)
    monkeypatch.setattr(sizes, "sizes", lambda: few)


def test_every_described_data_set_goes_through_its_own_reader() -> None:
    """As many items as rows, none like another; outside of a plan nothing is described."""
    for name in sizes.sizes():
        with sized_by_description() as described:
            task = tasks.get(name)(None)
        assert len({item.id for item in task.items}) == 8, name
        assert described.rows == {name: 8}
        with pytest.raises(FalterError, match="no hub"):
            tasks.get(name)(None)


def test_a_copy_that_the_user_names_is_never_described() -> None:
    with sized_by_description(), pytest.raises(TaskError, match="no hub for mine/imdb"):
        tasks.get("imdb")("hub:mine/imdb")


def test_the_paper_is_planned_without_its_data(tmp_path: Path) -> None:
    """24 configurations of each of the six data sets, and a line that says what was not there."""
    arguments = ["plan", "--protocol", "consistency", "--preset", "paper", "--limit", "2"]
    arguments += ["--model", "simulated", "--store", str(tmp_path / "falter.db")]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0
    assert "together: 288 calls" in result.stdout
    assert (
        "planned with filler text of about the same size, because the data are not on this "
        "machine: imdb, boolq, "
        "mmlu, mmlu_pro, gpqa, rewardbench;" in result.stdout
    )


def test_a_plan_looks_at_some_rows_and_multiplies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same sums as with all rows, with a limit above the rows looked at and without one."""

    def sums(*more: str) -> tuple[int, int, int, list[int]]:
        store = str(tmp_path / "falter.db")
        arguments = ["plan", "--task", "xsum", "-r", "typos", "--model", "simulated", "--json"]
        result = CliRunner().invoke(cli, [*arguments, "--store", store, *more])
        assert result.exit_code == 0, result.output
        rows = json.loads(result.stdout)["panels"]
        names = ("calls", "prompt_tokens", "completion_tokens_at_most")
        calls, read, written = (sum(row[name] for row in rows) for name in names)
        return calls, read, written, [row["items"] for row in rows]

    whole, six = sums(), sums("--limit", "6")
    monkeypatch.setattr(sizes, "FILLER_ROWS", 4)
    for some, all_ in ((sums(), whole), (sums("--limit", "6"), six)):
        assert some[0] == all_[0] and some[2:] == all_[2:]
        assert some[1] == pytest.approx(all_[1], rel=0.01)
    assert whole[3] == [8] and six[3] == [6] and sums("--limit", "3")[3] == [3]


def test_a_rewriter_is_planned_for_all_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most two sentences of each XSum article, three of CNN/DM; the same from half of them."""

    def calls() -> int:
        arguments = ["plan", "--task", "xsum", "--task", "cnn_dailymail", "--model", "simulated"]
        arguments += ["-r", "paraphrase_relevant", "--rewriter", "openai:gpt-4.1", "--json"]
        result = CliRunner().invoke(cli, [*arguments, "--store", str(tmp_path / "falter.db")])
        assert result.exit_code == 0, result.output
        return sum(row["calls"] for row in json.loads(result.stdout)["others"])

    whole = calls()
    monkeypatch.setattr(sizes, "FILLER_ROWS", 4)
    assert whole == calls() == 8 * (2 + 3)
