"""Where the variance comes from: a bar a method, and the numbers beneath it."""

from __future__ import annotations

from collections.abc import Mapping

from falter.analysis import PanelResult
from falter.core.records import Estimate
from falter.report import _numbers as n
from falter.report._escape import Html
from falter.report._markup import cell, head, number, tag
from falter.report._words import COMPONENTS, METHODS, part, provenance, told

__all__ = ["variance_section"]


def variance_section(panel: PanelResult) -> Html:
    """Every method that the analysis gives, side by side where there is room."""
    known = [m for m in METHODS if m in panel.components]
    known += [m for m in panel.components if m not in METHODS]
    return tag("div", *[_method(m, panel.components[m]) for m in known], class_="pair")


def _method(method: str, found: Mapping[str, Estimate]) -> Html:
    names = COMPONENTS.get(method, found)
    parts = {name: found[name] for name in names if name in found}
    rest = {name: estimate for name, estimate in found.items() if name not in parts}
    rows = [
        _row(part(method, name), name if name in parts else None, estimate)
        for name, estimate in (*parts.items(), *rest.items())
        if told(name, estimate)
    ]
    return tag(
        "div",
        tag("h4", METHODS.get(method, method)),
        _bar(method, parts),
        tag(
            "table",
            tag("thead", tag("tr", head("Part"), head("Value, interval", class_="r"))),
            tag("tbody", *rows),
            class_="plain parts",
        ),
    )


def _row(text: str, colour: str | None, estimate: Estimate) -> Html:
    swatch = tag("span", class_=f"swatch {_colour(colour)}") if colour else ""
    share = "brittleness" in estimate.measure
    value = number(estimate, "percent", " %") if share else number(estimate, "variance")
    return tag("tr", tag("th", swatch, text, scope="row"), cell(value, class_="r"))


def _bar(method: str, parts: Mapping[str, Estimate]) -> Html:
    """The parts as lengths; one that was estimated below zero has none."""
    sizes = {name: max(0.0, e.value or 0.0) for name, e in parts.items()}
    whole = sum(sizes.values())
    about = ", ".join(f"{part(method, name)} {n.variance(parts[name].value)}" for name in sizes)
    if whole <= 0.0:
        return tag("p", "Nothing varies that could be split.", class_="muted")
    rects, at = [], 0.0
    for name, size in sizes.items():
        estimate, width = parts[name], 100 * size / whole
        about_part = f"{part(method, name)}: {n.shown(estimate, 'variance').text}"
        rects.append(
            tag(
                "rect",
                tag("title", f"{about_part}\n{provenance(estimate)}"),
                x=f"{at:.3f}%",
                width=f"{width:.3f}%",
                height="100%",
                class_=_colour(name),
            )
        )
        at += width
    return tag("svg", *rects, class_="bar", role="img", aria_label=f"variance: {about}")


def _colour(name: str | None) -> str:
    """Items are quiet, what the prompt does is loud; the same in both methods."""
    return {
        "data": "c-item",
        "item": "c-item",
        "pert": "c-pert",
        "interaction": "c-pert",
        "condition": "c-cond",
        "run": "c-run",
    }.get(name or "", "c-item")
