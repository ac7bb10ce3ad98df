"""The clients that cost nothing: the embedded model end to end, and the simulated one's truth."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import NormalDist

import pytest

import falter
from falter.cli.app import invoke
from falter.clients.llama_engine import LlamaEngine
from falter.engine.config import ModelSpec, read_experiment
from falter.engine.connections import connect
from falter.engine.resolving import resolve
from falter.records.errors import InvalidValue, UsageError
from falter.records.planning import plan
from falter.records.types import Response
from falter.weights.downloads import find_weights


def responses(path: Path) -> int:
    """The number of answers in a store."""
    with closing(sqlite3.connect(path)) as db:
        (count,) = db.execute("SELECT count(*) FROM responses").fetchone()
    return int(count)


def test_the_embedded_model_falters(readme_run: Path, tmp_path: Path) -> None:
    """Newline padding costs SmolLM2 far more than asking again, which costs nothing.

    The README has asked the same items; only the baseline is asked again.
    """
    path = tmp_path / "falter.db"
    shutil.copy(readme_run / "falter.db", path)
    answered = responses(path)
    result = falter.run(
        task="basics", models=["smollm2"], recipes=["pad_newlines", "identity"], limit=8,
        store=path,
    )  # fmt: skip
    assert responses(path) == answered + 8
    (panel,) = result.analysis.panels
    (padding,) = panel.recipes
    assert panel.baseline.value is not None
    assert panel.baseline.value >= 0.55
    assert padding.drop.value is not None
    assert padding.drop.value > 0.10
    assert panel.noise_floor is not None
    assert panel.noise_floor.value == 0.0
    assert panel.examples


def test_the_embedded_model_writes_letters_at_chance_level_and_says_so(tmp_path: Path) -> None:
    result = falter.run(
        task="basics", models=["smollm2"], recipes=["identity"], limit=2,
        sampling={"max_tokens": 8}, scorer="choice_letter", store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert any("cannot be told from chance (25 %)" in note for note in panel.notes)
    assert panel.counts.scored + panel.counts.unparsed == 4


def test_scores_do_not_depend_on_the_lane(tmp_path: Path) -> None:
    """One engine or two, the numbers are the same to the last bit."""
    found = []
    for lanes in (1, 2):
        experiment = read_experiment(
            {
                "task": "basics", "limit": 2, "recipes": ["typos"],
                "models": [{"name": "smollm2", "concurrency": lanes}],
            }
        )  # fmt: skip
        (panel,) = resolve(experiment).panels
        requests = list(plan(panel.items, panel.conditions, panel.target))

        async def main(client=panel.client, requests=requests) -> list[object]:  # type: ignore[no-untyped-def]
            await client.check()
            try:
                answers = await asyncio.gather(*(client.score_many([r]) for r in requests))
                return [a[0].scores for a in answers]
            finally:
                await client.close()

        found.append(asyncio.run(main()))
    assert found[0] == found[1]


def test_a_prompt_too_long_for_the_model_fails_by_itself(tmp_path: Path) -> None:
    """One bad item is one failed request, with the reason."""
    data = tmp_path / "d.jsonl"
    long = "word " * 9_000
    data.write_text(
        '{"q": "Grass is?", "o": ["green", "red"], "a": 0}\n'
        f'{{"q": "{long}", "o": ["green", "red"], "a": 0}}\n'
    )
    result = falter.run(
        data={"path": str(data), "target": "a", "choices": "o"}, template="{q}\nAnswer:",
        models=["smollm2"], recipes=["identity"], store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.failed == 2
    assert any("tokens" in reason for reason in panel.failures)


def test_a_simulated_model_is_as_brittle_as_it_was_told(tmp_path: Path) -> None:
    """Accuracies by the formula: Φ((mean − effect) / √(item² + interaction² + noise²))."""
    data = tmp_path / "d.jsonl"
    lines = [f'{{"q": "Is number {n} even or odd, do you think?", "a": "yes"}}' for n in range(750)]
    data.write_text("\n".join(lines))
    result = falter.run(
        data={"path": str(data), "target": "a"}, template="{q}",
        models=[{"name": "simulated", "options": {"mean": 0.5, "effects": {"pad_quotes": 0.4}}}],
        recipes=["pad_quotes", "pad_spaces", "identity"], store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    spread = (1.0 + 0.25) ** 0.5
    truth = {label: NormalDist().cdf((0.5 - e) / spread) for label, e in
             (("baseline", 0.0), ("pad_quotes", 0.4), ("pad_spaces", 0.0))}  # fmt: skip
    # Of 750 items the standard error is .017.
    assert panel.baseline.value == pytest.approx(truth["baseline"], abs=0.04)
    for row in panel.recipes:
        expected = truth["baseline"] - truth[row.label]
        assert row.drop.low is not None
        assert row.drop.high is not None
        assert row.drop.low - 0.01 < expected < row.drop.high + 0.01
    assert panel.noise_floor is not None
    assert panel.noise_floor.value == 0.0


def test_unparsed_answers_are_counted_by_the_chosen_rule(tmp_path: Path) -> None:
    found = {}
    for rule in ("wrong", "excluded"):
        result = falter.run(
            task="basics", models=[{"name": "simulated", "options": {"unparsed": 0.3}}],
            recipes=["typos"], scorer="choice_letter", unparsed=rule,
            store=tmp_path / "falter.db",
        )  # fmt: skip
        (found[rule],) = result.analysis.panels
    wrong, excluded = found["wrong"], found["excluded"]
    assert wrong.counts == excluded.counts
    assert 100 < wrong.counts.unparsed < 220
    assert wrong.baseline.items == 264
    assert excluded.baseline.items < 220
    assert wrong.baseline_valid.value == excluded.baseline.value
    assert (wrong.baseline.value or 0) < (excluded.baseline.value or 0)


@pytest.mark.parametrize("name", ["simulated", "smollm2", "gguf:some.gguf"])
def test_an_address_for_a_model_without_a_server_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, path = "http://localhost:1/v1", tmp_path / "falter.db"
    told = f"base_url is '{url}'; expected no value with the client {name[:4]}"
    with pytest.raises(InvalidValue, match=told):
        falter.run(task="basics", models=[name], base_url=url, store=path)
    line = ["run", "--task", "basics", "--model", name, "--base-url", url, "--store", str(path)]
    assert invoke(line) == 2 and not path.exists()
    said = capsys.readouterr().err
    assert f"error: base_url is '{url}'; expected no value with the client" in said
    assert "hint: " in said and "openai:NAME" in said


def test_a_scored_request_counts_its_prompt_once() -> None:
    experiment = read_experiment({"task": "basics", "limit": 1, "models": ["smollm2"]})
    (panel,) = resolve(experiment).panels
    request = next(iter(plan(panel.items, panel.conditions, panel.target)))

    async def main() -> Response:
        await panel.client.check()
        (response,) = await panel.client.score_many([request])
        await panel.client.close()
        return response

    found = asyncio.run(main())
    path = find_weights()
    assert path is not None
    engine = LlamaEngine(path)
    read = engine.generate(request.context, max_tokens=1, temperature=0, seed=0).prompt_tokens
    engine.close()
    assert found.usage.prompt_tokens == read + sum(score.tokens for score in found.scores)


@pytest.mark.parametrize("name", ["smollm2:x", "openai", "openai:"])
def test_names_that_do_not_name_a_model(name: str) -> None:
    with pytest.raises(UsageError):
        connect(ModelSpec(name=name))


def test_run_works_inside_a_running_loop(tmp_path: Path) -> None:
    """As in a notebook."""

    async def main() -> float | None:
        result = falter.run(
            task="basics", models=["simulated"], recipes=["typos"], limit=20,
            store=tmp_path / "falter.db",
        )  # fmt: skip
        return result.analysis.panels[0].baseline.value

    assert asyncio.run(main()) is not None


def test_a_result_gives_tables_and_files(tmp_path: Path) -> None:
    result = falter.run(
        task="basics", models=["simulated"], recipes=["typos", "persona"], limit=20,
        store=tmp_path / "falter.db",
    )  # fmt: skip
    drops = [row for row in result.table("drops") if row["kind"] == "member"]
    assert [row["recipe"] for row in drops] == ["typos", "persona"]
    assert {row["group"] for row in result.table("recipes")[1:]} == {
        "word manipulation", "prompt augmentation",
    }  # fmt: skip
    assert len(result.scores()) == 60
    assert (
        result.table("headline")[0]["prompt_share"]
        == result.analysis.panels[0].prompt_share.share.value
    )
    assert result.table("recipes")[1]["cells"] == 20
    assert len(result.rows("drops")) < len(result.rows())
    for ending in ("html", "json", "csv", "md", "parquet"):
        assert result.report(tmp_path / f"r.{ending}").stat().st_size > 200
    with pytest.raises(UsageError, match="Unknown figure 'drop'"):
        result.table("drop")
    with pytest.raises(UsageError, match="expected a file ending in"):
        result.report(tmp_path / "r.pdf")
    assert "simulated on basics" in result.summary()


def test_draws_repeats_and_demonstrations(tmp_path: Path) -> None:
    result = falter.run(
        task="basics", models=[{"name": "simulated", "options": {"noise_sd": 0.5}}],
        recipes=["typos", "pad_quotes"], limit=40, draws=2, repeats=2, demonstrations=3,
        store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.cells == 40 * 2 * (1 + 2 + 2)
    assert panel.noise_floor is not None
    assert (panel.noise_floor.value or 0) > 0
    shown = {row["item"] for row in result.scores()}
    assert len(shown) == 40
