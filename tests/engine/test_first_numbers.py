"""The first number that a new user sees, with no scorer named: is it the true one?"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import falter
from every_estimate import every_estimate
from falter.cli.app import cli, invoke
from falter.engine.answers import AnswerFilter, pick_answers
from falter.engine.results import open_result
from falter.records.figures import Statement
from falter.store.store import Store

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
import first_contact

QUESTIONS = [
    {"q": f"Which animal has number {n} in our zoo?", "t": animal}
    for n, animal in enumerate(("otter", "zebra", "ibex", "lynx", "owl", "newt", "seal", "heron"))
]


def told(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def settings(tmp_path: Path, answer: Any, **more: Any) -> dict[str, Any]:
    return {
        "data": {"rows": QUESTIONS, "target": "t"}, "template": "{q}", "models": [answer],
        "recipes": ["persona"], "store": tmp_path / "s.db", **more,
    }  # fmt: skip


def test_scores_drops_and_verdicts_at_first_contact_are_the_true_ones(tmp_path: Path) -> None:
    """Six servers whose truth is known, by the README's command: a small bench/first_contact.py.

    Takes seconds, for it is six whole runs of the command over HTTP.
    """
    lines = []
    for n, job in enumerate(first_contact.jobs(40)):
        (folder := tmp_path / str(n)).mkdir()
        lines += asyncio.run(first_contact.contact(job, folder, ["typos"]))
    scorers = ["answer", "fields", "label", "choice_letter", "label", "tool_call"]
    assert [line.scorer for line in lines[::2]] == scorers
    assert first_contact.misses([line for line in lines if line.job != "free answers"]) == []
    free = [line for line in lines if line.job == "free answers"]
    assert all(abs(line.true - line.printed) <= 5.0 for line in free)  # two of the 40 items
    assert all(line.verdicts[0] == line.verdicts[1] for line in free)


def test_a_plan_shows_replies_that_are_read_and_one_that_is_not(tmp_path: Path) -> None:
    """Made of a real item, and really scored."""
    plan = falter.plan(**settings(tmp_path, lambda prompt: "otter"))
    (row,) = plan.panels
    assert row["scorer"] == "answer"
    assert row["replies"]["read"][:2] == ["otter", "The answer is otter."]
    assert row["replies"]["judged"] in ("wrong", "unparsed")
    assert "it would read 'otter', 'The answer is otter.'" in str(plan)
    (strict,) = falter.plan(**settings(tmp_path, lambda prompt: "", scorer="exact")).panels
    assert strict["replies"]["not_read"] == "The answer is otter."
    assert strict["replies"]["judged"] == "wrong"
    (graded,) = falter.plan(**settings(tmp_path, lambda prompt: "", scorer="rougeL")).panels
    assert graded["replies"] is None


@pytest.mark.parametrize(
    ("row", "template", "note"),
    [
        ({"q": "?", "options": ["a", "b"], "t": "b"}, "{q}",
         "write {choices} into the template and add --choices options"),
        ({"q": "?", "options": ["a", "b"], "t": "B"}, "{q} {options}",
         "write {choices} into the template in place of {options} and add --choices options"),
        ({"q": "?", "A": "x", "B": "y", "t": "A"}, "{q} {A} {B}",
         "in place of {A} {B} and add --choices A --choices B"),
        ({"q": "?", "options": ["a", "b"], "t": "c"}, "{q}", ""),
        ({"q": "?", "steps": ["a"], "t": "a"}, "{q}", ""),
    ],
)  # fmt: skip
def test_options_that_the_prompt_does_not_list_are_told(
    row: dict[str, Any], template: str, note: str, tmp_path: Path
) -> None:
    """With what to write; where the target is none of a row's options, nothing is said."""
    rows = [{**row, "q": f"Question {n}?"} for n in range(3)]
    given = settings(tmp_path, lambda prompt: "", data={"rows": rows, "target": "t"})
    notes = [each for each in falter.plan(**{**given, "template": template}).notes
             if "options" in each]  # fmt: skip
    assert (note in notes[0]) if note else not notes


def test_a_list_of_targets_holds_aliases(tmp_path: Path) -> None:
    """Each of them is right; text comparison takes them as paragraphs, as before."""
    targets = ["Holland", "the Netherlands"]
    rows = [{"q": f"Which country is on map {n}?", "t": targets} for n in range(3)]
    given = settings(tmp_path, lambda prompt: "It is the Netherlands.",
                     data={"rows": rows, "target": "t"}, scorer=("answer", "rougeL"))  # fmt: skip
    panels = falter.run(**given).analysis.panels
    assert panels[0].baseline.value == 1.0
    assert 0.0 < (panels[1].baseline.value or 0.0) < 1.0


@pytest.mark.parametrize("reply", ["", "I'm sorry, but I can't help with that request."])
def test_a_run_without_an_answer_ends_with_1_and_claims_nothing(
    reply: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replies that are all empty, or all refusals, measure nothing."""
    result = falter.run(**settings(tmp_path, lambda prompt: reply))
    assert result.no_answers
    words = result.figures[0]
    assert isinstance(words, Statement)
    text = " ".join(words.text)
    assert "nothing is concluded" in text
    assert "confidence" not in text and "points" not in text
    assert {figure.name for figure in result.figures} <= {"answer", "read"}
    assert not [e for e in every_estimate(result.analysis.panels) if e.low is not None]
    some = falter.run(**settings(tmp_path, lambda prompt: "otter", store=tmp_path / "o.db"))
    assert not some.no_answers


def test_the_command_ends_with_1_too(tmp_path: Path) -> None:
    """And says where to look."""

    class Silent(first_contact.Truth):
        def answer(self, asked: Any) -> Any:
            message = {"role": "assistant", "content": ""}
            return 200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    async def run() -> int:
        async with first_contact.LocalServer(Silent().answer) as server:
            return await asyncio.to_thread(
                invoke,
                ["run", "--data", str(data), "--template", str(prompt), "--target", "t",
                 "--model", "openai:silent", "--base-url", server.base_url, "-r", "persona",
                 "--store", str(tmp_path / "s.db")],
            )  # fmt: skip

    data, prompt = tmp_path / "d.jsonl", tmp_path / "p.txt"
    data.write_text("\n".join(map(json.dumps, QUESTIONS)))
    prompt.write_text("{q}")
    assert asyncio.run(run()) == 1


def test_answers_show_the_tier_and_the_second_reading(tmp_path: Path) -> None:
    """In words and for scripts; what the second reader judges otherwise is counted."""

    def answer(prompt: str) -> str:
        found = next((row for row in QUESTIONS if row["q"] in prompt), QUESTIONS[0])
        number = QUESTIONS.index(found)
        return found["t"] if number < 6 else f"Some say {found['t']}, and others say yak."

    result = falter.run(**settings(tmp_path, answer))
    (panel,) = result.analysis.panels
    assert panel.second_reading is not None
    assert (panel.second_reading.reader, panel.second_reading.answers) == ("named_answer", 16)
    assert panel.second_reading.different == 4
    assert panel.second_reading.share == 0.25
    store = tmp_path / "s.db"
    picked = pick_answers(store, None, AnswerFilter(recipe="baseline"), limit=3)
    assert (len(picked.answers), picked.count) == (3, 8)
    assert picked.answers[0].tier == "stated"
    shown = told("answers", "--store", str(store), "--recipe", "baseline").stdout
    assert "reading: stated · named_answer: right" in shown
    rows = told("answers", "--store", str(store), "--json").stdout.splitlines()
    assert {json.loads(row)["second"] for row in rows} == {"named_answer: right"}
    advised = told("answers", "--store", str(store), "--unparsed").stdout
    assert "named_answer" in advised
    assert "rouge" not in advised and "similarity" not in advised


def test_a_run_says_which_reader_it_was_stored_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report of a run of another reader says so in one line; likelihoods are not read."""
    result = falter.run(**settings(tmp_path, lambda prompt: "otter"))
    assert result.run.experiment["reader_version"] == 3
    assert not any("version" in note for note in result.analysis.panels[0].notes)
    monkeypatch.setattr("falter.analysis.analyses.READER_VERSION", 4)
    (note,) = [n for n in open_result(tmp_path / "s.db").analysis.panels[0].notes if "version" in n]
    assert "version 3 of the reader read the replies; this report uses version 4" in note
    with Store(tmp_path / "s.db") as store:
        assert [p.scorer for p in store.find_run().run.panels] == ["answer"]
