"""Articles with summaries: the bundled abstracts, the shapes of other data sets, the cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from falter.perturbations import perturbations
from falter.perturbations.rewriting import RewritePerturbation
from falter.records.errors import TaskError
from falter.records.interfaces import Case
from falter.records.render import plain
from falter.records.types import BASELINE, Response, Variant
from falter.rewrites.bank import bundled_bank
from falter.scorers import scorers
from falter.scorers.judging import cut_summary, summary_sentences
from falter.scorers.rouge import rouge
from falter.scorers.similarity import bertscore
from falter.tasks import tasks
from falter.tasks.task import Task
from falter.text.words import sentences


def load(name: str, argument: str | None = None) -> Task:
    return tasks.get(name)(argument)


def write(path: Path, *rows: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def test_thirty_abstracts_with_a_summary_of_one_sentence() -> None:
    """Five or six sentences each, as falter splits them."""
    task = load("scitldr")
    assert len(task.items) == 30
    assert {len(sentences(item.fields["article"])) for item in task.items} == {5, 6}
    assert all(len(sentences(str(item.target))) == 1 for item in task.items)
    prompt = task.templates["open"].build(task.items[0])
    assert {s.kind for s in prompt.sections} >= {"document", "instruction", "cue"}
    assert "one sentence" in plain(prompt)


def test_every_sentence_of_the_core_has_a_rewrite() -> None:
    """Whatever is drawn, for whatever seed: nothing of the twelve is left out."""
    task, bank = load("scitldr", "core"), bundled_bank()
    assert len(task.items) == 12
    both = [perturbations.get(f"paraphrase_{kind}") for kind in ("relevant", "irrelevant")]
    for item in task.items:
        article = item.fields["article"]
        for start, end in sentences(article):
            for perturbation in both:
                assert isinstance(perturbation, RewritePerturbation)
                text = article[start:end]
                rewrite = bank.find(perturbation.key(text, 0), text)
                assert rewrite is not None, text
                assert rewrite.text is not None
                assert len(sentences(rewrite.text)) == 1


def test_the_shapes_of_the_other_data_sets(tmp_path: Path) -> None:
    """Each by its own columns; rows without an article or a summary are no items."""
    shapes = {
        "cnn_dailymail": ({"article": "A b. C d.", "highlights": "B.\nD.", "id": "1"}, 3),
        "xsum": ({"document": "A b. C d.", "summary": "B.", "id": "1"}, 1),
        "reddit_tifu": ({"documents": "A b. C d.", "tldr": "B.", "title": "t"}, 1),
        "news_summary": ({"text": "A b. C d.", "prediction": [{"text": "B.", "score": 1}]}, 1),
        "scitldr": ({"source": ["A b. ", "C d.\n"], "target": ["B.", "Other."]}, 1),
    }
    for name, (row, count) in shapes.items():
        empty = dict.fromkeys(row, "")
        (item,) = load(name, write(tmp_path / f"{name}.jsonl", row, empty)).items
        assert item.fields == {"article": "A b. C d.", "sentences": str(count)}
        assert str(item.target).startswith("B.")
        assert "Other" not in str(item.target)


def test_a_row_of_another_shape_says_where(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", {"body": "A.", "summary": "B."})
    with pytest.raises(TaskError, match="row 1 has none of 'article'"):
        load("xsum", path)
    path = write(tmp_path / "y.jsonl", {"document": 3, "summary": "B."})
    with pytest.raises(TaskError, match="'document' is 3; expected a text"):
        load("xsum", path)
    with pytest.raises(TaskError, match="has no items"):
        load("xsum", write(tmp_path / "z.jsonl", {"document": " ", "summary": "B."}))


def test_the_cut_takes_the_first_sentences() -> None:
    """Lines end sentences, list marks and an opening line are off."""
    assert cut_summary("One. Two. Three.", 2) == "One. Two."
    assert cut_summary("1. First\n2. Second\n", 1) == "First"
    assert cut_summary("Here is a summary:\n- It works (v. 2).\n- Yes", 2) == "It works (v. 2). Yes"
    assert summary_sentences("Summary:") == ["Summary:"]
    assert cut_summary(" \n", 3) == ""


def case(reply: str, target: str, fields: dict[str, str]) -> Case:
    from dataclasses import replace

    task = load("scitldr")
    item = replace(task.items[0], fields={**task.items[0].fields, **fields}, target=target)
    prompt = task.templates["open"].build(item)
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    return Case(variant=variant, response=Response(key="k", text=reply))


def test_a_summary_is_scored_as_cut() -> None:
    """The number comes from the data set; without one, from the target."""
    reply, target = "The cat sat. The dog ran. A bird.", "The cat sat."
    score = scorers.get("summary_rouge1").score(case(reply, target, {"sentences": "1"}))
    assert (score.value, score.extracted) == (1.0, "The cat sat.")
    two = scorers.get("summary_rouge1").score(case(reply, target, {"sentences": "2"}))
    assert two.value == rouge("The cat sat. The dog ran.", target)["rouge1"].f1
    own = scorers.get("summary_rougeL").score(
        case(reply, "The cat sat. It ran.", {"sentences": ""})
    )
    assert own.extracted == "The cat sat. The dog ran."
    assert scorers.get("summary_rouge2").score(case(" \n", target, {})).outcome == "unparsed"


def test_bertscore_is_that_of_the_cut_summary() -> None:
    reply, target = "A cat sat down. Then it left.", "The cat sat."
    score = scorers.get("summary_bertscore").score(case(reply, target, {"sentences": "1"}))
    assert score.value == pytest.approx(bertscore("A cat sat down.", target).f1)
