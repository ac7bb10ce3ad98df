"""Steps of a recipe: resolved from names and parameters, or parsed from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from falter.core.errors import InvalidValue, UnknownName
from falter.core.interfaces import Parameter, Perturbation
from falter.core.records import Prompt, Section, SectionKind, Step
from falter.perturbations._base import perturbations
from falter.perturbations._parameters import checked_parameters

__all__ = ["parse_step", "resolve_step"]

_FORM = "name, or name:parameter=value,parameter=value"


def resolve_step(name: str, params: Mapping[str, Any] | None = None) -> Step:
    """The step with every parameter spelled out, checked before anything is sent."""
    perturbation = perturbations.get(name)
    full = dict(checked_parameters(perturbation, params or {}))
    # Try it once, so that a bad pattern or file raises here.
    kind: SectionKind = next(iter(full.get("scope", ())), "input")
    probe = Prompt(sections=(Section(name="probe", kind=kind, text="probe"),))
    perturbation.applies(probe, **full)
    return Step(name=name, version=perturbation.version, params=full, reasons=perturbation.reasons)


def parse_step(text: str) -> Step:
    """A step from the command line: `typos`, `typos:count=4,kind=keyboard`, `human_typos:light`.

    An option that only one parameter has may stand without the parameter's name.

    Lists are separated by `|`, as in `typos:scope=input|choices`. A pattern to protect is one
    value, in which `|` has its usual meaning.
    """
    name, colon, rest = text.strip().partition(":")
    if not name or (colon and not rest):
        raise InvalidValue("step", text, _FORM)
    perturbation = perturbations.get(name)
    params: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            key, equals, value = _parameter_with(perturbation, key), "=", key
        if not key or not equals or key in params:
            raise InvalidValue("step", text, _FORM)
        params[key] = _parameter_value(perturbation, key, value)
    return resolve_step(name, params)


def _parameter_with(perturbation: Perturbation, value: str) -> str:
    """The one parameter that has this option: `human_typos:light`."""
    fitting = [p.name for p in perturbation.parameters if p.type is str and value in p.options]
    return fitting[0] if len(fitting) == 1 else ""


def _parameter_value(perturbation: Perturbation, key: str, value: str) -> Any:
    declared = {parameter.name: parameter for parameter in perturbation.parameters}
    if key not in declared:
        raise UnknownName(f"parameter of {perturbation.name}", key, declared)
    return _typed(declared[key], value)


def _typed(parameter: Parameter, value: str) -> Any:
    if parameter.type is tuple:
        return tuple(value.split("|")) if parameter.options else (value,)
    if parameter.type is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    if parameter.type in (int, float):
        try:
            return parameter.type(value)
        except ValueError:
            return value
    return value
