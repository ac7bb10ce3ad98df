"""How sure a mean would be: the planned design, and what twice as much of each part would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from statistics import fmean

from falter.analysis import Analysis
from falter.core.errors import InvalidValue, UnknownName, UsageError
from falter.stats import Design, VarianceParts, mean_error, normal_quantile

__all__ = ["DesignError", "components_in", "components_of", "design_errors"]

NAMES = tuple(field.name for field in fields(VarianceParts))
SIZES = tuple(field.name for field in fields(Design))


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignError:
    """A design with the half-widths of its mean: for these conditions, and for conditions like
    these. `change` says how it differs from what was planned."""

    change: str
    design: Design
    these: float
    like_these: float


def components_in(text: str) -> VarianceParts:
    """`item=0.12,condition=0.001,interaction=0.04,run=0.05` as variance components.

    The item's has to be there; conditions and interaction are 0 where they are not named.
    """
    found: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name not in NAMES:
            raise UnknownName("component in --components", name, NAMES)
        if name in found:
            raise InvalidValue("--components", text, f"each name once, not '{name}' twice")
        try:
            found[name] = float(value)
        except ValueError:
            raise InvalidValue(
                f"--components {name}", value, "a variance of scores from 0 to 1, as 0.04"
            ) from None
    if "item" not in found:
        raise InvalidValue("--components", text, "item=VARIANCE and others, parted by commas")
    return VarianceParts(**found)


def components_of(analysis: Analysis) -> tuple[VarianceParts, tuple[str, ...]]:
    """The crossed components of results, means over their panels, and what is to be said of them.

    A component that came out below 0 counts as 0.
    """
    crossed = [panel.components.get("crossed", {}) for panel in analysis.panels]
    values = {
        name: [e.value for part in crossed if (e := part.get(name)) and e.value is not None]
        for name in NAMES
    }
    if not values["item"]:
        raise UsageError(
            "The results have no variance components",
            hint="they need two items and two conditions or more; give them with --components",
        )
    means = {name: fmean(known) for name, known in values.items() if known}
    told = ", ".join(f"{name} {mean:.3g}" for name, mean in means.items())
    panels = len(values["item"])
    notes = [f"From the results: {told} ({panels} panel{'s' if panels > 1 else ''})."]
    below = [name for name, mean in means.items() if mean < 0.0]
    if below:
        notes.append(f"Below 0, and counted as 0: {', '.join(below)}.")
    return VarianceParts(**{name: max(0.0, mean) for name, mean in means.items()}), tuple(notes)


def design_errors(
    parts: VarianceParts, planned: Design, *, level: float = 0.95
) -> list[DesignError]:
    """The planned design, and those with twice the items, conditions, draws and repeats."""
    designs: Mapping[str, Design] = {
        "as planned": planned,
        **{f"2 × {size}": replace(planned, **{size: 2 * getattr(planned, size)})
           for size in SIZES},
    }  # fmt: skip
    quantile = normal_quantile(level)
    return [
        DesignError(
            change=change,
            design=design,
            these=quantile * mean_error(parts, design),
            like_these=quantile * mean_error(parts, design, like_these=True),
        )
        for change, design in designs.items()
    ]
