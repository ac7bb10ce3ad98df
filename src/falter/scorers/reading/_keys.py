"""The value of a key: from an object, an element, a row or a line."""

from __future__ import annotations

import re
from typing import Any

import orjson

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._cleaning import answer_part
from falter.scorers.reading._refusals import refusal_in
from falter.scorers.reading._words import CONDITION, CORRECTION
from falter.scorers.reading._wrapped import (
    Bare,
    Found,
    elements,
    folded_key,
    is_schema,
    leaves,
    objects,
    pairs,
    rows,
)

_PLACEHOLDER = late_regex(
    r"^(?:<.*>|\[.*\]|\{.*\}|\.{2,}|…|\?+|string|number|integer|boolean|your .* here|value|n/?a"
    r"|tbd|todo|null|\S+(?: \S+)? (?:or|oder|ou) \S+(?: \S+)?"
    r"|not (?:given|stated|available|specified|mentioned|known|found|provided)(?: .*)?|see .*"
    r"|too many|x+|_+|-+|—|to be .*"
    r"|(?:yyyy|dd|mm|hh).*|\w+(?:\s*\|\s*\w+)+|(?:the|an?|insert|enter|your|add|some) .*(?:here"
    r"|goes here|value|name of the .*)|yes or no|yes/no|true/false|.*\\.*)$",
    re.IGNORECASE,
)
_ERROR = late_regex(
    r"\s*(?:error|erreur|fehler|errore|erro|fout|exception|failed|エラー)\b\s*[:：\d]",
    re.IGNORECASE,
)
_ERRORS = frozenset({"error", "erreur", "fehler", "errore", "erro", "fout"})
_ASIDE = frozenset(
    {"error", "erreur", "fehler", "example", "examples", "schema", "draft", "previous"}
)
_FINAL = late_regex(
    r"(?:\b(?:final|corrected|correct|result|output|answer|so|therefore|richtig|definitiv"
    r"|endgültig|corrigé|bonne|corregido|correcto"
    r"|corretto|juist|correto|certo)\b|正しく)[^{]{0,60}$",
    re.IGNORECASE,
)
_CHANGED = late_regex(rf"{CORRECTION}|instead|should be|sondern|doch", re.IGNORECASE)
_MEANT = late_regex(
    r"(?:(?:example|e\.g\.|such as|looks? like|form(?:at)?|schema|would (?:be|look)|one of"
    r"|either)\W*$)",
    re.IGNORECASE,
)
_EITHER = late_regex(r"^\W*(?:or|and|oder|und|ou|et|o|y|e|of|en|か|または)\b", re.IGNORECASE)


def read_key(reply: str, key: str) -> Any:
    """The value that a reply gives to a key; None if there is none, or two that differ."""
    text = answer_part(reply)
    if text is None:
        return None
    text = _unwrapped(text)
    text = re.sub(r"\\(?:text(?:tt|bf|rm)?|mathrm|mathtt)\{([^{}]*)\}", r"\1", text)
    text = text.replace("\\{", "{").replace("\\}", "}")
    found = _from_objects(text, key)
    if found is not _MISSING:
        return found
    if refusal_in(text) is not None and not text.lstrip().startswith(("<", "|", "-", key)):
        return None
    for values in (_from_elements(text, key), _from_rows(text, key), _from_pairs(text, key)):
        if values:
            return values[0] if all(v == values[0] for v in values) else None
    return None


_WIDE = str.maketrans("｛｝：，＂［］０１２３４５６７８９．", '{}:,"[]0123456789.')


def _unwrapped(text: str) -> str:
    """The text of a JSON string that holds an object; full-width brackets as plain ones."""
    text = text.translate(_WIDE) if "｛" in text else text
    if text.startswith('"{') and text.endswith('}"'):
        try:
            return str(orjson.loads(text))
        except ValueError:
            return text
    return text


_MISSING = object()


def _from_objects(text: str, key: str) -> Any:
    """The value in the objects of a text; `_MISSING` if they say nothing about the key."""
    holding = []
    for found in objects(text):
        if is_schema(found.value) or _is_error(found.value):
            continue
        if _DENIED.search(text[max(0, found.start - 30) : found.start]):
            continue
        values = _values(_arguments(found.value), key)
        if len(values) == 1:
            holding.append((found, values[0]))
        elif values:
            return None
    if not holding:
        return None if text.lstrip().startswith("{") else _MISSING
    if _offered(text, holding[-1][0]) or _doubted(holding[-1][0].value):
        return None
    value = _decided(text, holding)
    refused = refusal_in(text)
    if refused is not None and refused < holding[-1][0].start and not _behind(text, holding[-1][0]):
        return None
    return _real(value)


_DENIED = late_regex(
    r"\b(?:not|rather than|instead of|and never|nicht|statt|et non|plutôt que|au lieu de|y no|en"
    r" lugar de|invece di|e non|niet|in plaats van|e não|em vez de)[ \t\n`]*(?:json[ \t\n]*)?$",
    re.IGNORECASE,
)
_ASKS = late_regex(r"[^.!\n。]{0,120}(?:[?？]|でしょうか|ですか)")
_UNSURE = late_regex(
    r"can't tell|cannot tell|not sure which|unsure which|only one of (?:them|these)|unclear which",
    re.IGNORECASE,
)


def _offered(text: str, found: Found) -> bool:
    """Whether an object is part of a question: shall it be this?"""
    before = re.split(r"[.!?\n。]", text[: found.start])[-1]
    asked = _ASKS.match(text, found.end) is not None
    return asked and (before.strip(" `:") != "" or "か" in text[found.end : found.end + 30])


def _doubted(value: Any) -> bool:
    """Whether a note in an object says that its value is one of several."""
    return any(
        isinstance(inner, str) and _UNSURE.search(inner)
        for path, inner in leaves(value)
        if path and _NOTE.search(folded_key(path[-1]))
    )


_NOTE = late_regex(r"note|comment|remark|warning|reason|explan")


def _behind(text: str, found: Found) -> bool:
    """Whether an object ends its reply, as an answer after a refusal does."""
    return len(text) - found.end < 12


def _decided(text: str, holding: list[tuple[Found, Any]]) -> Any:
    """The value of the one object, of equal ones, or of the one that corrects the others."""
    last, value = holding[-1]
    if len(holding) == 1:
        return None if _MEANT.search(text[: last.start]) else value
    if all(v == value for _, v in holding):
        return value
    before = text[holding[-2][0].end : last.start]
    if (
        _EITHER.match(before)
        or re.search(CONDITION, before, re.IGNORECASE)
        or _MEANT.search(text[: last.start])
    ):
        return None
    ending = _behind(text, last)
    if _FINAL.search(before) or _CHANGED.search(before):
        return value
    first, value = holding[0]
    return value if not ending and _FINAL.search(text[: first.start]) else None


def _arguments(value: Any) -> Any:
    """What a call of a tool passes on, in the place of the call: its name answers nothing."""
    if not isinstance(value, dict):
        return value
    inner = [v for v in value.values() if isinstance(v, dict)]
    calls = [c for c in (value, *inner) if isinstance(c.get("name"), str)]
    passed = next((c[k] for c in calls for k in ("arguments", "parameters") if k in c), None)
    if isinstance(passed, str):
        found = objects(passed)
        passed = found[0].value if found else None
    return passed if isinstance(passed, dict) else value


def _is_error(value: Any) -> bool:
    """Whether an object only says that something went wrong."""
    if not isinstance(value, dict) or len(value) > 2:
        return False
    errors = [v for k, v in value.items() if folded_key(k) in _ERRORS]
    return any(isinstance(v, (str, dict)) for v in errors)


def _values(value: Any, key: str) -> list[Any]:
    """The values of a key in an object: the outermost ones, written exactly or nearly so."""
    level: list[Any] = [value]
    for _ in range(4):
        named = [d for d in level if isinstance(d, dict)]
        for same in (lambda k: k == key, lambda k: folded_key(k) == folded_key(key)):
            hits = [v for d in named for k, v in d.items() if same(k)]
            if hits:
                return hits
        inner = [v for d in named for k, v in d.items() if folded_key(k) not in _ASIDE]
        level = [v for v in inner if isinstance(v, dict)]
    return []


def _real(value: Any) -> Any:
    """The value, or None for one that holds a place."""
    if isinstance(value, str):
        blank = not value.strip() or _PLACEHOLDER.match(value.strip()) or _ERROR.match(value)
        held = isinstance(value, Bare) and len(value) == 1 and value.isalpha()  # {"rooms": n}
        return None if blank or held or refusal_in(value) is not None else str(value)
    return value


def _typed(value: str) -> Any:
    """A written value: digits as a number, true and false, a list, else its words."""
    value = value.strip().strip("`*").strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|\[.*\]", value):
        try:
            return orjson.loads(value)
        except ValueError:
            return value
    return {"true": True, "false": False}.get(value.lower(), value)


def _from_elements(text: str, key: str) -> list[Any]:
    return [_real(_typed(v)) for k, v in elements(text) if folded_key(k) == folded_key(key)]


def _from_rows(text: str, key: str) -> list[Any]:
    """From a table with keys in its first column or in its heading."""
    table = rows(text)
    headed = len(table) == 2 and len(table[0]) == len(table[1])
    named = table[1:] if headed else table
    down = [r[1] for r in named if len(r) == 2 and folded_key(r[0]) == folded_key(key)]
    if down:
        return [_real(_typed(v)) for v in down]
    if len(table) == 2 and len(table[0]) == len(table[1]):
        across = zip(table[0], table[1], strict=True)
        return [_real(_typed(v)) for k, v in across if folded_key(k) == folded_key(key)]
    return []


def _from_pairs(text: str, key: str) -> list[Any]:
    """From lines, each a key and a value; prose around them is no such line."""
    return [_real(_typed(v)) for k, v in pairs(text) if folded_key(k) == folded_key(key) and v]
