"""The parts of `bench/gpu.sh`: what vLLM's scores are worth, and how fast they come.

    python bench/gpu.py score --engine vllm:NAME --out a.jsonl [--order 1] [--option K=V]
    python bench/gpu.py harness --backend vllm --args pretrained=NAME --out b.jsonl
    python bench/gpu.py compare a.jsonl b.jsonl [--within 0.05]
    python bench/gpu.py summary FOLDER

`score` asks an engine of falter for the log-likelihoods of the options of questions of the bundled
task under twelve conditions; `harness` puts the same texts to a model of lm-evaluation-harness.
Both write a line for each prompt and print how long it took, without loading. `--order` shuffles
the prompts with that seed. Every engine will do, `hf:smollm2` and `simulated` too, so all of it can
be tried without a GPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from falter.engine.study import read_study, study_in
from falter.records.interfaces import Client
from falter.records.types import Request

RECIPES = (
    "typos", "casing", "drop_stop_words", "word_split", "word_merge", "punctuation_spaces",
    "persona", "emotion", "pad_quotes", "pad_spaces", "pad_newlines",
)  # fmt: skip
TOGETHER = 256
Line = dict[str, Any]


def asked_of(engine: str, options: dict[str, Any], items: int) -> tuple[Client, list[Request]]:
    """The client, and the options of so many questions to be scored, under every condition."""
    model = {"name": engine, "api": "completions", "concurrency": TOGETHER, "options": options}
    spec = read_study(
        {
            "task": "basics",
            "models": [model],
            "recipes": list(RECIPES),
            "scorer": "choice_likelihood",
            "limit": items,
        }
    )
    with tempfile.TemporaryDirectory() as folder, study_in(spec, Path(folder) / "a.db") as study:
        ((_, resolved),) = study.parts
        (panel,) = resolved.panels
        return panel.client, list(panel.requests(1))


def score(args: argparse.Namespace) -> None:
    """All prompts through a client of falter, many at a time."""
    client, requests = asked_of(args.engine, dict(args.option), args.items)
    if args.prompts:
        requests = requests[: args.prompts]
    asked = list(requests)
    if args.order:
        random.Random(args.order).shuffle(asked)

    async def main() -> tuple[list[Any], float]:
        await client.check()
        try:
            started = time.perf_counter()
            chunks = [asked[n : n + TOGETHER] for n in range(0, len(asked), TOGETHER)]
            found = [r for chunk in chunks for r in await client.score_many(chunk)]
            return found, time.perf_counter() - started
        finally:
            await client.close()

    responses, seconds = asyncio.run(main())
    failed = [response.failure for response in responses if response.failure is not None]
    if failed:
        raise SystemExit(f"{len(failed)} of {len(asked)} prompts failed, the first: {failed[0]}")
    lines = {
        request.key: {
            "prompt": [request.context, *request.continuations],
            "scores": [[s.logprob, s.greedy] for s in response.scores],
        }
        for request, response in zip(asked, responses, strict=True)
    }
    served = responses[0].served_by or ""
    _write(args.out, f"{args.engine} ({served})", seconds, [lines[r.key] for r in requests])


def harness(args: argparse.Namespace) -> None:
    """The same prompts through one of lm-evaluation-harness's models."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    _, requests = asked_of("simulated", {}, args.items)
    requests = requests[: args.prompts or None]
    model = get_model(args.backend).create_from_arg_string(args.args)
    instances = [
        Instance("loglikelihood", {}, (request.context, option), n)
        for n, request in enumerate(requests)
        for option in request.continuations
    ]
    started = time.perf_counter()
    found = iter(model.loglikelihood(instances, disable_tqdm=True))
    seconds = time.perf_counter() - started
    lines = [
        {
            "prompt": [request.context, *request.continuations],
            "scores": [list(next(found)) for _ in request.continuations],
        }
        for request in requests
    ]
    _write(args.out, f"lm-eval --model {args.backend} ({args.args})", seconds, lines)


def _write(path: Path, engine: str, seconds: float, lines: Sequence[Line]) -> None:
    head = {"engine": engine, "prompts": len(lines), "seconds": seconds}
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]), "utf-8")
    options = sum(len(line["scores"]) for line in lines)
    print(
        f"{engine}: {len(lines):,} prompts, {options:,} options in {seconds:.1f} s, "
        f"{len(lines) / seconds:,.1f} prompts/s"
    )


def read(path: Path) -> tuple[Line, list[Line]]:
    head, *lines = map(json.loads, path.read_text("utf-8").splitlines())
    return head, lines


def differences(ours: Sequence[Line], theirs: Sequence[Line]) -> Iterator[tuple[float, bool, bool]]:
    """For each prompt: the largest difference, whether the choice is the same, and all flags."""
    for a, b in zip(ours, theirs, strict=True):
        if a["prompt"] != b["prompt"]:
            raise SystemExit("the two files are not about the same prompts")
        first, second = ([p for p, _ in line["scores"]] for line in (a, b))
        largest = max(abs(p - q) for p, q in zip(first, second, strict=True))
        same = first.index(max(first)) == second.index(max(second))
        flags = [g for _, g in a["scores"]] == [g for _, g in b["scores"]]
        yield largest, same, flags


def compare(args: argparse.Namespace) -> None:
    """Print the agreement of two files; exit code 1 if a score differs by more than `--within`."""
    (one, ours), (two, theirs) = read(args.one), read(args.two)
    found = list(differences(ours, theirs))
    largest = [each for each, _, _ in found]
    print(f"{one['engine']}\n  beside {two['engine']}, {len(found):,} prompts")
    print(
        f"  log-likelihoods differ by {max(largest):.2g} at most, {statistics.median(largest):.2g} "
        f"in the middle; the same to the bit in {sum(not d for d in largest):,}"
    )
    print(f"  the likeliest option is the same in {sum(same for _, same, _ in found):,}")
    print(f"  greedy flags are the same in {sum(flags for _, _, flags in found):,}")
    print(f"  seconds: {one['seconds']:.1f} and {two['seconds']:.1f}, "
          f"{two['seconds'] / one['seconds']:.2f} times as fast")  # fmt: skip
    if args.within is not None and max(largest) > args.within:
        print(f"  NOT within {args.within:g}")
        sys.exit(1)


def summary(args: argparse.Namespace) -> None:
    """Every file of scores in a folder: engine, prompts, seconds."""
    for path in sorted(args.folder.glob("*.jsonl")):
        head, _ = read(path)
        rate = head["prompts"] / head["seconds"]
        print(f"{path.stem:<24}{head['prompts']:>8,} prompts{head['seconds']:>10.1f} s"
              f"{rate:>12,.1f} prompts/s  {head['engine']}")  # fmt: skip


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(required=True)
    for name, part in (("score", score), ("harness", harness)):
        add = parts.add_parser(name, help=part.__doc__)
        add.add_argument("--items", type=int, default=264)
        add.add_argument("--prompts", type=int, default=0, help="of these the first so many")
        add.add_argument("--out", type=Path, required=True)
        add.set_defaults(part=part)
        if name == "score":
            add.add_argument("--engine", required=True)
            add.add_argument("--option", type=_option, action="append", default=[])
            add.add_argument("--order", type=int, default=0, help="the seed of another order")
        else:
            add.add_argument("--backend", default="vllm")
            add.add_argument("--args", default="")
    add = parts.add_parser("compare", help=compare.__doc__)
    add.add_argument("one", type=Path)
    add.add_argument("two", type=Path)
    add.add_argument("--within", type=float, default=None)
    add.set_defaults(part=compare)
    add = parts.add_parser("summary", help=summary.__doc__)
    add.add_argument("folder", type=Path)
    add.set_defaults(part=summary)
    args = parser.parse_args()
    args.part(args)


if __name__ == "__main__":
    main()
