"""The meaning check: what a changed text may no longer lose."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.records.errors import InvalidValue
from falter.text.meaning import MeaningFlag, meaning_flags
from falter.text.words import KEPT_LANGUAGES


def flags(before: str, after: str, language: str = "en") -> list[tuple[str, str]]:
    return [(flag.check, flag.lost) for flag in meaning_flags(before, after, language)]


FINE = [
    ("I do not know", "I don't know", "en"),
    ("It isn’t his", "It is not his", "en"),
    ("You cannot go", "You can't go", "en"),
    ("You can not go", "You can’t go", "en"),
    ("No one has any", "NO ONE HAS ANY", "en"),
    ("What is the capital of France?", "Waht is teh captial of france?", "en"),
    ("The ball is kicked by the boy", "The boy kicks the ball", "en"),
    ("the dogs walk", "the dog walked", "en"),
    ("a new word", "a n3w w0rd", "en"),
    ("I know", "Now I know", "en"),
    ("Use `x = 5` and 3 km", "utilise `x = 5`, 3 km", "en"),
    ("Ce n'est pas lui", "ce n’est pas  lui", "fr"),
    ("Dreißig, außer mir", "DREISSIG, AUSSER MIR", "de"),
    ("Él no sabe más", "el no sabe más", "es"),
    ("cafe\u0301 y ma\u0301s", "café y más", "es"),
    ("Ik heb geen tijd", "ik heb geen tijdd", "nl"),
    ("Non è più qui", "non è più quì", "it"),
    ("Não há três", "não ha três", "pt"),
    ("the zone that string noticed", "the 2one that 5+r!n9 not1ced", "en"),
    ("It must be 24 or $1,000.", "It mu$7 b3 24 or $1,000.", "en"),
    ("What was Ada after when she said so?", "what was um ada after when she said so", "en"),
    ("What is the sum of the trails left?", "Say what the sum of all the trails left is", "en"),
    ("", "", "en"),
]


@pytest.mark.parametrize(("before", "after", "language"), FINE)
def test_kept_meaning_is_not_flagged(before: str, after: str, language: str) -> None:
    """Noise in ordinary words, contractions and capitals lose nothing."""
    assert flags(before, after, language) == []


LOST = [
    ("It is not here", "It is now here", "en", [("negation", "not")]),
    ("It is here", "It isn't here", "en", [("negation", "+not")]),
    ("He never came", "He came", "en", [("negation", "never")]),
    ("five apples", "fivee apples", "en", [("number", "five")]),
    ("two and a half", "two and a haf", "en", [("number", "half")]),
    ("the fourth day", "the fifth day", "en", [("number", "fourth"), ("number", "+fifth")]),
    ("all of them", "some of them", "en", [("quantifier", "all")]),
    ("some", "all of some", "en", []),
    ("for 7 days", "for 1 7 days", "en", [("number", "+1")]),
    ("take 7 now", "take 8 now", "en", [("span", "7"), ("number", "7"), ("number", "+8")]),
    ("see a_b now", "see ab now", "en", [("span", "a_b")]),
    ("a_b and a_b", "a_b and", "en", [("span", "a_b")]),
    (
        "US$5 or x+3",
        "US$6 or x+4",
        "en",
        [
            ("span", "US$5"),
            ("span", "x+3"),
            ("number", "5"),
            ("number", "3"),
            ("number", "+6"),
            ("number", "+4"),
        ],
    ),
    ("at -5 or 3", "at 5 or 3", "en", [("span", "-5"), ("number", "-5"), ("number", "+5")]),
    (
        "It is eaten by owls",
        "It eaten owls",
        "en",
        [("relation", "is … eaten"), ("relation", "eaten by")],
    ),
    ("When was Rome taken?", "When Rome taken?", "en", [("relation", "was … taken")]),
    ("Let a and b be odd", "Let and b odd", "en", [("symbol", "a")]),
    ("Find x in 3 steps", "Find in 3 steps", "en", [("symbol", "x")]),
    ("hot water", "hot wager", "en", [("word", "water → wager")]),
    ("a genetic cause", "a generic cause", "en", [("word", "genetic → generic")]),
    ("Ask Eve Moreau", "Ask Ee Morea", "en", [("name", "Eve Moreau")]),
    ("Wer wird gesehen?", "Wer gesehen?", "de", [("relation", "wird … gesehen")]),
    ("Ninguna llegó", "Ningna llegó", "es", [("negation", "ninguna")]),
    ("más caro", "mas caro", "es", [("quantifier", "más")]),
    ("Il n'a rien", "Il a", "fr", [("negation", "ne"), ("negation", "rien")]),
    ("la dixième page", "la dixieme page", "fr", [("number", "dixième")]),
    ("Keine Zeit", "Eine Zeit", "de", [("negation", "keine")]),
    ("jeder zweite", "jede zweite", "de", [("quantifier", "jeder")]),
    ("niet meer", "net meer", "nl", [("negation", "niet")]),
    ("una dozzina", "una dozina", "it", [("number", "dozzina")]),
    ("sem dois", "cem dois", "pt", [("number", "+cem"), ("negation", "sem")]),
]


@pytest.mark.parametrize(("before", "after", "language", "want"), LOST)
def test_lost_meaning_is_flagged(
    before: str, after: str, language: str, want: list[tuple[str, str]]
) -> None:
    """A lost, changed or added number or negation is flagged, and a lost quantifier or span."""
    assert flags(before, after, language) == want


def test_figures() -> None:
    """Marks between thousands are no part of a number, other marks and spaces are."""
    checks = [flag for flag in flags("1,000 people", "1000 people") if flag[0] == "number"]
    assert checks == []
    latex = flags("1,000 of −20 × 5", r"$1{,}000$ of $-20 \times 5$")
    assert {check for check, _ in latex} == {"span"}
    assert ("number", "1000") in flags("cost 1,000 now", "cost 1,0 00 now")
    assert ("number", "1.5") in flags("1.5 is it", "15 is it")
    german = flags("1.000 Euro", "1000 Euro", "de")
    assert german == [("span", "1.000")]


def test_one_negation_for_another() -> None:
    """Negations are counted: *no* may become *not any*."""
    assert flags("There is no tea", "There is not any tea") == []
    assert flags("No, not now", "Not now") == [("negation", "no")]


def test_flags_are_records() -> None:
    """A flag names its check and shows what was lost."""
    assert meaning_flags("never", "") == (MeaningFlag(check="negation", lost="never"),)


def test_language_without_lists() -> None:
    """A language without word lists is an error, not a text without losses."""
    with pytest.raises(InvalidValue, match="language is 'ja'"):
        meaning_flags("a", "a", "ja")


@settings(max_examples=100, deadline=None, database=None)
@given(text=st.text(max_size=60), language=st.sampled_from(KEPT_LANGUAGES))
def test_nothing_is_lost_by_doing_nothing(text: str, language: str) -> None:
    """A text against itself has no flag, whatever it holds."""
    assert meaning_flags(text, text, language) == ()


@pytest.mark.parametrize("piece", ["don't ", "1,000 ", "a'", "e\u0301", "1'", "not "])
def test_linear(piece: str) -> None:
    """Long texts are checked in linear time."""
    text = piece * (20_000 // len(piece))
    start = time.process_time()
    meaning_flags(text, text[1:] + "1")
    assert time.process_time() - start < 2
