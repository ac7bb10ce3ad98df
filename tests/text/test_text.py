"""The text room: what is protected, what is a word, and how edits compose."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.records.errors import InvalidValue
from falter.records.types import Edit, Section
from falter.text.protection import blocked, protect
from falter.text.spans import Segment, diff_spans, merged, overlaps, replace_spans, uncovered
from falter.text.words import natural_words, sentences


def marked(text: str, *patterns: str) -> str:
    """The text with protected spans in ⟦…⟧."""
    parts, at = [], 0
    for start, end in protect(text, patterns):
        parts += [text[at:start], "⟦", text[start:end], "⟧"]
        at = end
    return "".join([*parts, text[at:]])


PROTECTED = [
    "⟦3 + 4 = 7⟧ and ⟦x^2 - 1⟧, ⟦(1-1)+5⟧, or ⟦-5⟧ (the value is ⟦3 + 4⟧)",
    "It weighs ⟦3.5mg⟧, ran ⟦5 km⟧ for ⟦$1,200⟧ at ⟦20 °C⟧ and ⟦10^{-3}⟧",
    "on ⟦3 March 2020⟧ at ⟦12:30 pm⟧ or ⟦2020-01-05⟧, by ⟦May 5, 2021⟧, ⟦12:30 a.m.⟧ today",
    "see ⟦https://a.b/c?d=1⟧. or ⟦me@x.org⟧, and ⟦www.a.org/b⟧.",
    "⟦/usr/bin/env⟧ and ⟦./a.py⟧ ⟦src/x.py⟧ ⟦C:\\Users\\x⟧ and/or he/she/it",
    "use ⟦snake_case⟧ ⟦camelCase⟧ ⟦os.path.join⟧ ⟦GPT-4⟧ ⟦H2O⟧ ⟦v1.2⟧ ⟦COVID-19⟧",
    "⟦NASA⟧, ⟦U.S.A.⟧ and ⟦DNA⟧ ⟦e.g.⟧ this ⟦R&D⟧ by ⟦AT&T⟧ ⟦iPhone⟧ ⟦mRNA⟧",
    "⟦{x}⟧ or ⟦{{y}}⟧ or ⟦<z>⟧ see ⟦[12]⟧ ⟦<b>⟧bold⟦</b>⟧ ⟦%s⟧",
    '⟦{"a": 1, "b": [1,2]}⟧ then ⟦[1, 2, 3]⟧',
    "Let ⟦$x^2$⟧ and ⟦\\(a+b\\)⟧ or ⟦\\[c\\]⟧ cost ⟦$5⟧ and ⟦$6⟧ in ⟦\\textbf{word}⟧",
    "⟦\\begin{align}a\\begin{b}c\\end{b}\\end{align}⟧ done",
    "⟦```py\nfoo bar\n```⟧\nthen ⟦`code here`⟧ and ⟦``a ` b``⟧",
    "⟦~~~\nnever closed",
    "⟦import os\nfrom a import b\nreturn x⟧\nDear all,\nimport duties rose.",
    "⟦  for (int i=0;i<3;i++){\nx = foo(1)\n}⟧\nprose line; with semi;\nfor example:",
    "⟦print('hello my good friend')\n>>> a b\nelse:⟧",
    "What is the value of p in ⟦24 = 2p⟧?",
    "Find the quotient of ⟦−40 ÷ (−8)⟧.",
    "⟦3 × [(2 × 6 – 5) + (8 ÷ 4)] – 1⟧ What is ⟦1 over 11⟧",
    "the ⟦1990s⟧, ⟦3rd⟧, ⟦24-hour⟧, ⟦5 million⟧ people, ⟦5⟧ in a row, ⟦150%⟧, ⟦5€⟧",
]


@pytest.mark.parametrize("text", PROTECTED)
def test_protects(text: str) -> None:
    """Code, maths, numbers, addresses and identifiers are protected, and nothing beside them."""
    plain = text.replace("⟦", "").replace("⟧", "")
    want = text if text.count("⟦") == text.count("⟧") else text + "⟧"
    assert marked(plain) == want


@pytest.mark.parametrize(
    "text",
    [
        "What happens to you if you eat watermelon seeds?",
        "A plain sentence ends with a word. Another one follows (this one).",
        "World War I. Then: he said “stop”; she—of course—went on… Why?",
        "It isn't John's well-known and/or so-called plan.",
        "Émile Zola. Привет, Мир. 日本語。 مرحبا 👩‍🚀",
        "prose line; with semi;\nfor example:\nDear all,",
        "",
    ],
)
def test_plain_prose_is_free(text: str) -> None:
    """Plain prose has no protected span."""
    assert protect(text) == ()


def test_user_patterns() -> None:
    """User patterns protect what they match; a broken one is an error that shows it."""
    assert marked("ask ACME corp now", "ACME [a-z]+", "x*") == "ask ⟦ACME corp⟧ now"
    assert marked("ask acme corp", "corp") == "ask acme ⟦corp⟧"
    with pytest.raises(InvalidValue, match=r"protect is '\('"):
        protect("a", ("(",))


@pytest.mark.parametrize(
    "piece",
    ["(", "[", "{", "\\(", "\\[", "a.", "a_", "/a", "$", "`", '{"a":', "\\a{", "1", "1+", "9,",
     "aA", "<a", "a@", "http://", "\n", "x = ", "\\begin{a}", "```\n", "if (", "a/", "Mr. "],
)  # fmt: skip
def test_no_catastrophe(piece: str) -> None:
    """Text built to provoke backtracking is read in linear time."""
    text = piece * (20_000 // len(piece))
    start = time.process_time()
    natural_words(text, protect(text))
    sentences(text)
    assert time.process_time() - start < 2


def words(text: str, *unnatural: str) -> list[str]:
    found = natural_words(text, protect(text), frozenset(unnatural))
    return [text[start:end] for start, end in found]


def test_natural_words() -> None:
    """Words are lower-case or Title-case, whole, and neither units nor known misspellings."""
    assert words("The cat didn't see NASA or teh x, a km, I p.", "teh") == [
        "The", "cat", "see", "or", "a", "I",
    ]  # fmt: skip
    assert words("well-known “quoted” 'single' Élan, dogs' a_b c3 4d iPad") == [
        "well", "known", "quoted", "single", "Élan", "dogs",
    ]  # fmt: skip
    assert words("cafe\u0301 日本 مرحبا") == []


def test_sentences() -> None:
    """Sentences end at marks, not at abbreviations, initials, decimals or before small letters."""
    text = (
        'Dr. J. Smith paid 3.5 euros. "Why?" he asked. It works, e.g. Here!\n\nNew part 你好。再见'
    )
    assert [text[a:b] for a, b in sentences(text)] == [
        "Dr. J. Smith paid 3.5 euros.", '"Why?" he asked.', "It works, e.g. Here!",
        "New part 你好。", "再见",
    ]  # fmt: skip
    assert sentences(" \n") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Er kam am 3. Mai um 14.30 Uhr (vgl. Abb. 4).",
        "Im 19. Jahrhundert, d. h. vor langer Zeit, stand hier u. a. Mme Curie.",
        "« Qui est là ? » demanda M. Dupont.",
        "彼は「もう帰ります。さようなら。」と言いました。",
    ],
    ids=["date", "century", "french", "japanese"],
)
def test_sentences_in_other_languages(sentence: str) -> None:
    """Dates, abbreviations and quotations do not end one; what follows does begin another."""
    text = f"{sentence} {sentence}"
    assert [text[a:b] for a, b in sentences(text)] == [sentence, sentence]


def test_a_quotation_that_nobody_closes_ends_with_its_sentence() -> None:
    assert len(sentences("「行きます。来ます。")) == 2
    assert [a for a, _ in sentences("„Wozu?“ Niemand antwortet.")] == [0, 8]


def test_span_arithmetic() -> None:
    """Spans merge when they overlap; empty ones are points that count only inside."""
    assert merged([(5, 7), (1, 3), (2, 4), (4, 5), (6, 6)]) == ((1, 4), (4, 5), (5, 7))
    spans = ((2, 2), (4, 6))
    assert [overlaps(spans, *s) for s in [(0, 2), (1, 3), (3, 4), (5, 6), (6, 9)]] == [
        False, True, False, True, False,
    ]  # fmt: skip
    assert uncovered([(0, 2), (1, 3), (3, 4), (5, 6), (6, 9)], spans) == [(0, 2), (3, 4), (6, 9)]


def section(text: str, **more: object) -> Section:
    return Section(name="input", kind="input", text=text, **more)  # type: ignore[arg-type]


def test_edits_compose() -> None:
    """Edits lead from the original text to the present one, through any number of steps."""
    one = replace_spans(section("the old cat sat"), [(4, 7, "ancient")])
    assert one.edits == (Edit(start=4, end=7, new_start=4, new_end=11),)
    two = replace_spans(one, [(0, 4, ""), (16, 19, "slept")])
    assert two.text == "ancient cat slept"
    assert diff_spans("the old cat sat", two) == [
        Segment("edit", "the ", ""),
        Segment("edit", "old", "ancient"),
        Segment("same", " cat ", " cat "),
        Segment("edit", "sat", "slept"),
    ]
    three = replace_spans(two, [(5, 9, "X")])
    assert diff_spans("the old cat sat", three)[1] == Segment("edit", "old c", "ancieX")


def test_earlier_edits_are_blocked() -> None:
    """A later step may write neither into earlier edits nor into protected spans."""
    before = section("the old cat sat", protected=((8, 11),))
    after = replace_spans(before, [(4, 7, "ancient")])
    assert after.protected == ((12, 15),)
    assert blocked(after) == ((4, 11), (12, 15))
    assert blocked(before, ("sat",)) == ((8, 11), (12, 15))


def test_overlapping_deletions_are_clipped() -> None:
    """Deletions may share characters; other overlaps and spans outside the text raise."""
    assert replace_spans(section("a of the b"), [(1, 5, ""), (4, 9, ""), (4, 5, "")]).text == "ab"
    for bad in ([(0, 3, "x"), (2, 4, "y")], [(0, 99, "x")], [(3, 2, "")]):
        with pytest.raises(ValueError, match="overlaps or leaves"):
            replace_spans(section("a of the b"), bad)


@st.composite
def replacements(draw: st.DrawFn, length: int) -> list[tuple[int, int, str]]:
    cuts = sorted(draw(st.lists(st.integers(0, length), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return [(a, b, draw(st.text("xyz ", max_size=3))) for a, b in pairs]


@settings(max_examples=100, deadline=None, database=None)
@given(data=st.data(), text=st.text("abcdef ", max_size=30))
def test_any_edits_compose(data: st.DataObject, text: str) -> None:
    """Whatever steps do, the edits account for every difference and protected text survives."""
    now = section(text)
    for _ in range(3):
        now = replace_spans(now, data.draw(replacements(len(now.text))))
    segments = diff_spans(text, now)
    assert "".join(s.before for s in segments) == text
    assert "".join(s.after for s in segments) == now.text
