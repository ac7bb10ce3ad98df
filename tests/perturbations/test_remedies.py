"""Remedies that take more than a rule for one prompt: spelling, examples, reasoning, votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import falter
from falter.cli.app import invoke
from falter.engine.config import read_experiment
from falter.engine.resolving import resolve
from falter.measures.remedies import RemedyScores, confirmed_remedy
from falter.protocols.mend.remedies import vote_score, voters_of
from falter.records.errors import DuplicateName, InvalidValue, UsageError
from falter.records.render import plain
from falter.records.types import Item, Program, Prompt, Score, Section
from falter.remedies import remedies, remedy_from

SOME = {"task": "basics:core", "limit": 8, "recipes": ["typos", "pad_newlines"]}
MODEL = {"models": ["simulated"]}


def prompt(text: str, **more: Any) -> Prompt:
    cue = Section(name="cue", kind="cue", text="\nAnswer:")
    return Prompt(sections=(Section(name="input", kind="input", text=text), cue), **more)


# Spelling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Waht is thr captial of France?", "What is the capital of France?"),
        ("Which animl lives in the oceann?", "Which animal lives in the ocean?"),
        ("The goverment was seperate.", "The government was separate."),
        # Names, also one that begins the text and could be a slip of another word.
        ("Natalia sold clips to Jhon and Marry.", "Natalia sold clips to Jhon and Marry."),
        ("Hoe many weeks did Mika wait?", "Hoe many weeks did Mika wait?"),
        # Numbers, code, links, and words that are mentioned.
        ("Is 12.5kg teh weight of `teh_box`?", "Is 12.5kg the weight of `teh_box`?"),
        ("How many letters are in recieve?", "How many letters are in recieve?"),
        # What is said twice alike is meant; a usual word is repaired all the same.
        ("A glorp ate the glorp.", "A glorp ate the glorp."),
        ("Is teh cat on teh mat?", "Is the cat on the mat?"),
        # Never towards a negation or a number; never a form or a compound of known words.
        ("It is noy here, and fuve are gone.", "It is noy here, and fuve are gone."),
        ("The outback was rewetted by the dishwashing.",) * 2,
        # Another language.
        ("Wlche Strasse fhrt zum Bahnhof der Stadt?",) * 2,
        ("", ""),
    ],
)
def test_spelling_is_repaired_and_nothing_else(text: str, expected: str) -> None:
    after = remedies.get("correct_spelling")(prompt(text))
    assert plain(after) == f"{expected}\nAnswer:"


def test_a_word_of_the_options_is_meant_as_it_stands() -> None:
    fix = remedies.get("correct_spelling")
    assert "chicken" in plain(fix(prompt("Is it the chiken?")))
    kept = fix(prompt("Is it the chiken?", choices=("Chiken", "cow"), labels=("A", "B")))
    assert "chiken" in plain(kept)


def test_clean_questions_stay_and_most_typos_go() -> None:
    """On the bundled questions; docs/mend.md has the counts."""
    fix = remedies.get("correct_spelling")
    experiment = read_experiment({**SOME, **MODEL, "limit": 60, "recipes": ["typos"]})
    panel = resolve(experiment).panels[0]
    clean, typed = panel.conditions
    slips = left = 0
    for item in panel.items:
        asked, wrong = clean.make(item, 0).prompt, typed.make(item, 0).prompt
        assert fix(asked) == asked
        words = [plain(p).split() for p in (asked, wrong, fix(wrong))]
        if len({len(w) for w in words}) == 1:
            slips += sum(a != b for a, b, _ in zip(*words, strict=True))
            left += sum(a != c for a, _, c in zip(*words, strict=True))
    assert slips > 100
    assert left < 0.4 * slips


# Examples


def built(remedy: str | None, **more: Any) -> list[tuple[Item, list[Prompt]]]:
    settings = {
        **SOME,
        **MODEL,
        "recipes": ["typos"],
        **({} if remedy is None else {"remedy": remedy}),
        **more,
    }
    panel = resolve(read_experiment(settings)).panels[0]
    return [(i, [c.make(i, 0).prompt for c in panel.conditions]) for i in panel.items]


def test_examples_are_shown_ahead_of_every_prompt_and_not_asked() -> None:
    shown = built("examples")
    (first, *_), (_, prompts) = shown[0][1], shown[0]
    assert len(first.demonstrations) == 4
    assert all(p.demonstrations == first.demonstrations for p in prompts)
    texts = {d.sections[0].text for d in first.demonstrations}
    assert not any(item.fields["question"] in text for item, _ in shown for text in texts)


def test_noisy_examples_are_the_same_ones_perturbed_once_for_all() -> None:
    """Clean prompts have them too, with the answers that the clean ones have."""
    calm, noisy = built("examples"), built("noisy_examples")
    before, after = calm[0][1][0].demonstrations, noisy[0][1][0].demonstrations
    assert [d.answer for d in before] == [d.answer for d in after]
    assert all(a.sections != b.sections for a, b in zip(before, after, strict=True))
    assert all(p.demonstrations == after for _, prompts in noisy for p in prompts)
    own = built("noisy_examples", demonstrations=2)
    assert len(own[0][1][0].demonstrations) == 2


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"remedy": "examples", "demonstrations": 2}, "demonstrations are shown already"),
        ({"remedy": "noisy_examples", "recipes": ["pad_newlines"]}, "changes the text of a"),
        ({"remedy": "think_first"}, "'choice_likelihood' compares likelihoods"),
        ({"remedy": "vote"}, "a vote sends several"),
    ],
)
def test_a_remedy_that_does_not_apply_is_refused_with_the_reason(
    settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        resolve(read_experiment({**SOME, **MODEL, **settings}))


def test_mend_leaves_out_what_does_not_apply_unless_it_was_named(tmp_path: Path) -> None:
    settings = {**SOME, **MODEL, "protocol": "mend", "limit": 4, "recipes": ["pad_newlines"]}
    result = falter.run(settings, store=tmp_path / "s.db")
    notes = " ".join(result.study.notes)
    assert "With think_first: left out. The remedy 'think_first' does not apply" in notes
    assert "With noisy_examples: left out." in notes
    names = [row["remedy"] for row in result.table("remedies")]
    assert {"correct_spelling", "examples", "vote"} < set(names)
    with pytest.raises(UsageError, match="does not apply"):
        falter.run({**settings, "remedies": ["think_first"]}, store=tmp_path / "s.db")


# Reasoning


def test_reasoning_is_asked_for_before_the_answer() -> None:
    think = remedies.get("think_first")
    text = plain(think(prompt("What is 2 + 2?")))
    assert text.startswith("What is 2 + 2?\nFirst work out step by step")
    assert "Answer: X\nwhere X is your answer." in text
    assert text.endswith("\nReasoning:")
    program = Program(prefix="", tests="", entry_point="f")
    for kept in (prompt("Write f.", program=program), Prompt(sections=())):
        assert think(kept) == kept


def test_the_answer_behind_the_reasoning_is_read_and_a_rescore_reads_it_too(
    tmp_path: Path,
) -> None:
    """A model that muses about another answer first, as written replies do."""

    def model(text: str) -> str:
        return "It might be 5, but no.\nAnswer: 4" if "step by step" in text else "4"

    rows = [{"question": f"What is {n} + {4 - n}?", "answer": "4"} for n in range(1, 4)]
    settings = {
        "data": {"rows": rows, "target": "answer"}, "template": "{question}\nAnswer:",
        "models": [model], "recipes": ["pad_newlines"], "scorer": "exact",
    }  # fmt: skip
    for remedy in (None, "think_first"):
        named = {} if remedy is None else {"remedy": remedy}
        result = falter.run({**settings, **named}, store=tmp_path / "s.db")
        assert {row["value"] for row in result.scores()} == {1.0}
    assert not result.rescored("includes").table("read-differently")


# Votes


def score(answer: str | None, value: float = 0.0) -> Score:
    if answer is None:
        return Score(scorer="s", outcome="unparsed")
    return Score(scorer="s", outcome="scored", value=value, extracted=answer)


def test_most_votes_win_and_ties_go_to_the_earliest_voter() -> None:
    a, b, c, none = score("A"), score("B", 1.0), score("C"), score(None)
    assert vote_score([a, b, b]) is b
    assert vote_score([a, b, c]) is a
    assert vote_score([none, b, c]) is b
    assert vote_score([none, none, b]) is b
    assert vote_score([a, c, b, score(" b ", 1.0)]).value == 1.0
    assert vote_score([none, none]) is none


def test_the_voters_of_a_vote() -> None:
    assert voters_of("vote") == ("delimiters", "restate")
    assert voters_of("vote:restate+tidy_lines") == ("restate", "tidy_lines")
    assert voters_of("restate") is None
    assert voters_of("vote:{prompt}") is None
    with pytest.raises(InvalidValue, match="a vote of remedies"):
        voters_of("vote:restate+")
    with pytest.raises(DuplicateName, match="named twice"):
        voters_of("vote:restate+restate")
    with pytest.raises(InvalidValue, match="a vote sends several"):
        remedy_from("vote")


def test_a_vote_is_counted_from_the_voters_answers_with_what_it_costs(tmp_path: Path) -> None:
    """A model that line breaks lead astray unless something stands beside the question."""

    def model(text: str) -> str:
        other = '"""' in text or "Once more" in text
        return "yes" if other or not text.startswith("\n") else "no"

    rows = [{"question": f"Is {n} a number?", "answer": "yes"} for n in range(40)]
    mine = {
        "data": {"rows": rows, "target": "answer"}, "template": "{question}\nAnswer:",
        "models": [model], "recipes": ["pad_newlines"], "scorer": "exact",
    }  # fmt: skip
    study = {**mine, "protocol": "mend", "remedies": ["vote"]}
    result = falter.run(study, store=tmp_path / "s.db")
    table = {row["remedy"]: row for row in result.table("remedies")}
    assert list(table) == ["delimiters", "restate", "vote"]
    grid = result.figure("remedies")
    assert isinstance(grid, falter.records.figures.Grid)
    vote = dict(zip([c.name for c in grid.columns], grid.rows[2], strict=True))
    assert (vote["Gain"].value, vote["Clean prompts"].value, vote["Calls"]) == (1.0, 0.0, 3)
    assert vote["characters more"] > 50
    sent = sum(1 for row in result.scores() if row["part"] == "vote")
    assert sent == 80  # the answers to the prompts as they are, which were not asked again
    picked = {**study, "remedies": ["vote:tidy_lines"]}
    result = falter.run(picked, store=tmp_path / "s.db")
    assert [row["remedy"] for row in result.table("remedies")] == ["tidy_lines", "vote:tidy_lines"]


def test_a_vote_that_helps_is_said_and_not_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each wording goes astray on a third of the items, and never two of them on one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "astray_model.py").write_text(
        "def model(text):\n"
        "    odd = text.startswith('\\n')\n"
        "    at = sum(map(ord, text)) % 3\n"
        "    astray = odd and (at, '\\\"\\\"\\\"' in text, 'Once more' in text) in WRONG\n"
        "    return 'no' if astray else 'yes'\n"
        "WRONG = [(n, d, r) for n in range(3) for d in (0, 1) for r in (0, 1) if n == d + 2 * r]\n"
    )
    rows = [{"question": f"Is {'I' * n} one?", "answer": "yes"} for n in range(90)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.yaml").write_text(
        'data: {path: rows.jsonl, target: answer}\ntemplate: "{question}\\nAnswer:"\n'
        "models: ['function:astray_model:model']\nrecipes: [pad_newlines]\nscorer: exact\n"
    )
    target = tmp_path / "mended.yaml"
    options = ["--store", str(tmp_path / "s.db"), "--remedies", "vote", "--apply", str(target)]
    code = invoke(["mend", str(tmp_path / "mine.yaml"), "--allow-code", *options])
    out, err = capsys.readouterr()
    assert code == 0, err
    if "vote helps" in out:
        assert "vote is confirmed; it takes 3 calls an answer" in err
        assert "take the most frequent answer" in err
    assert not target.exists()


# Several at once


def test_what_is_confirmed_at_once_has_wider_intervals_of_the_same_level() -> None:
    rng = np.random.default_rng(3)
    turned = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.5, 0.4], size=(60, 2))
    good = {"good": RemedyScores(gain=turned, clean=np.zeros(60))}
    alone, among = (confirmed_remedy(good, range(60), together=n) for n in (1, 6))
    assert alone.on_first["good"].gain == among.on_first["good"].gain
    assert alone.on_second is not None
    assert among.on_second is not None
    one, other = alone.on_second.gain, among.on_second.gain
    assert (one.value, one.level) == (other.value, other.level)
    assert one.low is not None
    assert other.low is not None
    assert other.low < one.low
    assert other.method.endswith("simultaneous over 6, bonferroni")
    with pytest.raises(InvalidValue, match="together"):
        confirmed_remedy(good, range(60), together=0)


def test_two_models_are_confirmed_together(tmp_path: Path) -> None:
    def brittle(name: str) -> dict[str, Any]:
        effects = {"typos": 1.5, "pad_newlines": 1.5}
        return {"name": f"simulated:{name}", "options": {"mended_by": "may contain slips",
                                                        "effects": effects}}  # fmt: skip

    settings = {
        **SOME, "limit": 60, "models": [brittle("one"), brittle("other")], "protocol": "mend",
        "remedies": ["mention_slips", "restate"],
    }  # fmt: skip
    result = falter.run(settings, store=tmp_path / "s.db")
    (halves,) = [figure for figure in result.figures if figure.name == "remedies-halves"]
    assert "hold for the 2 remedies that were picked at once (Bonferroni)" in " ".join(halves.text)
