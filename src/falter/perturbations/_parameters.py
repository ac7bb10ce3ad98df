"""Parameters of a perturbation: filled in, checked, normalised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

from falter.core.errors import InvalidValue, UnknownName
from falter.core.interfaces import Parameter, Perturbation
from falter.core.parameters import parameter_value
from falter.core.records import SectionKind

__all__ = ["COUNT", "PROTECT", "checked_parameters", "language_parameter", "rate_parameter"]

COUNT = Parameter(
    name="count", type=int, default=None, low=0, help="exactly this many edits; replaces the rate"
)
PROTECT = Parameter(
    name="protect", type=tuple, default=(), help="regular expressions for text to leave alone"
)


def rate_parameter(default: float) -> Parameter:
    """`rate`: the share of eligible places to edit."""
    return Parameter(
        name="rate", type=float, default=default, low=0, high=1, help="share of places to edit"
    )


def scope_parameter(default: tuple[SectionKind, ...]) -> Parameter:
    """`scope`: the kinds of section to edit."""
    return Parameter(
        name="scope",
        type=tuple,
        default=default,
        help="kinds of section to edit",
        options=get_args(SectionKind),
    )


def language_parameter(languages: Sequence[str]) -> Parameter:
    """`language`: one of those with bundled resources."""
    return Parameter(
        name="language",
        type=str,
        default="en" if "en" in languages else sorted(languages)[0],
        help="language of the text",
        options=tuple(sorted(languages)),
    )


def checked_parameters(perturbation: Perturbation, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Every parameter with its value, in the order of declaration. Do not change the result.

    Numbers take the type the parameter declares, so that 1 and 1.0 are one value. Rate and count
    given together raise; a count sets the rate to None.
    """
    try:
        return _checked(perturbation, **params)  # type: ignore[arg-type]
    except TypeError:  # a list among the values cannot be a cache key
        return _filled(perturbation, params)


@lru_cache(maxsize=512, typed=True)
def _checked(perturbation: Perturbation, /, **params: Any) -> Mapping[str, Any]:
    return _filled(perturbation, params)


def _filled(perturbation: Perturbation, params: Mapping[str, Any]) -> Mapping[str, Any]:
    name = perturbation.name
    declared = {parameter.name: parameter for parameter in perturbation.parameters}
    for param in params:
        if param not in declared:
            raise UnknownName(f"parameter of {name}", param, declared)
    full = {key: p.default for key, p in declared.items()} | {
        key: None
        if key == "rate" and params[key] is None
        else parameter_value(f"{name}.{key}", declared[key], params[key])
        for key in params
    }
    if "rate" in full and "count" in full:
        _settle_dose(name, full, params)
    return full


def _settle_dose(name: str, full: dict[str, Any], params: Mapping[str, Any]) -> None:
    if full["count"] is None:
        if full["rate"] is None:
            raise InvalidValue(f"{name}.rate", None, "a number from 0 to 1, or a count")
    elif params.get("rate") is not None:
        raise InvalidValue(
            f"{name}.count",
            full["count"],
            f"no count together with rate={full['rate']!r}",
            hint="give a rate (share of places) or a count (number of edits), not both",
        )
    else:
        full["rate"] = None
