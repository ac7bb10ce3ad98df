"""Elements, built so that they are balanced and their text is escaped."""

from __future__ import annotations

import re

from falter.records.figures import Unit
from falter.records.numbers import NONE, shown
from falter.records.types import Estimate
from falter.report.escape import LABEL, Html, escape, text_only
from falter.report.words import few, provenance, reason

_VOID = frozenset({"br", "col", "input", "meta", "wbr"})

Attribute = str | int | float | None


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """An element. Children that are not `Html` are text; `class_` and `aria_label` are spelled
    with underscores; attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text_only(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    inner = "".join(c if isinstance(c, Html) else escape(c) for c in children)
    return Html(f"<{name}{written}>{inner}</{name}>")


_JOINT = re.compile(r"(?<=[a-z0-9])([_:/+=,@.-])(?=[A-Za-z0-9])")
_LONGEST_WORD, _CHUNK = 24, 12
_LONG = re.compile(r"[^\s<>&]{14,}")


def label(text: str, limit: int = LABEL) -> Html:
    """A name from outside, in its own writing direction; a long one may break at its joints.

    What has none, and is longer than any word, may break anywhere.
    """
    return tag("bdi", Html(_LONG.sub(_with_breaks, escape(text, limit))))


def _with_breaks(word: re.Match[str]) -> str:
    parts = _JOINT.sub(r"\1<wbr>", word[0]).split("<wbr>")
    return "<wbr>".join(
        "<wbr>".join(part[at : at + _CHUNK] for at in range(0, len(part), _CHUNK))
        if len(part) > _LONGEST_WORD
        else part
        for part in parts
    )


def number(estimate: Estimate, unit: Unit, sign: str = "") -> Html:
    """A number with its interval; the tooltip says how it was computed."""
    if estimate.value is None:
        return dash(estimate)
    text = shown(estimate, unit)
    value = tag("b", f"{text.value}{sign}")
    interval = tag("span", text.interval, class_="ci")
    kind = "num few" if few(estimate) else "num"
    return tag("span", value, " ", interval, class_=kind, title=provenance(estimate))


def dash(estimate: Estimate) -> Html:
    """The dash for a number that cannot be given, with the reason in the tooltip."""
    why = f"{reason(estimate.status)}\n{provenance(estimate)}"
    return tag("abbr", NONE, class_="none", title=why)


def head(*children: str, **attributes: Attribute) -> Html:
    """The heading of a column."""
    return tag("th", *children, scope="col", **attributes)


def cell(*children: str, **attributes: Attribute) -> Html:
    """A cell of a table."""
    return tag("td", *children, **attributes)


def scroll(table: Html, about: str) -> Html:
    """A table in a box that scrolls, also by keyboard."""
    return tag("div", table, class_="scroll", role="region", aria_label=about, tabindex=0)
