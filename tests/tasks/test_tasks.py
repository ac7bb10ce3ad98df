"""Templates, data files, items and the bundled task."""

from __future__ import annotations

import collections
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from falter.records import render
from falter.records.errors import DuplicateName, FalterError, TaskError, TemplateError
from falter.tasks import Template, tasks
from falter.tasks.items import items_from_rows
from falter.tasks.rows import DataSpec, read_rows
from falter.tasks.task import pick

DATA = Path(__file__).parents[1] / "data"
ROWS = [
    {"id": "a", "q": "Two and two?", "options": ["three", "four"], "answer": 1, "n": 4},
    {"id": "b", "q": "Grass is?", "options": ["green", "red"], "answer": 0, "n": 5},
]
SPEC = DataSpec(path="d.jsonl", fields={"question": "q"}, choices=("options",), target="answer")
CLOZE = Template.parse("Question: {question}\nAnswer:")


def kinds(template: Template) -> list[tuple[str, str]]:
    return [(piece.kind, piece.field or piece.text) for piece in template.pieces]


def test_a_templates_own_words_are_instruction_and_fields_are_input() -> None:
    assert kinds(CLOZE) == [
        ("instruction", "Question: "),
        ("input", "question"),
        ("cue", "\nAnswer:"),
    ]


def test_double_braces_are_placeholders_too() -> None:
    assert Template.parse("{{ question }} {question}").fields == ("question",)


def test_braces_that_are_no_placeholder_stay() -> None:
    """A prompt that shows JSON needs no escapes."""
    template = Template.parse('Reply as {"answer": "…"}.\n{q}')
    assert template.fields == ("q",)
    assert template.pieces[0].text == 'Reply as {"answer": "…"}.\n'


def test_a_template_of_parts() -> None:
    template = Template.parse(
        {
            "system": "You help.",
            "instruction": "Read.",
            "documents": "{doc}",
            "input": "Q: {q}",
            "choices": "{choices}",
            "output_format": "One word.",
            "cue": "A:",
        }
    )
    assert kinds(template) == [
        ("system", "You help."),
        ("instruction", "Read."),
        ("instruction", "\n"),
        ("document", "doc"),
        ("instruction", "\nQ: "),
        ("input", "q"),
        ("instruction", "\n"),
        ("input", "choices"),
        ("output_format", "\nOne word."),
        ("cue", "\nA:"),
    ]


def test_items_carry_only_what_the_template_uses() -> None:
    items = items_from_rows(ROWS, SPEC, CLOZE, "mine")
    assert [dict(item.fields) for item in items] == [
        {"question": "Two and two?"},
        {"question": "Grass is?"},
    ]
    assert [item.target for item in items] == [1, 0]
    prompt = CLOZE.build(items[0])
    assert render.plain(prompt) == "Question: Two and two?\nAnswer:"
    assert prompt.labels == ("A", "B")


@pytest.mark.parametrize(
    ("rows", "keys"),
    [
        ([{"q": "a", "t": 1, "name": "x"}, {"q": "b", "t": 2, "name": "y"}], ["x", "y"]),
        ([{"q": "a", "t": 1, "id": 7, "key": "k"}, {"q": "b", "t": 2, "id": 8}], ["7", "8"]),
        (
            [{"q": "a", "t": 1, "id": 7, "key": "k"}, {"q": "b", "t": 2, "id": 7, "key": "l"}],
            ["k", "l"],
        ),
        ([{"q": "a", "t": 1, "id": " "}, {"q": "b", "t": 2, "id": 8}], None),
        ([{"q": "a", "t": 1, "id": "\udc00"}, {"q": "b", "t": 2, "id": "8"}], None),
        ([{"q": "a", "t": 1, "id": True}, {"q": "b", "t": 2, "id": 1.5}], None),
        ([{"q": "a", "t": 1, "id": None}, {"q": "b", "t": 2, "id": "8"}], None),
    ],
)
def test_a_usual_column_names_the_items(rows: list[dict[str, Any]], keys: list[str] | None) -> None:
    """A column in every row, unique, never that of the answer; no doubles pass by it."""
    spec, template = DataSpec(path="a.jsonl", target="t"), Template.parse("{q}")
    found = [item.key for item in items_from_rows(rows, spec, template, "a")]
    assert found == keys if keys else all(len(key) == 16 for key in found)
    answered = DataSpec(path="a.jsonl", target="name")
    rows = [{"q": "a", "name": "x"}, {"q": "b", "name": "y"}]
    assert len(items_from_rows(rows, answered, template, "a")[0].key) == 16
    with pytest.raises(DuplicateName, match="rows 1 and 2 have the same fields and target"):
        items_from_rows([{"q": "a", "t": 1, "id": n} for n in (1, 2)], spec, template, "a")


def test_rows_with_one_key_are_named_by_their_numbers_in_the_file() -> None:
    """Dropped duplicates count as rows."""
    spec = DataSpec(path="a.jsonl", target="t", key="id", drop_duplicates=True)
    rows = [{"q": q, "t": 1, "id": key} for q, key in (("a", 1), ("a", 2), ("b", 3), ("c", 3))]
    with pytest.raises(DuplicateName, match="rows 3 and 4 have the key '3'"):
        items_from_rows(rows, spec, Template.parse("{q}"), "a")


def test_a_key_without_a_column_is_the_content() -> None:
    """Shuffling the rows changes no key."""
    forward = items_from_rows(ROWS, SPEC, CLOZE, "mine")
    backward = items_from_rows(ROWS[::-1], SPEC, CLOZE, "mine")
    assert {i.key for i in forward} == {i.key for i in backward}
    assert {i.id for i in forward} == {i.id for i in backward}


@pytest.mark.parametrize(
    ("raw", "kind", "index"),
    [
        (1, "auto", 1), ("1", "auto", 1), ("B", "auto", 1), ("b", "auto", 1),
        ("four", "auto", 1), ("0", "index", 0), ("A", "label", 0),
    ],
)  # fmt: skip
def test_a_target_is_an_index_a_label_or_a_text(raw: object, kind: str, index: int) -> None:
    row = {**ROWS[0], "answer": raw}
    spec = DataSpec(
        path="d", fields={"question": "q"}, choices=("options",), target="answer", target_as=kind
    )  # type: ignore[arg-type]
    assert items_from_rows([row], spec, CLOZE, "t")[0].target == index


def test_an_ambiguous_target_is_not_guessed() -> None:
    row = {"q": "How many?", "options": ["1", "0"], "answer": "1"}
    with pytest.raises(TaskError, match="can be read as index and as text"):
        items_from_rows([row], SPEC, CLOZE, "t")


def test_choices_in_columns() -> None:
    row = {"question": "Q?", "A": "x", "B": "y", "answer": "B"}
    spec = DataSpec(path="d", choices=("A", "B"), target="answer")
    assert items_from_rows([row], spec, CLOZE, "t")[0].choices == ("x", "y")


def test_a_sample_is_nested_and_ignores_the_order() -> None:
    items = tasks.get("basics")(None).items
    few = {item.key for item in pick(items, 20, 7)}
    more = {item.key for item in pick(items[::-1], 50, 7)}
    assert len(few) == 20 and few < more
    assert few != {item.key for item in pick(items, 20, 8)}


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "tsv", "parquet", "jsonl.gz", "csv.gz"])
def test_every_kind_of_file_gives_the_same_rows(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{ending}"
    rows = [{"q": 'é "x", y', "a": "1"}, {"q": "two\nlines", "a": "2"}]
    kind = ending.removesuffix(".gz")
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        if kind == "jsonl":
            text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
        elif kind == "json":
            text = json.dumps(rows)
        else:
            comma = "," if kind == "csv" else "\t"
            lines = [comma.join(rows[0])]
            for row in rows:
                lines.append(comma.join('"' + v.replace('"', '""') + '"' for v in row.values()))
            text = "\n".join(lines) + "\n"
        data = text.encode()
        path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    assert read_rows(path) == rows


def test_truthfulqa_is_shuffled_by_the_items_own_seed() -> None:
    """The file lists the right answer first; ours must not, and must not move between runs."""
    task = tasks.get("truthfulqa")(str(DATA / "truthfulqa_20.json"))
    again = tasks.get("truthfulqa")(str(DATA / "truthfulqa_20.json"))
    assert [i.id for i in task.items] == [i.id for i in again.items]
    assert sum(item.target == 0 for item in task.items) < 12
    raw = json.loads((DATA / "truthfulqa_20.json").read_text("utf-8"))
    for item, row in zip(task.items, raw, strict=True):
        assert row["mc1_targets"][item.choices[int(item.target or 0)]] == 1
        assert set(item.choices) == set(row["mc1_targets"])


def test_mmlu() -> None:
    task = tasks.get("mmlu")(str(DATA / "mmlu_global_facts_20.csv"))
    assert len(task.items) == 20
    first = task.items[0]
    assert first.choices == ("10%", "20%", "40%", "80%") and first.target == 2
    assert first.tags == ("mmlu_global_facts_20",)


def test_hellaswag() -> None:
    task = tasks.get("hellaswag")(str(DATA / "hellaswag_20.jsonl"))
    assert len(task.items) == 20 and all(len(i.choices) == 4 for i in task.items)
    assert not any("[" in c for i in task.items for c in i.choices)


def test_gsm8k() -> None:
    task = tasks.get("gsm8k")(str(DATA / "gsm8k_20.jsonl"))
    assert task.items[0].target == "18" and task.scorer == "numeric"


class TestBasics:
    """The bundled questions keep what was promised of them."""

    items = tasks.get("basics")(None).items

    def test_size_and_subjects(self) -> None:
        subjects = collections.Counter(item.tags[0] for item in self.items)
        assert len(self.items) >= 240 and len(subjects) == 12
        assert set(subjects.values()) == {22}

    def test_gold_positions_are_balanced(self) -> None:
        positions = collections.Counter(item.target for item in self.items)
        assert set(positions.values()) == {66}

    def test_always_the_longest_option_gets_at_most_35_percent(self) -> None:
        total = 0.0
        for item in self.items:
            lengths = [len(c) for c in item.choices]
            longest = [i for i, n in enumerate(lengths) if n == max(lengths)]
            total += (item.target in longest) / len(longest)
        assert total / len(self.items) <= 0.35

    def test_questions_are_whole_and_distinct(self) -> None:
        questions = [item.fields["question"] for item in self.items]
        assert len({q.casefold() for q in questions}) == len(questions)
        assert all(re.fullmatch(r"[A-Z“\"].*\?", q) for q in questions)
        for item in self.items:
            folded = [c.casefold() for c in item.choices]
            assert len(set(folded)) == 4, item.key
            assert not any(a in b for a in folded for b in folded if a != b), item.key


@pytest.mark.parametrize("template", ["", "no placeholder", {"cue": "A:"}, {"input": ""}], ids=repr)
def test_a_template_without_a_placeholder_is_refused(template: object) -> None:
    with pytest.raises(TemplateError):
        Template.parse(template)  # type: ignore[arg-type]


def test_errors_are_ours() -> None:
    """Whatever a file holds, the error is a FalterError."""
    for name in ("x.csv", "x.jsonl", "x.parquet", "x.json"):
        with pytest.raises(FalterError):
            read_rows(DATA / name)
