"""What do the perturbations harm? One command, one table:

    python bench/perturbation_harm.py DATA [--limit 300] [--seconds 600] [--cells FILE] [NAME …]

DATA is a folder with `mc_task.json` (TruthfulQA), `mmlu/*_test.csv`, `gsm8k_test.jsonl.gz` and
`HumanEval.jsonl.gz`; the sets that are not there are left out, and named. Each perturbation that
needs no model runs once on the first items of every set, as a prompt with instruction, options
and answer cue; those that are about solved examples get two of them.

Columns: prompts changed of each set; then changed prompts that lost a number, a unit of one, a
negation, a quantifier, who does what in a passive, a letter that is a symbol, a name, or in which
a word became another word; and prompts that an earlier recipe of the table makes too. What a row
holds besides 0 is explained in docs/meaning.md.

All recipes run on one prompt before the next is read, so that each text is read once. After
`--seconds` of processor time no further prompt is begun, and the first line says how many were
done: items come from all sets in turn. `--cells` writes every harm down, a JSON list a line, with
the text before and after.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from falter.perturbations import apply_recipe, perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.perturbations.recipes import resolve_step
from falter.records.ids import digest
from falter.records.interfaces import Perturbation
from falter.records.types import Demonstration, Item, Prompt, Recipe
from falter.tasks import tasks
from falter.text.meaning import MeaningFlag, meaning_flags

SETS = (
    ("TruthfulQA", "truthfulqa", "mc_task.json", "letter"),
    ("MMLU", "mmlu", "mmlu", "letter"),
    ("GSM8K", "gsm8k", "gsm8k_test.jsonl.gz", "open"),
    ("HumanEval", "humaneval", "HumanEval.jsonl.gz", "open"),
)
HARMS = ("number", "unit", "negation", "quantifier", "relation", "symbol", "name", "word")
ABOUT_EXAMPLES = "demonstrations"  # the group of those that change nothing without examples
SHOTS = 2
_WITH_UNIT = re.compile(r"\d.*[^\W\d_]|[$€£¥%‰°]")


class Case(NamedTuple):
    """A prompt of a set, and the same with solved examples."""

    title: str
    key: str
    bare: Prompt
    shown: Prompt


class Harm(NamedTuple):
    """A loss of one prompt, or, behind a plus sign, an addition to it."""

    kind: str
    lost: str


@dataclass
class Row:
    """The effects of one perturbation so far."""

    perturbation: Perturbation
    recipe: Recipe
    changed: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    def cells(self, titles: Iterable[str]) -> list[str]:
        """The row of the table."""
        done = [str(self.changed[title]) for title in titles]
        return [self.perturbation.name, *done, *(str(self.counts[k]) for k in (*HARMS, "equal"))]


def read(folder: Path, limit: int) -> list[list[Case]]:
    """The cases of each set that is there."""
    sets: list[list[Case]] = []
    for title, name, file, style in SETS:
        path = folder / file
        files = sorted(path.glob("*_test.csv")) if path.is_dir() else [path]
        if not files or not files[0].exists():
            print(f"{title} is left out: {path} is not there")
            continue
        share = -(-limit // len(files))
        sets.append([case for one in files for case in cases_of(title, name, one, style, share)])
    return sets


def cases_of(title: str, name: str, path: Path, style: str, limit: int) -> list[Case]:
    """The first cases of a file; the examples before each are the two items before it."""
    pairs = list(islice(built(name, path, style), limit))
    solved = [example(item, prompt) for item, prompt in pairs]
    return [
        Case(
            title,
            item.key,
            prompt,
            replace(prompt, demonstrations=(*solved, *solved)[n - SHOTS + len(solved) :][:SHOTS]),
        )
        for n, (item, prompt) in enumerate(pairs)
    ]


def built(name: str, path: Path, style: str) -> Iterator[tuple[Item, Prompt]]:
    task = tasks.get(name)(str(path))
    template = task.templates.get(style) or next(iter(task.templates.values()))
    for item in task.items:
        yield item, template.build(item)


def example(item: Item, prompt: Prompt) -> Demonstration:
    listed = isinstance(item.target, int)
    answer = prompt.labels[int(item.target or 0)] if listed else str(item.target)
    return Demonstration(sections=prompt.sections, answer=answer)


def own(prompt: Prompt) -> str:
    """The prompt's own words, examples first, without what was added around them."""
    parts = [*(d.sections for d in prompt.demonstrations), prompt.sections]
    return "\n".join(
        "".join("\n" if s.kind in ("added", "reply") else s.text for s in sections)
        for sections in parts
    )


def harms(before: Prompt, after: Prompt) -> list[Harm]:
    """The harm that was done, examples that moved apart: their order means nothing."""
    return [harm for flag in meaning_flags(own(before), own(after)) for harm in harm_of(flag)]


def harm_of(flag: MeaningFlag) -> Iterator[Harm]:
    if flag.check != "span":
        yield Harm(flag.check, flag.lost)
    elif _WITH_UNIT.search(flag.lost):
        yield Harm("unit", flag.lost)


def treat(row: Row, case: Case, seen: dict[str, str]) -> tuple[Prompt, list[Harm]] | None:
    """Runs one recipe on one case and counts; the changed prompt and what is found in it."""
    about_examples = row.perturbation.group == ABOUT_EXAMPLES
    before = case.shown if about_examples else case.bare
    after, status, _ = apply_recipe(case.key, before, row.recipe, 0, 0)
    if status != "changed":
        return None
    row.changed[case.title] += 1
    found = harms(before, after)
    row.counts.update({harm.kind for harm in found})
    identity = digest("prompt", replace(after, target=None).identity())
    earlier = seen.setdefault(identity, row.recipe.label)
    if earlier != row.recipe.label:
        row.counts["equal"] += 1
        found.append(Harm("equal", earlier))
    return after, found


def in_turn(sets: Sequence[Sequence[Case]]) -> Iterator[Case]:
    """A case of each set, then the next of each."""
    for some in zip_longest(*sets):
        yield from (case for case in some if case is not None)


def rows_for(names: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for name in names:
        perturbation = perturbations.get(name)
        if not isinstance(perturbation, SettingPerturbation) and not perturbation.needs_model:
            recipe = Recipe(label=name, steps=(resolve_step(name),))
            rows.append(Row(perturbation, recipe))
    return rows


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="What the perturbations harm.")
    parser.add_argument("data", type=Path)
    parser.add_argument("--limit", type=int, default=300, help="items of each set")
    parser.add_argument("--seconds", type=float, default=600, help="of processor time, at most")
    parser.add_argument("--cells", type=Path, help="a file for every harm, a line each")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args(arguments)
    rows = rows_for(options.names or perturbations.names())
    sets = read(options.data, options.limit)
    done: Counter[str] = Counter()
    cells: list[str] = []
    start = time.process_time()
    for case in in_turn(sets):
        if time.process_time() - start > options.seconds:
            break
        done[case.title] += 1
        seen: dict[str, str] = {}
        for row in rows:
            treated = treat(row, case, seen)
            if treated is not None and treated[1] and options.cells is not None:
                cells += lines_of(row, case, *treated)
    spent = time.process_time() - start
    if options.cells is not None:
        options.cells.write_text("".join(cells), encoding="utf-8")
    titles = [title for title, *_ in SETS if done[title]]
    print("; ".join(f"{title}: {done[title]} prompts" for title in titles) + f"; {spent:.0f} s\n")
    print("| perturbation | " + " | ".join((*titles, *HARMS, "equal")) + " |")
    print("|---" + "|--:" * (len(titles) + len(HARMS) + 1) + "|")
    for row in rows:
        print("| " + " | ".join(row.cells(titles)) + " |")


def lines_of(row: Row, case: Case, after: Prompt, found: Sequence[Harm]) -> Iterator[str]:
    texts = own(case.bare), own(replace(after, demonstrations=()))
    for kind, lost in found:
        line = [row.perturbation.name, case.title, case.key, kind, lost, *texts]
        yield json.dumps(line, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main(sys.argv[1:])
