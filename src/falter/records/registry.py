"""Generic registry of named objects, filled by decorators and by entry points."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from falter.records.errors import DuplicateName, PluginError, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """Objects by name, built-in ones and those of plug-ins.

    An entry point `name = "module:attribute"` is loaded when its name is needed. An entry point
    `name = "module"` is imported as a whole, and registers its objects by decorator. Unknown and
    duplicate names raise an error.
    """

    def __init__(self, kind: str, entry_points: str) -> None:
        self.kind = kind
        self.entry_points = entry_points
        self._objects: dict[str, T] = {}
        self._unloaded: dict[str, importlib.metadata.EntryPoint] = {}
        self._scanned = False

    def register(self, name: str, thing: T) -> T:
        """Add one object under its name; raise DuplicateName if the name belongs to another object.

        Raise PluginError if the object has a `name` attribute with another name: stored results
        refer to that name.
        """
        own = getattr(thing, "name", name)
        if isinstance(own, str) and own != name:
            raise PluginError(
                f"The {self.kind} '{name}' is registered under that name, but its own name is "
                f"'{own}'",
                hint="give both the same name",
            )
        if name in self._objects and self._objects[name] is not thing:
            raise DuplicateName(
                f"The {self.kind} '{name}' is registered twice",
                hint="give one of the two another name",
            )
        self._objects[name] = thing
        return thing

    def registers(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers an object under this name."""
        return lambda thing: self.register(name, thing)

    def get(self, name: str) -> T:
        """Return the object with this name; raise `UnknownName` with the nearest name."""
        self._scan_entry_points()
        if name not in self._objects:
            if name not in self._unloaded:
                raise UnknownName(self.kind, name, self.names())
            self.register(name, self._load(self._unloaded[name]))
        return self._objects[name]

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        self._scan_entry_points()
        return sorted({*self._objects, *self._unloaded})

    def __iter__(self) -> Iterator[T]:
        return (self.get(name) for name in self.names())

    def __contains__(self, name: object) -> bool:
        self._scan_entry_points()
        return name in self._objects or name in self._unloaded

    def _scan_entry_points(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        for entry in importlib.metadata.entry_points(group=self.entry_points):
            if ":" not in entry.value:
                self._load(entry)
                continue
            registered = self._unloaded.setdefault(entry.name, entry)
            if registered.value != entry.value:
                raise DuplicateName(
                    f"The {self.kind} '{entry.name}' is offered by {registered.value} and by "
                    f"{entry.value}",
                    hint="uninstall one of the two packages",
                )

    def _load(self, entry: importlib.metadata.EntryPoint) -> T:
        try:
            thing: T = entry.load()
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"The {self.kind} plug-in '{entry.name}' ({entry.value}) could not be loaded: "
                f"{error!r}",
                hint="update or uninstall the package that offers it",
            ) from error
        return thing
