"""The brittlebench protocol: its parts, a whole study, and what every form of report holds."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import falter
from enterprise_samples import scripted
from falter.engine.plans import planned_study
from falter.engine.results import Result, open_result
from falter.engine.study import carry_out_study, read_study, study_in
from falter.measures.doses import intensity_curve
from falter.perturbations import apply_recipe, parse_step
from falter.protocols import Part, protocols
from falter.protocols.brittlebench import parts
from falter.protocols.brittlebench.accuracies import _slope_as_loss
from falter.protocols.protocol import Unavailable, UserSettings, chosen_parts, placed_parts
from falter.records.errors import FalterError, UnknownName, UsageError
from falter.records.figures import Bars, Curves, Grid, HeatMap, Statement, Strips, estimates
from falter.records.render import messages
from falter.records.types import Estimate, Recipe, Request
from falter.report.forms.latex import as_latex
from falter.store.maintenance import verify
from falter.store.store import Store
from falter.store.studies import find_study, studies
from tex import compiled, needs_tex

MODELS = [
    {"name": "simulated:one", "options": {"mean": 0.9, "seed": 1}},
    {"name": "simulated:two", "options": {"mean": 0.5, "seed": 2}},
]
FOURTEEN = 14
LIMIT = 6
PAIRS = ("typos", "drop_stop_words", "pad_newlines")


def part_names(**choices: Any) -> list[str]:
    return [part.name for part in placed(**choices)[0]]


def placed(**choices: Any) -> tuple[tuple[Part, ...], tuple[Unavailable, ...]]:
    """The parts that are run with these choices, and those that are left out."""
    chosen = UserSettings(**choices)
    return placed_parts(protocols.get("brittlebench").parts(chosen), chosen)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A whole study: two simulated models, a judge, every part."""
    return falter.run(
        protocol="brittlebench",
        models=MODELS,
        judge="simulated:judge",
        limit=LIMIT,
        store=tmp_path_factory.mktemp("study") / "falter.db",
    )


def figure(result: Result, name: str) -> Any:
    return next(f for f in result.figures if f.name == name)


# Parts


def test_the_presets_have_every_part() -> None:
    """Without a judge everything but the quality of the reasoning."""
    parts = ["zero-shot", "few-shot", "options", "maths", "code", "intensity", "pairs", "reasoning"]
    assert part_names(preset="quick") == parts
    assert part_names(preset="paper") == parts
    assert part_names(preset="quick", judge=True) == [*parts, "quality"]


def test_the_paper_preset_is_the_papers() -> None:
    """Fourteen perturbations, seven exams, all items, no limit anywhere."""
    parts, absent = placed(preset="paper")
    by_name = {part.name: part.experiment for part in parts}
    assert not absent
    assert [r for r in by_name["zero-shot"]["recipes"] if r != "identity"] == list(
        by_name["few-shot"]["recipes"][:FOURTEEN]
    )
    assert len(by_name["zero-shot"]["recipes"]) == FOURTEEN + 1
    assert by_name["zero-shot"]["tasks"] == [
        "mmlu", "truthfulqa", "arc_easy", "arc_challenge", "mathqa", "logiqa", "gpqa",
    ]  # fmt: skip
    assert "demonstrations" not in by_name["zero-shot"]
    assert by_name["few-shot"]["demonstrations"] == 5
    assert by_name["pairs"]["tasks"] == ["mmlu"]
    assert len(by_name["pairs"]["recipes"]) == 11 + 11 * 10
    assert not any("limit" in experiment for experiment in by_name.values())
    assert by_name["maths"]["tasks"] == ["gsm8k"] and by_name["code"]["tasks"] == ["humaneval"]


def test_tasks_go_where_their_kind_belongs() -> None:
    """What no task is of is left out, with the reason."""
    parts, absent = placed(preset="quick", tasks=(("mine", "numeric"),))
    assert [part.name for part in parts] == ["maths", "reasoning"]
    assert {one.title: one.reason for one in absent}["Code perturbations"] == (
        "no task with code as its answer among mine"
    )
    parts, absent = placed(preset="quick", generates=False)
    assert [part.name for part in parts] == [
        "zero-shot", "few-shot", "options", "intensity", "pairs",
    ]  # fmt: skip
    assert {"Maths perturbations", "Code perturbations", "Chain of thought"} == {
        one.title for one in absent
    }


def test_both_kinds_reason() -> None:
    tasks = (("a", "choices"), ("b", "numeric"))
    parts, _ = placed(preset="quick", tasks=tasks, judge=True)
    found = {p.name: p for p in parts if p.name.startswith(("reasoning", "quality"))}
    assert list(found) == [
        "reasoning-choices", "quality-choices", "reasoning-numeric", "quality-numeric",
    ]  # fmt: skip
    assert found["quality-numeric"].judges == "reasoning-numeric"
    assert found["reasoning-choices"].experiment["scorer"] == "choice_letter"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"protocol": "britlebench"}, "did you mean 'brittlebench'"),
        ({"protocol": "brittlebench", "preset": "fast"}, "preset of brittlebench"),
        ({"protocol": "brittlebench", "recipes": ["typos"]}, "has its own recipes"),
        ({"preset": "quick"}, "none is named"),
        ({"protocol": "brittlebench", "demonstrations": 0}, "number cannot be 0"),
        ({"protocol": "brittlebench", "limmit": 3}, "limmit"),
    ],
)
def test_mistakes_are_said_before_anything_is_sent(
    settings: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(FalterError) as caught:
        falter.run({**settings, "models": ["simulated"]}, store=tmp_path / "x.db")
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert not (tmp_path / "x.db").exists()


def test_parts_are_chosen_by_name() -> None:
    """With a part comes its judge, and with a judge the part that it judges."""

    def names(*chosen: str) -> list[str]:
        settings = UserSettings(preset="quick", judge=True, parts=chosen)
        return [part.name for part in chosen_parts(protocols.get("brittlebench"), settings)]

    assert names("pairs") == ["pairs"]
    assert names("quality") == names("reasoning") == ["reasoning", "quality"]
    assert len(names()) == 9
    with pytest.raises(UnknownName, match="part of brittlebench"):
        names("pears")


# A whole study


def test_every_figure_is_there_and_filled(result: Result) -> None:
    names = {f.name for f in result.figures}
    assert {
        "answer", "drops", "drops-at-once",
        "brittleness-models", "brittleness-tasks", "distribution",
        "rankings-changed", "ranking-survival", "group-word-manipulation",
        "group-prompt-augmentation", "group-prompt-padding", "group-paraphrasing", "tasks",
        "options", "negation", "maths", "code", "intensity", "intensity-summary", "pairs-1",
        "pairs-interaction-1", "pairs-order-1", "chain-of-thought", "mitigation",
        "mixed-effects", "extraction-failures", "reasoning-quality", "quality-dimensions",
        "quality-and-correctness", "scorings", "meaning", "counts",
    } <= names  # fmt: skip
    assert len(names) == len(result.figures)
    assert {type(f) for f in result.figures} == {Statement, Grid, HeatMap, Curves, Bars, Strips}
    for f in result.figures:
        if f.name not in ("answer", "counts", "distribution", "meaning", "meaning-failing"):
            assert any(e.value is not None for e in estimates(f)), f.name


def test_the_page_opens_with_a_few_pictures(result: Result) -> None:
    """The details are folded; the items are those of the part with the most of a task."""
    assert {f.name.split("-")[0] for f in result.figures if not f.folded} == {
        "answer", "drops", "brittleness", "ranks", "rankings", "intensity", "pairs",
        "chain",
    }  # fmt: skip
    assert figure(result, "brittleness-tasks").folded and figure(result, "pairs-order-1").folded
    most = max(p.items for r in result.parts if "shot" in r.part.name for p in r.analysis.panels)
    (answer,) = [f for f in result.figures if isinstance(f, Statement) and f.name == "answer"]
    assert any(f"{most} items" in text for text in answer.text), answer.text


def test_the_fourteen_are_in_the_tables(result: Result) -> None:
    groups = [f for f in result.figures if f.name.startswith("group-")]
    drops = [c for f in groups for c in f.columns if c.name == "Drop" and c.over != "Average"]
    assert len(drops) == FOURTEEN
    main = figure(result, "drops")
    assert [row[:2] for row in main.rows] == [
        (f"simulated:{model}", how) for model in ("one", "two") for how in ("zero-shot", "3-shot")
    ]


def test_the_micro_average_is_the_mean_of_the_fourteen_drops(result: Result) -> None:
    """Where all fourteen change all items, it can be recomputed from the group tables."""
    groups = [f for f in result.figures if f.name.startswith("group-")]
    for line, row in enumerate(figure(result, "drops").rows):
        drops = [
            cell.value
            for f in groups
            for cell, column in zip(f.rows[line], f.columns, strict=True)
            if column.name == "Drop" and column.over != "Average"
        ]
        micro = row[-2]
        assert isinstance(micro, Estimate) and micro.value is not None
        known = [d for d in drops if d is not None]
        assert micro.value == pytest.approx(np.mean(known), abs=0.06)


def test_brittleness_is_the_sum_of_wording_over_the_sum_of_all(result: Result) -> None:
    for name in ("brittleness-models", "brittleness-tasks"):
        for bar in figure(result, name).bars:
            item, prompt, run = (part.value or 0.0 for part in bar.parts)
            assert bar.share.value == pytest.approx(prompt / (item + prompt + run))


def test_heat_maps_have_singles_on_the_diagonal(result: Result) -> None:
    found = figure(result, "pairs-1")
    assert found.rows == found.columns and len(found.rows) == 4
    assert all(found.cells[n][n] is not None for n in range(4))
    interaction = figure(result, "pairs-interaction-1")
    assert all(interaction.cells[n][n] is None for n in range(4))


def test_curves_start_at_the_baseline(result: Result) -> None:
    for curve in figure(result, "intensity").curves:
        assert curve.points[0][0] == 0.0
    assert {c.facet for c in figure(result, "intensity").curves} == {
        "typos", "pad_quotes", "pad_spaces", "pad_newlines",
    }  # fmt: skip


def is_right(request: Request) -> bool:
    """Whether the scripted model knows the answer: a coin for every prompt, the same each time."""
    return zlib.crc32(messages(request.variant.prompt)[-1][1].encode()) % 5 > 1


def test_doses_and_pairs_are_those_of_a_computation_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts that several conditions make are asked once and count in each of them."""
    sent = scripted(
        monkeypatch,
        "coin",
        lambda r: r.variant.prompt.labels[int(r.variant.prompt.target) ^ (not is_right(r))],
    )
    doses = replace(parts.PRESETS["quick"], typos=(1, 8, 9), pads=(1,), pairs=PAIRS)
    monkeypatch.setitem(parts.PRESETS, "quick", doses)  # type: ignore[arg-type]
    result = falter.run(
        protocol="brittlebench", parts=["intensity", "pairs"], models=["coin"], limit=16,
        scorer="choice_letter", store=tmp_path / "falter.db",
    )  # fmt: skip
    clean = [r for r in sent.requests if not r.variant.recipe.steps]
    assert len(clean) == len({r.key for r in clean}) == 16

    def rights(*steps: str) -> list[bool | None]:
        """For each item; None where the recipe leaves the prompt alone."""
        found: list[bool | None] = []
        for request in clean:
            variant, recipe = request.variant, Recipe(label="", steps=tuple(map(parse_step, steps)))
            after = apply_recipe(variant.item.key, variant.prompt, recipe, 0, 0)
            changed = replace(request, variant=replace(variant, prompt=after.prompt))
            found.append(is_right(changed) if after.status == "changed" else None)
        return found

    base = [is_right(request) for request in clean]
    (curve,) = [c for c in figure(result, "intensity").curves if c.facet == "typos"]
    for dose, point in curve.points:
        own = rights(f"typos:count={dose:g}") if dose else base
        by_hand = [b if a is None else a for a, b in zip(own, base, strict=True)]
        assert point.value == pytest.approx(np.mean(by_hand)), dose
    heat = figure(result, "pairs")
    for first, row in zip(PAIRS, heat.cells, strict=True):
        for then, cell in zip(PAIRS, row, strict=True):
            own = rights(*((first, then) if first != then else (first,)))
            drops = [b - a for a, b in zip(own, base, strict=True) if a is not None]
            assert cell.value == pytest.approx(np.mean(drops)), (first, then)
    grid = figure(result, "pairs-order")
    assert [c.name for c in grid.columns][-1] == "Items with the same prompt"
    alike = {row[:2]: row[-1] for row in grid.rows}
    assert alike["typos", "pad_newlines"] == 16
    order = next(row for row in grid.rows if row[:2] == ("typos", "pad_newlines"))
    assert order[4].value == 0.0


def test_what_is_lost_with_every_edit_has_the_sign_of_a_loss(result: Result) -> None:
    """A curve that falls from 70 to 20 % is worse: +."""
    found = figure(result, "intensity-summary")
    assert (found.columns[3].name, found.columns[3].unit) == ("Lost with every edit", "points")
    assert all(row[3].measure == "intensity_curve.slope, as a loss" for row in found.rows)
    table = [[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1.0]]
    slope = intensity_curve([0, 1, 2], table, replications=50).slope
    loss = _slope_as_loss(slope)
    assert slope.value is not None and slope.low is not None and slope.high is not None
    assert (loss.value, loss.low, loss.high) == (-slope.value, -slope.high, -slope.low)


def test_the_study_is_stored_and_read_back(result: Result) -> None:
    """The same figures from the store alone; the store is whole; nothing is asked again."""
    with Store(result.store) as store:
        assert [s.id for s in studies(store)] == [result.study.id]
        assert verify(store).problems == ()
        (before,) = store.db.execute("SELECT count(*) FROM responses").fetchone()
    assert open_result(result.store).figures == result.figures
    spec = read_study(
        {"protocol": "brittlebench", "models": MODELS, "judge": "simulated:judge", "limit": LIMIT}
    )
    with study_in(spec, result.store) as study, Store(result.store) as store:
        for _, costs in planned_study(study, store):
            assert sum(planned.cost.calls for planned in costs) == 0
        assert carry_out_study(study, store).id == result.study.id
        (after,) = store.db.execute("SELECT count(*) FROM responses").fetchone()
    assert before == after


def test_simulated_models_are_named(result: Result) -> None:
    assert set(result.study.simulated) == {
        "simulated:one", "simulated:two", "simulated:judge",
    }  # fmt: skip


def test_every_number_is_in_every_form(result: Result, tmp_path: Path) -> None:
    """CSV and JSON have a row for each estimate; page, Markdown and LaTeX name each figure."""
    for kind in ("csv", "html", "json", "md", "parquet", "tex"):
        assert result.report(tmp_path / f"report.{kind}").stat().st_size > 10_000
    rows = list(csv.DictReader(io.StringIO((tmp_path / "report.csv").read_text("utf-8"))))
    for f in result.figures:
        own = [row for row in rows if row["figure"] == f.name]
        values = [e.value for e in estimates(f) if e.value is not None]
        held = [float(row["value"]) for row in own if row["value"]]
        for value in values:
            assert value in held, f.name
    page = (tmp_path / "report.html").read_text("utf-8")
    for f in result.figures:
        assert f'id="{f.name}"' in page
    json.loads((tmp_path / "report.json").read_text("utf-8"))


def test_unknown_names_of_figures_and_files(result: Result, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="drops"):
        result.table("drop")
    with pytest.raises(UsageError):
        result.report(tmp_path / "report.docx")


def cells(result: Result) -> Iterator[Any]:
    yield from figure(result, "counts").rows


def test_nothing_is_lost_unseen(result: Result) -> None:
    """The outcomes of each recipe add up to its cells, and so do the kinds of its variants."""
    names = [c.name for c in figure(result, "counts").columns]
    at = {name: n for n, name in enumerate(names)}
    for row in cells(result):
        outcomes = ("scored", "unparsed", "refused", "failed", "missing")
        kinds = ("changed", "same prompt", "unchanged", "not applicable", "no rewrite")
        assert sum(row[at[name]] for name in outcomes) == row[at["cells"]]
        assert sum(row[at[name]] for name in kinds) == row[at["cells"]]


@pytest.mark.parametrize(
    "more", [{"perturb_demonstrations": True}, {"draws": 2}, {"repeats": 2}], ids=str
)
def test_the_settings_of_an_experiment_hold_for_a_protocol(
    more: dict[str, Any], tmp_path: Path
) -> None:
    """Examples are perturbed where there are some; a second draw has no bundled paraphrase."""
    result = falter.run(
        protocol="brittlebench", parts=["zero-shot", "few-shot"], models=["simulated"], limit=4,
        store=tmp_path / "f.db", **more,
    )  # fmt: skip
    assert any(e.value is not None for e in estimates(figure(result, "drops")))
    with Store(result.store) as store:
        stored = find_study(store)
        runs = {part.name: store.find_run(part.run).run for part in stored.parts}
    asked = {name for name, run in runs.items() if run.experiment.get("perturb_demonstrations")}
    assert asked == ({"few-shot"} if "perturb_demonstrations" in more else set())


def test_a_task_without_rewrites_goes_without_the_paraphrases(tmp_path: Path) -> None:
    """And says so; with a rewriter named it is an error that they are missing."""
    data = tmp_path / "mine.jsonl"
    rows = [
        {"q": f"How many legs have {n} cows?", "o": [str(4 * n), str(n), "none"], "a": 0}
        for n in range(2, 22)
    ]
    data.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    mine = {
        "protocol": "brittlebench",
        "models": ["simulated"],
        "parts": ["zero-shot"],
        "data": {"path": str(data), "choices": "o", "target": "a"},
        "template": "{q}\nAnswer:",
        "limit": 8,
    }
    result = falter.run(mine, store=tmp_path / "f.db")
    assert isinstance(result, Result)
    assert any("paraphrase_lexical" in note and "left out" in note for note in result.study.notes)
    assert not any(f.name == "group-paraphrasing" for f in result.figures)
    with pytest.raises(FalterError, match="8 of 8 rewrites for paraphrase_lexical"):
        falter.run({**mine, "rewriter": "simulated:writer"}, store=tmp_path / "g.db")


@needs_tex
def test_the_latex_of_all_figures_compiles(result: Result, tmp_path: Path) -> None:
    compiled(as_latex(result.study), tmp_path)
