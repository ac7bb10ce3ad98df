"""Planning without side effects: requests of a plan, missing requests, and cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import takewhile
from typing import Any

from falter.records import render
from falter.records.errors import UsageError
from falter.records.types import Item, Model, Recipe, Request, Variant, Way

PlannedRecipes = Mapping[str, frozenset[str]]
"""Ids of the recipes to send for each item, by the item's key, if a budget leaves some out."""
# A rule of thumb: tokenisers and languages differ.
CHARACTERS_A_TOKEN = 4
MIN_CACHED_TOKENS = 1024
"""Smallest common beginning, in tokens, that providers cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A recipe with the function that turns an item and a draw into its variant.

    `random` is True if draws differ. Other conditions have one draw.
    """

    recipe: Recipe
    make: Callable[[Item, int], Variant]
    random: bool


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` shares of a plan, by the hash of a request: `3/64` is the third of 64.

    Every request is in exactly one share, on every machine and in any order.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard for a text such as `3/64`; raise UsageError for another text."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text.strip())
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(
                f"The shard is {text!r}, not a number and the number of shards",
                hint="write 1/8 for the first of eight, 8/8 for the last",
            )
        return cls(int(match[1]), int(match[2]))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and int(key[-16:], 16) % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of a million tokens. `cached` is the price of prompt tokens from the provider's cache.

    `batch` is the fraction of these prices that batch requests cost.
    """

    input: float
    output: float
    currency: str = "USD"
    cached: float | None = None
    batch: float = 0.5

    @property
    def in_batches(self) -> Price:
        """Price of batch requests, without cached beginnings: batches do not guarantee them."""
        half = replace(self, input=self.input * self.batch, output=self.output * self.batch)
        return replace(half, batch=1.0, cached=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Way):
    """A model with the form of its requests and its price."""

    model: Model
    price: Price | None = None

    @property
    def way(self) -> Way:
        """The form of the requests, without the model."""
        return Way(**{field.name: getattr(self, field.name) for field in fields(Way)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of a plan. Prompt tokens are estimated from characters, output tokens are the maximum.

    `cached_tokens` belong to beginnings that a request shares with the previous one, if they are
    long enough for a cache. `amount_cached` is the cost if all of them are cached, None without a
    price for cached tokens.
    """

    cells: int
    calls: int
    stored: int
    prompt_tokens: int
    completion_tokens: int
    amount: float | None
    currency: str | None
    cached_tokens: int = 0
    amount_cached: float | None = None

    def plus(self, other: Cost) -> Cost:
        """Return the sum of two costs of one target."""

        def added(name: str) -> Any:
            one, two = getattr(self, name), getattr(other, name)
            return None if one is None or two is None else one + two

        sums = {f.name: added(f.name) for f in fields(self) if f.name != "currency"}
        return replace(self, **sums)

    def times(self, factor: float) -> Cost:
        """Return the cost for `factor` times the items."""
        if factor == 1.0:
            return self

        def scaled(value: Any) -> Any:
            if value is None:
                return None
            return round(factor * value) if isinstance(value, int) else factor * value

        names = (field.name for field in fields(self) if field.name != "currency")
        return replace(self, **{name: scaled(getattr(self, name)) for name in names})


def request(variant: Variant, target: Target, repeat: int) -> Request:
    """Return the request for one variant to a target."""
    return render.request(variant, target.model, target, repeat)


def plan(
    items: Iterable[Item],
    conditions: Sequence[Condition],
    target: Target,
    *,
    draws: int = 1,
    repeats: int = 1,
    asked: PlannedRecipes | None = None,
) -> Iterator[Request]:
    """Yield every request of one target lazily, item by item; `asked` restricts the recipes.

    The `identity` condition repeats the baseline at the repeats after the baseline's own. So its
    requests are new and are sent.
    """
    for item in items:
        for condition in conditions:
            if asked is not None and condition.recipe.id not in asked[item.key]:
                continue
            offset = condition.recipe.repeat * repeats
            for draw in range(draws if condition.random else 1):
                variant = condition.make(item, draw)
                for repeat in range(repeats):
                    yield request(variant, target, offset + repeat)


def count_cells(
    items: int,
    conditions: Sequence[Condition],
    draws: int,
    repeats: int,
    asked: PlannedRecipes | None = None,
) -> int:
    """Return the number of requests that `plan` will yield for one target."""
    costs = {c.recipe.id: repeats * (draws if c.random else 1) for c in conditions}
    if asked is None:
        return items * sum(costs.values())
    return sum(costs[recipe] for recipes in asked.values() for recipe in recipes)


def estimate_cost(
    requests: Iterable[Request],
    target: Target,
    missing: Callable[[Sequence[str]], set[str]],
    counted: set[bytes] | None = None,
) -> Cost:
    """Return the cells, calls, stored responses, tokens and price of a plan, without duplicates.

    `missing` returns the keys without a stored response. `counted` holds requests that other plans
    counted already. This plan's requests are added to it.
    """
    cells = stored = calls = prompt_tokens = completion_tokens = cached_tokens = 0
    before = ""
    counted = set() if counted is None else counted
    for batch in batched(requests, 512):
        cells += len(batch)
        new_requests: dict[str, Request] = {}
        for r in batch:
            mark = bytes.fromhex(r.key[7:39])
            if mark not in counted:
                counted.add(mark)
                new_requests[r.key] = r
        unanswered = missing(list(new_requests))
        stored += len(new_requests) - len(unanswered)
        calls += len(unanswered)
        for r in (new_requests[key] for key in new_requests if key in unanswered):
            text = r.context + "".join([*r.tools, *(text for _, text in r.messages)])
            sent, received = _token_counts(r, len(text))
            prompt_tokens += sent
            completion_tokens += received
            cached_tokens += _shared_tokens(before, text)
            before = text
    price, amount, amount_cached = target.price, None, None
    if price is not None:
        amount = (prompt_tokens * price.input + completion_tokens * price.output) / 1e6
        if price.cached is not None:
            amount_cached = amount - cached_tokens * (price.input - price.cached) / 1e6
    return Cost(
        cells=cells,
        calls=calls,
        stored=stored,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        amount=amount,
        currency=None if price is None else price.currency,
        cached_tokens=cached_tokens,
        amount_cached=amount_cached,
    )


def batched(requests: Iterable[Request], size: int) -> Iterator[list[Request]]:
    """Yield consecutive requests in lists of at most `size`."""
    batch: list[Request] = []
    for r in requests:
        batch.append(r)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _shared_tokens(before: str, text: str) -> int:
    """Return the common tokens at the start of two prompts; 0 if they are too few for a cache."""
    fewest = MIN_CACHED_TOKENS * CHARACTERS_A_TOKEN
    if len(text) < fewest or before[:fewest] != text[:fewest]:
        return 0
    pairs = zip(before[fewest:], text[fewest:], strict=False)
    more = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return (fewest + more) // CHARACTERS_A_TOKEN


def _token_counts(r: Request, characters: int) -> tuple[int, int]:
    if r.scores:
        characters = characters * len(r.continuations) + sum(map(len, r.continuations))
        return characters // CHARACTERS_A_TOKEN, 0
    return characters // CHARACTERS_A_TOKEN, r.sampling.max_tokens
