"""Reviews of rewrites, by people or by a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from falter.records.errors import UsageError
from falter.records.ids import digest
from falter.records.types import Rewrite

Decision = Literal["accept", "reject", "edit"]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A rewrite as it is shown for review, or one that was damaged on purpose.

    `key` and `author` identify the rewrite; `flaw` is the damage, None for the rewrite itself.
    """

    key: str
    author: str
    perturbation: str
    source: str
    shown: str
    params: Mapping[str, Any] = field(default_factory=dict)
    flaw: str | None = None

    @cached_property
    def id(self) -> str:
        return digest("sample", self.key, self.author, self.source, self.shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One rater's review of one sample: a decision, a new text, a rating from 1 to 5, a comment."""

    sample: str
    rater: str
    decision: Decision | None = None
    text: str | None = None
    rating: int | None = None
    comment: str | None = None


def only_one(rewrites: Sequence[Rewrite]) -> Rewrite | None:
    """The rewrite of a text, if there is one; rewrites by several authors raise."""
    if len(rewrites) < 2:
        return rewrites[0] if rewrites else None
    names = sorted({rewrite.author for rewrite in rewrites})
    name = rewrites[0].perturbation
    raise UsageError(
        f"Texts for '{name}' were rewritten by {len(names)}: {', '.join(names)}",
        hint=f"choose one: --rewriter {names[0]}, or 'rewriter: {names[0]}' in the file",
    )
