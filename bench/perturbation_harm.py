"""What do the perturbations harm? One command, one table:

    python bench/perturbation_harm.py DATA [--limit 300] [NAME …]

DATA is a folder with `mc_task.json` (TruthfulQA), `mmlu/*_test.csv`, `gsm8k_test.jsonl.gz` and
`HumanEval.jsonl.gz`; the sets that are not there are left out, and named. Each perturbation that
needs no model runs once on the first items of every set, as a prompt with instruction, options
and answer cue.

Columns: prompts changed of each set; then changed prompts that lost a number, a unit of one, a
negation, a quantifier, who does what in a passive, a letter that is a symbol, a name, or in which
a word became another word; and prompts that an earlier recipe of the table makes too. What a row
holds besides 0 is explained on the page of its perturbation.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from falter.core.ids import digest
from falter.core.interfaces import Perturbation
from falter.core.records import Item, Prompt, Recipe
from falter.perturbations import SettingPerturbation, apply_recipe, perturbations, resolve_step
from falter.tasks import tasks
from falter.text import meaning_flags

SETS = (
    ("TruthfulQA", "truthfulqa", "mc_task.json", "letter"),
    ("MMLU", "mmlu", "mmlu", "letter"),
    ("GSM8K", "gsm8k", "gsm8k_test.jsonl.gz", "open"),
    ("HumanEval", "humaneval", "HumanEval.jsonl.gz", "open"),
)
HARMS = ("number", "unit", "negation", "quantifier", "relation", "symbol", "name", "word")
_WITH_UNIT = re.compile(r"\d.*[^\W\d_]|[$€£¥%‰°]")

Prompts = dict[str, list[tuple[str, Prompt]]]


def read(folder: Path, limit: int) -> Prompts:
    """The prompts of each set that is there, by the set's name."""
    prompts: Prompts = {}
    for title, name, file, style in SETS:
        path = folder / file
        files = sorted(path.glob("*_test.csv")) if path.is_dir() else [path]
        if not files or not files[0].exists():
            print(f"{title} is left out: {path} is not there")
            continue
        share = -(-limit // len(files))
        prompts[title] = [
            (item.key, prompt)
            for one in files
            for item, prompt in islice(built(name, one, style), share)
        ]
    return prompts


def built(name: str, path: Path, style: str) -> Iterator[tuple[Item, Prompt]]:
    task = tasks.get(name)(str(path))
    template = task.templates.get(style) or next(iter(task.templates.values()))
    for item in task.items:
        yield item, template.build(item)


def own(prompt: Prompt) -> str:
    """The prompt's own words, without what was added around them."""
    return "".join("\n" if s.kind in ("added", "reply") else s.text for s in prompt.sections)


def harms(before: Prompt, after: Prompt) -> set[str]:
    """The kinds of harm that were done."""
    found: set[str] = set()
    for flag in meaning_flags(own(before), own(after)):
        if flag.check != "span":
            found.add(flag.check)
        elif _WITH_UNIT.search(flag.lost):
            found.add("unit")
    return found


def row(perturbation: Perturbation, prompts: Prompts, seen: dict[str, str]) -> list[str]:
    recipe = Recipe(label=perturbation.name, steps=(resolve_step(perturbation.name),))
    counts: Counter[str] = Counter()
    changed: list[str] = []
    for cases in prompts.values():
        applied = 0
        for key, before in cases:
            after, status, _ = apply_recipe(key, before, recipe, 0, 0)
            if status != "changed":
                continue
            applied += 1
            counts.update(harms(before, after))
            identity = digest("prompt", key, replace(after, target=None).identity())
            counts["equal"] += seen.setdefault(identity, recipe.label) != recipe.label
        changed.append(f"{applied}")
    return [perturbation.name, *changed, *(f"{counts[name]}" for name in (*HARMS, "equal"))]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="What the perturbations harm.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args(arguments)
    prompts = read(options.data, options.limit)
    print("; ".join(f"{title}: {len(cases)} prompts" for title, cases in prompts.items()) + "\n")
    print("| perturbation | " + " | ".join((*prompts, *HARMS, "equal")) + " |")
    print("|---" + "|--:" * (len(prompts) + len(HARMS) + 1) + "|")
    seen: dict[str, str] = {}
    for name in options.names or perturbations.names():
        perturbation = perturbations.get(name)
        if not isinstance(perturbation, SettingPerturbation) and not perturbation.needs_model:
            print("| " + " | ".join(row(perturbation, prompts, seen)) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
