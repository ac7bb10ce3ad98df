"""The protector against a corpus of texts: what it must cover, and what it must leave free."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from falter.perturbations.base import locked_spans
from falter.records.errors import InvalidValue
from falter.records.types import Section, Span
from falter.text import protection
from falter.text.code import fences, python_code
from falter.text.protection import blocked, protect
from falter.text.spans import merged, uncovered
from falter.text.words import natural_words

CORPUS: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "protection.yaml").read_text(encoding="utf-8")
)


def docstring_prose(text: str) -> list[Span]:
    """The lines of prose in docstrings of Python code without fences."""
    return uncovered([span for code in python_code(text) for span in code.prose], fences(text))


def found(text: str, pieces: Sequence[str]) -> Iterator[Span]:
    """The spans of the pieces, each behind the one before."""
    at = 0
    for piece in pieces:
        start = text.index(piece, at)
        at = start + len(piece)
        yield start, at


def covered(text: str) -> set[int]:
    return {i for start, end in protect(text) for i in range(start, end)}


@pytest.mark.parametrize("kind", CORPUS)
def test_protects(kind: str) -> None:
    """Every character of a protected piece but white space lies in a protected span."""
    for case in CORPUS[kind]:
        text, closed = case["text"], covered(case["text"])
        for start, end in found(text, case.get("protected", ())):
            open_ = [i for i in range(start, end) if i not in closed and not text[i].isspace()]
            assert not open_, (text, text[start:end])


@pytest.mark.parametrize("kind", CORPUS)
def test_protects_no_more(kind: str) -> None:
    """No character of an editable piece but white space lies in a protected span."""
    for case in CORPUS[kind]:
        text, closed = case["text"], covered(case["text"])
        for start, end in found(text, case.get("editable", ())):
            shut = [i for i in range(start, end) if i in closed and not text[i].isspace()]
            assert not shut, (text, text[start:end])


def test_corpus_is_large() -> None:
    """The corpus has at least 320 texts, each with something to check, none twice."""
    cases = [case for kind in CORPUS.values() for case in kind]
    assert len(cases) >= 320
    assert len({case["text"] for case in cases}) == len(cases)
    assert all(case.get("protected") or case.get("editable") for case in cases)


@pytest.mark.parametrize("kind", CORPUS)
def test_spans_are_in_order(kind: str) -> None:
    """Protected spans are sorted, apart and inside the text, also in a longer one."""
    for case in CORPUS[kind]:
        text = f"Some words before.\n\n{case['text']}\n\nSome words after."
        spans = protect(text)
        assert spans == merged(spans)
        assert all(0 <= start < end <= len(text) for start, end in spans)


FUNCTION = '''from typing import List


def close(numbers: List[float], limit: float) -> bool:
    """ Check whether any two numbers are closer than the given limit.
    Return True then, "yes" otherwise.

    >>> close([1.0, 2.0], 0.5)
    False

    Args:
        limit (float): the largest distance
    close([], 1) == False
    """
'''


def test_docstring_prose() -> None:
    """Prose in a docstring is free; signature, imports, doctests and their output are not."""
    prose = [FUNCTION[start:end] for start, end in docstring_prose(FUNCTION)]
    assert prose == [
        "Check whether any two numbers are closer than the given limit.",
        'Return True then, "yes" otherwise.',
        "Args:",
        "limit (float): the largest distance",
    ]
    words = [FUNCTION[a:b] for a, b in natural_words(FUNCTION, protect(FUNCTION))]
    assert words == [
        "Check", "whether", "any", "two", "are", "closer", "than", "the", "given",
        "Return", "then", "otherwise", "Args", "the", "largest", "distance",
    ]  # fmt: skip


def test_nothing_between_lines_of_code_is_free() -> None:
    """Line breaks and indentation of code are protected: in Python they carry the sense."""
    closed = covered(FUNCTION)
    free = {FUNCTION[i] for i in range(len(FUNCTION.rstrip())) if i not in closed}
    assert "\n" not in free
    code = "What is x?\n\nx = 0\nfor i in range(3):\n    total\n\n    x += i\nprint(x)\n\nSay it."
    assert [code[a:b] for a, b in protect(code)] == [code[11:-9]]


def test_prose_is_not_looked_for_in_fences() -> None:
    """A fenced function is protected as a whole."""
    text = f"Look:\n```python\n{FUNCTION}```\nDone."
    assert docstring_prose(text) == []
    assert protect(text) == ((6, len(text) - 6),)
    assert docstring_prose("A class apart: def and so on.") == []


def test_several_functions() -> None:
    """Text between two functions is free, constants with long strings are not."""
    text = (
        'NOTE = """\nnot a word of this\n"""\n\ndef one():\n    """First."""\n\nThen comes\n\n'
        'class Two:\n    """Second."""\n\n    text = """\n    nor this\n    """\n\nand that is all.'
    )
    words = [text[a:b] for a, b in natural_words(text, protect(text))]
    assert words == ["First", "Then", "comes", "Second", "and", "that", "is", "all"]


def test_a_pattern_that_takes_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "PATTERN_SECONDS", 0.05)
    section = Section(name="q", kind="input", text="a" * 60 + "!")
    for find in (blocked, locked_spans):
        with pytest.raises(InvalidValue, match=r"protect is '\(a\+\)\+\$'; .* within 0.05 s"):
            find(section, ("(a+)+$",))
        assert (0, 60) in find(section, ("a+",))


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    '''never closed\n    and so on",
        "def f(\n    x",
        "class A:",
        "def f(): pass\r\n\r\nText.\r\n",
        'def f():\n    """a""" + """b"""\n',
        '"""\ndef f():\n    pass\n"""',
        "\n" * 50 + "def f(x):\n\treturn x\n" + "\n" * 50,
    ],
)
def test_broken_code(text: str) -> None:
    """Whatever the state of the code, the spans are in order and inside the text."""
    spans = protect(text)
    assert spans == merged(spans)
    assert all(0 <= start < end <= len(text) for start, end in [*spans, *docstring_prose(text)])


@pytest.mark.parametrize(
    "piece",
    ['def f(\n', 'def f(x):\n', 'def f():\n  """\n', '"""\n', "class A:\n", "x = 1\n", "a: b\n",
     "- ", "-a ", " -", "$a", "(A 2020; ", "(A, ", "1,", "1, ", "(1", "a_", "{\n", "{\na\n", "}\n",
     "https://(", "*.", ".a", "a.b.", "A-", "mx", "∑ ", "|", "if a:\n ", "[A", "doi:", "<|", "{{{",
     "§", "12 feet ", "'a' ", "def f(a):\n  '''a\n  '''\n", "A. B. ", "---\n"],
)  # fmt: skip
def test_linear(piece: str) -> None:
    """Text built to provoke backtracking is read in linear time."""
    text = piece * (20_000 // len(piece))
    start = time.process_time()
    protect(text)
    docstring_prose(text)
    assert time.process_time() - start < 2
