"""Values of declared parameters: checked and converted to the declared type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from falter.core.errors import InvalidValue, nearest
from falter.core.interfaces import Parameter

__all__ = ["parameter_value"]

KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    tuple: "a list of texts",
    dict: "a mapping of names to numbers",
}


def parameter_value(argument: str, parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's type, so that 1 and 1.0 are one value; else `InvalidValue`.

    None is accepted if it is the default. A text with a `low` must not be empty; the
    range of a mapping holds for each of its numbers.
    """
    if value is None and parameter.default is None:
        return None
    if parameter.type in (int, float):
        return _number(argument, parameter, value)
    if parameter.type is tuple:
        return _texts(argument, parameter, value)
    if parameter.type is dict:
        if not isinstance(value, Mapping):
            raise InvalidValue(argument, value, _expected(parameter))
        return {name: _number(f"{argument}.{name}", parameter, n) for name, n in value.items()}
    if not isinstance(value, parameter.type):
        raise InvalidValue(argument, value, _expected(parameter))
    if parameter.type is str and parameter.low and not value:
        raise InvalidValue(argument, value, _expected(parameter))
    _check_listed(argument, parameter, value)
    return value


def _number(argument: str, parameter: Parameter, value: Any) -> int | float:
    kind: type = int if parameter.type is int else float
    if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
        raise InvalidValue(argument, value, _expected(parameter, number=True))
    number: int | float = kind(value)
    low = -math.inf if parameter.low is None else parameter.low
    high = math.inf if parameter.high is None else parameter.high
    if not (math.isfinite(number) and low <= number <= high):
        raise InvalidValue(argument, value, _expected(parameter, number=True))
    return number


def _texts(argument: str, parameter: Parameter, value: Any) -> tuple[str, ...]:
    listed: Sequence[Any] = (value,) if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(text, str) for text in listed):
        raise InvalidValue(argument, value, _expected(parameter))
    for text in listed:
        _check_listed(argument, parameter, text)
    return tuple(listed)


def _check_listed(argument: str, parameter: Parameter, value: Any) -> None:
    if parameter.options and value not in parameter.options:
        close = nearest(str(value), parameter.options)
        hint = None if close is None else f"did you mean '{close}'?"
        raise InvalidValue(argument, value, _expected(parameter), hint=hint)


def _expected(parameter: Parameter, *, number: bool = False) -> str:
    if parameter.options:
        return f"one of: {', '.join(parameter.options)}"
    kind = KINDS[float if number and parameter.type is dict else parameter.type]
    if parameter.type is str:
        return f"{kind} that is not empty" if parameter.low else kind
    if parameter.low is not None and parameter.high is not None:
        return f"{kind} from {parameter.low:g} to {parameter.high:g}"
    return kind if parameter.low is None else f"{kind} of at least {parameter.low:g}"
