"""The regular expressions of the protector."""

from __future__ import annotations

import re

from falter.text._code import CODE_LINE_START

__all__ = ["CODE_FIRST", "FAMILIES", "MATH", "SUSPICIOUS"]

_UPPER = "A-ZÀ-ÖØ-ÞΑ-ΩА-ЯЁ"
_LOWER = "a-zß-öø-ÿα-ωа-яё"
_DIGIT = r"\d\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089\u00bc-\u00be\u2153-\u215e"
_SYMBOLS = (
    r"\u00a2-\u00a5\u00b0\u00b1\u00b5\u00b7\u00d7\u00f7\u2032\u2033\u20a0-\u20bf\u2190-\u22ff"
)

# Begins with one character class, which the engine scans for quickly; the look-arounds behind it
# say whether that character is suspicious where it stands.
SUSPICIOUS = re.compile(
    rf"[\n(.{_UPPER}_`$\\{{}}<>=+*/^%@#\[\]|~&{_DIGIT}{_SYMBOLS}]"
    rf"(?:(?<![\n(.{_UPPER}])|(?<=[{_LOWER}][{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}]|\.\w)"
    rf"|(?<=\.)(?=\w)|(?<=\w\()|(?<=\n)[ \t]*{CODE_LINE_START})"
)
CODE_FIRST = re.compile(rf"[ \t]*{CODE_LINE_START}")

_CURRENCY = r"[$\u00a2-\u00a5\u20a0-\u20bf]"
_FUNCTION = r"(?:sin|cos|tan|log|ln|exp|sqrt|lim|max|min|mod|gcd|lcm)"
_OPENING = rf"(?:[(\[{{][ ]?|[-+−–±√¬∑∏∫]|{_CURRENCY}){{0,8}}"
_CLOSING = r"(?:[ ]?[)\]}]|[²³¹⁰⁴-⁹]|%|!(?=[ ]?[-+*/=×÷)])){0,8}"
_OPERATOR = r"""(?!</?[A-Za-z][^<>\n]{0,60}>)  # no tag
    (?:[-+*/×÷·∙⋅=<>≤≥≠≈≡~^±∓−–—→⇒∈∉∪∩⊂⊆∧∨⊕∘&|]{1,3}|mod\b|over\b(?=[ ]\d)|x(?=[ ]?\d))"""
_OPERAND = rf"""(?:
      (?:\d+(?:[.,]\d+){{0,20}}+|\.\d+)(?:[A-Za-zα-ω]{{1,2}}(?![A-Za-z]))?
    | {_FUNCTION}\b
    | [A-Za-zα-ωΑ-Ω](?:_\w{{1,3}})?(?![\w'’])
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
_NUMBER = rf"""(?<!\w)(?:(?:[-+−±]|(?:US|CA|AU|NZ|HK)?{_CURRENCY}[ ]?){{0,2}})
    (?:\.?[{_DIGIT}]+(?:[.,:/\-–\u00a0\u202f\u2009'’]\d+)*)(?:[eE][-+−]?\d+)?(?:st|nd|rd|th|s)?
    (?![A-Za-z])
    (?:[ \u00a0]?[%‰] | [ \u00a0]?[°º][ ]?[CFK]?\b
      | [ \u00a0-]?{_UNIT}(?:[/·*]{_UNIT}){{0,2}}(?:\^?[-−]?[{_DIGIT}])?(?!\w)
      | [ \u00a0]?(?:{_CURRENCY}|USD|EUR|GBP|JPY|CHF)
      | [ ](?:hundred|thousand|million|billion|trillion|percent|degrees?)\b
      | [ ]?[ap]\.?m\b\.? )?
  | (?<![\w\d.])\d+[A-Za-zµμ]{{1,3}}(?:/[a-z]{{1,3}})?\b"""
_MONTH = r"""(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?
    |Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"""
_DATE = rf"""\b(?:\d{{1,2}}(?:st|nd|rd|th)?[ ](?:of[ ])?{_MONTH}(?:,?[ ]\d{{4}}\b)?
    | {_MONTH}[ ]\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?[ ]\d{{4}}\b)?)"""

_V = re.VERBOSE
# (one of these characters must be in the text, pattern)
FAMILIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # inline code
    ("`", re.compile(r"(?<!`)(`{1,2})(?!`)(?:(?!\1)[^\n]){1,500}\1(?!`)|```[^`\n]{1,500}```")),
    # LaTeX: $…$ by Pandoc's rule, so that prices are not taken for it; \(…\), \[…\]; commands
    (
        "$",
        re.compile(
            r"\$\$[^$]{1,4000}\$\$|(?<![\\$\w])\$(?=[^\s$])(?:\\.|[^$\\\n])*+(?<=\S)\$(?!\d)"
        ),
    ),
    (
        "\\",
        re.compile(
            r"""\\\((?:[^\\]|\\(?![()])){0,2000}+\\\) | \\\[(?:[^\\]|\\(?![\[\]])){0,2000}+\\\]
            | \\[A-Za-z]{1,40}\*?(?:\[[^\]\n]{0,200}\])?
              (?:\{[^{}\n]{0,300}+(?:\{[^{}\n]{0,200}+\}[^{}\n]{0,200}+){0,10}+\}){0,4}
            | \\[^\sA-Za-z] | \b[A-Za-z]:\\[^\s:*?"<>|]{0,200}
            | \\\\[\w.$-]{1,60}\\[^\s:*?"<>|]{0,200}""",
            _V,
        ),
    ),
    # numbers, and whatever holds a digit among its letters
    ("", re.compile(_NUMBER, _V)),
    ("0123456789", re.compile(_DATE, _V)),
    (
        "0123456789",
        re.compile(r"(?<![\w.-])(?=[A-Za-z_.\-]{0,40}+\d)\w+(?:[-./:+]\w+){0,12}+", re.ASCII),
    ),
    (
        "^_",
        re.compile(
            r"(?<![\w)\]}])[\w)\]}]{1,40}+(?:(?:\^|(?<=_))\{[^{}\n]{1,60}\}|\^[-+−]?\w{1,40})"
        ),
    ),
    # identifiers: snake_case, dotted.name, call(), R&D, camelCase, ACRONYM
    ("_", re.compile(r"(?<!\w)\w*_\w*")),
    (
        ".",
        re.compile(
            r"(?<![\w.])(?:[^\W\d_]\.){2,12}(?!\w)|(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)+(?:\(\))?"
        ),
    ),
    ("(", re.compile(r"(?<!\w)[A-Za-z_][\w.]{0,60}\([^()\s]{0,40}(?:,[ ]?[^()\s]{1,40}){0,8}\)")),
    ("&", re.compile(r"\b[A-Z]{1,4}(?:&[A-Z]{1,4}){1,3}\b")),
    ("", re.compile(rf"(?<!\w)(?:[{_UPPER}]{{2}}|[{_UPPER}]?[{_LOWER}]++[{_UPPER}])\w*")),
    # addresses and paths
    (
        ":",
        re.compile(
            r"""\b(?:[A-Za-z][A-Za-z0-9+.\-]{1,20}://|mailto:)[^\s<>"'`\])}]*[^\s<>"'`\])}.,;:!?]"""
        ),
    ),
    (".", re.compile(r"""\bwww\.[^\s<>"'`\])}]*[^\s<>"'`\])}.,;:!?]""")),
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
    ("{", re.compile(r"\$?\{\{[^{}\n]{1,100}\}\}|\$?\{[^{}\n]{0,100}\}")),
    ("<", re.compile(r"</?[A-Za-z!][^<>\n]{0,300}>|<<[^<>\n]{1,100}>>")),
    ("[", re.compile(r"\[\^?\d+(?:[,;–\-][ ]?\d+)*\]|\[[A-Z_]{2,30}\]")),
    ("%", re.compile(r"%\(\w{1,40}\)[sdfr]|%[sdfr]\b")),
)
