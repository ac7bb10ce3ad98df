"""Parameters of a perturbation: filled in, checked, normalised."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, get_args

from falter.core.errors import InvalidValue, UnknownName, nearest
from falter.core.interfaces import Parameter, Perturbation
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
    """`language`: one whose resources are bundled."""
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
    except TypeError:  # a list among the values: no key for the cache
        return _filled(perturbation, params)


@lru_cache(maxsize=512, typed=True)
def _checked(perturbation: Perturbation, /, **params: Any) -> Mapping[str, Any]:
    return _filled(perturbation, params)


def _filled(perturbation: Perturbation, params: Mapping[str, Any]) -> Mapping[str, Any]:
    name = perturbation.name
    known = {parameter.name: parameter for parameter in perturbation.parameters}
    for given in params:
        if given not in known:
            raise UnknownName(f"parameter of {name}", given, known)
    full = {key: p.default for key, p in known.items()} | {
        key: _value(f"{name}.{key}", known[key], params[key]) for key in params
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
            f"no count beside rate={full['rate']!r}",
            hint="give a rate (share of places) or a count (number of edits), not both",
        )
    else:
        full["rate"] = None


def _value(argument: str, parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's type, or `InvalidValue`."""
    expected = _expected(parameter)
    if value is None and (parameter.default is None or parameter.name == "rate"):
        return None
    if parameter.type in (int, float):
        return _number(argument, parameter, value, expected)
    if parameter.type is tuple:
        return _words(argument, parameter, value, expected)
    if not isinstance(value, parameter.type):
        raise InvalidValue(argument, value, expected)
    if parameter.options and value not in parameter.options:
        raise InvalidValue(argument, value, expected, hint=_hint(str(value), parameter.options))
    return value


def _number(argument: str, parameter: Parameter, value: Any, expected: str) -> int | float:
    wanted = Integral if parameter.type is int else Real
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise InvalidValue(argument, value, expected)
    number: int | float = parameter.type(value)
    low = -math.inf if parameter.low is None else parameter.low
    high = math.inf if parameter.high is None else parameter.high
    if not (math.isfinite(number) and low <= number <= high):
        raise InvalidValue(argument, value, expected)
    return number


def _words(argument: str, parameter: Parameter, value: Any, expected: str) -> tuple[str, ...]:
    listed = (value,) if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(v, str) for v in listed):
        raise InvalidValue(argument, value, expected)
    for one in listed:
        if parameter.options and one not in parameter.options:
            raise InvalidValue(argument, one, expected, hint=_hint(one, parameter.options))
    return tuple(listed)


def _hint(value: str, options: Sequence[str]) -> str | None:
    close = nearest(value, options)
    return None if close is None else f"did you mean '{close}'?"


def _expected(parameter: Parameter) -> str:
    if parameter.options:
        return f"one of: {', '.join(parameter.options)}"
    kind = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}.get(
        parameter.type, "a list of texts"
    )
    if parameter.low is not None and parameter.high is not None:
        return f"{kind} from {parameter.low:g} to {parameter.high:g}"
    return kind if parameter.low is None else f"{kind} of at least {parameter.low:g}"
