"""Words and sentences."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from falter.core.late_regex import late_regex
from falter.core.records import Span
from falter.text._spans import uncovered

__all__ = ["natural_words", "sentences"]

# A run of letters that touches no digit, no underscore, no combining accent, and no apostrophe
# with a letter behind it.
_WORD = late_regex(
    r"(?<![\w\u0300-\u036f])(?<!\w['’])[^\W\d_]++(?![\w\u0300-\u036f])(?!['’]\w)",
)

# The same in one go, with the case that a natural word has, for text that is plain ASCII.
_ASCII_WORD = late_regex(r"(?<!\w)(?<!\w')(?:[a-z]{2,}+|[A-Z][a-z]++|[aAI])(?!\w)(?!'\w)", re.ASCII)


# Symbols only: 'in', 'bar' or 'mole' are words first. All single letters but these are taken as
# variables, labels or units.
_SINGLE = frozenset("aAI")
_UNITS = frozenset(
    """
    km cm mm nm dm ft yd mi kg mg lb lbs oz ml cl dl hl gal pt qt hr hrs min mins sec secs
    ms ns mph kph kmh rpm bpm psi kcal cal mol rad deg kb mb gb tb px dpi kn atm hz khz mhz
    ghz kw mw gw kwh pa kpa mpa
    """.split()  # noqa: SIM905
)


def natural_words(
    text: str, protected: Sequence[Span], unnatural: Container[str] = frozenset()
) -> list[Span]:
    """The spans of ordinary words, in order.

    A natural word is alphabetic, lower-case or Title-case, outside every protected span, not
    joined to a digit, underscore or apostrophe, no unit symbol, no single letter but *a* and *I*,
    and not in `unnatural` (known misspellings, in lower case). Scripts without case have none:
    their words are not found by looking at letters.
    """
    if text.isascii():
        ordinary = [
            match.span()
            for match in _ASCII_WORD.finditer(text)
            if (folded := match[0].lower()) not in _UNITS and folded not in unnatural
        ]
        return uncovered(ordinary, protected)
    words: list[Span] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if word.islower():
            folded = word
        elif word.istitle():
            folded = word.lower()
        else:
            continue
        if len(word) == 1 and word not in _SINGLE:
            continue
        if folded not in _UNITS and folded not in unnatural:
            words.append(match.span())
    return uncovered(words, protected)


_STOP = late_regex(
    r"""(?P<point>[.!?…]{1,10}(?:[ \u00a0\u202f]?»|["'”“’)\]]){0,4})(?=\s|$)"""
    r"""|(?P<wide>[。！？]+[」』”]?)|\n[ \t]*\n""",
)
_ABBREVIATION = late_regex(
    r"""(?:(?<![^\W_])(?:[^\W\d_]|[A-Za-z]\.[A-Za-z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Gen|Col|Lt|Rev|Hon|Gov
    |Sen|Rep|No|Nos|Fig|Figs|Eq|Sec|Ch|Vol|Ed|Eds|pp|vs|cf|al|ca|approx|Inc|Ltd|Co|Corp|Mt|Ave|Blvd
    |Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Oct|Nov|Dec|etc|viz
    |Abb|Bd|Hr|Kap|Nr|Str|Tel|[Vv]gl|bzw|erm|evtl|ggf|inkl|sog
    |Mme|Mlle|chap|janv|févr|juil))\Z""",
    re.VERBOSE,
)
_ORDINAL = late_regex(r"(?<!\w)\d{1,2}\Z")
_GERMAN_DATE = late_regex(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    r"|Jahrhundert|Jh)\b"
)
_OPEN, _CLOSED = "「『", "」』"
_QUOTED_ON = late_regex(r"[\u3041-\u3096、]")


def sentences(text: str) -> list[Span]:
    """The spans of sentences, without the white space around them.

    A full stop ends one when white space or the end follows, unless an abbreviation or an initial
    comes before it or a small letter after it. A blank line ends one too. A Japanese quotation is
    not cut, nor parted from the words that say whose it is.
    """
    out: list[Span] = []
    start = 0
    for match in _STOP.finditer(text):
        if match.group("point") and _goes_on(text, match):
            continue
        if match.group("wide") and _is_quoted(text, start, match.end()):
            continue
        _add(out, text, start, match.end())
        start = match.end()
    _add(out, text, start, len(text))
    return out


def _goes_on(text: str, match: re.Match[str]) -> bool:
    rest = text[match.end() : match.end() + 40].lstrip()
    if not rest:
        return False
    if rest[0].islower():
        return True
    before = text[max(0, match.start() - 8) : match.start()]
    if match.group() != ".":
        return False
    if _ORDINAL.search(before):
        return _GERMAN_DATE.match(rest) is not None
    return _ABBREVIATION.search(before) is not None


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a Japanese stop is inside a quotation, or ends one that is part of a sentence."""
    opened = sum(text.count(mark, start, end) for mark in _OPEN)
    closed = sum(text.count(mark, start, end) for mark in _CLOSED)
    if opened > closed:
        return any(text.find(mark, end, end + 200) >= 0 for mark in _CLOSED)
    return text[end - 1] in _CLOSED and _QUOTED_ON.match(text, end) is not None


def _add(out: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    leading = len(piece) - len(piece.lstrip())
    if leading < len(piece):
        out.append((start + leading, start + len(piece.rstrip())))
