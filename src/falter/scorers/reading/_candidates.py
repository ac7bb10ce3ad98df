"""An answer from a closed set out of what surrounds it: boxes, objects, elements, lists, tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._cleaning import answer_part, boxed, plain
from falter.scorers.reading._closed import settled, sole
from falter.scorers.reading._mentions import ANY, who
from falter.scorers.reading._words import FINAL
from falter.scorers.reading._wrapped import (
    elements,
    folded_key,
    is_schema,
    leaves,
    objects,
    rows,
)

Mark = Callable[[str], str]
"""Puts tokens in the place of mentions."""

_ASIDE = late_regex(
    r"reason|explan|comment|evidence|confiden|question|choices|options|labels|draft|check"
    r"|thought|note|rationale|analysis"
    r"|justif|why|enum|description|probab|score|input|text|begründung|raison|motivo|first"
    r"|previous|index|alternativ|runner|second"
)
_CHIEF = late_regex(
    r"final|answer|^label$|^class$|^category$|result|prediction|output|choice|antwort|respuesta"
    r"|rponse|reponse|réponse|risposta|antwoord|resposta"
    r"|正解|答え|回答"
)
_UNDECIDED = object()


def read_candidate(reply: str, mark: Mark, count: int, *, attributive: bool = False) -> int | None:
    """The index of the one candidate that a reply settles on."""
    text = answer_part(reply)
    if text is None:
        return None
    alone = sole(mark(plain(text)))
    if alone is not None:
        return alone
    for look in (_in_box, _in_object, _in_element, _in_checkboxes, _in_table):
        found = look(text, mark)
        if found is not _UNDECIDED:
            return found  # type: ignore[no-any-return]
    prose = _without_runners_up(_without_objects(plain(_without_rows(text))), mark)
    return settled(_listed(mark(prose)), count, _stressed(text, mark), attributive=attributive)


_BOLD = late_regex(r"\*\*([^*\n]{1,80})\*\*|__([^_\n]{1,80})__")


def _stressed(text: str, mark: Mark) -> int | None:
    """The only candidate that stands in bold type by itself."""
    found = {_lead_or_sole(mark(plain(m[1] or m[2]))) for m in _BOLD.finditer(text)} - {None}
    return found.pop() if len(found) == 1 else None


def _lead_or_sole(text: str) -> int | None:
    """The candidate that bold words are, or that they begin with in a line of a list."""
    alone = sole(text)
    head = _HEAD.match(text)
    return alone if alone is not None or head is None else who(head[1])


def _without_rows(text: str) -> str:
    """The text without the rows of tables, where anything else is left."""
    left = re.sub(r"^[ \t]*\|[^\n]*\|[ \t]*$", "", text, flags=re.MULTILINE)
    return left if left.strip() else text


def _in_box(text: str, mark: Mark) -> Any:
    boxes = boxed(text)
    if not boxes:
        return _UNDECIDED
    content = plain(boxes[-1])
    return sole(mark(content)) if content else None


def _in_object(text: str, mark: Mark) -> Any:
    """From a reply that is an object, or whose last object is about the candidates."""
    found = objects(text)
    if not found:
        return _UNDECIDED
    last = found[-1]
    if is_schema(last.value):
        return None
    if len(found) > 1 and not text[found[-2].end : last.start].strip(" ,\n"):
        several = {_named_in(f.value, mark) for f in found} - {None}
        if len(several) > 1:
            return None
    values = {"/".join(map(folded_key, path)): (path, value) for path, value in leaves(last.value)}
    named: dict[str, int] = {}
    for key, (_, value) in values.items():
        said = isinstance(value, str) or (isinstance(value, bool) and _CHIEF.search(key))
        index = (
            sole(mark(str(value).lower() if value in (True, False) else value)) if said else None
        )
        if index is not None and not _ASIDE.search(key):
            named[key] = index
    mostly = last.end - last.start > 0.6 * len(text.strip("`json \n"))
    empty = [
        k
        for k, (_, value) in values.items()
        if _CHIEF.search(k) and k not in named and not _ASIDE.search(k)
    ]
    if (empty and not any(_CHIEF.search(k) for k in named)) or any("error" in k for k in values):
        named = {}
    chosen = _chosen(named)
    if chosen is not None:
        return chosen if chosen >= 0 else None
    chosen = _weighted(values, mark)
    if chosen is not None:
        return chosen
    return None if mostly else _UNDECIDED


def _named_in(value: Any, mark: Mark) -> int | None:
    """The first candidate among the values of an object."""
    said = (sole(mark(v)) for _, v in leaves(value) if isinstance(v, str))
    return next((index for index in said if index is not None), None)


def _chosen(named: Mapping[str, int]) -> int | None:
    """The candidate under the chief key, or the only one; -1 for several, None for none."""
    for keys in (
        [k for k in named if "final" in k],
        [k for k in named if _CHIEF.search(k)],
        list(named),
    ):
        indices = {named[k] for k in keys}
        if indices:
            return indices.pop() if len(indices) == 1 else -1
    return None


def _weighted(values: Mapping[str, tuple[tuple[str, ...], Any]], mark: Mark) -> int | None:
    """The candidate with the highest number, or the only true one, in an object keyed by them."""
    weights: dict[int, float] = {}
    for path, value in values.values():
        index = sole(mark(path[-1])) if path else None
        if index is not None and isinstance(value, (int, float)):
            weights[index] = float(value)
    best = [i for i, w in weights.items() if w == max(weights.values())]
    return best[0] if len(weights) > 1 and len(best) == 1 and max(weights.values()) > 0 else None


def _in_element(text: str, mark: Mark) -> Any:
    named = {}
    for name, content in elements(text):
        index = sole(mark(content))
        if index is not None and not _ASIDE.search(folded_key(name)):
            named[folded_key(name)] = index
    chosen = _chosen(named)
    if chosen is None:
        return _UNDECIDED
    return chosen if chosen >= 0 else None


_RUNNER_UP = late_regex(
    r"^[\W_]*(?:secondary|second (?:choice|guess|best)|runner-?up|alternatives?|fallback|backup"
    r"|also (?:possible|considered)|zweitens?|alternative\w*|sekundär|secondaire|secundari[ao]"
    r"|secondari[ao]|alternativ[ao]s?|secundair|alternatief)\b[^\n:：]{0,30}[:：][^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)


def _without_runners_up(text: str, mark: Mark) -> str:
    """The text without lines whose key says that they hold second choices, beside a first one."""
    left = _RUNNER_UP.sub("", text)
    return left if left != text and re.search(ANY, mark(left)) else text


_BOX = late_regex(
    r"^[ \t]*(?:[-*+]|\d+[.)])?[ \t]*(\[[ xX✓✔]?\]|[☐☑☒⬜✅❌🔘○●◯◉])[ \t]*([^\n]*)$", re.MULTILINE
)
_TICKED = frozenset({"[x]", "[X]", "[✓]", "[✔]", "☑", "☒", "✅", "🔘", "●", "◉"})


def _in_checkboxes(text: str, mark: Mark) -> Any:
    """The one box that is ticked in a list in which each box has a candidate."""
    lines = [(m[1] in _TICKED, _lead(mark(plain(m[2])))) for m in _BOX.finditer(text)]
    if len(lines) < 2 or any(index is None for _, index in lines):
        return _UNDECIDED
    ticked = {index for tick, index in lines if tick}
    return ticked.pop() if len(ticked) == 1 else None


def _lead(text: str) -> int | None:
    """The candidate at the beginning of a text."""
    match = re.match(rf"[\s\"'*_(\[]*({ANY})", text)
    index = who(match[1]) if match else -1
    return index if index >= 0 else None


_GOOD = late_regex(
    r"^[\W_]*(?:yes|correct|right|best|true|match|chosen|selected|ja|oui|sí|sì|sim|richtig"
    r"|はい)\b|[✓✔✅★◎○]",
    re.IGNORECASE,
)


def _in_table(text: str, mark: Mark) -> Any:
    """The one row that is bold or affirmed in a table with a candidate in each row."""
    table = [(_lead(mark(plain(row[0]))), row) for row in rows(text) if len(row) > 1]
    table = [(index, row) for index, row in table if index is not None]
    if len({index for index, _ in table}) < 2:
        return _UNDECIDED
    bold = {i for i, row in table if any(c.startswith("**") for c in row[1:])}
    bold = bold or {i for i, row in table if row[0].startswith("**")}
    good = {i for i, row in table if _GOOD.search(plain(row[1]))}
    good = good or {i for i, row in table if _GOOD.search(plain(row[-1]))}
    behind = text[text.rfind("|") + 1 :]
    if re.search(ANY, mark(plain(behind))):
        return _UNDECIDED
    for hits in (bold, good):
        if len(hits) == 1:
            return hits.pop()
    outside = _without_rows(text)
    named = outside != text and re.search(ANY, mark(plain(outside)))
    return _UNDECIDED if named else None


def _without_objects(text: str) -> str:
    """The text with its objects taken out; what they say has been looked at."""
    for found in reversed(objects(text)):
        if found.end - found.start > 2:
            text = text[: found.start] + " … " + text[found.end :]
    return text


_HEAD = late_regex(rf"^[\W_0-9]*?({ANY})\s*(?:[.):：—–-]|\s-\s|\([^)]*\)\s*:)\s*\S")
_KEYED = late_regex(rf"^[\W_\d]*[^\W\d][^:：=\n\ue000-\uf8ff]{{0,40}}[:：=]\s*({ANY})[\s.*_]*$")
_ONLY = late_regex(rf"^[\W_\d]*?({ANY})[\W_]*$")
_FINALLY = late_regex(FINAL, re.IGNORECASE)


def _listed(text: str) -> str:
    """The text with lines that go through several candidates as lines of a list, not answers."""
    lines = text.split("\n")
    verdict = _verdict(lines)
    for pattern in (_HEAD, _KEYED, _ONLY):
        heads = [pattern.match(line) for line in lines]
        if pattern is not _HEAD:
            heads = [None if _FINALLY.search(x) else h for x, h in zip(lines, heads, strict=True)]
        if pattern is _ONLY and heads[-1] and not all(heads):
            continue
        if len({who(m[1]) for m in heads if m}) < 2:
            continue
        lines = [
            line[: m.end(1)] + " x" + line[m.end(1) :] if m else line
            for line, m in zip(lines, heads, strict=True)
        ]
    return "\n".join(lines) + verdict


_WRONG = late_regex(
    r"[\s:：.)(*_–—-]*(?:(?:is |this is |that is |ist |est |es |è |é )?(?:no\b|not\b|wrong|incorrect"  # noqa: E501
    r"|false|out\b|ruled out|excluded|eliminated|impossible|doesn't|does not|isn't|n/a|nein|falsch"
    r"|nicht|kein|scheidet|faux|non\b|incorrecte?|incorrect[ao]|fals[ao]|sbagliat[ao]|nee\b|fout"
    r"|não\b|errad[ao])|[❌✗✘×✕])|[^\n]*(?:[❌✗✘✕]|[–—(-]\s*(?:wrong|incorrect|no|false|falsch|faux"
    r"|incorrect[ao]|fout|errad[ao])\b[\s.)]*$)",
    re.IGNORECASE,
)
_RIGHT = late_regex(
    r"[\s:：.)(*_–—-]*(?:(?:is |this is |that is |ist |est |es |è |é )?(?:the )?(?:yes\b|correct"
    r"|right\b|true\b|answer|match|best|ja\b|richtig|korrekt|stimmt|oui\b|juste|vrai|sí\b"
    r"|correct[ao]"
    r"|sì\b|giust[ao]|corrett[ao]|juist|klopt|sim\b|cert[ao]\b)|[✓✔✅★])|[^\n]*(?:[✓✔✅★]"
    r"|[–—(-]\s*(?:correct|right|yes|true|richtig|juste|correct[ao]|juist|cert[ao])\b[\s.)]*$)",
    re.IGNORECASE,
)


_ANSWERED = late_regex(
    rf"\b(?:answer|choice|option) is[\W_]*{ANY}|\b(?:antwort|réponse|respuesta|risposta|antwoord"
    rf"|resposta)\s(?:[^\W\d]+\s)?(?:ist|est|es|è|is|é)[\W_]*{ANY}",
    re.IGNORECASE,
)
_SIGNED = late_regex(rf"^[\W_0-9]*?({ANY})(?=\W*[✅❌✓✔✗✘])")


def _verdict(lines: Sequence[str]) -> str:
    """A line that says which of the listed candidates is the only one called right."""
    heads = [(m, line) for line in lines if (m := _HEAD.match(line) or _SIGNED.match(line))]
    if any(_ANSWERED.search(line) for line in lines if not _HEAD.match(line)):
        return ""  # the list goes through the others
    right = {m[1] for m, line in heads if _RIGHT.match(line, m.end(1))}
    wrong = {m[1] for m, line in heads if _WRONG.match(line, m.end(1))}
    if len({m[1] for m, _ in heads}) < 2 or len(right) != 1 or right & wrong:
        return ""
    judged = len(wrong | right) == len({m[1] for m, _ in heads})
    signed = [m[1] for m, line in heads if _TICK_BEHIND.search(line, m.end(1))]
    return f"\nAnswer: {right.pop()}" if judged or len(signed) == 1 else ""


_TICKED_SIGN = r"[✓✔✅☑]|[(\[](?:correct|right answer|richtig|correcte?|correct[ao]|juist)[)\]]"
_TICK_BEHIND = late_regex(rf"(?:{_TICKED_SIGN})\W*$", re.IGNORECASE)
