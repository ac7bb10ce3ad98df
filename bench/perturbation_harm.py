"""What do the perturbations harm? One command, one table:

    python bench/perturbation_harm.py DATA [--limit 300] [--seconds 600] [--cells FILE] [NAME …]

DATA is a folder with `mc_task.json` (TruthfulQA), `mmlu/*_test.csv`, `gsm8k_test.jsonl.gz` and
`HumanEval.jsonl.gz`; the sets that are not there are left out, and named. Each perturbation that
needs no model runs once on the first items of every set, as a prompt with instruction, options
and answer cue; those that are about solved examples get two of them. *Everyday* are the sixty
texts of `data/everyday_texts.jsonl`: mails, code, tables, JSON, chats, tools, and German, Spanish,
French, Italian and Dutch mails, which those change that know the language or need not.

Columns: prompts changed of each set; then changed prompts that lost a number, a unit of one, a
negation, a quantifier, who does what in a passive, a letter that is a symbol, a name, or in which
a word became another word; that lost code or JSON, the right answer where it stands in the text,
the form of a table or the colon behind a label, or a turn; and prompts that an earlier recipe of
the table makes too. What a row holds besides 0 is explained in docs/meaning.md.

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
from typing import Any, NamedTuple

from falter.perturbations import apply_recipe, parse_step, perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.perturbations.recipes import resolve_step
from falter.records.chats import target_texts
from falter.records.ids import digest
from falter.records.interfaces import Perturbation
from falter.records.render import messages
from falter.records.types import Demonstration, Item, Prompt, Recipe, Section
from falter.tasks import tasks
from falter.tasks.chats import Chat, chat_items
from falter.tasks.rows import DataSpec
from falter.text.meaning import MeaningFlag, meaning_flags

SETS = (
    ("TruthfulQA", "truthfulqa", "mc_task.json", "letter"),
    ("MMLU", "mmlu", "mmlu", "letter"),
    ("GSM8K", "gsm8k", "gsm8k_test.jsonl.gz", "open"),
    ("HumanEval", "humaneval", "HumanEval.jsonl.gz", "open"),
)
HARMS = (
    "number", "unit", "negation", "quantifier", "relation", "symbol", "name", "word", "code",
    "answer", "layout", "turn",
)  # fmt: skip
EVERYDAY = "Everyday"
ABOUT_EXAMPLES = "demonstrations"  # the group of those that change nothing without examples
SHOTS = 2
_CODE = re.compile(r"[{}\n`=]|\w\(")
_LABEL = re.compile(r"^[^:\n]{1,60}:(?=\s|$)", re.MULTILINE)
_WITH_UNIT = re.compile(r"\d.*[^\W\d_]|[$€£¥%‰°]")


class Case(NamedTuple):
    """A prompt of a set, and the same with solved examples."""

    title: str
    key: str
    bare: Prompt
    shown: Prompt
    language: str = "en"


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

    def spoken(self, language: str) -> Recipe | None:
        """The recipe in a language; None where the perturbation does not know it."""
        known, name = self.perturbation.languages, self.perturbation.name
        if known is None or language == "en":
            return self.recipe if known is None or "en" in known else None
        steps = (parse_step(f"{name}:language={language}"),) if language in known else ()
        return Recipe(label=name, steps=steps) if steps else None

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
    return [*sets, list(everyday())]


def everyday() -> Iterator[Case]:
    """The texts of our own; two of the mails are the examples of those that are no chats."""
    lines = Path(__file__).with_name("data").joinpath("everyday_texts.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in lines.splitlines()]
    mails = [Demonstration(sections=asked(r).sections, answer=r["target"]) for r in rows[:3]]
    for n, row in enumerate(rows):
        prompt = asked(row)
        others = tuple(d for d in mails if d.sections != prompt.sections)[:SHOTS]
        shown = replace(prompt, demonstrations=() if "messages" in row else others)
        yield Case(EVERYDAY, f"{row['kind']} {n}", prompt, shown, row["language"])


def asked(row: dict[str, Any]) -> Prompt:
    """The prompt of a row: a conversation, or an instruction, a text and a cue."""
    if "messages" in row:
        spec = DataSpec(path=EVERYDAY, target="target")
        items, _ = chat_items([row], spec, "messages", EVERYDAY, same=False)
        return Chat().build(items[0])
    instruction = Section(name="ask", kind="instruction", text=f"{row['instruction']}\n\n")
    text = Section(name="text", kind="input", text=row["text"])
    cue = Section(name="cue", kind="cue", text="\n\nAnswer:")
    return Prompt(sections=(instruction, text, cue), target=row["target"])


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
        "".join("\n" if s.kind in ("added", "reply") else "\n" * s.opens + s.text for s in sections)
        for sections in parts
    )


def harms(before: Prompt, after: Prompt, language: str) -> list[Harm]:
    """The harm that was done, examples that moved apart: their order means nothing."""
    flags = meaning_flags(own(before), own(after), language)
    return [*(harm for flag in flags for harm in harm_of(flag)), *losses(before, after)]


def losses(before: Prompt, after: Prompt) -> Iterator[Harm]:
    """The answers, forms and turns that are lost, which no look at words shows."""
    told: Sequence[object] = target_texts(before.target) or (before.target,)
    old, new = own(before), own(after)
    for answer in {str(text).lower() for text in told if text and isinstance(text, str)}:
        whole = re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE)
        if len(whole.findall(old)) > len(whole.findall(new)):
            yield Harm("answer", answer)
    if gone := forms(before) - forms(after):
        yield Harm("layout", repr(min(gone)))
    if Counter(role for role, _ in messages(before)) - Counter(role for role, _ in messages(after)):
        yield Harm("turn", "")


def forms(prompt: Prompt) -> Counter[str]:
    """The columns of each line of a table, and the labels before a colon."""
    texts = [s.text for s in prompt.sections if s.kind in ("input", "document")]
    marks = (re.findall(r"[|]|(?<=\w);(?=\w)", line) for t in texts for line in t.splitlines())
    rows = map("".join, marks)
    return Counter([*filter(None, rows), *(":" for text in texts for _ in _LABEL.finditer(text))])


def harm_of(flag: MeaningFlag) -> Iterator[Harm]:
    if flag.check != "span":
        yield Harm(flag.check, flag.lost)
    elif _CODE.search(flag.lost):
        yield Harm("code", flag.lost)
    elif _WITH_UNIT.search(flag.lost):
        yield Harm("unit", flag.lost)


def treat(row: Row, case: Case, seen: dict[str, str]) -> tuple[Prompt, list[Harm]] | None:
    """Runs one recipe on one case and counts; the changed prompt and what is found in it."""
    about_examples = row.perturbation.group == ABOUT_EXAMPLES
    before = case.shown if about_examples else case.bare
    recipe = row.spoken(case.language)
    if recipe is None:
        return None
    after, status, _ = apply_recipe(case.key, before, recipe, 0, 0)
    if status != "changed":
        return None
    row.changed[case.title] += 1
    found = harms(before, after, case.language)
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
    titles = [title for title in (*(title for title, *_ in SETS), EVERYDAY) if done[title]]
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
