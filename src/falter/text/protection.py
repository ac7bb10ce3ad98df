"""The protector: what no perturbation may touch.

One cheap search decides whether a text holds anything suspicious at all; for plain prose it is the
only one. Otherwise each family of patterns runs if one of its trigger characters occurs. Every
pattern has bounded quantifiers or stops at its own delimiter, so the time stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from falter.records.errors import InvalidValue
from falter.records.lazy_regex import late_regex
from falter.records.types import Section, Span
from falter.text.code import CODE_LINE_START, braced, code_lines, fences, python_code
from falter.text.spans import merged

# Regular expressions for numbers, units, dates and mathematics

DIGIT = (
    r"\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u00bc-\u00be\u2153-\u215e"
    r"\u2160-\u2188\u2460-\u249b"  # Roman, encircled
)

_COINS = r"$\u00a2-\u00a5\u20a0-\u20bf"
_CURRENCY = rf"[{_COINS}]"
_FUNCTION = r"(?:sin|cos|tan|log|ln|exp|sqrt|lim|max|min|mod|gcd|lcm)"
_OPENING = rf"(?:[(\[{{∑∏∫][ ]?|[-+−–±√∛∜¬|]|{_CURRENCY}){{0,8}}"
_CLOSING = r"(?:[ ]?[)\]}]|[²³¹⁰⁴-⁹|]|%|!(?=[ ]?[-+*/=×÷)])){0,8}"
_OPERATOR = r"""(?!</?[A-Za-z][^<>\n]{0,60}>)  # no tag
    (?:[-+*/×÷·∙⋅=<>≤≥≠≈≡~^±∓−–—→⇒∈∉∪∩⊂⊆∧∨⊕∘&|]{1,3}|mod\b|over\b(?=[ ]\d)|x(?=[ ]?\d))"""
_OPERAND = rf"""(?:
      (?:\d+(?:[.,]\d+){{0,20}}+|\.\d+)(?:[A-Za-zα-ω]{{1,2}}(?![A-Za-z]))?
    | {_FUNCTION}\b
    | [A-Za-zα-ωΑ-Ωℂℕℚℝℤ∅∞](?:_\w{{1,3}})?(?![\w'’])
    | (?!(?:by|my|ex|ox|ax|yo|ya|ye|xi|zu)\b)(?:[a-z][xyz]|[xyz][a-z])(?![\w'’])
    | \?
    )"""
MATH = late_regex(
    rf"""(?<![\w.])(?<!\d,){_OPENING}{_OPERAND}{_CLOSING}
    (?:(?:[ ]{{0,2}}{_OPERATOR}[ ]{{0,2}}|(?=[(\[])){_OPENING}{_OPERAND}{_CLOSING}){{1,200}}+""",
    re.VERBOSE,
)
MATH_CUE = late_regex(
    rf"[(\[{{∑∏∫\-+−–±√∛∜¬|{_COINS}\d.?A-Za-zα-ωΑ-Ωℂℕℚℝℤ∅∞](?<![\w.].)(?<!\d,.)"
    r"(?:(?<![A-Za-zα-ωΑ-Ω])|(?![\w'’])|(?=_\w)|(?=[xyz](?!\w))|(?<=[xyz])(?=[a-z](?!\w))"
    r"|(?<=[sctlemg])(?=in|os|an|og|n\b|xp|qrt|im|ax|od|cd|cm))"
)

_UNIT = r"""(?:[kcmdnµμ]?m|ft|yd|mi|[kmµμ]?g|lbs?|oz|t|[mcd]?[lL]|gal|hrs?|h|mins?|secs?|[mnµμ]?s
    |mph|kph|rpm|bpm|psi|[kMG]?Hz|[kMGT]?Wh?|[kM]?J|k?cal|[mk]?V|m?A|k?[ΩN]|[khM]?Pa|atm|m?mol|K|C|F
    |M|mM|[kMG]?eV|dB|[kKMGT]?B|bits?|px|ha)"""
_UNIT_WORD = r"""(?:(?:kilo|centi|milli|micro|nano|mega)?(?:met(?:re|er)|gram(?:me)?|lit(?:re|er)
    |watt|joule|byte|pascal|volt)s?|inch(?:es)?|foot|feet|yards?|miles?|acres?|ounces?|pounds?|tons?
    |tonnes?|gallons?|pints?|quarts?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|degrees?
    |percent|dollars?|euros?|cents?|calories)\b"""
NUMBER = late_regex(
    rf"""(?<!\w)(?:(?:[-+−±]|§[ ]?|(?:US|CA|AU|NZ|HK)?{_CURRENCY}[ ]?){{0,2}})
    (?:\.?[{DIGIT}]+(?:[.,:/\-–\u00a0\u202f\u2009'’]\d+)*)(?:[eE][-+−]?\d+)?(?:st|nd|rd|th|s)?
    (?![A-Za-z])
    (?:[ \u00a0]?[%‰] | [ \u00a0]?[°º][ ]?[CFK]?\b
      | [ \u00a0-]?{_UNIT}(?:[/·*]{_UNIT}){{0,2}}(?:\^?[-−]?[{DIGIT}])?(?!\w)
      | [ \u00a0]?(?:{_CURRENCY}|USD|EUR|GBP|JPY|CHF)
      | [ ](?:hundred|thousand|million|billion|trillion)\b(?:[ ]{_UNIT_WORD})? | [ -]{_UNIT_WORD}
      | !(?=[ ](?:[a-z]|[-+*/=×÷]))
      | [ ]?[ap]\.?m\b\.? )?
  | (?<![\w.])(?:{_CURRENCY}|§[ ]?)?\d+(?:[.,]\d+)*[A-Za-zµμ]{{1,3}}(?:/[a-z]{{1,3}})?\b""",
    re.VERBOSE,
)
# Where a number may begin. Scanning for one character is fast and leaves few places to try.
NUMBER_CUE = late_regex(
    rf"[{DIGIT}\-+−±§.UCANH{_COINS}](?<!\w.)"
    rf"(?:(?<=[{DIGIT}§{_COINS}])|(?=[{DIGIT}.§\-+−±{_COINS}])|(?<=[UCANH])(?=[SAUZK]{_CURRENCY}))"
)
_MONTH = r"""(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?
    |Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"""
DATE = late_regex(
    rf"""\b(?:\d{{1,2}}(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH}(?:,?[ ]\d{{4}}\b)?
    | {_MONTH}[ ]\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?[ ]\d{{4}}\b)?)""",
    re.VERBOSE,
)
DATE_CUE = late_regex(r"[\dJFMASOND](?<!\w.)")

# Numbers in a row, such as coordinates: without the comma they would be other numbers.
ROW = late_regex(
    r"(?<![\w.,])\(?[-+−]?\d+(?:\.\d+)?(?:,[ ]?[-+−]?\d+(?:\.\d+)?(?![:\w/])){1,200}+\)?"
)
ROW_CUE = late_regex(r"[\d(\-+−](?<![\w.,].)(?=[\d.,\-+−])")


# The regular expressions of the protector

_UPPER = "A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ"
_LOWER = "a-zß-öø-ÿα-ωа-яё"
# A letter, digit or underscore, not Chinese, Japanese or Korean: no space parts words there.
_W = r"[^\W\u2e80-\u9fff\uac00-\ud7af]"
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
_SYMBOLS = (
    r"\u00a2-\u00a5\u00b0\u00b1\u00b5\u00b7\u00d7\u00f7\u2032\u2033\u20a0-\u20bf\u2190-\u22ff"
)
_KEY = r"[ ]{0,12}(?:-[ ])?[a-z_][\w.\-]{0,40}:(?!\S)"  # of YAML

# Begins with one character class, which the engine scans for quickly; the look-arounds behind it
# say whether that character is suspicious where it stands.
SUSPICIOUS = late_regex(
    rf"[\n(.\-{_UPPER}_`$\\{{}}<>=+*/^%@#\[\]|~&{DIGIT}{_SYMBOLS}]"
    rf"(?:(?<![\n(.\-{_UPPER}])|(?<=[\s(]-)(?=-?[A-Za-z])|(?<=[{_LOWER}][{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}]|\.\w)"
    rf"|(?<=\.)(?=\w)|(?<=\w\()|(?<=\n)(?:[ \t]*{CODE_LINE_START}|{_KEY}))"
)
CODE_FIRST = late_regex(rf"[ \t]*{CODE_LINE_START}|---\n")

_AUTHOR = r"[A-Z][\w'’.\-]{0,30}"
_CITATION = rf"""\((?:{_AUTHOR}(?:,?[ ](?:&|and|et[ ]al\.|{_AUTHOR})){{0,6}}+,?[ ]\d{{4}}[a-z]?
    (?:;[ ])?){{1,9}}\)"""
_LINE_OF_YAML = rf"{_KEY}(?:[ ]\S{{1,40}}){{0,3}}(?=\n|\Z)"
_ITEM_OF_YAML = r"[ ]{0,12}-[ ][^\n]{1,100}(?=\n|\Z)"
_YAML = (
    rf"^{_LINE_OF_YAML}(?:\n{_ITEM_OF_YAML}){{0,50}}+\n{_LINE_OF_YAML}"
    rf"(?:\n(?:{_LINE_OF_YAML}|{_ITEM_OF_YAML})){{0,200}}+"
)


class Family(NamedTuple):
    """A pattern, what the text must contain for it to run, and the cue at which a match begins.

    Looking for a cue, a single character class, is several times faster than trying the pattern
    at every character.
    """

    needs: str | tuple[str, ...] | re.Pattern[str]
    pattern: re.Pattern[str]
    cue: re.Pattern[str] | None = None


_INITIAL = late_regex(r"\.(?=[^\W\d_]\.)")
_CAPITAL_INSIDE = late_regex(rf"[{_UPPER}](?<=[{_UPPER}{_LOWER}].)")
_DOTFILE = late_regex(r"[.*](?<![^\s(\"'].)(?=[.a-z])")

_V = re.VERBOSE
Needs = str | tuple[str, ...] | re.Pattern[str]


def _family(
    needs: Needs, pattern: str, flags: int = 0, cue: re.Pattern[str] | None = None
) -> Family:
    return Family(needs, late_regex(pattern, flags), cue)


FAMILIES: tuple[Family, ...] = (
    # inline code
    _family("`", r"(?<!`)(`{1,2})(?!`)(?:(?!\1)[^\n]){1,500}\1(?!`)|```[^`\n]{1,500}```"),
    # LaTeX: $…$ by Pandoc's rule, so that prices are not taken for it; \(…\), \[…\]; commands
    _family(
        "$",
        r"\$\$[^$]{1,4000}\$\$|(?<![\\$A-Za-z0-9_])\$(?=[^\s$])(?:\\.|[^$\\\n])*+(?<=\S)\$(?!\d)"
        r"|(?<![\w$])\$[A-Za-z_]\w*",
    ),
    _family(
        "\\",
        r"""\\\((?:[^\\]|\\(?![()])){0,2000}+\\\) | \\\[(?:[^\\]|\\(?![\[\]])){0,2000}+\\\]
            | \\[A-Za-z]{1,40}\*?(?:\[[^\]\n]{0,200}\])?
              (?:\{[^{}\n]{0,300}+(?:\{[^{}\n]{0,200}+\}[^{}\n]{0,200}+){0,10}+\}){0,4}
            | \\\\[\w.$-]{1,60}\\[^\s:*?"<>|]{0,200}
            | \\[^\sA-Za-z] | \b[A-Za-z]:\\[^\s:*?"<>|]{0,200}""",
        _V,
    ),
    # numbers, and whatever holds a digit among its letters
    Family("", NUMBER, NUMBER_CUE),
    Family(",", ROW, ROW_CUE),
    Family("0123456789", DATE, DATE_CUE),
    _family("0123456789", _CITATION, _V, cue=late_regex(r"\((?=[A-Z])")),
    _family(
        ("arXiv", "doi", "DOI", "ISBN", "ISSN", "PMID", "RFC"),
        r"\b(?:arXiv|doi|DOI|ISBN|ISSN|PMID|RFC)(?::[ ]?|[ ])[\w./\-]{0,40}\d[\w./\-]*\b",
    ),
    _family(
        "0123456789",
        r"(?<![\w.-])(?=[A-Za-z_.\-]{0,40}+(?:/[A-Za-z_.\-]{0,40}+)?\d)\w+(?:[-./:+]\w+){0,12}+",
        re.ASCII,
    ),
    _family(
        "^_", r"(?<![\w)\]}])[\w)\]}]{1,40}+(?:(?:\^|(?<=_))\{[^{}\n]{1,60}\}|\^[-+−]?\w{1,40})"
    ),
    # identifiers: snake_case, dotted.name, call(), R&D, camelCase, ACRONYM
    _family("_", rf"(?<!{_W}){_W}*_{_W}*"),
    _family(_INITIAL, r"(?<![\w.])(?:[^\W\d_]\.){2,12}(?!\w)"),
    _family(".", rf"(?<!{_W})(?<!\.)(?!\d){_W}++(?:\.(?!\d){_W}++)+(?:\(\))?"),
    _family(".", r"\*?\.[a-z]\w{0,9}\b|\.[a-z][\w\-]{2,30}\b", cue=_DOTFILE),
    _family("(", r"(?<!\w)[A-Za-z_][\w.]{0,60}+\([^()\s]{0,40}(?:,[ ]?[^()\s]{1,40}){0,8}\)"),
    _family(
        "[", r"(?<!\w)[A-Za-z_]\w{0,60}+(?:\[(?!\^|\d+\])[^\[\]\s]{1,40}\]){1,4}(?:\.\w{1,40})?"
    ),
    _family("&", r"\b[A-Z]{1,4}(?:&[A-Z]{1,4}){1,3}\b"),
    _family(
        _CAPITAL_INSIDE,
        rf"(?<!\w)(?:[{_UPPER}]{{2}}|[{_UPPER}]?[{_LOWER}]++[{_UPPER}])\w*(?:-[{_UPPER}\d]+(?!\w))?",
    ),
    # keys, C++, command-line options, entities, short functions
    _family("+#", r"(?<!\w)(?:[A-Z][a-z]{1,7}\+\w{1,8}(?!\w)|[A-Z](?:\+\+|#)(?!\w))"),
    _family(
        "-",
        r"--[a-z][\w\-]{1,40}(?:=\S{1,80})?|-[A-Za-z](?=[\s,.;:)\]]|\Z)",
        cue=late_regex(r"-(?<![^\s(\[].)(?=[-A-Za-z])"),
    ),
    _family("&", r"&(?:#?\w{2,10});"),
    _family(("lambda",), r"\blambda(?:[ ]\w+(?:,[ ]?\w+){0,8})?:"),
    # addresses and paths
    _family(
        ("://", "mailto:"),
        rf"""(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.\-]{{1,20}}://|mailto:)
            (?:[^\s<>"'`\])}}({_CJK}]|\([^\s()]{{1,80}}\))*(?:(?<=\))|[^\s<>"'`\])}}.,;:!?({_CJK}])""",
        _V,
    ),
    _family(
        ("www.",), rf"""(?<![A-Za-z0-9])www\.[^\s<>"'`\])}}{_CJK}]*[^\s<>"'`\])}}.,;:!?{_CJK}]"""
    ),
    _family("@", r"(?<![\w.+\-])[\w.+\-]{0,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,8}"),
    _family("#", r"#\w+"),
    _family(
        "/",
        r"""(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.\-+@%]+/)*+(?:[\w.\-+@%]*[\w\-+@%])?(?<!\s/)
            | (?<![\w/.\-])[\w.\-]+(?:/[\w.\-]+)*\.[A-Za-z]\w{0,5}\b(?:/[\w.\-]*\w)*""",
        _V,
    ),
    # placeholders, citations, tags
    _family("{", r"\{{3}[^{}\n]{1,100}\}{3}|\$?\{\{[^{}\n]{1,100}\}\}|\$?\{[^{}\n]{0,100}\}"),
    _family("<", r"</?[A-Za-z!?][^<>\n]{0,300}>|<\|[^|<>\n]{1,60}\|>|<<[^<>\n]{1,100}>>"),
    _family(
        "[", r"\[\^?\d+(?:[,;–\-][ ]?\d+)*\]|\[[A-Z_]{2,30}\]|\[[A-Z][A-Za-z+]{1,30}\d{2,4}[a-z]?\]"
    ),
    _family("%", r"%\(\w{1,40}\)[sdfr]|%[-+0]?\d{0,3}(?:\.\d{1,3})?[sdfrxegi]\b"),
    # YAML
    _family((":\n", ": "), _YAML, re.MULTILINE),
    _family(("---\n",), r"\A---\n(?:[^\n]{0,200}\n){1,60}?---(?=\n|\Z)"),
)


def protect(text: str, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """The sorted, merged spans of `text` that no perturbation may touch.

    Code (fenced, inline, and lines that look like it), LaTeX, equations and expressions, numbers
    with sign and unit, dates, times, URLs, e-mail addresses, paths, identifiers, acronyms,
    placeholders, citations, tags and JSON, and what the user's regular expressions match.
    """
    if len(text) > _LONGEST_KEPT:
        return _spans(text, tuple(patterns))
    return _kept(text, tuple(patterns))


_LONGEST_KEPT = 20_000


@lru_cache(maxsize=256)
def _kept(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    """Every recipe asks about the texts of an item anew; long ones are not worth their memory."""
    return _spans(text, patterns)


def _spans(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    spans: list[Span] = []
    if SUSPICIOUS.search(text) is not None or CODE_FIRST.match(text) is not None:
        spans += fences(text)
        spans += _code(text)
        spans += braced(text)
        spans += _environments(text)
        spans += _json(text)
        spans += _expressions(text)
        for family in FAMILIES:
            spans += _spans_of(family, text)
    for source in patterns:
        matches = (match.span() for match in _compiled(source).finditer(text))
        spans += [(start, end) for start, end in matches if start < end]
    return merged(spans) if spans else ()


def blocked(section: Section, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """The spans where no step may write: protected ones, the section's own, and earlier edits.

    Of a tool, all but the words of its descriptions.
    """
    tool = section.kind == "tool"
    spans = (_but_descriptions if tool else protect)(section.text, tuple(patterns))
    if not section.protected and not section.edits:
        return spans
    earlier = ((edit.new_start, edit.new_end) for edit in section.edits)
    return merged((*spans, *section.protected, *earlier))


_DESCRIPTION = late_regex(r'(?<="description": ")(?:[^"\\]|\\.)*(?=")')
_ESCAPE = late_regex(r"\\.")


def _but_descriptions(text: str, patterns: tuple[str, ...]) -> tuple[Span, ...]:
    spans, end = list[Span](), 0
    for match in _DESCRIPTION.finditer(text):
        at, words = match.start(), match[0]
        inner = (*protect(words, patterns), *(m.span() for m in _ESCAPE.finditer(words)))
        spans += [(end, at), *((at + a, at + b) for a, b in inner)]
        end = match.end()
    return merged([*spans, (end, len(text))])


def _spans_of(family: Family, text: str) -> Iterable[Span]:
    needs = family.needs
    if not isinstance(needs, str | tuple):
        if needs.search(text) is None:
            return ()
    elif needs and not any(map(text.__contains__, needs)):
        return ()
    if family.cue is not None:
        return matches_from_cues(family.cue, family.pattern, text)
    return [match.span() for match in family.pattern.finditer(text)]


def matches_from_cues(cue: re.Pattern[str], pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """Where the pattern matches from a cue on, none inside another."""
    end = 0
    for start in cue.finditer(text):
        if start.start() >= end:
            match = pattern.match(text, start.start())
            if match is not None:
                end = match.end()
                yield match.span()


def _code(text: str) -> Iterator[Span]:
    """Lines of code, and Python functions as a whole but for the prose of their docstrings."""
    at = 0
    for code in python_code(text):
        yield from code_lines(text, at, code.span[0])
        edges = [code.span[0], *(edge for line in code.prose for edge in line), code.span[1]]
        yield from (span for span in zip(edges[::2], edges[1::2], strict=True) if span[0] < span[1])
        yield from code.names
        at = code.span[1]
    yield from code_lines(text, at)


@lru_cache(maxsize=256)
def _compiled(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source)
    except re.error as error:
        raise InvalidValue("protect", source, f"a regular expression ({error})") from None


_ENVIRONMENT = late_regex(r"\\(begin|end)\{([^{}\n]{1,40})\}")


def _environments(text: str) -> Iterator[Span]:
    r"""LaTeX environments, nested ones included: \begin{x} … \end{x}."""
    if "\\begin{" not in text:
        return
    opened: list[tuple[str, int]] = []
    for match in _ENVIRONMENT.finditer(text):
        if match[1] == "begin":
            opened.append((match[2], match.start()))
        elif opened and opened[-1][0] == match[2]:
            yield opened.pop()[1], match.end()


_BRACKET = late_regex(r"[{}\[\]]")
_JSON_START = late_regex(
    r"""[{]\s{0,20}["'][^"'\n]{0,200}["']\s{0,20}:|\[\s{0,20}(?:["'{\[\d]|-\d|true|false|null|True|False|None)"""
)


def _json(text: str) -> Iterator[Span]:
    """Balanced brackets that open like a JSON object or list."""
    if "{" not in text and "[" not in text:
        return
    opened: list[int] = []
    for match in _BRACKET.finditer(text):
        at = match.start()
        if text[at] in "{[":
            opened.append(at)
        elif opened and (text[opened[-1]] == "{") == (text[at] == "}"):
            start = opened.pop()
            if _JSON_START.match(text, start):
                yield start, at + 1
        else:
            opened.clear()


def _expressions(text: str) -> Iterator[Span]:
    """Equations and arithmetic, without a bracket whose partner is outside."""
    for start, end in matches_from_cues(MATH_CUE, MATH, text):
        while end > start and text[end - 1] in ")]}" and _unbalanced(text[start:end]) < 0:
            end -= 1
        while end > start and text[start] in "([{" and _unbalanced(text[start:end]) > 0:
            start += 1
        yield start, end


def _unbalanced(piece: str) -> int:
    return sum(map(piece.count, "([{")) - sum(map(piece.count, ")]}"))
