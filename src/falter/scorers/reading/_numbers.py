"""The number that a reply settles on."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._asked import Asked, asked_for, worth
from falter.scorers.reading._cleaning import answer_part, boxed, plain
from falter.scorers.reading._number_words import LIMIT
from falter.scorers.reading._numerals import numbers
from falter.scorers.reading._stated_numbers import settled_number
from falter.scorers.reading._wrapped import elements, folded_key, leaves, objects

_UNDECIDED = object()
_ASIDE = late_regex(
    r"reason|explan|comment|confiden|question|draft|first|guess|step|thought|note|unit|error"
    r"|erreur|code|status|retr|limit|attempt|version|time|calc|work|index|id$|date|since|year"
)
_CHIEF = late_regex(
    r"answer|result|total|sum$|value|réponse|respuesta|antwort|risposta|antwoord|resposta"
    r"|rponse|reponse|ergebnis|résultat|答"
)


def read_number(reply: str, question: str = "", *, cut: bool = False) -> Decimal | None:
    """The one number that a reply gives as its answer, worked out; None for none or several.

    The question says which numbers were given and in what unit the answer is wanted; `cut`, that
    the reply is known to have ended at a limit of tokens.
    """
    asked = asked_for(question)
    text = answer_part(reply)
    if text is None:
        return None
    for look in (_in_box, _in_object, _in_element):
        found = look(text, asked)
        if found is not _UNDECIDED:
            return found  # type: ignore[no-any-return]
    closed = text.endswith(("$", "}", "*", "\\]", "\\)"))
    return settled_number(_unformatted(text), _stressed(text), closed=closed, asked=asked, cut=cut)


_BOLD = late_regex(
    r"\*\*([^*\n]{1,60})\*\*|__([^_\n]{1,60})__|\\(?:mathbf|textbf|underline)\{([^\n]{1,60}?)\}+"
)


def _stressed(text: str) -> Decimal | None:
    """The number of the only bold words that have one."""
    text = text.replace("{,}", ",")
    bold = [_unformatted(next(g for g in m.groups() if g)) for m in _BOLD.finditer(text)]
    inside = [numbers(b) for b in bold if not re.match(r"\s*[^\W\d]+ \d+\s*[:.)]?\s*$", b)]
    inside = [n for n in inside if n]
    return inside[0][0].value if len(inside) == 1 and len(inside[0]) == 1 else None


def _in_box(text: str, asked: Asked) -> Any:
    boxes = boxed(text)
    return _only(_unformatted(boxes[-1]), asked) if boxes else _UNDECIDED


_FRACTION = late_regex(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}|\\[dt]?frac(\d)(\d)")


_LIMITS = late_regex(
    r"(?:\\(?:sum|int|prod|lim|log)|\b(?:sum|lim|prod)(?=[_^]))(?:_\{[^{}]*\}|_\w)?(?:\^\{[^{}]*\}"
    r"|\^\\?\w+)?(?=\W)"
)


def _unformatted(text: str) -> str:
    """The text with LaTeX's numbers as plain ones, struck numbers gone, and no lists' numbers."""
    text = re.sub(r"~~[^~\n]{1,200}~~", " ", text)
    text = text.replace("=>", "⇒").replace("->", "→")
    text = text.replace("{,}", ",").replace("\\%", "%").replace("\\$", "$$ ")
    text = re.sub(r"\\(?:mathrm|text)\{\s*e\s*\}\s*\{?(\d+)\}?", r"e\1", text)
    text = re.sub(r"\\pm\b", "±", text)
    text = _prose(text)
    text = plain(text)
    text = re.sub(r"\\[()\[\]]", " ", text)
    text = _FRACTION.sub(lambda m: f"{m[1] or m[3]}/{m[2] or m[4]}", text)
    text = re.sub(r"\^\s*\{?\\?circ\}?", "°", text)
    text = re.sub(r" ?°\s*C\b", " celsius", text)
    text = re.sub(r" ?°\s*F\b", " fahrenheit", text).replace("°", " degrees")
    text = re.sub(r"\$(?=\s|$)|(?<!\d)\$(?![\d.])|\$\$", "", text)
    text = _LIMITS.sub(" ", text)
    several = len(re.findall(r"^[ \t]*\d{1,2}[.)]\s", text, re.MULTILINE)) > 1
    text = re.sub(r"^([ \t]*)\(?1[.)](?=\s+\D)", r"\1-", text, flags=re.MULTILINE)
    if several:
        text = re.sub(r"^([ \t]*)\d{1,2}[.)](?=\s)", r"\1-", text, flags=re.MULTILINE)
    return re.sub(
        r"\\(?:approx|implies|Rightarrow|to)\b",
        lambda m: " = " if "approx" in m[0] else " → ",
        text,
    )


def _prose(text: str) -> str:
    """The text without quoted lines and blocks of code, unless there is nothing else."""
    text = _OUTPUT.sub(lambda m: f"Answer: {m[1]}", text)
    left = re.sub(r"```.*?```|^[ \t]*>[^\n]*$", " ", text, flags=re.DOTALL | re.MULTILINE)
    left = re.sub(r"(?<![\d.])\d+(?:[.,]\d+)?\s*~~", "~~", left)
    code = re.search(r"```.*?\b(?:print|def|return|import|for)\b.*?```", text, re.DOTALL)
    return left if code or re.search(r"\d", left) else text


_OUTPUT = late_regex(
    r"^[ \t*_#]*(?:output|result|prints?|ausgabe|sortie|salida|uitvoer|saída)[ \t*_]*:[ \t*_]*\n+"
    r"```[\w-]*\n[ \t]*([-−]?[\d.,]+)[ \t]*\n[ \t]*```",
    re.IGNORECASE | re.MULTILINE,
)
"""What a program printed, in a block of its own."""


def _only(text: str, asked: Asked) -> Decimal | None:
    """The number of a short text: the only one, or the one behind its last equals sign."""
    text = text.strip().strip("$ .*")
    if re.match(r"\\pm|±", text):
        return None
    found = numbers(text, commas=asked.commas)
    if "=" in text and found:
        last = [n for n in found if n.start > text.rfind("=")]
        return worth(text, last[0], asked) if len(last) == 1 else None
    if len(found) != 1 or re.search(
        r"[\\^_]|[a-z]\s*[-+*/]|[-+*/]\s*[a-z]\b", text[found[0].end :]
    ):
        return None
    before = text[: found[0].start]
    return (
        None
        if LIMIT.search(before) or re.search(r"[a-z]\w*\s*[-+*/]\s*$", before)
        else worth(text, found[0], asked)
    )


def _number_in(value: Any, asked: Asked) -> Decimal | None:
    if isinstance(value, bool) or value is None or isinstance(value, list):
        return None
    return _only(str(value), asked)


def _in_object(text: str, asked: Asked) -> Any:
    found = objects(text)
    if not found:
        return _UNDECIDED
    last = found[-1]
    named, asked_by_name = {}, set()
    for path, value in leaves(last.value):
        number = _number_in(value, asked)
        key = "/".join(map(folded_key, path))
        by_name = any(asked.names(part.replace("_", " ")) for part in path)
        if number is not None and (by_name or not _ASIDE.search(key)):
            named[key] = number
            if by_name:
                asked_by_name.add(key)
    mostly = last.end - last.start > 0.6 * len(text.strip("`json \n"))
    for keys in (
        [k for k in named if "final" in k],
        [k for k in named if _CHIEF.search(k)],
        list(named),
    ):
        values = {named[k] for k in keys}
        if len(values) > 1:
            values = {named[k] for k in keys if k in asked_by_name} or values
        if values:
            return values.pop() if len(values) == 1 else (None if mostly else _UNDECIDED)
    return None if mostly else _UNDECIDED


def _in_element(text: str, asked: Asked) -> Any:
    found = [(folded_key(k), v) for k, v in elements(text)]
    if not found:
        return _UNDECIDED
    chief = [v for k, v in found if _CHIEF.search(k)] or [
        v for k, v in found if not _ASIDE.search(k)
    ]
    values = {_only(v, asked) for v in chief}
    return values.pop() if len(values) == 1 else None
