"""Do `hf:` and lm-evaluation-harness give the same scores? One command:

    python bench/lm_eval_agreement.py [--questions 200] [--shots 0] [--model smollm2] [--quick]

Scores every option of TruthfulQA's questions with the same weights, once through falter and once
through the harness's `HFLM`, which loads them by itself. Prints the largest difference of an
option's log-likelihood, in how many items the likeliest option is the same, and how close the
closest decisions were. Needs `falter[hf]` and `lm-eval`.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from falter.clients import ClientSettings
from falter.engine.config import read_experiment
from falter.engine.variants import variant_sets
from falter.integrations.hf_client import HuggingFace
from falter.records.planning import Target, plan
from falter.records.types import Request, Sampling

DATA = Path(__file__).parents[1] / "tests" / "data" / "truthfulqa_mc_task.json.gz"
Scored = list[list[tuple[float, bool]]]


def requests(
    client: HuggingFace, questions: int, shots: int = 0, recipes: Sequence[str] = ()
) -> list[Request]:
    """TruthfulQA's options to be scored: the baseline, and every recipe."""
    experiment = read_experiment(
        {
            "task": f"truthfulqa:{DATA}",
            "limit": questions,
            "demonstrations": shots,
            "recipes": list(recipes) or ["identity"],
            "scorer": "choice_likelihood",
        },
        needs_models=False,
    )
    [made] = variant_sets(experiment)
    conditions = made.conditions if recipes else made.conditions[:1]
    target = Target(model=client.model, asking="score", sampling=Sampling())
    return list(plan(made.items, conditions, target))


def harness(client: HuggingFace) -> Any:
    """lm-evaluation-harness's model on the same weights, loaded by itself."""
    from lm_eval.models.huggingface import HFLM

    source = client.source
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    return HFLM(
        pretrained=source.path,
        gguf_file=source.gguf,
        revision=source.revision or "main",
        dtype=client.model.options["dtype"],
        device="cpu",
        batch_size=8,
    )


def by_harness(model: Any, asked: Sequence[Request]) -> Scored:
    """Every option's log-likelihood, and whether it is the greedy one, in one call."""
    from lm_eval.api.instance import Instance

    instances = [
        Instance("loglikelihood", {}, (r.context, c), n) for n, r in enumerate(asked)
        for c in r.continuations
    ]  # fmt: skip
    found = iter(model.loglikelihood(instances, disable_tqdm=True))
    return [[next(found) for _ in r.continuations] for r in asked]


async def by_falter(client: HuggingFace, asked: Sequence[Request]) -> Scored:
    """The same through the client."""
    scored: Scored = []
    for response in await client.score_many(asked):
        assert response.failure is None, response.failure
        scored.append([(s.logprob, bool(s.greedy)) for s in response.scores])
    return scored


def best(scores: Sequence[tuple[float, bool]]) -> int:
    return max(range(len(scores)), key=lambda n: scores[n][0])


def gap(scores: Sequence[tuple[float, bool]]) -> float:
    """Return the distance of the likeliest option from the next."""
    ordered = sorted((score for score, _ in scores), reverse=True)
    return ordered[0] - ordered[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--shots", type=int, default=0)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="30 questions")
    given = parser.parse_args()
    client = HuggingFace(
        ClientSettings(name=given.model, options={"threads": given.threads, "device": "cpu"})
    )
    asked = requests(client, 30 if given.quick else given.questions, given.shots)

    async def ours() -> Scored:
        found = await by_falter(client, asked)
        await client.close()
        return found

    found = asyncio.run(ours())
    theirs = by_harness(harness(client), asked)
    pairs = [(a, b) for x, y in zip(found, theirs, strict=True) for a, b in zip(x, y, strict=True)]
    same = sum(best(x) == best(y) for x, y in zip(found, theirs, strict=True))
    print(f"{len(asked)} questions, {given.shots}-shot, {len(pairs)} options, {client.model.label}")
    print(f"largest difference of a log-likelihood   {max(abs(a[0] - b[0]) for a, b in pairs):.1e}")
    print(f"same likeliest option                    {same} of {len(asked)}")
    print(f"same greedy flag                         {sum(a[1] == b[1] for a, b in pairs)}")
    print(f"closest decision between two options     {min(map(gap, theirs)):.1e}")


if __name__ == "__main__":
    main()
