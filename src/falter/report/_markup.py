"""Elements, built so that they are balanced and their text is escaped."""

from __future__ import annotations

from falter.core.records import Estimate
from falter.report._escape import LABEL, Html, escape, text_only
from falter.report._numbers import Kind, shown
from falter.report._words import provenance, reason

__all__ = ["cell", "dash", "head", "label", "number", "tag"]

_VOID = frozenset({"br", "col", "meta", "wbr"})

Attribute = str | int | float | None


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """An element. Children that are not `Html` are text; `class_` and `aria_label` are spelled
    with underscores; an attribute that is None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text_only(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    inner = "".join(c if isinstance(c, Html) else escape(c) for c in children)
    return Html(f"<{name}{given}>{inner}</{name}>")


def label(text: str, limit: int = LABEL) -> Html:
    """A name from outside, in its own direction of writing."""
    return tag("bdi", escape(text, limit))


def number(estimate: Estimate, kind: Kind, unit: str = "") -> Html:
    """A number with its interval; where it comes from stands in the tooltip."""
    found = shown(estimate, kind)
    if estimate.value is None:
        return dash(estimate)
    value = tag("b", f"{found.value}{unit}")
    interval = tag("span", found.interval, class_="ci")
    return tag("span", value, " ", interval, class_="num", title=provenance(estimate))


def dash(estimate: Estimate) -> Html:
    """What stands for a number that could not be had, with the reason in the tooltip."""
    why = f"{reason(estimate.status)}\n{provenance(estimate)}"
    return tag("abbr", shown(estimate, "points").value, class_="none", title=why)


def head(*children: str, **attributes: Attribute) -> Html:
    """The heading of a column."""
    return tag("th", *children, scope="col", **attributes)


def cell(*children: str, **attributes: Attribute) -> Html:
    """A cell of a table."""
    return tag("td", *children, **attributes)
