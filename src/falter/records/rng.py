"""Random generator with the same draws on every machine and in every Python version."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


class Rng:
    """Draws built on `random.Random.random()` alone.

    Python guarantees that `random()` repeats for the same seed in all later versions. It guarantees
    nothing for `shuffle`, `choice` or `sample`, so these are derived here.
    """

    __slots__ = ("_seed", "random")

    random: Callable[[], float]

    def __init__(self, seed: int | Callable[[], int]) -> None:
        self._seed = seed

    def __getattr__(self, name: str) -> Callable[[], float]:
        """Seed the generator at the first draw: many changes draw nothing, and seeding is slow."""
        if name != "random":
            raise AttributeError(name)
        seed = self._seed if isinstance(self._seed, int) else self._seed()
        self.random = random.Random(seed).random
        return self.random

    def below(self, n: int) -> int:
        """Return a whole number from 0 to n - 1."""
        return int(self.random() * n)

    def choice(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[int(self.random() * len(options))]

    def order(self, n: int) -> Iterator[int]:
        """Yield a random order of 0 … n - 1, drawn lazily.

        The first k numbers do not depend on how many are taken. So a dose of k edits is part of
        every larger dose.
        """
        draw, left = self.random, list(range(n))
        for i in range(n):
            j = i + int(draw() * (n - i))
            chosen = left[j]
            left[j] = left[i]
            yield chosen
