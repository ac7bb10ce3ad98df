"""How fast does `hf:` score options, beside lm-evaluation-harness? One command:

    python bench/scoring_speed.py [--questions 100] [--shots 0 5] [--threads 2] [--quick]

TruthfulQA's questions × 12 variants (the baseline and eleven perturbations) × all options, with
the same weights in memory, the same precision and the same threads. The harness gets all variants
in one call, as it runs several tasks, at the best of a few batch sizes (tried first, on a part).
The questions go through in stretches, the two sides in turn. Prints seconds, the ratio of wall
time and of processor time, and the ratio of the tokens that went through the model: the ceiling of
what sharing alone can give. (falter also computes the vocabulary's scores only where an option
stands, so that it may come out above.) `--quick` takes 4 questions.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from falter.clients import ClientSettings
from falter.engine.sending import ModelQueue, Progress, run_queues
from falter.integrations.hf_client import HuggingFace
from falter.records.types import Request, Response
from lm_eval_agreement import by_harness, requests

RECIPES = (
    "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split",
    "word_merge", "persona", "emotion", "pad_quotes", "pad_spaces", "pad_newlines",
)  # fmt: skip
SIZES = (1, 4, 8, 16, 32)
STRETCH = 5
TRIAL = 8


@dataclass(slots=True)
class Side:
    """The costs of one side so far."""

    wall: float = 0.0
    processor: float = 0.0
    tokens: int = 0
    best: list[int] = field(default_factory=list)


class Memory:
    """A store that holds responses for as long as the bench runs."""

    def __init__(self) -> None:
        self.found: dict[str, Response] = {}

    def missing(self, keys: Sequence[str]) -> set[str]:
        return {key for key in keys if key not in self.found}

    def put_responses(self, responses: Sequence[tuple[Request, Response]]) -> None:
        self.found |= {request.key: response for request, response in responses}

    def put_failures(self, responses: Sequence[Response]) -> None:
        raise AssertionError(responses[0].failure)


class Counter:
    """Counts the tokens that go into a model, padding included."""

    def __init__(self, model: Any) -> None:
        self.tokens = 0
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        self.tokens += ids.numel()


async def timed(side: Side, counter: Counter, work: Callable[[], Awaitable[list[int]]]) -> None:
    before = time.perf_counter(), time.process_time(), counter.tokens
    side.best += await work()
    side.wall += time.perf_counter() - before[0]
    side.processor += time.process_time() - before[1]
    side.tokens += counter.tokens - before[2]


async def by_falter(client: HuggingFace, asked: Sequence[Request]) -> list[int]:
    """Through the runner, as in a run."""
    store = Memory()
    progress = Progress(label="hf", total=len(asked))
    await run_queues(
        [ModelQueue(requests=asked, client=client, concurrency=64, progress=progress)], store
    )
    found = [[score.logprob for score in store.found[r.key].scores] for r in asked]
    return [scores.index(max(scores)) for scores in found]


def with_harness(model: Any, asked: Sequence[Request]) -> list[int]:
    found = [[score for score, _ in scores] for scores in by_harness(model, asked)]
    return [scores.index(max(scores)) for scores in found]


def best_size(model: Any, asked: Sequence[Request]) -> int:
    """The batch size that takes the least processor time on a few questions."""
    taken = {}
    by_harness(model, asked[:1])  # the first call of all is slower
    for size in SIZES:
        model.batch_size_per_gpu = size
        before = time.process_time()
        by_harness(model, asked)
        taken[size] = time.process_time() - before
    shown = ", ".join(f"{size}: {seconds:.1f} s" for size, seconds in taken.items())
    print(f"  the harness by batch size ({len(asked)} prompts)   {shown}", flush=True)
    return min(taken, key=lambda size: taken[size])


def ratios(ours: Side, theirs: Side) -> str:
    """Return the ratios of one side's time and tokens to the other's."""
    wall, processor = theirs.wall / ours.wall, theirs.processor / ours.processor
    return (
        f"{wall:.1f} times as fast ({processor:.1f} by processor time); "
        f"the tokens allow {theirs.tokens / ours.tokens:.1f}"
    )


def stretches(asked: Sequence[Request], questions: int) -> Iterator[Sequence[Request]]:
    """Some questions at a time, with all their variants."""
    many = questions * (len(RECIPES) + 1)
    for first in range(0, len(asked), many):
        yield asked[first : first + many]


async def compare(
    client: HuggingFace, model: Any, counter: Counter, questions: int, shots: int
) -> None:
    asked = requests(client, questions, shots, RECIPES)
    options = sum(len(r.continuations) for r in asked)
    variants = len(RECIPES) + 1
    print(
        f"{shots}-shot: {questions} questions x {variants} variants, {options} options", flush=True
    )
    model.batch_size_per_gpu = best_size(model, asked[:TRIAL])
    ours, theirs = Side(), Side()

    async def them(part: Sequence[Request]) -> list[int]:
        return with_harness(model, part)

    for part in stretches(asked, STRETCH):
        await timed(theirs, counter, lambda part=part: them(part))  # type: ignore[misc]
        await timed(ours, counter, lambda part=part: by_falter(client, part))  # type: ignore[misc]
        so_far = f"{len(ours.best)} of {len(asked)} prompts, {ratios(ours, theirs)}"
        print(f"  {so_far}", file=sys.stderr, flush=True)
    same = sum(a == b for a, b in zip(ours.best, theirs.best, strict=True))
    print(f"  {'':28}{'seconds':>9}{'processor':>11}{'tokens':>10}")
    for name, side in (
        (f"lm-eval, batches of {model.batch_size_per_gpu}", theirs),
        ("falter hf:", ours),
    ):
        print(f"  {name:28}{side.wall:9.1f}{side.processor:11.1f}{side.tokens:10,}")
    print(f"  falter is {ratios(ours, theirs)}")
    print(f"  same likeliest option in {same} of {len(asked)} prompts", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--shots", type=int, nargs="*", default=[0, 5])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--batch-tokens", type=int, default=512)
    parser.add_argument("--quick", action="store_true", help="4 questions")
    given = parser.parse_args()
    from lm_eval.models.huggingface import HFLM

    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    options = {"threads": given.threads, "device": "cpu", "batch_tokens": given.batch_tokens}
    client = HuggingFace(ClientSettings(name=given.model, options=options))
    await client.check()
    engine = client.loaded
    model = HFLM(pretrained=engine.model, tokenizer=engine.tokenizer, batch_size=1)
    counter = Counter(engine.model)
    for shots in given.shots:
        engine.forget()
        await compare(client, model, counter, 4 if given.quick else given.questions, shots)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
