"""Token sequences with common prefixes, packed into rows (token trees) that hold them once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Scored:
    """A token sequence of which the tokens from `start` on are to be scored; `start` is above 0."""

    tokens: tuple[int, ...]
    start: int
    number: int

    @property
    def read(self) -> int:
        """How many tokens a model has to read: all but the last."""
        return len(self.tokens) - 1


@dataclass(slots=True)
class Row:
    """A tree of tokens written into one row, parents before children.

    `parents` are places in the row, -1 for those that follow the prefix; `positions` count from
    the beginning of the sequence, prefix included. `wanted` says which token's likelihood is read
    off behind which place, for which sequence.
    """

    prefix: tuple[int, ...]
    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    wanted: list[tuple[int, int, int]] = field(default_factory=list)
    """(place in the row, target token, number of the sequence)"""


def common_prefix_length(first: Sequence[int], second: Sequence[int]) -> int:
    """The length of the prefix that both share."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    low, high = 0, shorter
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low


def groups(sequences: Sequence[Scored], room: int) -> Iterator[tuple[int, list[Scored]]]:
    """Sorted neighbours whose tree fits into one row, with the length of the prefix all share.

    What counts is the tree without that prefix; a single sequence may exceed the room. Two stay
    apart when together they would give up more than half a row of shared prefix: that is cheaper
    to read once and keep. The prefix ends before the first place that is read off.
    """
    group: list[Scored] = []
    shared = size = 0
    for sequence in sorted(sequences):
        if group:
            agreed = common_prefix_length(group[-1].tokens, sequence.tokens)
            left = min(shared, agreed, sequence.start - 1)
            new = sequence.read - min(agreed, sequence.read, group[-1].read)
            grown = size + (shared - left) + new
            if grown <= room and shared - left <= room // 2:
                group.append(sequence)
                shared, size = left, grown
                continue
            yield shared, group
        group, shared = [sequence], sequence.start - 1
        size = sequence.read - shared
    if group:
        yield shared, group


def pack(group: Sequence[Scored], prefix: int) -> Row:
    """The tree of sorted sequences that share a prefix of so many tokens, as a row."""
    row = Row(prefix=group[0].tokens[:prefix])
    path: list[int] = []
    last: tuple[int, ...] = row.prefix
    for sequence in group:
        del path[max(0, min(common_prefix_length(last, sequence.tokens), sequence.read) - prefix) :]
        for at in range(prefix + len(path), sequence.read):
            row.parents.append(path[-1] if path else -1)
            path.append(len(row.tokens))
            row.tokens.append(sequence.tokens[at])
            row.positions.append(at)
        for at in range(sequence.start, len(sequence.tokens)):
            row.wanted.append((path[at - 1 - prefix], sequence.tokens[at], sequence.number))
        last = sequence.tokens[: sequence.read]
    return row


@dataclass(frozen=True, slots=True)
class CachedPrefix(Generic[T]):
    """A prefix with what the model made of it, and how many bytes that is."""

    tokens: tuple[int, ...]
    state: T
    size: int


class PrefixCache(Generic[T]):
    """The prefixes used last, as many as fit into a number of bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[tuple[int, ...], CachedPrefix[T]] = OrderedDict()

    def find(self, tokens: tuple[int, ...]) -> tuple[int, T | None]:
        """How many of these tokens some held prefix begins with, and its state (or 0 and None)."""
        longest, best = 0, None
        for held in self._held.values():
            length = common_prefix_length(held.tokens, tokens)
            if length > longest:
                longest, best = length, held
        if best is None:
            return 0, None
        self._held.move_to_end(best.tokens)
        return longest, best.state

    def keep(self, tokens: tuple[int, ...], state: T, size: int) -> None:
        """Hold a prefix; what was used longest ago makes room, or it is not held at all."""
        if size > self._most:
            return
        self._held[tokens] = CachedPrefix(tokens, state, size)
        self._held.move_to_end(tokens)
        while sum(held.size for held in self._held.values()) > self._most:
            self._held.popitem(last=False)

    def clear(self) -> None:
        """Hold nothing."""
        self._held.clear()
