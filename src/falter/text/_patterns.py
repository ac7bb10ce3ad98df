"""The regular expressions of the protector."""

from __future__ import annotations

import re
from typing import NamedTuple

from falter.core.late_regex import late_regex
from falter.text._code import CODE_LINE_START
from falter.text._numbers import DATE, DATE_CUE, DIGIT, NUMBER, NUMBER_CUE, ROW, ROW_CUE

__all__ = ["CODE_FIRST", "FAMILIES", "SUSPICIOUS", "Family"]

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
FAMILIES: tuple[Family, ...] = (
    # inline code
    Family(
        "`", late_regex(r"(?<!`)(`{1,2})(?!`)(?:(?!\1)[^\n]){1,500}\1(?!`)|```[^`\n]{1,500}```")
    ),
    # LaTeX: $…$ by Pandoc's rule, so that prices are not taken for it; \(…\), \[…\]; commands
    Family(
        "$",
        late_regex(
            r"\$\$[^$]{1,4000}\$\$|(?<![\\$A-Za-z0-9_])\$(?=[^\s$])(?:\\.|[^$\\\n])*+(?<=\S)\$(?!\d)"
            r"|(?<![\w$])\$[A-Za-z_]\w*"
        ),
    ),
    Family(
        "\\",
        late_regex(
            r"""\\\((?:[^\\]|\\(?![()])){0,2000}+\\\) | \\\[(?:[^\\]|\\(?![\[\]])){0,2000}+\\\]
            | \\[A-Za-z]{1,40}\*?(?:\[[^\]\n]{0,200}\])?
              (?:\{[^{}\n]{0,300}+(?:\{[^{}\n]{0,200}+\}[^{}\n]{0,200}+){0,10}+\}){0,4}
            | \\\\[\w.$-]{1,60}\\[^\s:*?"<>|]{0,200}
            | \\[^\sA-Za-z] | \b[A-Za-z]:\\[^\s:*?"<>|]{0,200}""",
            _V,
        ),
    ),
    # numbers, and whatever holds a digit among its letters
    Family("", NUMBER, NUMBER_CUE),
    Family(",", ROW, ROW_CUE),
    Family("0123456789", DATE, DATE_CUE),
    Family("0123456789", late_regex(_CITATION, _V), late_regex(r"\((?=[A-Z])")),
    Family(
        ("arXiv", "doi", "DOI", "ISBN", "ISSN", "PMID", "RFC"),
        late_regex(
            r"\b(?:arXiv|doi|DOI|ISBN|ISSN|PMID|RFC)(?::[ ]?|[ ])[\w./\-]{0,40}\d[\w./\-]*\b"
        ),
    ),
    Family(
        "0123456789",
        late_regex(
            r"(?<![\w.-])(?=[A-Za-z_.\-]{0,40}+(?:/[A-Za-z_.\-]{0,40}+)?\d)\w+(?:[-./:+]\w+){0,12}+",
            re.ASCII,
        ),
    ),
    Family(
        "^_",
        late_regex(
            r"(?<![\w)\]}])[\w)\]}]{1,40}+(?:(?:\^|(?<=_))\{[^{}\n]{1,60}\}|\^[-+−]?\w{1,40})"
        ),
    ),
    # identifiers: snake_case, dotted.name, call(), R&D, camelCase, ACRONYM
    Family("_", late_regex(rf"(?<!{_W}){_W}*_{_W}*")),
    Family(_INITIAL, late_regex(r"(?<![\w.])(?:[^\W\d_]\.){2,12}(?!\w)")),
    Family(".", late_regex(rf"(?<!{_W})(?<!\.)(?!\d){_W}++(?:\.(?!\d){_W}++)+(?:\(\))?")),
    Family(".", late_regex(r"\*?\.[a-z]\w{0,9}\b|\.[a-z][\w\-]{2,30}\b"), _DOTFILE),
    Family(
        "(", late_regex(r"(?<!\w)[A-Za-z_][\w.]{0,60}+\([^()\s]{0,40}(?:,[ ]?[^()\s]{1,40}){0,8}\)")
    ),
    Family(
        "[",
        late_regex(
            r"(?<!\w)[A-Za-z_]\w{0,60}+(?:\[(?!\^|\d+\])[^\[\]\s]{1,40}\]){1,4}(?:\.\w{1,40})?"
        ),
    ),
    Family("&", late_regex(r"\b[A-Z]{1,4}(?:&[A-Z]{1,4}){1,3}\b")),
    Family(
        _CAPITAL_INSIDE,
        late_regex(
            rf"(?<!\w)(?:[{_UPPER}]{{2}}|[{_UPPER}]?[{_LOWER}]++[{_UPPER}])\w*(?:-[{_UPPER}\d]+(?!\w))?"
        ),
    ),
    # keys, C++, command-line options, entities, short functions
    Family("+#", late_regex(r"(?<!\w)(?:[A-Z][a-z]{1,7}\+\w{1,8}(?!\w)|[A-Z](?:\+\+|#)(?!\w))")),
    Family(
        "-",
        late_regex(r"--[a-z][\w\-]{1,40}(?:=\S{1,80})?|-[A-Za-z](?=[\s,.;:)\]]|\Z)"),
        late_regex(r"-(?<![^\s(\[].)(?=[-A-Za-z])"),
    ),
    Family("&", late_regex(r"&(?:#?\w{2,10});")),
    Family(("lambda",), late_regex(r"\blambda(?:[ ]\w+(?:,[ ]?\w+){0,8})?:")),
    # addresses and paths
    Family(
        ("://", "mailto:"),
        late_regex(
            rf"""(?<![A-Za-z0-9])(?:[A-Za-z][A-Za-z0-9+.\-]{{1,20}}://|mailto:)
            (?:[^\s<>"'`\])}}({_CJK}]|\([^\s()]{{1,80}}\))*(?:(?<=\))|[^\s<>"'`\])}}.,;:!?({_CJK}])""",
            _V,
        ),
    ),
    Family(
        ("www.",),
        late_regex(rf"""(?<![A-Za-z0-9])www\.[^\s<>"'`\])}}{_CJK}]*[^\s<>"'`\])}}.,;:!?{_CJK}]"""),
    ),
    Family("@", late_regex(r"(?<![\w.+\-])[\w.+\-]{0,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){0,8}")),
    Family("#", late_regex(r"#\w+")),
    Family(
        "/",
        late_regex(
            r"""(?<![\w/.])(?:~|\.{1,2})?/(?:[\w.\-+@%]+/)*+(?:[\w.\-+@%]*[\w\-+@%])?(?<!\s/)
            | (?<![\w/.\-])[\w.\-]+(?:/[\w.\-]+)*\.[A-Za-z]\w{0,5}\b(?:/[\w.\-]*\w)*""",
            _V,
        ),
    ),
    # placeholders, citations, tags
    Family(
        "{", late_regex(r"\{{3}[^{}\n]{1,100}\}{3}|\$?\{\{[^{}\n]{1,100}\}\}|\$?\{[^{}\n]{0,100}\}")
    ),
    Family(
        "<", late_regex(r"</?[A-Za-z!?][^<>\n]{0,300}>|<\|[^|<>\n]{1,60}\|>|<<[^<>\n]{1,100}>>")
    ),
    Family(
        "[",
        late_regex(
            r"\[\^?\d+(?:[,;–\-][ ]?\d+)*\]|\[[A-Z_]{2,30}\]|\[[A-Z][A-Za-z+]{1,30}\d{2,4}[a-z]?\]"
        ),
    ),
    Family("%", late_regex(r"%\(\w{1,40}\)[sdfr]|%[-+0]?\d{0,3}(?:\.\d{1,3})?[sdfrxegi]\b")),
    # YAML
    Family((":\n", ": "), late_regex(_YAML, re.MULTILINE)),
    Family(("---\n",), late_regex(r"\A---\n(?:[^\n]{0,200}\n){1,60}?---(?=\n|\Z)")),
)
