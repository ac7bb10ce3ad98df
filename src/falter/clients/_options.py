"""What a client may be told: one table a client, read in one place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from falter.clients._settings import ClientSettings
from falter.core.errors import InvalidValue, UnknownName
from falter.core.interfaces import Parameter
from falter.core.parameters import parameter_value

__all__ = ["OptionTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionTable:
    """The options of one client, and what else of its settings must or must not be given.

    `known` are its own options. Others are unknown, unless the client passes them on to a server
    or a library (`passes_on`). Then `ours` are names that falter sets itself, and `sampling` names
    of sampling settings, which `None` leaves out and no other value may set. `name` says what a
    model is called, for clients that need one; `unused` are settings that mean nothing to it,
    each with what to do instead.
    """

    client: str
    known: tuple[Parameter, ...] = ()
    passes_on: bool = False
    ours: Collection[str] = ()
    sampling: Collection[str] = ()
    name: str | None = None
    unused: Mapping[str, str] = field(default_factory=dict)

    def read(self, settings: ClientSettings) -> dict[str, Any]:
        """Every known option with its value or default, then those passed on, as they are."""
        if self.name is not None and not settings.name:
            raise InvalidValue("name", settings.name, self.name)
        for setting, hint in self.unused.items():
            value = getattr(settings, setting)
            if value is not None:
                raise InvalidValue(setting, value, "None", hint=hint)
        known = {parameter.name: parameter for parameter in self.known}
        options = {parameter.name: parameter.default for parameter in self.known}
        for name, value in settings.options.items():
            if name in known:
                options[name] = parameter_value(f"options.{name}", known[name], value)
            elif self.passes_on:
                self._check_passed_on(name, value)
                options[name] = value
            elif known:
                raise UnknownName(f"option of {self.client}", name, known)
            else:
                raise InvalidValue(f"options.{name}", value, f"no options for {self.client}")
        return options

    def _check_passed_on(self, name: str, value: Any) -> None:
        if name in self.ours:
            raise InvalidValue(f"options.{name}", value, "no option that falter sets itself")
        if name in self.sampling and value is not None:
            raise InvalidValue(
                f"options.{name}",
                value,
                "None, which leaves it out",
                hint="its value belongs in the sampling settings",
            )
