"""Reading a mapping strictly: every value is checked, and what nobody asked for is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from falter.core.errors import InvalidValue, UnknownName, UsageError, nearest

__all__ = ["Reader"]


class Reader:
    """One mapping of an experiment file. `where` is its path in the file, for the messages."""

    def __init__(self, data: Any, where: str) -> None:
        if not isinstance(data, Mapping):
            raise InvalidValue(where or "the experiment", data, "a mapping of names to values")
        self._data = {str(key): value for key, value in data.items()}
        self._where = where
        self._known: list[str] = []

    def name(self, key: str) -> str:
        """The full name of a value, as messages give it."""
        return f"{self._where}.{key}" if self._where else key

    def has(self, key: str) -> bool:
        return self._data.get(key) is not None

    def raw(self, key: str) -> Any:
        """The value as it is, None when absent."""
        self._known.append(key)
        return self._data.get(key)

    def text(self, key: str) -> str | None:
        value = self.raw(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise InvalidValue(self.name(key), value, "a text that is not empty")
        return value

    def one_of(self, key: str, options: Sequence[str]) -> str | None:
        value = self.text(key)
        if value is not None and value not in options:
            close = nearest(value, options)
            raise InvalidValue(
                self.name(key),
                value,
                f"one of: {', '.join(options)}",
                hint=f"did you mean '{close}'?" if close else None,
            )
        return value

    def number(self, key: str, low: float, high: float | None = None) -> float | None:
        value = self.raw(key)
        if value is None:
            return None
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good or value < low or (high is not None and value > high) or value != value:
            raise InvalidValue(self.name(key), value, f"a number {_range(low, high)}")
        return float(value)

    def whole(self, key: str, low: int, high: int | None = None) -> int | None:
        value = self.raw(key)
        if value is None:
            return None
        good = isinstance(value, int) and not isinstance(value, bool)
        if not good or value < low or (high is not None and value > high):
            raise InvalidValue(self.name(key), value, f"a whole number {_range(low, high)}")
        return int(value)

    def flag(self, key: str) -> bool:
        value = self.raw(key)
        if value is not None and not isinstance(value, bool):
            raise InvalidValue(self.name(key), value, "true or false")
        return bool(value)

    def texts(self, key: str) -> tuple[str, ...]:
        """A text or a list of texts."""
        value = self.raw(key)
        if value is None:
            return ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, Sequence) or not all(isinstance(v, str) and v for v in values):
            raise InvalidValue(self.name(key), value, "a text or a list of texts")
        return tuple(values)

    def entries(self, key: str) -> list[Any]:
        """A list, or one entry that stands for a list of one."""
        value = self.raw(key)
        if value is None:
            return []
        return list(value) if isinstance(value, (list, tuple)) else [value]

    def mapping(self, key: str) -> dict[str, Any]:
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise InvalidValue(self.name(key), value, "a mapping of names to values")
        return {str(k): v for k, v in value.items()}

    def child(self, key: str) -> Reader | None:
        value = self.raw(key)
        return None if value is None else Reader(value, self.name(key))

    def finish(self) -> None:
        """Raise when something was given that was not read."""
        for key in self._data:
            if key not in self._known:
                kind = f"setting of {self._where}" if self._where else "setting of an experiment"
                raise UnknownName(kind, key, self._known)

    def need(self, key: str, what: str) -> None:
        """Raise when a value that must be there is not."""
        if not self.has(key):
            raise UsageError(f"{self.name(key)} is missing", hint=what)


def _range(low: float, high: float | None) -> str:
    return f"from {low:g} to {high:g}" if high is not None else f"of at least {low:g}"
