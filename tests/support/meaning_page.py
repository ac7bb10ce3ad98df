"""Writes the table of docs/meaning.md: every perturbation on the bundled task.

python tests/support/meaning_page.py
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from falter.analysis.meaning_checks import MEANING_CHECKS, meaning
from falter.analysis.results import Meaning
from falter.engine.config import read_experiment
from falter.engine.variants import meaning_of, variant_sets
from falter.perturbations import perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.records import numbers as n

PAGE = Path(__file__).parents[2] / "docs" / "meaning.md"
MARKS = "<!-- table -->\n", "<!-- end of table -->\n"
ITEMS = 100


def found(*, cosines: bool) -> list[Meaning]:
    """Every perturbation that needs no model, on a hundred items of `basics`, as letters."""
    names = [
        p.name
        for p in perturbations
        if not isinstance(p, SettingPerturbation) and not p.needs_model
    ]
    experiment = read_experiment(
        {"task": "basics", "scorer": "choice_letter", "limit": ITEMS, "recipes": names},
        needs_models=False,
    )
    (one,) = variant_sets(experiment)
    make = meaning_of if cosines else meaning
    return [
        make(cases, task="basics", recipe=recipe.label, group=recipe.group)
        for recipe, cases in one.rewordings()
    ]


def meaning_rows(meanings: Sequence[Meaning]) -> list[list[str]]:
    """Head and rows of the table in words."""
    head = ["recipe", "changed", "edits/100 words", *MEANING_CHECKS, "cosine", "lowest tenth"]
    return [
        head,
        *(
            [
                m.recipe,
                f"{n.whole(m.changed)}/{n.whole(m.texts)}",
                n.decimal(m.edits_per_100_words, 1),
                *(n.whole(m.lost[check]) for check in MEANING_CHECKS),
                n.decimal(m.cosine, 3),
                n.decimal(m.cosine_low, 3),
            ]
            for m in meanings
        ),
    ]


def table(rows: Sequence[Sequence[str]]) -> str:
    """GitHub Markdown."""
    head, *body = rows
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *body]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def printed(text: str) -> list[list[str]]:
    """The cells of the page's table, cosines left out: they differ in the last digit elsewhere."""
    (inside,) = re.findall(f"{MARKS[0]}(.*?){MARKS[1]}", text, re.DOTALL)
    rows = [line.strip("| ").split(" | ") for line in inside.splitlines()]
    return [row[:-2] for row in (rows[0], *rows[2:])]


if __name__ == "__main__":
    made = MARKS[0] + table(meaning_rows(found(cosines=True))) + MARKS[1]
    text = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(f"{MARKS[0]}.*?{MARKS[1]}", lambda _: made, text, flags=re.DOTALL))
