"""Prompts that a server cut without a word: their tokens stop growing while they grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from falter.core.records import Run
from falter.store import PromptSize, Store

__all__ = ["CUT_PROMPT", "cut_prompts", "cuts_of_run"]

CUT_PROMPT = "truncated_prompt"
FEWEST, SMALLEST_LIMIT = 3, 256
BEYOND, SLACK = 1.25, 1.1


def cuts_of_run(store: Store, run: Run) -> Mapping[tuple[int, str], int]:
    """Panel and key of the answers to a cut prompt, with the tokens that the server read."""
    cut: dict[tuple[int, str], int] = {}
    for panel, sizes in store.largest_prompts(run, SMALLEST_LIMIT, FEWEST).items():
        cut |= {(panel, key): limit for key, limit in cut_prompts(sizes).items()}
    return cut


def cut_prompts(sizes: Sequence[PromptSize]) -> Mapping[str, int]:
    """The keys whose prompt was cut, with the number of tokens at which it was.

    A limit shows where prompts of different lengths all have the largest number of tokens that the
    server counted for any. How many tokens they should have had follows from the median of
    characters a token in the others; without others, from the shortest at the limit. It takes three
    lengths, of which the longest goes a quarter beyond the limit; what goes a tenth beyond is cut.
    """
    limit = max((size.tokens for size in sizes), default=0)
    at_limit = [size for size in sizes if size.tokens == limit]
    lengths = {size.characters for size in at_limit}
    if limit < SMALLEST_LIMIT or len(lengths) < FEWEST:
        return {}
    below = [size.characters / size.tokens for size in sizes if 0 < size.tokens < limit]
    per_token = median(below) if below else min(lengths) / limit
    most = limit * per_token
    if max(lengths) <= BEYOND * most:
        return {}
    return {size.key: limit for size in at_limit if size.characters > SLACK * most}
