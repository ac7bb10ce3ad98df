"""The replies that answers are read from: every case has a reading that its own fields allow."""

import json
from collections import Counter
from pathlib import Path

import pytest

from falter.scorers.reading.labels import read_yes_no
from falter.scorers.reading.numbers import read_number
from reply_table import counted

REPLIES = Path(__file__).parents[1] / "data" / "replies"
KINDS = ("letters", "labels", "numbers", "yesno", "json")


@pytest.mark.parametrize("kind", KINDS)
def test_cases_are_whole(kind: str) -> None:
    """A reading is one of the options or labels, a number, yes or no, or nothing."""
    lines = (REPLIES / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert max(Counter(case["id"] for case in cases).values()) == 1
    for case in cases:
        assert case["reply"] is not None
        assert case["why"]
        if case["read"] is None:
            continue
        match kind:
            case "letters":
                assert case["read"] in case["options"], case["id"]
            case "labels":
                assert case["read"] in case["labels"], case["id"]
            case "numbers":
                float(case["read"])
            case "yesno":
                assert case["read"] in ("yes", "no"), case["id"]


def test_traps_name_cases() -> None:
    """Every trap is a case of the files."""
    ids = {
        json.loads(line)["id"]
        for kind in KINDS
        for line in (REPLIES / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    }
    assert set(json.loads((REPLIES / "traps.json").read_text(encoding="utf-8"))) <= ids


@pytest.mark.parametrize(
    ("part", "kind", "precision", "recall"),
    [
        ("development", "letters", 0.99, 0.97), ("development", "labels", 0.99, 0.98),
        ("development", "numbers", 0.99, 0.97), ("development", "yesno", 0.97, 0.95),
        ("development", "json", 0.99, 0.99),
        ("odd", "letters", 0.95, 0.83), ("odd", "labels", 0.98, 0.93),
        ("odd", "numbers", 0.84, 0.80), ("odd", "yesno", 0.94, 0.94), ("odd", "json", 0.95, 0.99),
        ("second", "letters", 0.99, 0.99), ("second", "labels", 0.99, 0.99),
        ("second", "numbers", 0.99, 0.99), ("second", "yesno", 0.99, 0.99),
        ("second", "json", 0.99, 0.99), ("third", "letters", 0.99, 0.99),
        ("third", "labels", 0.99, 0.99), ("third", "numbers", 0.99, 0.95),
        ("third", "yesno", 0.99, 0.99), ("third", "json", 0.99, 0.99),
        ("fourth", "letters", 0.99, 0.98), ("fourth", "labels", 0.99, 0.99),
        ("fourth", "numbers", 0.98, 0.96), ("fourth", "yesno", 0.99, 0.99),
        ("fourth", "json", 0.99, 0.99), ("manners", "letters", 0.99, 0.99),
        ("manners", "labels", 0.99, 0.99), ("manners", "numbers", 0.99, 0.95),
        ("manners", "yesno", 0.99, 0.94), ("manners", "json", 0.99, 0.99),
        ("everyday", "letters", 0.89, 0.75), ("everyday", "labels", 0.99, 0.86),
        ("everyday", "numbers", 0.95, 0.9), ("everyday", "yesno", 0.99, 0.6),
        ("sixth", "letters", 0.97, 0.8), ("sixth", "labels", 0.98, 0.92),
    ],
)  # fmt: skip
def test_reading_gets_no_worse(part: str, kind: str, precision: float, recall: float) -> None:
    """Floors just below what `reply_table.py` prints; the aims are higher."""
    counts = counted(kind, part)
    assert counts.precision > precision and counts.recall > recall


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Is Paris bigger than Rome?", "Rome is bigger than Paris."),
        ("Did Anna pay Ben?", "Ben paid Anna."),
        ("Is the fox older than the dog?", "The dog is older."),
        ("Does Python support tail calls?", "Python supports calls."),
        ("Did Germany beat Brazil in 2014?", "Brazil beat Germany in 2014."),
        ("Is the museum open on Mondays?", "The museum is open on Tuesdays."),
        ("Did the team win the cup in 2019?", "They lost it in 2019."),
        ("Does it allow subletting without consent?", "It allows subletting with consent."),
        ("Is the claim supported?", "Supported claims need a source."),
        ("¿Incluye el precio el desayuno?", "El desayuno incluye el precio."),
    ],
)
def test_the_questions_words_in_other_roles_are_no_yes(question: str, reply: str) -> None:
    """A statement with the same words says something else, and is not read."""
    assert read_yes_no(reply, question).answer is None


def test_a_share_of_a_number_is_not_the_result_beside_it() -> None:
    """What is worked out stands right behind its verb."""
    question = "How many of the 12 balls are red?"
    assert read_number("So 3 of 12 are red and 9 are blue.", question) == 3
    assert read_number("So 15 % of 80 is 12.", "What is 15 % of 80?").answer == 12
