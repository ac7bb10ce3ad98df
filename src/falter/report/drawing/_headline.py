"""The few numbers to remember, in large print."""

from __future__ import annotations

from falter.figures import Headline, HeadNumber
from falter.figures import numbers as n
from falter.report._escape import Html
from falter.report._markup import label, number, tag

__all__ = ["head_numbers"]


def head_numbers(figure: Headline) -> Html:
    """Name, number with its interval, and an explanation; the signature comes last."""
    numbers = tag("dl", *map(_number, figure.numbers), class_="numbers")
    if not figure.signature:
        return numbers
    signature = tag("p", tag("code", label(figure.signature, 1_000)), class_="signature")
    return Html(numbers + signature)


def _number(head: HeadNumber) -> Html:
    unit = " %" if head.unit == "percent" else ""
    value = tag("span", n.NONE, class_="none")
    if head.estimate is not None:
        value = number(head.estimate, head.unit, unit)
    return tag(
        "div",
        tag("dt", head.label),
        tag("dd", value),
        tag("dd", label(head.about, 200), class_="small muted"),
    )
