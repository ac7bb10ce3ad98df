"""Comparison of short answers, normalised as in question-answering benchmarks; target aliases."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from falter.records.interfaces import Case

_MAX_CACHED_CHARACTERS = 200
"""Maximum characters of a cached text; `same_answer` adds twice the target's length."""
_SEARCHED_CHARACTERS = 10_000  # characters searched at each end of a long text
# Articles: English, German and Spanish as in MLQA's evaluation script; also French and Dutch.
_ARTICLE = re.compile(r"\A(?:an?|the|der|die|das|le|la|les|el|los|las|de|het)\s+(?=\S)")
# "1,500.0", "-3", ".5"; not the 2 of "v2".
_NUMBER = re.compile(r"(?<![\w.])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|(?<![\w.])[-−+]?\.\d+")
_UNIT_START = re.compile(r"(?<=\d)(?=[^\W\d_])")  # "6kg" is "6 kg"
_SIGNS = "%$€£¥°"
_SIGN = re.compile(f"[{_SIGNS}]")
_SEPARATORS = re.compile(r"[\s,;:!?()\[\]{}/_\"“”„‟«»‹›「」『』、。，：；！？（）*`‐‑–—-]+")
# Points and apostrophes that are removed: "U.S." is "US", "it's" is "its"; "3.5" stays.
_DROPPED_MARKS = re.compile(r"(?<!\d)\.|\.(?!\d)|['‘’´‛]")
_ACCENTS = re.compile("[\u0300-\u036f]")


def accepted(case: Case) -> tuple[str, ...]:
    """Return the texts that count as correct: the entries of a JSON list, or else the target.

    For an item with choices, return the correct option's text.
    """
    prompt = case.variant.prompt
    if isinstance(prompt.target, int) and prompt.choices:
        return (prompt.choices[prompt.target],)
    return aliases(str(prompt.target))


@lru_cache(maxsize=4096)
def aliases(target: str) -> tuple[str, ...]:
    """Return the texts and numbers of a target that is a JSON list, with lists inside it flattened.

    Any other target is returned unchanged, as the only entry.

    >>> aliases('["Holland", "the Netherlands"]')
    ('Holland', 'the Netherlands')
    """
    if not target.lstrip().startswith("["):
        return (target,)
    try:
        values = json.loads(target, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return (target,)
    values = [each for value in values for each in (value if isinstance(value, list) else [value])]
    texts = tuple(value for value in values if isinstance(value, str) and value.strip())
    return texts if texts and len(texts) == len(values) else (target,)


def same_answer(found: str, expected: str) -> bool:
    """Return True if two short answers are equal after normalisation, as in question answering.

    Case, accents, punctuation, markdown and a leading article do not count. Numbers are compared as
    numbers. A sign such as % or $ that only one of the answers has does not count.

    >>> same_answer("The  Café!", "cafe"), same_answer("1,500.0", "1500"), same_answer("C", "C++")
    (True, True, False)
    """
    if found.strip() == expected.strip():
        return True
    if len(found) > _MAX_CACHED_CHARACTERS + 2 * len(expected):
        return False
    left, right = folded(found), folded(expected)
    if left == right or not left or not right:
        return left == right
    bare, other = left.strip(f"{_SIGNS} "), right.strip(f"{_SIGNS} ")
    return bare == other != "" and (bare == left or other == right)


def named(text: str, answers: Sequence[str]) -> list[bool]:
    """Return for each answer True if it occurs in a text as whole words, after normalisation.

    In a long text, only the first and last 10,000 characters are searched.
    """
    if len(text) > 2 * _SEARCHED_CHARACTERS:
        text = f"{text[:_SEARCHED_CHARACTERS]}\n{text[-_SEARCHED_CHARACTERS:]}"
    words = f" {folded(text)} "
    return [f" {folded(answer)} " in words for answer in answers]


def folded(text: str) -> str:
    """Return the normalised words of a text, with numbers in one spelling."""
    return _folded(text) if len(text) <= _MAX_CACHED_CHARACTERS else _folded.__wrapped__(text)


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).casefold().strip()
    text = unicodedata.normalize("NFKC", text)
    numbers = _SIGN.sub(r" \g<0> ", _NUMBER.sub(_canonical_number, text)).replace("&", " and ")
    numbers = _UNIT_START.sub(" ", numbers)
    bare = _ARTICLE.sub("", _DROPPED_MARKS.sub("", numbers).strip('"“”„«»*`_ '), count=1)
    return " ".join(filter(None, _SEPARATORS.split(bare))) or " ".join(text.split())


def _canonical_number(number: re.Match[str]) -> str:
    """Return a number without separators and idle zeros, with U+2212 as its minus sign."""
    whole, _, part = number[0].lstrip("-−+").replace(",", "").partition(".")
    digits = f"{whole.lstrip('0') or '0'}.{part.rstrip('0')}".rstrip(".")
    return f"−{digits}" if number[0][0] in "-−" and digits != "0" else digits
