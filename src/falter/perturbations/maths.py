"""Perturbations of arithmetic: numbers and expressions rewritten with the same value."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Literal, NamedTuple

from falter.perturbations.base import locked_spans, site_perturbation
from falter.perturbations.vocabulary import word_set
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Span
from falter.text.names import names
from falter.text.protection import protect
from falter.text.spans import Replacement, overlaps

_bundled_regex = partial(named_regex, "perturbations")

# Arithmetic in prose: numbers and expressions, and nothing that only looks like them.
#
# A run of numbers and operators is found first; then the text around it decides whether it is
# arithmetic. In doubt it is left out: ranges (10-15), dates, times, ratios, versions, model
# names, phone numbers, labels, list numbers, and whatever is joined to a word or variable.


Kind = Literal["number", "fraction", "mixed", "product", "sum"]


class Term(NamedTuple):
    """A number or an expression in a text.

    `start` to `end` is the arithmetic. `left` to `right` also includes the currency, percent or
    degree sign of a number.
    """

    left: int
    start: int
    end: int
    right: int
    kind: Kind


_CURRENCY = "$€£¥₹"
_MINUS = "-−"
# Begins with one class of characters, which the regex engine scans for quickly
_START = _bundled_regex("start")
_SIDE = _bundled_regex("side")
_OTHER_SIDE = _bundled_regex("other_side")
_OPERATOR = re.compile(r"(?<=[0-9)%])( *)(\*\*|[-+−*/×÷·^])( *)")

# Units and signs that may be joined to the end of a number
_JOINED = _bundled_regex("joined")
# Text after a number or an expression that shows that it goes on, or is something else
_CONTINUATION = _bundled_regex("goes_on")
_DIGITS = re.compile(r"[\d.,/ \u00a0\u202f]+")
_SCALE = re.compile(r" ?(?:hundred|thousand|[mbtr]+illion|dozen|percent|times|%)\b")
_RATIO_BEFORE, _RATIO_AFTER = re.compile(r"\d\s?:\s?\Z"), re.compile(r"\s?:\s?\d")
_CAPITAL = re.compile(r"[A-Z][a-z'’-]*[a-z]\Z")
_TEXT_END = re.compile(r"\s*[.?]?\s*\Z")
_LABEL_END = re.compile(r"[.):]\s|  ")

_OPEN_ENDS = frozenset("*/×÷·^=<>≤≥≠≈±√|&+−–-")
_LABELS = word_set("labels")
_WORDS_BEFORE_YEAR = word_set("when")
_ASKING_WORDS = word_set("asking")
_NO_FRACTIONS = frozenset(["24/7", "9/11", "7/11"])


@lru_cache(maxsize=64)
def terms(text: str) -> tuple[Term, ...]:
    """Return the numbers and expressions of a text, in order."""
    candidates: list[Term] = []
    start = _START.search(text)
    while start is not None:
        end = start.end()
        run = _SIDE.match(text, start.start())
        if run is not None:
            end = run.end()
            term = _term_of_run(text, start.start(), end)
            if term is not None:
                candidates.append(term)
        start = _START.search(text, end)
    closed = _protected_spans(text) if candidates else ()
    return tuple(_terms_outside(text, candidates, closed)) if closed else tuple(candidates)


def _term_of_run(text: str, start: int, end: int) -> Term | None:
    """Return the run as a term; None if it must be left alone."""
    run = text[start:end]
    if "(" in run or ")" in run:
        start, end = _balanced(text, start, end)
        run = text[start:end]
    word = _word_before(text, start)
    if not run or word is None or _labels_line(text, start, end) or _in_ratio(text, start, end):
        return None
    if _belongs_to_name(text, start, word):
        return None
    operators = () if run.isdigit() else _OPERATOR.findall(run)
    fraction = len(operators) == 1 and operators[0] == ("", "/", "") and run[0] != "("
    if not operators or fraction:
        return _number_term(text, start, end, word)
    return _expression_term(text, start, end, word, operators)


def _balanced(text: str, start: int, end: int) -> Span:
    """Return the run's span without brackets at its ends whose partner is outside.

    The span is empty if the remaining brackets do not match.
    """
    run = text[start:end]
    while run and run[-1] in ") " and run.count(")") > run.count("("):
        run = run[:-1]
    dropped = 0
    while run and run[0] in "( " and run.count("(") > run.count(")"):
        run, dropped = run[1:], dropped + 1
    depth = 0
    for mark in run:
        depth += (mark == "(") - (mark == ")")
        if depth < 0:
            return start, start
    start += dropped
    return (start, start + len(run)) if depth == 0 else (start, start)


def _word_before(text: str, start: int) -> str | None:
    """Return the word before the number, or an empty string if there is none.

    None if that word or a sign shows that it is no plain number.
    """
    before = text[max(0, start - 30) : start]
    words = before.split()
    if not words:
        return ""
    word = words[-1]
    if not before[-1:].isspace():
        return word  # a bracket or quotation mark is between them
    last = word[-1]
    if last in _OPEN_ENDS and not (last == "-" and word == "-" and len(words) > 1):
        return None
    if last == "-" and (len(words[-2]) == 1 or words[-2][-1].isdigit()):
        return None  # x - 5
    if word in ("x", "X") and len(words) > 1 and words[-2][-1].isdigit():
        return None  # 2 x 4
    if last.isdigit() or (last in ")%" and word[-2:-1].isdigit()):
        return None  # two numbers side by side
    if word != word.capitalize() and any(letter.isupper() for letter in word[1:]):
        return None  # GPT, iPhone
    if word.lower() in _LABELS:
        return None
    return word


def _labels_line(text: str, start: int, end: int) -> bool:
    """Return True if a line begins with this number as its label: `3. `, `3) `, `3  `."""
    if _LABEL_END.match(text, end) is None:
        return False
    before = text[max(0, start - 80) : start].rstrip(" \t(")
    return not before or before[-1] == "\n"


def _in_ratio(text: str, start: int, end: int) -> bool:
    """Return True if the number is one side of a ratio: `2 : 3`."""
    return (
        _RATIO_AFTER.match(text, end) is not None
        or _RATIO_BEFORE.search(text[max(0, start - 6) : start]) is not None
    )


def _belongs_to_name(text: str, start: int, word: str) -> bool:
    """Return True if a name comes right before the number: *Boeing 747*, *Apollo 11*."""
    if not text[start - 1 : start].isspace() or _CAPITAL.match(word) is None:
        return False
    at = start - 1 - len(word)
    spans = _names(text)
    nearest = bisect_right(spans, at, key=itemgetter(0)) - 1
    return nearest >= 0 and at < spans[nearest][1]


@lru_cache(maxsize=4)
def _names(text: str) -> tuple[Span, ...]:
    """Return the names of a text in order; cached, because every number of a text needs them."""
    return names(text)


def _number_term(text: str, start: int, end: int, word: str) -> Term | None:
    """Return a number with its sign, currency and percent sign as a term, or None."""
    outer_start, outer_end = start, end
    if text[start] in _CURRENCY:
        start += 1
    if text[end - 1] == "%":
        end -= 1
    digits = text[start:end].lstrip("-+−")
    if _DIGITS.fullmatch(digits) is None:
        return None  # (3) is a label; -$3 and 1/$3 are rare
    signed = text[start] in "-+−"
    if _is_no_quantity(digits, word) or (signed and len(word) == 1):
        return None
    joined = _JOINED.match(text, end) if outer_end == end else None
    if joined is not None:
        mark = joined.group()
        if mark in _CURRENCY and outer_start != start:
            return None  # $5$ is LaTeX
        outer_end = joined.end() if mark in _CURRENCY or mark[0] in "°º" else end
    behind = outer_end if joined is None else joined.end()
    if _CONTINUATION.match(text, behind) and _OTHER_SIDE.match(text, behind) is None:
        return None
    mixed = " " in digits and "/" in digits
    kind: Kind = "mixed" if mixed else "fraction" if "/" in digits else "number"
    return Term(outer_start, start, end, outer_end, kind)


def _is_no_quantity(digits: str, word: str) -> bool:
    """Return True if the digits look like an identifier, a phone number, a year or *24/7*.

    Identifiers have a leading zero, phone numbers ten digits or more. Years have four digits after
    a word such as *in*.
    """
    whole = digits.partition(".")[0]
    if (len(whole) > 1 and whole[0] == "0") or (len(whole) >= 10 and whole.isdigit()):
        return True
    year = len(digits) == 4 and digits.isdigit() and "1000" <= digits <= "2100"
    return digits in _NO_FRACTIONS or (year and word.lower() in _WORDS_BEFORE_YEAR)


def _expression_term(
    text: str, start: int, end: int, word: str, operators: Sequence[tuple[str, str, str]]
) -> Term | None:
    """Return numbers joined by operators, or the left side of an equation, as a term.

    None if they look like a date or a range, or if the expression goes on.
    """
    run = text[start:end]
    equation = _OTHER_SIDE.match(text, end) is not None
    signs = {sign for _, sign, _ in operators}
    if any(len(a) != len(b) for a, sign, b in operators if sign in "-+−"):
        return None  # 5 -3
    if "/" in signs and len(signs) == 1 and " " not in run:
        return None  # a date
    if signs <= set(_MINUS) and not equation:
        alone = not word and _TEXT_END.match(text, end) is not None
        if " " not in run or not (alone or word.lower() in _ASKING_WORDS or word[-1:] == ":"):
            return None  # a range
    if not equation and (_CONTINUATION.match(text, end) or _SCALE.match(text, end)):
        return None
    return Term(start, start, end, end, "sum" if _has_plus_or_minus(run) else "product")


def _has_plus_or_minus(run: str) -> bool:
    """Return True if there is a plus or minus outside all brackets."""
    depth = 0
    for mark in run:
        depth += (mark == "(") - (mark == ")")
        if depth == 0 and mark in "+-−":
            return True
    return False


# Text that the protector recognises better: code, LaTeX, addresses, identifiers, dates, data

# "x = 1", "f(3)", "http://a", "www.a", "1;2"; not "3 + 4", "a:b", "(3)", "3. Next".
_STRUCTURE = re.compile(r"[`\\_@{}<>|#&=\[;\n(:.](?:(?<![(:.])|(?<=\w\()|(?<=:)(?=//)|(?<=www\.))")
_CODE_FIRST = re.compile(r"\s*(?:return|import|from|print|for|if|while)\b")
# "$x^2$", "$5$"; not "costs $5 and $6".
_LATEX = re.compile(r"(?<![\\$\w])\$(?=[^\s$])(?:\\.|[^$\\\n])*+(?<=\S)\$(?!\d)")
_TICKS = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# Text that may follow a term in the same span. " = ?", " km", "°C?", " apples each"; not " = 12".
_OVERHANG = re.compile(r" ?= ?\??|[ \u00a0-]?[A-Za-z°º%/²³·$€£]{0,10}(?: [A-Za-z]{1,8})?\??")


def _protected_spans(text: str) -> Sequence[Span]:
    """Return the protected spans of a text.

    To save time, a text with nothing but words and numbers is not searched.
    """
    spans: list[Span] = []
    if text.count("$") > 1:
        spans = [match.span() for match in _LATEX.finditer(text)]
    if _STRUCTURE.search(text) is not None or _CODE_FIRST.match(text) is not None:
        if "`" in text:
            spans += [match.span() for match in _TICKS.finditer(text)]
        spans += protect(text)
    return spans


def _terms_outside(text: str, candidates: Sequence[Term], closed: Sequence[Span]) -> Iterator[Term]:
    """Yield the terms unless a protected span covers a part of a term and reaches beyond it.

    The terms come in order, so each is compared only with spans that have begun and not ended.
    """
    waiting = sorted(closed, reverse=True)
    begun: list[Span] = []
    for term in candidates:
        while waiting and waiting[-1][0] < term.right:
            begun.append(waiting.pop())
        begun = [span for span in begun if span[1] > term.left]
        if not any(
            start < term.left or (end > term.right and not _hangs_over(text, term.right, end))
            for start, end in begun
        ):
            yield term


def _hangs_over(text: str, at: int, end: int) -> bool:
    """Return True if a span continues only with a unit or the other side of an equation."""
    side = _OTHER_SIDE.match(text, at)
    return (side is not None and side.end() >= end) or bool(_OVERHANG.fullmatch(text, at, end))


def _terms(text: str, locked: Sequence[Span]) -> Sequence[Term]:
    return [term for term in terms(text) if not overlaps(locked, term.left, term.right)]


def _symmetric_addition(text: str, site: Term, rng: Rng) -> Replacement | None:
    """Return the replacement that adds zero to the term: `((1-1)+5)`.

    None for a number that is joined to its unit (*30mph*). A single number gets brackets, so that
    nothing around it binds tighter. In an equation the left side changes.
    """
    if _is_joined(text, site):
        return None
    body = text[site.start : site.end]
    zero = "(1-1)" if body[0] in "+-−" else "(1-1)+"
    if site.kind in ("sum", "product"):
        return site.start, site.end, zero + body
    return site.start, site.end, f"({zero}{body})"


def _symmetric_multiplication(text: str, site: Term, rng: Rng) -> Replacement | None:
    """Return the replacement that multiplies the term by one: `(1*5)`.

    None for a number that is joined to its unit. Sums, signed and mixed numbers get brackets first.
    In an equation the left side changes.
    """
    if _is_joined(text, site):
        return None
    body = text[site.start : site.end]
    times = "×" if "×" in body else "*"
    if site.kind == "product":
        return site.start, site.end, f"1{times}{body}"
    if site.kind == "sum":
        return site.start, site.end, f"1{times}({body})"
    if site.kind == "mixed" or body[0] in "+-−":
        body = f"({body})"
    return site.start, site.end, f"(1{times}{body})"


def _is_joined(text: str, site: Term) -> bool:
    """Return True if letters or a degree sign are joined to the number."""
    after = text[site.end : site.end + 1]
    return after.isalpha() or after in ("°", "º")


_DOLLAR_APART = re.compile(r"\$\s\Z")
_POWER = re.compile(r"\s*(?:\^|\*\*)\s*([-−+]?\d+(?:\.\d+)?)")
_POWER_OF_BRACKET = re.compile(r"(?:\^|\*\*)\s*[-+−]?\(")
_SYMBOLS = {"*": r"\times", "×": r"\times", "÷": r"\div", "·": r"\cdot"}
_SYMBOL = re.compile(r"\s*([*×÷·])\s*")


def _latexify(text: str, site: Term, rng: Rng) -> Replacement | None:
    r"""Return the replacement of the term by a LaTeX formula between dollar signs, or None.

    Fractions become `\frac`, multiplication and division signs become commands. A dollar or percent
    sign is included and escaped.
    """
    body = text[site.start : site.end]
    if _POWER_OF_BRACKET.search(body) or _DOLLAR_APART.search(
        text[max(0, site.left - 2) : site.left]
    ):
        return None  # "$ 350": a dollar sign next to a formula would open another
    before, after = text[site.left : site.start], text[site.end : site.right]
    inner = _latex_formula(body, site)
    if before == "$" or after in ("$", "%"):
        escaped = before.replace("$", r"\$"), after.replace("$", r"\$").replace("%", r"\%")
        before, after, inner = "", "", escaped[0] + inner + escaped[1]
    return site.left, site.right, f"{before}${inner}${after}"


def _latex_formula(body: str, site: Term) -> str:
    body = re.sub(r"(?<=\d),(?=\d)", "{,}", body.replace("−", "-"))
    if site.kind in ("mixed", "fraction"):
        whole, _, part = body.rpartition(" ")
        above, _, below = part.partition("/")
        sign = above[:1] if above[:1] in "+-" else ""
        return rf"{whole}{sign}\frac{{{above.removeprefix(sign)}}}{{{below}}}"
    body = re.sub(r"(?<=\d)[ \u00a0\u202f](?=\d)", r"\\,", body)
    body = _POWER.sub(lambda match: f"^{{{match[1]}}}", body)
    body = body.replace("$", r"\$").replace("%", r"\%")
    return _SYMBOL.sub(lambda match: f" {_SYMBOLS[match[1]]} ", body)


for _name, _edit in {
    "symmetric_addition": _symmetric_addition,
    "symmetric_multiplication": _symmetric_multiplication,
    "latexify": _latexify,
}.items():
    # Arithmetic is protected from all other perturbations. Here only text that the section itself
    # protects, the user's patterns and earlier edits block it.
    site_perturbation(
        _name,
        sites=_terms,
        closed=lambda prompt, section, patterns: locked_spans(section, patterns),
    )(_edit)
