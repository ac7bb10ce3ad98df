"""Accuracy of an extractor model on replies that falter leaves inferred or unread.

    python bench/extractor.py --replies real_letters.jsonl.gz --reader gguf:FILE.gguf [--limit 40]

The replies are of four models to MMLU-Pro and are not bundled: a line has id, question, choices and
reply. `GOLD` are 40 of them, 16 that the reader inferred and 24 that it could not read when they
were drawn, with the answers that a person read: ten have one. A scripted extractor that lies is
asked beside the model: half of its quotes are made up, half are real words with a wrong option.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import falter
from falter.clients.function import register_callable
from falter.engine.asking import ask_extractor
from falter.engine.config import ModelSpec
from falter.engine.extraction import extractions, questions
from falter.engine.scoring import run_scorers
from falter.store.store import Store

GOLD: Mapping[str, str | None] = {
    "Mistral-7B-Instruct-v0.2-8115": "C",
    "Phi-3-mini-4k-instruct-6751": "E",
    "Qwen1.5-7B-Chat-8297": "G",
    "Qwen1.5-7B-Chat-11523": "E",
    "Meta-Llama-3-10291": "I",
    "Qwen1.5-7B-Chat-10120": "B",
    "Qwen1.5-7B-Chat-8134": "D",
    "Qwen1.5-7B-Chat-1136": "I",
    "Mistral-7B-Instruct-v0.2-4879": "A",
    "Mistral-7B-Instruct-v0.2-1975": "E",
    **dict.fromkeys(
        (
            "Mistral-7B-Instruct-v0.2-7683", "Phi-3-mini-4k-instruct-1661",
            "Mistral-7B-Instruct-v0.2-6082", "Meta-Llama-3-856", "Mistral-7B-Instruct-v0.2-8613",
            "Qwen1.5-7B-Chat-3460", "Phi-3-mini-4k-instruct-9971", "Phi-3-mini-4k-instruct-8809",
            "Mistral-7B-Instruct-v0.2-8422", "Phi-3-mini-4k-instruct-11996",
            "Phi-3-mini-4k-instruct-3851", "Qwen1.5-7B-Chat-12209", "Qwen1.5-7B-Chat-8235",
            "Qwen1.5-7B-Chat-8625", "Phi-3-mini-4k-instruct-8078", "Qwen1.5-7B-Chat-3643",
            "Qwen1.5-7B-Chat-9127", "Qwen1.5-7B-Chat-7772", "Mistral-7B-Instruct-v0.2-9084",
            "Mistral-7B-Instruct-v0.2-4532", "Mistral-7B-Instruct-v0.2-12232",
            "Mistral-7B-Instruct-v0.2-3408", "Phi-3-mini-4k-instruct-3778",
            "Mistral-7B-Instruct-v0.2-7553", "Phi-3-mini-4k-instruct-813", "Meta-Llama-3-10116",
            "Meta-Llama-3-7810", "Meta-Llama-3-9025", "Meta-Llama-3-8729", "Meta-Llama-3-8317",
        )
    ),
}  # fmt: skip


def liar(prompt: str) -> str:
    """Quotes words that are not there, or real ones beside the last of the possible answers."""
    reply = prompt.partition("The reply:\n")[2].partition("\n\nReturn")[0]
    words = re.findall(r"\w+", reply)
    last = re.findall(r"^\| ([A-J])\. ", prompt, re.MULTILINE)[-1]
    made_up = len(reply) % 2 == 0
    quote = "the answer is certainly this one" if made_up else words[0]
    return json.dumps({"quote": quote, "answer": last})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--reader", help="a model, such as gguf:FILE.gguf")
    parser.add_argument("--limit", type=int, default=len(GOLD))
    options = parser.parse_args()
    with gzip.open(options.replies, "rt", encoding="utf-8") as lines:
        rows = {row["id"]: row for row in map(json.loads, lines) if row["id"] in GOLD}
    rows = {name: rows[name] for name in list(GOLD)[: options.limit]}
    replies: dict[str, str] = {row["question"]: row["reply"] for row in rows.values()}

    def replay(prompt: str) -> str:
        """The stored reply to the question of a prompt."""
        return next(reply for question, reply in replies.items() if question in prompt)

    data = [
        {"id": name, "question": row["question"], "options": row["choices"], "answer": 0}
        for name, row in rows.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "s.db")
        result = falter.run(
            data={"rows": data, "target": "answer", "choices": "options", "key": "id",
                  "target_as": "index"},
            template="{question}\n{choices}", models=[replay], recipes=["identity"],
            scorer="choice_letter", store=store,
        )  # fmt: skip
        for name in filter(None, (register_callable(liar), options.reader)):
            _measure(store, result, name)


def _measure(store: Path, result: falter.Result, name: str) -> None:
    run = result.run
    with Store(store) as opened:
        scorers = run_scorers(run)
        reader = ask_extractor(opened, run, scorers, ModelSpec(name=name))
        asked = questions(opened, run, scorers, reader)
        found = extractions(opened, run, scorers, reader)
    read = {asked[key].case.variant.item.key: r.answer for key, r in found.readings.items()}
    own = {q.case.variant.item.key for q in asked.values() if q.stated is None}
    gold = {item: letter for item, letter in GOLD.items() if item in own}
    right = sum(gold[item] == letter for item, letter in read.items())
    has = sum(letter is not None for letter in gold.values())
    calls = len({q.request.key for q in asked.values()})
    print(f"{name}: {calls} calls, at most {len(result.scores())} in the plan")
    print(f"  {found.line(0.95)}")
    print(f"  {len(gold)} replies, {has} with an answer: recall {right}/{has}, "
          f"precision {right}/{len(read)}")  # fmt: skip


if __name__ == "__main__":
    main()
