"""The showcase: does a larger model falter less? One command, which goes on where it stopped:

    python bench/showcase.py [--store FILE] [--to FOLDER] [--limit N]

Three models (SmolLM2 135M, Qwen2.5-Coder 0.5B and 1.5B) answer 400 questions with four options by
likelihood and 150 of them by reply, each as asked and under the twelve default perturbations:
about eight processor hours on a thread, less what docs/showcase/answers.db.xz holds. Writes there
the questions, two pages, the picture, the numbers and the answers. `bench/real_models.py` brings
the two Qwen files.

Fixed before the first answer: the question is decided by the average drop over the twelve
perturbations, by likelihood, of the 0.5B less that of the 1.5B model, which are of one family. The
answer is yes where the 95 % interval of the difference is above zero, no where it is below, and
else not decided. SmolLM2, of another family, and the replies are told beside it and decide nothing.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import falter  # noqa: E402
from falter.engine.results import Result  # noqa: E402
from falter.records.figures import Forest, ForestRow, Grid  # noqa: E402
from falter.records.numbers import shown  # noqa: E402
from falter.records.types import Estimate  # noqa: E402
from falter.report.drawing.pictures import picture  # noqa: E402
from falter.tasks import tasks  # noqa: E402

MODELS = {
    "SmolLM2 135M": "smollm2",
    "Qwen 0.5B": "gguf:Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
    "Qwen 1.5B": "gguf:Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
}
SMALL, LARGE = "Qwen 0.5B", "Qwen 1.5B"
QUESTIONS, REPLIES = 400, 150
ARCHIVE = "answers.db.xz"
TEMPLATE = {
    "instruction": "Choose the right answer to this question.",
    "input": "\nQuestion: {question}",
    "choices": "{choices}",
    "output_format": "\nReply with the letter of your choice and nothing else.",
    "cue": "Answer:",
}


def questions() -> list[dict[str, Any]]:
    """All 264 questions of `basics` and 136 of MMLU's, drawn and shuffled with a seed."""
    draw = random.Random(2026)
    own = list(tasks.get("basics")(None).items)
    others = [item for item in tasks.get("mmlu_four")(None).items if len(item.choices) == 4]
    chosen = [*own, *draw.sample(others, QUESTIONS - len(own))]
    draw.shuffle(chosen)
    return [
        {
            "key": f"{item.task}-{item.key}",
            "subject": item.tags[0],
            "question": item.fields["question"],
            "options": list(item.choices),
            "answer": item.target,
        }
        for item in chosen
    ]


def settings(data: Path, scorer: str, limit: int) -> dict[str, Any]:
    """The experiment in which each model answers the first `limit` questions."""
    return {
        "data": {
            "path": str(data),
            "target": "answer",
            "target_as": "index",
            "choices": "options",
            "key": "key",
        },
        "template": TEMPLATE,
        "scorer": scorer,
        "limit": limit,
        "sampling": {"max_tokens": 24},
        "models": [{"name": name, "concurrency": 1} for name in MODELS.values()],
    }


def differences(result: Result) -> dict[str, Estimate]:
    """How many points more the smaller model loses than the larger one, for every pair."""
    grid = result.figure("models-compared")
    assert isinstance(grid, Grid)
    drop = [column.name for column in grid.columns].index("Average drop, points")
    names = {
        model.removeprefix("gguf:").removesuffix(".gguf"): name for name, model in MODELS.items()
    }
    print(grid.rows[0][:3], names)
    return {}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path("showcase.db"))
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "showcase")
    parser.add_argument("--limit", type=int, default=QUESTIONS, help="fewer questions, to try it")
    options = parser.parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    data = options.to / "questions.jsonl"
    data.write_text(
        "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in questions()), "utf-8"
    )
    kept = options.to / ARCHIVE
    if kept.exists() and not options.store.exists():
        with lzma.open(kept) as packed, options.store.open("wb") as store:
            shutil.copyfileobj(packed, store)
    for scorer, limit in (
        ("choice_likelihood", options.limit),
        ("choice_letter", min(REPLIES, options.limit)),
    ):
        result = falter.run(settings(data, scorer, limit), store=options.store)
        print(scorer, result.summary("overview", "models-compared", width=150))
        differences(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
