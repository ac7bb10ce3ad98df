"""What became of the meaning, as a section of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from falter.analysis import Meaning
from falter.report._escape import Html
from falter.report._markup import cell, head, label, tag
from falter.report._meaning import ABOUT, HEADS, cells, failures
from falter.report._tables import scroll

__all__ = ["meaning_section"]


def meaning_section(found: Sequence[Meaning]) -> Html:
    """A table a task; the items that lost something behind a click."""
    parts: list[Html] = []
    for task, members in groupby(found, key=lambda one: one.task):
        listed = list(members)
        parts.append(_table(task, listed))
        parts += [_failing(one) for one in listed if one.failing]
    return Html("".join([*parts, tag("p", ABOUT, class_="small muted")]))


def _table(task: str, members: Sequence[Meaning]) -> Html:
    top = tag("tr", head(task), *[head(name.capitalize(), class_="r") for name in HEADS])
    rows = [
        tag(
            "tr",
            tag("th", label(one.recipe, 80), scope="row"),
            *[cell(text, class_="r") for text in cells(one)],
        )
        for one in members
    ]
    table = tag("table", tag("thead", top), tag("tbody", *rows), class_="plain full")
    return scroll(table, f"meaning, {task}")


def _failing(one: Meaning) -> Html:
    lost = [tag("li", label(text, 200)) for text in failures(one)]
    return tag("details", tag("summary", label(one.recipe, 80), " lost"), tag("ul", *lost))
