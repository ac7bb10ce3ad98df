"""Answers with several parts: what they are called, and in which form they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerKey:
    """One part of an answer that has several.

    `heading` names it in plain text; `many` says that it is a list; `choices` are the values it
    may take, if not any; an `optional` one may be left out.
    """

    name: str
    about: str = ""
    heading: str = ""
    many: bool = False
    choices: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSchema:
    """The parts of an answer, and the form in which the prompt asks for them.

    `plain` is the rule for plain text in the prompt's language; there, `lines` says whether each
    part is one line, `name: value`, and `empty` is the word for a part without a value.
    """

    keys: tuple[AnswerKey, ...]
    form: str = "json"
    plain: str = ""
    lines: bool = False
    empty: str = ""

    def identity(self) -> list[Any]:
        """What makes two schemas the same, as plain JSON."""
        keys = [[k.name, k.about, k.heading, k.many, k.choices, k.optional] for k in self.keys]
        return [keys, self.form, self.plain, self.lines, self.empty]


# What a function under test may return, beside a plain text.


@dataclass(frozen=True, slots=True)
class Scored:
    """A text, and a score from 0 to 1 that the function gives it by itself.

    >>> Scored("Paris", 1.0)
    Scored(text='Paris', score=1.0)
    """

    text: str
    score: float | None = None
