"""Floor 4: one module a paper: the experiments it is made of, and the figures that come of them."""

from __future__ import annotations

from falter.protocols._protocol import (
    Answered,
    Choices,
    Found,
    Part,
    ProtocolLike,
    TaskKind,
    Unavailable,
    protocols,
)

__all__ = [
    "Answered",
    "Choices",
    "Found",
    "Part",
    "ProtocolLike",
    "TaskKind",
    "Unavailable",
    "protocols",
]
