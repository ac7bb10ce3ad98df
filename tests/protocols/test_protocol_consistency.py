"""The consistency protocol: its grid, its tasks, and what its figures say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import falter
from falter.engine.config import read_experiment
from falter.engine.results import Result
from falter.engine.study import read_study, study_in
from falter.protocols import protocols
from falter.protocols.consistency import PRESETS
from falter.protocols.consistency.figures import answer_sentences, measured_panels
from falter.protocols.factors import GridPanel
from falter.protocols.protocol import UserSettings
from falter.records.errors import InvalidValue, TaskError, UsageError
from falter.records.figures import Curves, Grid
from falter.records.interfaces import Case
from falter.records.types import BASELINE, Item, Prompt, Response, Variant
from falter.report.forms.latex import as_latex
from falter.scorers import scorers
from falter.tasks import tasks
from tex import compiled, needs_tex

PAPER_GRID = {
    "template": ["own", "other"],
    "demonstrations": [2, 4],
    "noise": ["none", "replace_spaces", "pad_random:count=70"],
    "temperature": [0.2, 0.6],
}


MODELS = [
    {"name": f"simulated:{name}", "options": {"mean": mean, "seed": seed}}
    for seed, (name, mean) in enumerate({"one": 0.9, "two": 0.5, "three": 0.2}.items(), 1)
]


ITEMS = 10


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("grid") / "falter.db"


@pytest.fixture(scope="module")
def result(store: Path) -> Result:
    """Three simulated models on a few easy questions, in the paper's grid."""
    return falter.run(
        protocol="consistency", models=MODELS, task="basics:core", limit=ITEMS, store=store
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
        ({"max_tokens": [16, 32]}, "run once for each 'max_tokens'"),
    ],
)
def test_a_wrong_grid_is_refused(grid: dict[str, Any], words: str) -> None:
    """Before anything is resolved, with what would do."""
    with pytest.raises(InvalidValue, match=words):
        read_experiment({"task": "sums", "models": ["simulated"], "grid": grid})


def test_a_grid_stands_in_the_place_of_recipes(tmp_path: Path) -> None:
    """Both together are refused, and so are two configurations that are identical."""
    settings = {"task": "sums", "models": ["simulated"]}
    with pytest.raises(InvalidValue, match="together with a grid"):
        read_experiment({**settings, "recipes": ["typos"], "grid": PAPER_GRID})
    doubled = {"a": ["none", "typos"], "b": ["none", "typos:rate=0.5"]}
    spec = read_study({**settings, "grid": doubled})
    with pytest.raises(UsageError, match="are identical"), study_in(spec, tmp_path / "s.db"):
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


def panel(steady: float, *, rate: float = 0.6, items: int = 100, seed: int = 0) -> GridPanel:
    """A model with a known share of items that never change; the others are coins."""
    rng = np.random.default_rng(seed)
    never = np.arange(items) < round(steady * items)
    scores = np.where(
        never[:, None], rng.random((items, 1)) < rate, rng.random((items, 24)) < rate
    ).astype(float)
    return GridPanel(
        model=f"steady {steady}", task="coins", scorers=("exact_word",), scores=scores,
        outputs=scores.astype(np.int32), missing=np.zeros(scores.shape, bool), levels={},
        clusters=None, signature="",
    )  # fmt: skip


def sentence(one: GridPanel) -> str:
    (text,) = answer_sentences(measured_panels([one], 0.95))
    return text


def test_the_headline_says_where_a_model_stands_between_luck_and_always_the_same() -> None:
    """Deterministic models, coins, a mixture; too few items and a saturated model say neither."""
    for seed in range(4):
        text = sentence(panel(1.0, seed=seed))
        assert "gives the same answer to 100.0 %" in text
        assert "it has 1.00 [0.95, 1.00]: practically the same however asked" in text
    assert "it has 0.00 [0.00, 0.05]: not shown to be steadier than luck" in sentence(panel(0.0))
    assert "steadier than luck with equally hard items. Easy and hard" in sentence(panel(0.5))
    assert "not said: fewer than 30 items" in sentence(panel(1.0, items=20))
    assert "not said: not informative at this capability, 1.000" in sentence(panel(1.0, rate=1))
    gap = panel(0.5)
    gap.missing[0, 3], gap.scores[0, 3], gap.outputs[0, 3] = True, np.nan, -1
    assert "of 99 items of coins (of 1 more an answer is missing)" in sentence(gap)
    tally, *_ = answer_sentences(measured_panels([panel(1.0), panel(0.0)], 0.95))
    assert tally.startswith(
        "Of 2 pairs of a model and a data set: 1 practically the same however asked; 1 not shown "
        "to be steadier than luck."
    )


def test_every_figure_is_there(result: Result) -> None:
    """Readings that agree are one row; factors, the paper's figures, and every prompt counted."""
    assert {figure.name for figure in result.figures} == {
        "answer", "capability", "bars", "consistency-curve", "factors", "levels", "interactions",
        "scatter", "regression", "by-data-set", "drop-rates-chart", "drop-rates",
        "item-deviations", "items-at-rest", "anova", "measures-agree", "counts",
    }  # fmt: skip
    table = rows(result, "capability")
    assert [row[0] for row in table] == ["simulated:one", "simulated:two", "simulated:three"]
    assert {row[2:5] for row in table} == {("exact_letter and choice_letter", ITEMS, 24)}
    assert all(0.0 <= row[5].low <= row[5].value <= row[5].high <= 1.0 for row in table)


def test_the_numbers_are_those_of_the_scores(result: Result) -> None:
    """Capability, its 24th power, and the gap over luck by data set."""
    (part,) = result.parts
    tables = [t for t in part.tables if t.panel.scorer == "exact_letter"]
    gaps = []
    for row, table in zip(rows(result, "capability"), tables, strict=True):
        scores = table.matrix(strict=True)
        p = scores.mean()
        assert row[5].value == pytest.approx(p)
        assert row[9].status == "insufficient_data"
        assert row[11].value == pytest.approx(p**24)
        assert row[11].low >= 0.0
        gaps.append(row[6].value - p**24)
    (by_task,) = rows(result, "by-data-set")
    assert by_task[5:] == pytest.approx((np.mean(gaps), min(gaps), max(gaps)))


def test_the_pooled_table_has_the_papers_rows(result: Result) -> None:
    """One degree of freedom for each factor with two levels, two for the noise, an intercept."""
    freedom = {row[1]: row[3] for row in rows(result, "anova")}
    assert freedom == {
        "template": 1, "demonstrations": 1, "noise": 2, "temperature": 1, "intercept": 1
    }  # fmt: skip
    assert f"{3 * ITEMS * 24 - 6:,}" in " ".join(result.figure("anova").text)


def test_the_scatter_has_points_a_line_and_luck(result: Result) -> None:
    """The line is the regression's, luck is p to the power of 24, the scale is true."""
    scatter = result.figure("scatter")
    assert isinstance(scatter, Curves) and scatter.true_scale
    line, luck, *points = scatter.curves
    assert (line.label, luck.label, len(points)) == ("fitted line", "luck, p to the power of 24", 3)
    assert all(e.value == pytest.approx((x / 100) ** 24) for x, e in luck.points)
    ((_, _, slope, intercept, _),) = rows(result, "regression")
    assert all(
        e.value == pytest.approx(intercept.value + slope.value * x / 100) for x, e in line.points
    )


def test_published_tables_are_beside_the_run(result: Result) -> None:
    """Table A.2 with its models, tables C.1 and C.2 with their intercepts."""
    protocol = protocols.get("consistency")
    capability, anova = protocol.published(result.parts)
    assert isinstance(capability, Grid) and isinstance(anova, Grid)
    assert ("phi-4", "paper", 0.96, 0.88, 0.70, 0.67, 0.50, 0.38) in capability.rows
    assert len([row for row in anova.rows if row[1] == "intercept"]) == 6


def test_the_papers_reading_is_one_rule_for_score_and_sameness() -> None:
    """Lower-cased and stripped: "Positive." is neither right nor the same as "positive"."""
    item = Item(
        task="t", key="k", fields={"text": "Fine."}, choices=("negative", "positive"), target=1
    )
    prompt = Prompt(sections=(), target=1, choices=item.choices, labels=("A", "B"))
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="changed")
    scorer = scorers.get("exact_word")
    read = [
        scorer.score(Case(variant=variant, response=Response(key="k", text=text)))
        for text in (" Positive\n", "positive", "positive.")
    ]
    assert [score.value for score in read] == [1.0, 1.0, 0.0]
    assert [score.extracted for score in read] == ["positive", "positive", "positive."]


def test_a_grid_of_ones_own_has_main_effects_products_and_tests(
    store: Path, result: Result
) -> None:
    """In the protocol, which sends these configurations only, and in an experiment by itself."""
    grid = {"noise": ["none", "replace_spaces"], "demonstrations": [2, 4]}
    loss = {**MODELS[0], "options": {"mean": 2.0, "effects": {"replace_spaces": 3.0}}}
    settings = {
        "models": [loss],
        "task": "basics:core",
        "limit": ITEMS,
        "grid": grid,
        "store": store,
    }
    own = falter.run(protocol="consistency", **settings)
    alone = falter.run(scorer="choice_letter", **settings)
    assert rows(own, "capability")[0][4] == 4
    for found in (own, alone):
        tests = {row[3]: row for row in rows(found, "factors")}
        assert list(tests) == ["noise", "demonstrations", "noise × demonstrations"]
        assert tests["noise"][7] < 0.001 < 0.05 < tests["demonstrations"][7]
        drops = {row[4]: row[6] for row in rows(found, "levels")}
        assert drops["replace_spaces"].low > 0.3 and drops["none"] is None
        ((*_, both, beyond),) = rows(found, "interactions")
        assert both == "noise replace_spaces and demonstrations 4"
        assert beyond.low < 0.0 < beyond.high


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


@needs_tex
def test_the_latex_of_all_figures_compiles(result: Result, tmp_path: Path) -> None:
    compiled(as_latex(result.study), tmp_path)
