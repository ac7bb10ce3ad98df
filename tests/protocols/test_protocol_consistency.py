"""The consistency protocol: its grid, its tasks, and what its figures say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import falter
from falter.engine.config import read_experiment
from falter.engine.results import Result
from falter.engine.study import read_study, study_in
from falter.measures.consistency import random_baseline
from falter.protocols import protocols
from falter.protocols.consistency import PRESETS
from falter.protocols.protocol import UserSettings
from falter.records.errors import InvalidValue, TaskError, UsageError
from falter.records.figures import Grid
from falter.records.types import Estimate, Item
from falter.tasks import tasks

PAPER_GRID = {
    "template": ["own", "other"],
    "demonstrations": [2, 4],
    "noise": ["none", "replace_spaces", "pad_random:count=70"],
    "temperature": [0.2, 0.6],
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Three simulated models on the quick preset's tasks."""
    return falter.run(
        protocol="consistency",
        models=[
            {"name": "simulated:one", "options": {"mean": 0.9, "seed": 1}},
            {"name": "simulated:two", "options": {"mean": 0.5, "seed": 2}},
            {"name": "simulated:three", "options": {"mean": 0.2, "seed": 3}},
        ],
        task="basics:core",
        limit=10,
        store=tmp_path_factory.mktemp("grid") / "falter.db",
    )


def rows(result: Result, name: str) -> list[tuple[Any, ...]]:
    figure = result.figure(name)
    assert isinstance(figure, Grid)
    return list(figure.rows)


# The grid


def test_the_grid_is_twenty_four_configurations(tmp_path: Path) -> None:
    """Not twenty-five: the first level of every factor together is the baseline."""
    spec = read_study(
        {"task": "imdb_pairs", "models": ["simulated"], "scorer": "exact", "grid": PAPER_GRID}
    )
    with study_in(spec, tmp_path / "s.db") as study:
        ((_, resolved),) = study.parts
        (panel,) = resolved.panels
        assert len(panel.conditions) == 24
        assert len({c.recipe.id for c in panel.conditions}) == 24
        assert panel.target.sampling.temperature == 0.2
        prompts = [c.make(panel.items[0], 0).prompt for c in panel.conditions]
    assert {len(prompt.demonstrations) for prompt in prompts} == {2, 4}
    labels = [c.recipe.label for c in panel.conditions]
    assert labels[:2] == ["baseline", "template own, demonstrations 2, noise none, temperature 0.6"]


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({}, "factors"),
        ({"demonstrations": [2]}, "two or more"),
        ({"demonstrations": [2, 2]}, "differ"),
        ({"demonstrations": [2, "four"]}, "numbers from 0 to 64"),
        ({"temperature": [0.2, 11]}, "numbers from 0 to 10"),
        ({"noise": ["typos", "none"]}, "'none' as the first"),
        ({"template": ["other", "own"]}, "'own' as the first"),
        ({"noise": ["none", 3]}, "perturbation"),
    ],
)
def test_a_wrong_grid_is_refused(grid: dict[str, Any], words: str) -> None:
    """Before anything is resolved, with what would do."""
    with pytest.raises(InvalidValue, match=words):
        read_experiment({"task": "sums", "models": ["simulated"], "grid": grid})


def test_a_grid_stands_in_the_place_of_recipes(tmp_path: Path) -> None:
    """Both together are refused, and so are two configurations that are the same."""
    settings = {"task": "sums", "models": ["simulated"]}
    with pytest.raises(InvalidValue, match="beside a grid"):
        read_experiment({**settings, "recipes": ["typos"], "grid": PAPER_GRID})
    doubled = {"a": ["none", "typos"], "b": ["none", "typos:rate=0.5"]}
    spec = read_study({**settings, "grid": doubled})
    with pytest.raises(UsageError, match="are the same"), study_in(spec, tmp_path / "s.db"):
        pass


def test_a_task_without_a_second_template_gets_one_more_sentence(tmp_path: Path) -> None:
    """Its own template stays, below a sentence that changes nothing."""
    spec = read_study(
        {"task": "sums", "models": ["simulated"], "grid": {"template": ["own", "other"]}}
    )
    with study_in(spec, tmp_path / "s.db") as study:
        ((_, resolved),) = study.parts
        own, other = (c.make(resolved.panels[0].items[0], 0).prompt
                      for c in resolved.panels[0].conditions)  # fmt: skip
    assert "".join(s.text for s in other.sections).endswith(own.sections[-1].text)
    assert any("Here is a task" in s.text for s in other.sections)


# The tasks


@pytest.mark.parametrize(
    ("name", "items"), [("imdb_pairs", 200), ("mmlu_four", 776), ("llmbar", 100)]
)
def test_bundled_tasks_need_no_network(name: str, items: int) -> None:
    """Each with a second template that asks the same in other words."""
    task = tasks.get(name)(None)
    assert len(task.items) <= items
    assert len({item.key for item in task.items}) == len(task.items)
    for style, template in task.alternatives.items():
        assert template != task.templates[style]
        assert set(template.fields) == set(task.templates[style].fields)
    with pytest.raises(TaskError, match="has no part 'x'"):
        tasks.get(name)("x")


@pytest.mark.parametrize("name", ["imdb_pairs", "mmlu_four", "llmbar"])
def test_the_short_part_is_the_items_with_the_fewest_characters(name: str) -> None:
    """For models that read slowly; the same keys, templates and, in the protocol, readings."""
    whole, short = tasks.get(name)(None), tasks.get(name)("short")

    def characters(item: Item) -> int:
        return sum(map(len, (*item.fields.values(), *item.choices)))

    kept = {item.key for item in short.items}
    assert len(short.items) == 24 and short.name == f"{name}:short"
    assert [item for item in whole.items if item.key in kept] == list(short.items)
    longest = max(map(characters, short.items))
    assert all(characters(item) >= longest for item in whole.items if item.key not in kept)
    settings = UserSettings(preset="bundled", tasks=((f"{name}:short", "choices"),))
    (part,) = protocols.get("consistency").parts(settings)
    assert part.experiment["scorer"] == {f"{name}:short": PRESETS["bundled"].scorers[name]}


def test_published_shapes_are_read(tmp_path: Path) -> None:
    """A row of each; the preferred answer stands first or second by the item itself."""
    shapes = {
        "imdb": [{"text": "Great fun.", "label": 1}],
        "boolq": [{"question": "is it", "passage": "It is.", "answer": True}],
        "mmlu_pro": [{"question": "Q", "options": list("abcdefghij"), "answer_index": 9}],
        "rewardbench": [
            {"prompt": f"p{n}", "chosen": "good", "rejected": "bad"} for n in range(20)
        ],
    }
    import json

    for name, content in shapes.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(map(json.dumps, content)))
        task = tasks.get(name)(str(path))
        for item in task.items:
            assert isinstance(item.target, int)
            right = item.choices[item.target]
            expected = {"imdb": "positive", "boolq": "yes", "mmlu_pro": "j", "rewardbench": "good"}
            assert right == expected[name]
    assert {item.target for item in task.items} == {0, 1}


# The figures


def test_every_figure_is_there(result: Result) -> None:
    """Capability and consistency for each model, with both nulls."""
    assert {figure.name for figure in result.figures} == {
        "answer", "capability", "consistency-curve", "drop-rates", "regression", "factors",
        "levels",
        "item-deviations", "items-at-rest", "counts",
    }  # fmt: skip
    table = [row for row in rows(result, "capability") if row[2] == "choice_letter"]
    assert [row[0] for row in table] == ["simulated:one", "simulated:two", "simulated:three"]
    assert {row[4] for row in table} == {24}
    assert all(0.0 <= row[5].low <= row[5].value <= row[5].high <= 1.0 for row in table)


def test_capability_and_nulls_are_those_of_the_scores(result: Result) -> None:
    """The mean over all cells; its 24th power; and the null with items as they are."""
    (part,) = result.parts
    for row, table in zip(rows(result, "capability"), part.tables, strict=True):
        scores = table.matrix(strict=True)
        assert row[5].value == pytest.approx(float(np.mean(scores)))
        assert row[9].value == pytest.approx(float(np.mean(scores)) ** 24)
        assert row[10].value == pytest.approx(random_baseline(scores, items="beta-binomial").value)


def known_shares(mean: float, item_sd: float, spread: float, loss: float) -> tuple[float, float]:
    """Capability and the share that is right in all 24: integrals of the simulated model's formula.

    In 8 configurations spaces are tabs, which costs `loss`; each answers by itself given the item.
    """
    places = np.linspace(-8, 8, 4001)
    weight = norm.pdf(places) * (places[1] - places[0])
    other, tabs = (norm.cdf((mean - less + item_sd * places) / spread) for less in (0.0, loss))
    return float(weight @ (16 * other + 8 * tabs)) / 24, float(weight @ (other**16 * tabs**8))


def test_known_consistency_comes_back(tmp_path: Path) -> None:
    """Capability and output consistency that follow from the formula are inside their intervals."""
    known = {"one": (1.2, 1.0, 0.0), "two": (0.2, 2.0, 0.5)}
    result = falter.run(
        protocol="consistency",
        models=[
            {"name": f"simulated:{name}", "options": {
                "mean": mean, "item_sd": sd, "interaction_sd": 0.5, "seed": seed,
                "effects": {"replace_spaces": loss},
            }}
            for seed, (name, (mean, sd, loss)) in enumerate(known.items(), 1)
        ],
        task="basics",
        scorer="choice_letter",
        limit=150,
        store=tmp_path / "falter.db",
    )  # fmt: skip
    for row, (mean, sd, loss) in zip(rows(result, "capability"), known.values(), strict=True):
        capability, same = known_shares(mean, sd, 0.5, loss)
        assert row[5].low < capability < row[5].high
        assert row[7].low < same < row[7].high
        assert row[7].high - row[7].low < 0.2
        assert row[9].value < 0.5 * same  # the paper's null is far too low


def test_the_degrees_of_freedom_are_those_of_the_paper(result: Result) -> None:
    """One for each factor with two levels, two for the noise."""
    freedom = {row[3]: row[4] for row in rows(result, "factors")}
    assert freedom == {"template": 1, "demonstrations": 1, "noise": 2, "temperature": 1}


def test_the_line_stands_beside_that_of_luck(result: Result) -> None:
    """Three points make a line; fewer make a sentence."""
    lines = {row[1]: row for row in rows(result, "regression")}
    assert {"observed", "luck alone", "observed, split halves"} <= set(lines)
    assert all(isinstance(row[3], Estimate) for row in lines.values())


def test_the_papers_preset_names_its_data_sets() -> None:
    """Six of them, 100 items each, read as the paper does and by a reader of what people write."""
    protocol = protocols.get("consistency")
    (part,) = protocol.parts(UserSettings(preset="paper"))
    assert part.experiment["tasks"] == [
        "imdb", "boolq", "mmlu", "mmlu_pro", "gpqa", "rewardbench",
    ]  # fmt: skip
    assert part.experiment["limit"] == 100
    assert all(len(names) == 2 for names in part.experiment["scorer"].values())
    assert any("24" in note or "templates" in note for note in protocol.notes("paper"))


def test_p_to_the_24th_at_97_percent() -> None:
    """The number that the paper's null gives."""
    scores = np.repeat((np.arange(100) < 97)[:, None], 24, axis=1)
    assert f"{random_baseline(scores).value:.3f}" == "0.481"
