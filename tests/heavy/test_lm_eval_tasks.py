"""lm-evaluation-harness's task objects, on YAML files and data of our own."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import lm_eval.tasks
import pytest
import yaml
from lm_eval.tasks import TaskManager

import falter
from falter.engine.config import read_experiment
from falter.engine.resolving import resolve
from falter.integrations.lm_eval_task import load
from falter.integrations.prompt_pieces import split
from falter.records import render
from falter.records.errors import FalterError, TaskError, UnknownName
from falter.tasks.task import Task

QUESTIONS = [
    {"q": " Where do penguins live?", "opts": ["at the south pole", "in trees"], "gold": 0},
    {"q": "What is 3 + 4?", "opts": ["seven", "nine"], "gold": 0},
    {"q": "Which one barks, A. or B.?", "opts": ["a cat", "a dog"], "gold": 1},
]
EXAM = [
    {"question": "Which is a metal?", "choices": ["iron", "wood", "glass"], "answer": 0, "year": 1},
    {"question": "Which is wet?\n", "choices": ["sand", "rain", "dust"], "answer": 1, "year": 2},
]
SUMS = [{"question": f"What is {n} + {n}?", "answer": f"Twice.\n#### {2 * n}"} for n in range(2, 6)]


def task_file(folder: Path, rows: list[dict[str, Any]], name: str = "own", **config: Any) -> Path:
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / f"{name}.yaml"
    whole = {
        "task": name, "dataset_path": "json", "test_split": "test",
        "dataset_kwargs": {"data_files": {"test": str(data)}}, **config,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    return path


CHOICE = {
    "output_type": "multiple_choice",
    "doc_to_text": "Question: {{q.strip()}}\nAnswer:",
    "doc_to_choice": "opts",
    "doc_to_target": "gold",
}
LISTED = {
    "output_type": "multiple_choice",
    "description": "A short exam.\n\n",
    "doc_to_text": "{{question.strip()}}\nA. {{choices[0]}}\nB. {{choices[1]}}\n"
    "C. {{choices[2]}}\nAnswer:",
    "doc_to_choice": ["A", "B", "C"],
    "doc_to_target": "answer",
}
OPEN = {
    "output_type": "generate_until",
    "doc_to_text": "Q: {{question}}\nA:",
    "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n\n", "Q:"], "max_gen_toks": 99, "do_sample": False},
    "metric_list": [{"metric": "exact_match", "ignore_case": True, "aggregation": "mean",
                     "higher_is_better": True}],
}  # fmt: skip


def sent_by_the_harness(path: Path) -> list[tuple[str, ...]]:
    """The strings of every request that the harness builds, zero-shot."""
    sent = []
    manager = TaskManager(include_path=str(path.parent), include_defaults=False)
    group = path.stem if "group:" in path.read_text() else str(path)
    for task in manager.load(group)["tasks"].values():
        task.set_config(key="num_fewshot", value=0)
        task.build_all_requests(rank=0, world_size=1)
        sent += [
            instance.args if task.OUTPUT_TYPE == "multiple_choice" else instance.args[:1]
            for instance in task.instances
        ]
    return sent


def sent_by_us(task: Task) -> list[tuple[str, ...]]:
    sent: list[tuple[str, ...]] = []
    template = next(iter(task.templates.values()))
    for item in task.items:
        prompt = template.build(item)
        endings = render.continuations(prompt)
        sent += [(render.plain(prompt), end) for end in endings] or [(render.plain(prompt),)]
    return sent


@pytest.mark.parametrize(
    ("rows", "config"),
    [
        (QUESTIONS, CHOICE),
        (QUESTIONS, {**CHOICE, "target_delimiter": "", "description": "Be quick. "}),
        (QUESTIONS, {**CHOICE, "doc_to_text": "q", "gen_prefix": "I say:"}),
        (QUESTIONS, {**CHOICE, "doc_to_text": "{{q|upper}} {{q}}", "description": "On {{q}}\n\n"}),
        (QUESTIONS, {**CHOICE, "doc_to_text": "{% if gold %}Now: {% endif %}{{q}}"}),
        (EXAM, LISTED),
        (EXAM, {**LISTED, "doc_to_text": "{{question}}{% for c in choices %} - {{c}}{% endfor %}"}),
        (EXAM, {**LISTED, "doc_to_text": "Of {{year}}: {{question[0]}}{{question[1:]}}"}),
        (SUMS, OPEN),
    ],
    ids=["plain", "delimiter", "prefix", "transformed", "branches", "listed", "loop", "sliced",
         "open"],
)  # fmt: skip
def test_the_text_is_the_harnesss_to_the_letter(
    rows: list[dict[str, Any]], config: dict[str, Any], tmp_path: Path
) -> None:
    config = dict(config)
    if config["output_type"] == "generate_until":
        rows = [{**row, "answer": "yes"} for row in rows]
    path = task_file(tmp_path, rows, **config)
    assert sent_by_us(load(str(path))) == sent_by_the_harness(path)


HARNESS: list[tuple[str, list[dict[str, Any]], str | None, str]] = [
    (
        "arc/arc_easy.yaml",
        [{"question": f"Which of {n} floats?", "answerKey": "2",
          "choices": {"text": ["a brick", "a cork"], "label": ["1", "2"]}} for n in (3, 4)],
        None,
        "instruction input cue",
    ),
    (
        "mmlu/default/_default_template_yaml",
        [{"question": f" What is {n} + 1? ", "answer": 2,
          "choices": ["1", "7", str(n + 1), "none"]} for n in (10, 20)],
        None,
        "input instruction choices cue",
    ),
    (
        "logiqa/logiqa.yaml",
        [{"context": f"It is {n}.", "question": "What follows?", "label": "b",
          "options": ["Rain.", "Noon.", "Snow.", "Dusk."]} for n in ("warm", "late")],
        None,
        "instruction input instruction input instruction choices cue",
    ),
    (
        "mathqa/mathqa.yaml",
        [{"Problem": "how many are 2 dozen ?", "correct": "b",
          "options": "a ) 12 , b ) 24 , c ) 36 , d ) 48 , e ) none of these"}],
        None,
        "instruction input cue",
    ),
    (
        "hellaswag/hellaswag.yaml",
        [{"activity_label": "Baking bread", "ctx_a": "A man kneads dough.", "ctx_b": "he",
          "ctx": "A man kneads dough. he", "label": "1",
          "endings": ["flies off.", "lets it rest.", "reads it.", "paints it."]}],
        None,
        "input",
    ),
    (
        "super_glue/boolq/default.yaml",
        [{"passage": "Corks float on water.", "question": "do corks float", "label": 1}],
        None,
        "input instruction input cue",
    ),
    (
        "gsm8k/gsm8k.yaml",
        [{"question": f"What is {n} + {n}?", "answer": f"Twice.\n#### {2 * n}"} for n in (3, 4)],
        "numeric",
        "instruction input cue",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "rows", "scorer", "kinds"), HARNESS, ids=[h[0].split("/")[0] for h in HARNESS]
)
def test_the_harnesss_own_task_files_ask_as_they_do_there(
    name: str, rows: list[dict[str, Any]], scorer: str | None, kinds: str, tmp_path: Path
) -> None:
    """Its task files as they are installed, on rows of our own in their data sets' shapes."""
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = {name: str(tmp_path / "d.jsonl") for name in ("train", "validation", "test")}
    split = dict.fromkeys(("training_split", "validation_split", "test_split"), "test")
    config = {
        "include": str(Path(lm_eval.tasks.__file__).parent / name), "task": "own",
        "dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": data},
        **split, "fewshot_split": "test",
    }  # fmt: skip
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(config))
    task = load(str(path))
    assert sent_by_us(task) == sent_by_the_harness(path)
    assert task.scorer == scorer
    sections = next(iter(task.templates.values())).build(task.items[0]).sections
    assert " ".join(s.kind for s in sections) == kinds


def test_what_the_row_says_is_input_and_the_rest_instruction(tmp_path: Path) -> None:
    task = load(str(task_file(tmp_path, QUESTIONS, **CHOICE)))
    prompt = task.templates["cloze"].build(task.items[0])
    assert [(s.name, s.kind, s.text) for s in prompt.sections] == [
        ("instruction", "instruction", "Question: "),
        ("q", "input", "Where do penguins live?"),
        ("cue", "cue", "\nAnswer:"),
    ]
    assert [item.target for item in task.items] == [0, 0, 1]
    assert task.scorer is None


def test_a_row_that_cannot_be_shown_other_texts_is_searched_instead() -> None:
    """A function that looks into its row still gets sections."""
    row = {"kind": "long", "question": "Where do penguins live?"}

    def write(doc: dict[str, Any]) -> str:
        return {"long": "A question: "}[doc["kind"]] + doc["question"]

    segments = split(write(row), row, write)
    assert [(s.kind, s.text) for s in segments] == [
        ("instruction", "A question: "), ("input", "Where do penguins live?"),
    ]  # fmt: skip
    (whole,) = split("Nothing of it.", row, lambda _: "Nothing of it.")
    assert (whole.kind, whole.field) == ("input", "text")


def test_listed_options_are_a_section_of_their_own(tmp_path: Path) -> None:
    """So that they can be shuffled or given other labels, with the target moved along."""
    task = load(str(task_file(tmp_path, EXAM, **LISTED)))
    template = task.templates["letter"]
    assert template.lists_choices and template == task.templates["cloze"]
    prompt = template.build(task.items[1])
    assert prompt.choices == ("sand", "rain", "dust") and prompt.target == 1
    assert render.continuations(prompt) == (" A", " B", " C")
    assert {s.kind: s.text for s in prompt.sections}["choices"] == "A. sand\nB. rain\nC. dust"
    assert prompt.sections[0].kind == "system"


def test_options_that_no_text_lists_are_listed_for_models_without_likelihoods(
    tmp_path: Path,
) -> None:
    task = load(str(task_file(tmp_path, QUESTIONS, **CHOICE)))
    assert render.plain(task.templates["letter"].build(task.items[1])) == (
        "Question: What is 3 + 4?\nA. seven\nB. nine\n\n"
        "Reply with the letter of your choice and nothing else.\nAnswer:"
    )


def group_file(folder: Path) -> Path:
    for name, topic in (("own_metals", "metals"), ("own_weather", "weather")):
        rows = [{**row, "question": f"{row['question'].strip()} ({topic})"} for row in EXAM]
        task_file(folder, rows, name, **{**LISTED, "description": f"On {topic}.\n\n"})
    path = folder / "own_group.yaml"
    path.write_text(yaml.safe_dump({"group": "own_group", "task": ["own_metals", "own_weather"]}))
    return path


def test_a_group_is_one_task_with_its_parts_as_tags(tmp_path: Path) -> None:
    path = group_file(tmp_path)
    task = load(str(path))
    assert task.name == "lm-eval:own_group"
    assert [item.tags for item in task.items] == [("own_metals",)] * 2 + [("own_weather",)] * 2
    assert sorted(sent_by_us(task)) == sorted(sent_by_the_harness(path))


def test_an_open_task_brings_its_limits_and_scorer(tmp_path: Path) -> None:
    rows = [{**row, "answer": "yes"} for row in SUMS]
    task = load(str(task_file(tmp_path, rows, **OPEN)))
    assert task.scorer == "exact" and list(task.templates) == ["open"]
    assert (task.stop, task.max_tokens) == (("\n\n", "Q:"), 99)


def test_a_filter_that_takes_the_number_is_the_numeric_scorer(tmp_path: Path) -> None:
    config = {
        **OPEN,
        "filter_list": [
            {"name": "strict", "filter": [
                {"function": "regex", "regex_pattern": "#### (\\-?[0-9\\.\\,]+)"},
                {"function": "take_first"},
            ]},
            {"name": "flexible", "filter": [
                {"function": "regex", "group_select": -1, "regex_pattern": "(-?[0-9.,]{2,})"},
                {"function": "take_first"},
            ]},
        ],
    }  # fmt: skip
    assert load(str(task_file(tmp_path, SUMS, **config))).scorer == "numeric"


METRICS: list[tuple[dict[str, Any], str]] = [
    ({**OPEN, "metric_list": [{"metric": "bleu"}]}, "bleu"),
    (
        {**OPEN, "filter_list": [{"name": "f", "filter": [
            {"function": "regex", "regex_pattern": "answer: (\\w+)"},
            {"function": "take_first"},
        ]}]},
        "exact_match with a filter of its own",
    ),
    ({**CHOICE, "metric_list": [{"metric": "brier_score"}]}, "brier_score"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "metric"), METRICS, ids=[m for _, m in METRICS])
def test_a_metric_that_is_not_ours_needs_a_scorer_that_is(
    config: dict[str, Any], metric: str, tmp_path: Path
) -> None:
    """Nothing is scored in another way than the task says, unless the user says so."""
    rows = QUESTIONS if config is METRICS[-1][0] else [{**r, "answer": "yes"} for r in SUMS]
    spec = f"lm-eval:{task_file(tmp_path, rows, **config)}"
    experiment = {"task": spec, "models": ["simulated"], "recipes": ["typos"]}
    with pytest.raises(UnknownName) as error:
        resolve(read_experiment(experiment))
    assert error.value.message == f"Unknown scorer '{metric} (a metric of lm-eval)'"
    chosen = "exact" if config["output_type"] == "generate_until" else "choice_likelihood"
    (panel,) = resolve(read_experiment({**experiment, "scorer": chosen})).panels
    assert panel.panel.scorer == chosen


def test_accuracy_by_length_is_the_scorer_per_character(tmp_path: Path) -> None:
    config = {**CHOICE, "metric_list": [{"metric": "acc_norm"}]}
    assert load(str(task_file(tmp_path, QUESTIONS, **config))).scorer == "choice_likelihood_norm"


FOREIGN: list[tuple[dict[str, Any], str]] = [
    ({**OPEN, "output_type": "loglikelihood_rolling"}, "measures loglikelihood_rolling"),
    ({**CHOICE, "doc_to_target": "{{[0, 1]}}"}, "has 2 right answers; expected one"),
    ({**CHOICE, "doc_to_target": "{{gold * 7}}"}, "the target is 7; expected one of its 2 options"),
    ({**CHOICE, "doc_to_text": "{{gold}}", "doc_to_target": "{{q}}"}, "a separate question for"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "message"), FOREIGN, ids=[m[:30] for _, m in FOREIGN])
def test_what_has_no_counterpart_here_is_refused_by_name(
    config: dict[str, Any], message: str, tmp_path: Path
) -> None:
    rows = QUESTIONS if config.get("doc_to_choice") else [{**r, "answer": "yes"} for r in SUMS]
    if "loglikelihood" in config["output_type"]:
        config = {k: v for k, v in config.items() if k not in ("metric_list", "generation_kwargs")}
    with pytest.raises(TaskError) as error:
        load(str(task_file(tmp_path, rows, **config)))
    assert message in error.value.message and "own" in error.value.message


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'arc_easy'"):
        load("arc_eassy")
    for argument in (None, "no_such_file.yaml"):
        with pytest.raises(FalterError):
            load(argument)


def test_the_global_generator_is_left_as_it_was(tmp_path: Path) -> None:
    random.seed(5)
    state = random.getstate()
    load(str(task_file(tmp_path, QUESTIONS, **CHOICE)))
    assert random.getstate() == state


@pytest.mark.parametrize("kind", ["choice", "listed", "open"])
def test_a_harness_task_runs(kind: str, tmp_path: Path) -> None:
    rows, config = {
        "choice": ([{**QUESTIONS[1], "q": f"What is {n} + 4, my dear?"} for n in range(9)], CHOICE),
        "listed": ([{**EXAM[0], "question": f"Which one of {n} is it?"} for n in range(9)], LISTED),
        "open": ([{"question": f"Is {n} even?", "answer": "yes"} for n in range(9)], OPEN),
    }[kind]
    result = falter.run(
        task=f"lm-eval:{task_file(tmp_path, rows, **config)}", models=["simulated"],
        recipes=["typos", "pad_newlines"], demonstrations=2, store=tmp_path / "falter.db",
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.cells == 21 and panel.counts.failed == 0
