"""Construction of HTML elements, which are always balanced and whose text is escaped."""

from __future__ import annotations

import re

from falter.records.figures import Unit
from falter.records.numbers import NO_VALUE, shown
from falter.records.types import Estimate
from falter.report.escape import MAX_LABEL_CHARACTERS, Html, escape, text_only
from falter.report.words import few, provenance, reason

_VOID_ELEMENTS = frozenset({"br", "col", "input", "meta", "wbr"})

Attribute = str | int | float | None


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """Return an element. A child that is not `Html` is text and gets escaped.

    Attribute names are spelled with underscores: `class_`, `aria_label`. An attribute that is None
    is left out.
    """
    attributes_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text_only(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID_ELEMENTS:
        return Html(f"<{name}{attributes_text}>")
    inner = "".join(c if isinstance(c, Html) else escape(c) for c in children)
    return Html(f"<{name}{attributes_text}>{inner}</{name}>")


_BREAK_AFTER = re.compile(r"(?<=[a-z0-9])([_:/+=,@.-])(?=[A-Za-z0-9])")
_MAX_WORD_CHARACTERS, _CHARACTERS_PER_BREAK = 24, 12
_LONG_WORD = re.compile(r"[^\s<>&]{14,}")


def label(text: str, limit: int = MAX_LABEL_CHARACTERS) -> Html:
    """Return an untrusted name in its own writing direction, with possible line breaks.

    A long name may break after signs such as `_`, `-` and `/`. A piece longer than any word may
    break every few characters.
    """
    return tag("bdi", Html(_LONG_WORD.sub(_with_breaks, escape(text, limit))))


def _with_breaks(word: re.Match[str]) -> str:
    parts = _BREAK_AFTER.sub(r"\1<wbr>", word[0]).split("<wbr>")
    return "<wbr>".join(
        "<wbr>".join(
            part[at : at + _CHARACTERS_PER_BREAK]
            for at in range(0, len(part), _CHARACTERS_PER_BREAK)
        )
        if len(part) > _MAX_WORD_CHARACTERS
        else part
        for part in parts
    )


def number(estimate: Estimate, unit: Unit, sign: str = "") -> Html:
    """Return a number with its interval; the tooltip gives its origin. `sign` follows the number.

    An estimate without a value becomes a dash.
    """
    if estimate.value is None:
        return dash(estimate)
    text = shown(estimate, unit)
    value = tag("b", f"{text.value}{sign}")
    interval = tag("span", text.interval, class_="ci")
    kind = "num few" if few(estimate) else "num"
    return tag("span", value, " ", interval, class_=kind, title=provenance(estimate))


def dash(estimate: Estimate) -> Html:
    """Return the dash for a missing number, with the reason in the tooltip."""
    why = f"{reason(estimate.status)}\n{provenance(estimate)}"
    return tag("abbr", NO_VALUE, class_="none", title=why)


def head(*children: str, **attributes: Attribute) -> Html:
    """Return the heading of a column."""
    return tag("th", *children, scope="col", **attributes)


def cell(*children: str, **attributes: Attribute) -> Html:
    """Return a cell of a table."""
    return tag("td", *children, **attributes)


def scroll(table: Html, about: str) -> Html:
    """Return a table in a box that scrolls, also by keyboard; `about` is its accessible name."""
    return tag("div", table, class_="scroll", role="region", aria_label=about, tabindex=0)
