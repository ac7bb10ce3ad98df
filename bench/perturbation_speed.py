"""How fast are the perturbations? One command, one table:

    python bench/perturbation_speed.py [QUESTIONS.json]

The file holds TruthfulQA as a list of objects with a `question`; without one, the bundled task's
questions are used. nlpaug is measured beside typos when it is installed.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from falter.core.records import Prompt, Recipe, Section
from falter.perturbations import apply_recipe, perturbations, resolve_step


def questions(path: str | None) -> list[str]:
    """The questions of the file, or of the bundled task."""
    if path is not None:
        return [row["question"] for row in json.loads(Path(path).read_text(encoding="utf-8"))]
    text = files("falter.tasks").joinpath("data", "basics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["question"] for line in text.splitlines() if line.strip()]


def seconds(work: Callable[[], Any]) -> float:
    """The best of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def prompt_of(text: str) -> Prompt:
    cue = Section(name="cue", kind="cue", text="\nAnswer:")
    return Prompt(sections=(Section(name="input", kind="input", text=text), cue))


def each(name: str, prompts: Sequence[Prompt]) -> Callable[[], None]:
    """All prompts through one perturbation, seeding and status included."""
    recipe = Recipe(label=name, steps=(resolve_step(name),))

    def work() -> None:
        for i, prompt in enumerate(prompts):
            apply_recipe(str(i), prompt, recipe, 0, 0)

    return work


def nlpaug_typos(text: str) -> Callable[[], Any] | None:
    """nlpaug's keyboard and spelling noise on the same words, or None."""
    try:
        char, word = (
            importlib.import_module(f"nlpaug.augmenter.{kind}") for kind in ("char", "word")
        )
        augmenters = [
            char.KeyboardAug(aug_word_p=0.25, aug_word_max=None, aug_char_max=1),
            word.SpellingAug(aug_p=0.25, aug_max=None),
        ]
    except (ImportError, OSError):
        return None
    return lambda: [augmenter.augment(text) for augmenter in augmenters]


def main(arguments: Sequence[str]) -> None:
    asked = questions(arguments[0] if arguments else None)
    prompts = [prompt_of(question) for question in asked]
    words = sum(len(question.split()) for question in asked)
    print(f"{len(asked)} questions, {words / len(asked):.1f} words each\n")
    print(f"{'perturbation':<20} {'µs/question':>12}")
    total = 0.0
    for name in perturbations.names():
        taken = seconds(each(name, prompts))
        total += taken
        print(f"{name:<20} {taken / len(asked) * 1e6:>12.1f}")
    print(f"{'all':<20} {total:>11.2f}s\n")
    long = " ".join(asked * max(1, 20_000 // words))
    count = len(long.split())
    print(f"{'one text of':<20} {count:>10} words")
    print(
        f"{'falter typos':<20} {count / seconds(each('typos', [prompt_of(long)])):>10,.0f} words/s"
    )
    rival = nlpaug_typos(long)
    if rival is None:
        print("nlpaug is not installed; pip install nlpaug, to see it beside typos")
    else:
        print(f"{'nlpaug':<20} {count / seconds(rival):>10,.0f} words/s")


if __name__ == "__main__":
    main(sys.argv[1:])
