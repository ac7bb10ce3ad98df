"""What people, or a judge, say about rewrites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from falter.core.errors import UsageError
from falter.core.ids import digest
from falter.core.records import Rewrite

__all__ = ["Decision", "Review", "Sample", "only_one"]

Decision = Literal["accept", "reject", "edit"]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A rewrite as it is shown for review, or one that was damaged on purpose.

    `key` and `author` name the rewrite it comes from; `flaw` says what was done to it, None for
    the rewrite as it is.
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
    """One rater's word on one sample: a decision, another text, a rating from 1 to 5, a comment."""

    sample: str
    rater: str
    decision: Decision | None = None
    text: str | None = None
    rating: int | None = None
    comment: str | None = None


def only_one(found: Sequence[Rewrite]) -> Rewrite | None:
    """The rewrite of a text, when there is one at most; raises when several authors made one."""
    if len(found) < 2:
        return found[0] if found else None
    names = sorted({rewrite.author for rewrite in found})
    raise UsageError(
        f"Texts for '{found[0].perturbation}' were rewritten by {len(names)}: {', '.join(names)}",
        hint=f"say whose to use: --rewriter {names[0]}, or 'rewriter: {names[0]}' in the file",
    )
