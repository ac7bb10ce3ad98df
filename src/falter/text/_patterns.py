"""The regular expressions of the protector."""

from __future__ import annotations

import re

from falter.text._code import CODE_LINE_START

__all__ = ["CODE_FIRST", "FAMILIES", "MATH", "SUSPICIOUS"]

_UPPER = "A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ"
_LOWER = "a-zß-öø-ÿα-ωа-яё"
_DIGIT = (
    r"\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u00bc-\u00be\u2153-\u215e"
    r"\u2160-\u2188\u2460-\u249b"  # Roman, encircled
)
# A letter, digit or underscore, not Chinese, Japanese or Korean: no space parts words there.
_W = r"[^\W\u2e80-\u9fff\uac00-\ud7af]"
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef"
_SYMBOLS = (
    r"\u00a2-\u00a5\u00b0\u00b1\u00b5\u00b7\u00d7\u00f7\u2032\u2033\u20a0-\u20bf\u2190-\u22ff"
)
_KEY = r"[ ]{0,12}(?:-[ ])?[a-z_][\w.\-]{0,40}:(?!\S)"  # of YAML

# Begins with one character class, which the engine scans for quickly; the look-arounds behind it
# say whether that character is suspicious where it stands.
SUSPICIOUS = re.compile(
    rf"[\n(.\-{_UPPER}_`$\\{{}}<>=+*/^%@#\[\]|~&{_DIGIT}{_SYMBOLS}]"
    rf"(?:(?<![\n(.\-{_UPPER}])|(?<=[\s(]-)(?=-?[A-Za-z])|(?<=[{_LOWER}][{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}]|\.\w)"
    rf"|(?<=\.)(?=\w)|(?<=\w\()|(?<=\n)(?:[ \t]*{CODE_LINE_START}|{_KEY}))"
)
CODE_FIRST = re.compile(rf"[ \t]*{CODE_LINE_START}|---\n|{_KEY}[^\n]*\n")

_CURRENCY = r"[$\u00a2-\u00a5\u20a0-\u20bf]"
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
MATH = re.compile(
    rf"""(?<![\w.])(?<!\d,){_OPENING}{_OPERAND}{_CLOSING}
    (?:(?:[ ]{{0,2}}{_OPERATOR}[ ]{{0,2}}|(?=[(\[])){_OPENING}{_OPERAND}{_CLOSING}){{1,200}}+""",
    re.VERBOSE,
)

_UNIT = r"""(?:[kcmdnµμ]?m|ft|yd|mi|[kmµμ]?g|lbs?|oz|t|[mcd]?[lL]|gal|hrs?|h|mins?|secs?|[mnµμ]?s
    |mph|kph|rpm|bpm|psi|[kMG]?Hz|[kMGT]?Wh?|[kM]?J|k?cal|[mk]?V|m?A|k?[ΩN]|[khM]?Pa|atm|m?mol|K|C|F
    |M|mM|[kMG]?eV|dB|[kKMGT]?B|bits?|px|ha)"""
_UNIT_WORD = r"""(?:(?:kilo|centi|milli|micro|nano|mega)?(?:met(?:re|er)|gram(?:me)?|lit(?:re|er)
    |watt|joule|byte|pascal|volt)s?|inch(?:es)?|foot|feet|yards?|miles?|acres?|ounces?|pounds?|tons?
    |tonnes?|gallons?|pints?|quarts?|seconds?|minutes?|hours?|days?|weeks?|months?|years?|degrees?
    |percent|dollars?|euros?|cents?|calories)\b"""
_NUMBER = rf"""(?<!\w)(?:(?:[-+−±]|§[ ]?|(?:US|CA|AU|NZ|HK)?{_CURRENCY}[ ]?){{0,2}})
    (?:\.?[{_DIGIT}]+(?:[.,:/\-–\u00a0\u202f\u2009'’]\d+)*)(?:[eE][-+−]?\d+)?(?:st|nd|rd|th|s)?
    (?![A-Za-z])
    (?:[ \u00a0]?[%‰] | [ \u00a0]?[°º][ ]?[CFK]?\b
      | [ \u00a0-]?{_UNIT}(?:[/·*]{_UNIT}){{0,2}}(?:\^?[-−]?[{_DIGIT}])?(?!\w)
      | [ \u00a0]?(?:{_CURRENCY}|USD|EUR|GBP|JPY|CHF)
      | [ ](?:hundred|thousand|million|billion|trillion)\b(?:[ ]{_UNIT_WORD})? | [ -]{_UNIT_WORD}
      | !(?=[ ](?:[a-z]|[-+*/=×÷]))
      | [ ]?[ap]\.?m\b\.? )?
  | (?<![\w.])(?:{_CURRENCY}|§[ ]?)?\d+(?:[.,]\d+)*[A-Za-zµμ]{{1,3}}(?:/[a-z]{{1,3}})?\b"""
_MONTH = r"""(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?
    |Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"""
_DATE = rf"""\b(?:\d{{1,2}}(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH}(?:,?[ ]\d{{4}}\b)?
    | {_MONTH}[ ]\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?[ ]\d{{4}}\b)?)"""

# Numbers in a row, coordinates: without the comma they would be others.
_ROW = r"""(?<![\w.,])\(?[-+−]?\d+(?:\.\d+)?(?:,[ ]?[-+−]?\d+(?:\.\d+)?){1,200}+(?!\w)\)?"""
_AUTHOR = r"[A-Z][\w'’.\-]{0,30}"
_CITATION = rf"""\((?:{_AUTHOR}(?:,?[ ](?:&|and|et[ ]al\.|{_AUTHOR})){{0,6}}+,?[ ]\d{{4}}[a-z]?
    (?:;[ ])?){{1,9}}\)"""
_LINE_OF_YAML = rf"{_KEY}(?:[ ][^\s]{{1,40}}){{0,3}}"
_YAML = (
    rf"^{_LINE_OF_YAML}(?:\n(?:{_LINE_OF_YAML}|[ ]{{0,12}}-[ ][^\n]{{1,100}})(?=\n|\Z)){{1,200}}+"
)

_V = re.VERBOSE
# (one of these characters must be in the text, pattern)
FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # inline code
    ("`", re.compile(r"(?<!`)(`{1,2})(?!`)(?:(?!\1)[^\n]){1,500}\1(?!`)|```[^`\n]{1,500}```")),
    # LaTeX: $…$ by Pandoc's rule, so that prices are not taken for it; \(…\), \[…\]; commands
    (
        "$",
        re.compile(
            r"\$\$[^$]{1,4000}\$\$|(?<![\\$A-Za-z0-9_])\$(?=[^\s$])(?:\\.|[^$\\\n])*+(?<=\S)\$(?!\d)"
            r"|(?<![\w$])\$[A-Za-z_]\w*"
        ),
    ),
    (
        "\\",
        re.compile(
            r"""\\\((?:[^\\]|\\(?![()])){0,2000}+\\\) | \\\[(?:[^\\]|\\(?![\[\]])){0,2000}+\\\]
            | \\[A-Za-z]{1,40}\*?(?:\[[^\]\n]{0,200}\])?
              (?:\{[^{}\n]{0,300}+(?:\{[^{}\n]{0,200}+\}[^{}\n]{0,200}+){0,10}+\}){0,4}
            | \\\\[\w.$-]{1,60}\\[^\s:*?"<>|]{0,200}
            | \\[^\sA-Za-z] | \b[A-Za-z]:\\[^\s:*?"<>|]{0,200}""",
            _V,
        ),
    ),
    # numbers, and whatever holds a digit among its letters
    ("", re.compile(_NUMBER, _V)),
    (",", re.compile(_ROW, _V)),
    ("0123456789", re.compile(_DATE, _V)),
    ("0123456789", re.compile(_CITATION, _V)),
    (
        "0123456789",
        re.compile(
            r"\b(?:arXiv|doi|DOI|ISBN|ISSN|PMID|RFC)(?::[ ]?|[ ])[\w./\-]{0,40}\d[\w./\-]*\b"
        ),
    ),
    (
        "0123456789",
        re.compile(
            r"(?<![\w.-])(?=[A-Za-z_.\-]{0,40}+(?:/[A-Za-z_.\-]{0,40}+)?\d)\w+(?:[-./:+]\w+){0,12}+",
            re.ASCII,
        ),
    ),
    (
        "^_",
        re.compile(
            r"(?<![\w)\]}])[\w)\]}]{1,40}+(?:(?:\^|(?<=_))\{[^{}\n]{1,60}\}|\^[-+−]?\w{1,40})"
        ),
    ),
    # identifiers: snake_case, dotted.name, call(), R&D, camelCase, ACRONYM
    ("_", re.compile(rf"(?<!{_W}){_W}*_{_W}*")),
    (
        ".",
        re.compile(
            rf"(?<![\w.])(?:[^\W\d_]\.){{2,12}}(?!\w)"
            rf"|(?<!{_W})(?<!\.)(?!\d){_W}+(?:\.(?!\d){_W}+)+(?:\(\))?"
            r"|(?<![^\s(\"'])(?:\*\.\w{1,9}|\.[a-z][\w\-]{2,30})\b"
        ),
    ),
    ("(", re.compile(r"(?<!\w)[A-Za-z_][\w.]{0,60}\([^()\s]{0,40}(?:,[ ]?[^()\s]{1,40}){0,8}\)")),
    ("&", re.compile(r"\b[A-Z]{1,4}(?:&[A-Z]{1,4}){1,3}\b")),
    (
        "",
        re.compile(
            rf"(?<!\w)(?:[{_UPPER}]{{2}}|[{_UPPER}]?[{_LOWER}]++[{_UPPER}])\w*(?:-[{_UPPER}\d]+(?!\w))?"
        ),
    ),
    # keys, C++, command-line options, entities, short functions
    ("+#", re.compile(r"(?<!\w)(?:[A-Z][a-z]{1,7}\+\w{1,8}(?!\w)|[A-Z](?:\+\+|#)(?!\w))")),
    (
        "-",
        re.compile(
            r"(?<![^\s(\[])(?:--[a-z][\w\-]{1,40}(?:=\S{1,80})?|-[A-Za-z](?=[\s,.;:)\]]|\Z))"
        ),
    ),
    ("&", re.compile(r"&(?:#?\w{2,10});")),
    (":", re.compile(r"\blambda(?:[ ]\w+(?:,[ ]?\w+){0,8})?:")),
    # addresses and paths
    (
        ":",
        re.compile(
            rf"""(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.\-]{{1,20}}://|mailto:)
            (?:[^\s<>"'`\])}}({_CJK}]|\([^\s()]{{1,80}}\))*(?:(?<=\))|[^\s<>"'`\])}}.,;:!?({_CJK}])""",
            _V,
        ),
    ),
    (
        ".",
        re.compile(rf"""(?<![A-Za-z0-9])www\.[^\s<>"'`\])}}{_CJK}]*[^\s<>"'`\])}}.,;:!?{_CJK}]"""),
    ),
    ("@", re.compile(r"(?<![\w.+\-])[\w.+\-]{0,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,8}")),
    ("#", re.compile(r"#\w+")),
    (
        "/",
        re.compile(
            r"""(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.\-+@%]+/)*+(?:[\w.\-+@%]*[\w\-+@%])?(?<!\s/)
            | (?<![\w/.\-])[\w.\-]+(?:/[\w.\-]+)*\.[A-Za-z]\w{0,5}\b(?:/[\w.\-]*\w)*""",
            _V,
        ),
    ),
    # placeholders, citations, tags
    ("{", re.compile(r"\{{3}[^{}\n]{1,100}\}{3}|\$?\{\{[^{}\n]{1,100}\}\}|\$?\{[^{}\n]{0,100}\}")),
    ("<", re.compile(r"</?[A-Za-z!?][^<>\n]{0,300}>|<\|[^|<>\n]{1,60}\|>|<<[^<>\n]{1,100}>>")),
    (
        "[",
        re.compile(
            r"\[\^?\d+(?:[,;–\-][ ]?\d+)*\]|\[[A-Z_]{2,30}\]|\[[A-Z][A-Za-z+]{1,30}\d{2,4}[a-z]?\]"
        ),
    ),
    ("%", re.compile(r"%\(\w{1,40}\)[sdfr]|%[-+0]?\d{0,3}(?:\.\d{1,3})?[sdfrxegi]\b")),
    # YAML
    (":", re.compile(_YAML, re.MULTILINE)),
    ("-", re.compile(r"\A---\n(?:[^\n]{0,200}\n){1,60}?---(?=\n|\Z)")),
)
