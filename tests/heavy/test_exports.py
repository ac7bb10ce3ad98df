"""Exports read by the tools they are for: inspect_ai, and the data sets library of the hub."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from datasets import load_dataset
from inspect_ai.log import (
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
)

import falter


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> falter.Result:
    folder = tmp_path_factory.mktemp("exports")
    return falter.run(
        task="basics", limit=6, models=["simulated"], recipes=["typos", "casing"],
        draws=2, scorer="choice_letter", store=folder / "s.db",
    )  # fmt: skip


@pytest.mark.parametrize("writer", ["by Inspect", "by rule"])
def test_inspect_reads_the_logs(
    writer: str, result: falter.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote them: the same samples, scores and totals."""
    with monkeypatch.context() as patch:
        if writer == "by rule":
            patch.setitem(sys.modules, "inspect_ai.log", None)
        result.export("inspect", tmp_path / "logs")
    found = list_eval_logs(str(tmp_path / "logs"))
    assert len(found) == 3
    scores = result.scores()
    for info in found:
        log = read_eval_log(info)
        recipe = log.eval.task_args["recipe"]
        own = [row for row in scores if row["recipe"] == recipe]
        assert log.status == "success" and log.samples is not None and log.results is not None
        assert len(log.samples) == len(own) == len(read_eval_log_sample_summaries(info))
        mean = sum(row["value"] or 0.0 for row in own) / len(own)
        assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(mean)
        sample = read_eval_log_sample(info, id=log.samples[0].id, epoch=1)
        assert sample.input[-1].role == "user" and sample.output.completion
        assert set(sample.scores) == {"choice_letter"}


def test_the_hubs_library_reads_the_folder(result: falter.Result, tmp_path: Path) -> None:
    """Both tables by the names that the card gives them."""
    result.export("hf", tmp_path / "set")
    for name, least in (("answers", 18), ("numbers", 20)):
        rows = load_dataset(str(tmp_path / "set"), name, cache_dir=str(tmp_path / "cache"))["train"]
        assert len(rows) >= least
    answers = load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))["train"]
    assert answers[0]["prompt"][0]["role"] in ("system", "user")
    assert set(answers["recipe"]) == {"baseline", "typos", "casing"}
