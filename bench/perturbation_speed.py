"""How fast are the perturbations? One command, one table:

    python bench/perturbation_speed.py [QUESTIONS.json] [NAME …]

The file holds TruthfulQA as a list of objects with a `question`; without one, the bundled task's
questions are used. Names limit the table to some perturbations.

Each runs on 2,000 texts of its family's set (`SETS`): those that it changes, as often as it takes,
each time as another item, so that all draws are new. Seeding and status are included, only changed
texts are counted, and the best of fifteen runs is shown, in processor time. A second table has
nlpaug, TextAttack, textnoisr, langtest and PromptSuite at the same work, where they are installed:
speed, words changed and what is lost.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from _peers import PEERS, Damage, damage, texts_of
from falter.perturbations import apply_recipe, perturb, perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.perturbations.recipes import resolve_step
from falter.records.interfaces import Perturbation
from falter.records.types import Prompt, Recipe, Section
from falter.tasks import tasks
from falter.testing.doubles import MadeUpRewrites

TEXTS, PEER_TEXTS, RUNS = 2_000, 500, 15

Prompts = Callable[[Sequence[str]], Iterable[Prompt]]


def questions(path: str | None) -> list[str]:
    """The questions of the file, or of the bundled task."""
    if path is not None:
        return [row["question"] for row in json.loads(Path(path).read_text(encoding="utf-8"))]
    text = files("falter.tasks").joinpath("data", "basics.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["question"] for line in text.splitlines() if line.strip()]


def asked(texts: Sequence[str]) -> Iterable[Prompt]:
    """Each question with an answer cue."""
    cue = Section(name="cue", kind="cue", text="\nAnswer:")
    return (Prompt(sections=(Section(name="input", kind="input", text=t), cue)) for t in texts)


def task_prompts(spec: str, style: str) -> Prompts:
    """The prompts of a task whose file lies with the tests."""

    def read(_: Sequence[str]) -> Iterable[Prompt]:
        name, _, file = spec.partition(":")
        path = Path(__file__).parents[1] / "tests" / "data" / file
        task = tasks.get(name)(str(path))
        template = task.templates[style]
        return (template.build(item) for item in task.items)

    return read


LISTED = task_prompts("truthfulqa:truthfulqa_mc_task.json.gz", "letter")

# What a family is measured on, where questions are not what it changes; and how many texts a
# second are wanted.
SETS: dict[str, Prompts] = {
    "words": asked,
    "padding": asked,
    "augmentation": asked,
    "options": LISTED,
    "reasoning": LISTED,
    "position": LISTED,
    "format": LISTED,
    "math": task_prompts("gsm8k:gsm8k_test.jsonl.gz", "open"),
    "code": task_prompts("humaneval:HumanEval.jsonl.gz", "open"),
}
# Doses that leave most short texts as they are would measure what does nothing.
STRONGER = {"human_typos": {"dose": "heavy"}}
TARGETS = {
    "words": 15_000,
    "padding": 50_000,
    "augmentation": 50_000,
    "options": 10_000,
    "math": 10_000,
    "code": 1_000,
}


def changes(prompt: Prompt, recipe: Recipe) -> bool:
    return apply_recipe("probe", prompt, recipe, 0, 0, MadeUpRewrites()).status == "changed"


def work_for(perturbation: Perturbation, texts: Sequence[str]) -> Callable[[], int] | None:
    """Changes 2,000 texts and says how many changed; None where it changes none of its set."""
    params = STRONGER.get(perturbation.name, {})
    recipe = Recipe(label="bench", steps=(resolve_step(perturbation.name, params),))
    prompts = SETS.get(perturbation.family, asked)(texts)
    changed = [p for p in prompts if changes(p, recipe)]
    items = [(str(n), prompt) for n, prompt in enumerate(islice(cycle(changed), TEXTS))]
    bank = MadeUpRewrites()

    def work() -> int:
        done = (apply_recipe(key, prompt, recipe, 0, 0, bank).status for key, prompt in items)
        return sum(status == "changed" for status in done)

    return work if items else None


def per_second(work: Callable[[], int], runs: int = RUNS) -> float:
    """Return the rate of `work` per second of this process: the best of some runs."""
    best = 0.0
    for _ in range(runs):
        start = time.process_time()
        made = work()
        best = max(best, made / (time.process_time() - start))
    return best


class Measured(NamedTuple):
    """Texts changed a second, and what is changed and lost in them."""

    speed: float
    damage: Damage | None


def peer(texts: Sequence[str], makers: Sequence[Callable[[], Any]]) -> Measured | str:
    """Return another project's effect on the texts, or the reason that it cannot be asked."""
    try:
        augmenters = [make() for make in makers]
        texts_of(augmenters, texts[0])
    except ImportError as error:
        part = "" if "." not in (error.name or "") else ", or not with this part of it"
        return f"not installed{part} ({error.name or error})"
    except (LookupError, OSError) as error:
        return f"installed, but not its data ({type(error).__name__})"
    except (AttributeError, TypeError) as error:
        return f"installed, but asked in another way in this version ({error})"
    after: list[str] = []

    def work() -> int:
        after.extend(texts_of(augmenters, text) for text in texts)
        return sum(new != text for new, text in zip(after, texts, strict=True))

    speed = per_second(work, runs=1)
    return Measured(speed, damage(list(zip(texts, after, strict=True))))


def ours(name: str, texts: Sequence[str]) -> Damage | None:
    """Return the changes and losses of a perturbation in the texts that a peer gets."""
    params = STRONGER.get(name, {})
    return damage([(text, perturb(text, resolve_step(name, params))) for text in texts])


def beside(names: Sequence[str], texts: Sequence[str], speeds: Mapping[str, float]) -> None:
    """The same work by others: speed, words changed a text, texts that lost something."""
    print(f"\nThe same work by others, on {len(texts)} texts; lost: a number, its unit,")
    print("a negation, a quantifier, who does what, a symbol or a name, in % of those changed\n")
    row("perturbation", "whose", "changed/s", "words", "lost")
    for name in dict.fromkeys(peer.perturbation for peer in PEERS):
        if name not in names:
            continue
        found = ours(name, texts)
        row(name, "falter", f"{speeds.get(name, 0):,.0f}", *_harm(found))
        for entry in (entry for entry in PEERS if entry.perturbation == name):
            measured = peer(texts, entry.makers)
            if isinstance(measured, str):
                row(name, entry.whose, "–", "–", measured)
            else:
                row(name, entry.whose, f"{measured.speed:,.0f}", *_harm(measured.damage))


def _harm(found: Damage | None) -> tuple[str, str]:
    return ("–", "–") if found is None else (f"{found.words:.1f}", f"{100 * found.lost:.1f} %")


def row(*cells: object) -> None:
    print("{:<24} {:<14} {:>12} {:>10}  {}".format(*cells), flush=True)


def main(arguments: Sequence[str]) -> None:
    path = next((a for a in arguments if a.endswith(".json")), None)
    names = [a for a in arguments if a != path] or perturbations.names()
    texts = questions(path)
    words = sum(len(text.split()) for text in texts) / len(texts)
    print(f"{len(texts)} questions, {words:.1f} words each; {TEXTS} texts each\n")
    row("perturbation", "family", "changed/s", "wanted", "")
    speeds: dict[str, float] = {}
    for perturbation in map(perturbations.get, names):
        if isinstance(perturbation, SettingPerturbation):
            continue  # changes how a model is asked, not the text
        target = TARGETS.get(perturbation.family)
        wanted = "–" if target is None else f"{target:,}"
        work = work_for(perturbation, texts)
        if work is None:
            row(perturbation.name, perturbation.family, "–", wanted, "changes none of its set")
            continue
        speed = speeds[perturbation.name] = per_second(work)
        note = "below" if target is not None and speed < target else ""
        row(perturbation.name, perturbation.family, f"{speed:,.0f}", wanted, note)
    beside(names, texts[:PEER_TEXTS], speeds)


if __name__ == "__main__":
    main(sys.argv[1:])
