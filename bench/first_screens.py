"""Three reports whose first screens somebody reads: brittle, sturdy, and with unread answers.

    python bench/first_screens.py FOLDER

Every model is `simulated`, so what a reader should conclude is known: the first one loses much
under noise in words, the second one under nothing, and of the third one answer in seven says
nothing that can be read. Their names and files say nothing of it, so that the reader has the pages
alone. The items are sums, so that there are enough of them. Prints the first figure of each report
and writes its page.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import falter
from falter.records.figures import Statement

RECIPES = ["typos", "word_split", "space_sequences", "persona", "pad_spaces", "identity"]
ITEMS = 600
STEADY = dict.fromkeys(RECIPES, 0.0)
MODELS: dict[str, dict[str, Any]] = {
    "model-a": {
        "effects": {**STEADY, "typos": 0.8, "word_split": 0.7, "space_sequences": 0.65},
        "interaction_sd": 0.3,
    },
    "model-b": {"mean": 1.2, "effects": STEADY, "interaction_sd": 0.0},
    "model-c": {"effects": STEADY, "unparsed": 0.14, "interaction_sd": 0.3},
}


def _item(n: int) -> dict[str, object]:
    """A sum in words enough for every recipe to change something, and four options."""
    first, second = 17 + 3 * n, 5 + n % 29
    question = f"A baker sells {first} loaves before noon and {second} loaves later on. How many?"
    total = first + second
    return {"key": f"sum-{n:04}", "question": question, "answer": str(total),
            "options": [str(total + step) for step in (0, 1, 10, -2)]}  # fmt: skip


def main(folder: Path) -> None:
    """Run, print the words, write the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "sums.jsonl"
    data.write_text("".join(json.dumps(_item(n)) + "\n" for n in range(ITEMS)), "utf-8")
    for name, options in MODELS.items():
        result = falter.run(
            data={
                "path": str(data),
                "target": "answer",
                "choices": "options",
                "key": "key",
                "target_as": "text",
            },
            template="Choose the right number.\n\n{question}\n{choices}\nAnswer:",
            models=[{"name": f"simulated:{name}", "options": options}],
            recipes=RECIPES,
            scorer="choice_letter",
            store=folder / "falter.db",
        )
        words = result.figures[0]
        assert isinstance(words, Statement)
        print(f"\n{name}")
        for sentence in words.text:
            print(textwrap.fill(sentence, 96, initial_indent="  ", subsequent_indent="  "))
        result.report(folder / f"{name}.html")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "first-screens"))
