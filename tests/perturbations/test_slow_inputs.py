"""Long and odd inputs: the work grows as the input does. Counted in work, not in seconds."""

from __future__ import annotations

import pytest

from falter import perturb
from falter.perturbations import apply_recipe, parse_step, perturbations, spacing
from falter.perturbations.template_parts import units
from falter.records.chats import chat_sections
from falter.records.errors import TaskError
from falter.records.rng import Rng
from falter.records.types import Prompt, Recipe, Section
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number
from falter.tasks.rows import read_rows


@pytest.mark.parametrize("blank", ["\t", " ", "\r", "\u2003", "\x0b"])
def test_perturbations_are_linear_in_what_made_one_stall(blank: str) -> None:
    """A line of a million blanks has no units, and is passed over once: this stalled for hours."""
    text = f"First.\n{blank * 1_000_000}\nSecond.\n{blank * 1_000_000}"
    (unit,) = units((Section(name="q", kind="input", text=text),))
    assert text[unit.start : unit.end].startswith("First.")
    assert text[: unit.end].endswith("Second.")


@pytest.mark.parametrize("name", ["shifted_labels", "tone_rules", "code_switch"])
@pytest.mark.parametrize("blank", [" ", "\t"])
def test_heads_and_labels_are_looked_for_once(name: str, blank: str) -> None:
    """With two quantifiers over the same blanks, 100,000 of them took twelve minutes."""
    turns = [{"role": "user", "content": f"{blank * 100_000}x\nWhere is it?"}]
    recipe = Recipe(label="r", steps=(parse_step(name),))
    made = apply_recipe("k", Prompt(sections=chat_sections(turns)), recipe, 0, 0)
    assert made.status in ("changed", "not_applicable")


def test_ten_megabytes_of_data_are_read(tmp_path: object) -> None:
    """Rows, one long cell and many columns."""
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "long.csv").write_text("q,a\n" + "x" * 200_000 + ",1\n")
    assert len(read_rows(folder / "long.csv")[0]["q"]) == 200_000
    (folder / "head.csv").write_text("x" * 20_000_000 + ",a\n1,2\n")
    with pytest.raises(TaskError, match=r"head\.csv, line 1 has more than 16,777,216 bytes"):
        read_rows(folder / "head.csv")
    (folder / "many.jsonl").write_text(f'{{"q": "{"a b c " * 35}", "a": 1}}\n' * 44_000)
    assert len(read_rows(folder / "many.jsonl")) == 44_000


def test_a_long_line_is_looked_at_once_and_not_once_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """`whitespace` read the whole line again at each of its gaps: 15 s for half a megabyte."""
    looks = []

    class Counted:
        def match(self, text: str, at: int) -> None:
            looks.append(at)

    monkeypatch.setattr(spacing, "_NO_BREAK", Counted())
    text = "one two three " * 1_000
    changed = perturbations.get("whitespace")(prompt(text), Rng(0))
    assert changed != prompt(text)
    assert len(looks) <= 2  # the line, and what follows its end


@pytest.mark.parametrize(
    "unit",
    [
        "1.2.2020 ",
        "a",
        "a ",
        "una",
        "option ",
        "because ",
        ": ",
        "- ",
        "1) ",
        "two and ",
        "zwei",
        "◁think",
        "the museum is open ",
    ],
)
def test_replies_that_go_round_in_circles_are_read(unit: str) -> None:
    """The words before an answer could be cut up in 2 ** 50 ways: a reply of *a* was never read."""
    for reply in (f"{unit * 60}Answer: B", f"{unit * 4_000}"[:8_000] + "\nAnswer: B"):
        assert read_letter(reply, "ABC", ["red", "green", "blue"]).answer in (None, 1)
        assert read_label(reply, ["A", "B", "C"]).answer in (None, "B")
        assert read_number(reply, "How many km in 3 hours?").answer in (None, 2) or unit == "1) "
        assert read_yes_no(reply, "Is the museum open?").answer in (None, "yes")


def prompt(text: str) -> Prompt:
    return Prompt(sections=(Section(name="q", kind="input", text=text),), target="x")


def test_what_is_too_long_to_be_a_word_is_not_misspelt() -> None:
    """Every edit of 20,000 letters took minutes; short words beside it still get theirs."""
    text = f"Where is {'a' * 20_000} and the station tonight?"
    made = [perturb(text, "human_typos:heavy", seed=seed) for seed in range(8)]
    assert all("a" * 20_000 in each for each in made) and any(each != text for each in made)
