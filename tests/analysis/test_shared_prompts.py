"""A prompt that equals another recipe's takes that one's answer, never the baseline's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from falter.analysis.analyses import analyse_tables
from falter.analysis.notes import shared_prompts
from falter.analysis.results import Settings
from falter.analysis.table import SAME_PROMPT, Table, TableBuilder
from falter.records.types import BASELINE, Recipe, Response, Score, Step
from falter.store.store import StoredCell
from samples import RUN, variant

SETTINGS = Settings(run="sha256:0", version="0", created_at=0.0, replications=200)
ONE, TWO, SAME = (
    Recipe(label=label, group="dose", steps=(Step(name=label, version=1),))
    for label in ("one", "two", "same")
)


def table_with_shared_prompts(items: int = 40, shared: int = 25) -> Table:
    """`one` loses every third item; `two` makes its prompts on the first `shared` items and loses
    every other one of the rest; `same` makes the prompts of `one` everywhere."""
    run = replace(RUN, recipes=(BASELINE, ONE, TWO, SAME))
    builder = TableBuilder(run, 0)
    for n in range(items):
        twin = n < shared
        lost_by_one = n % 3 == 0
        answers = (
            (BASELINE, "clean", 1.0),
            (ONE, "one", 0.0 if lost_by_one else 1.0),
            (TWO, "one" if twin else "two", float(n % 3 > 0 if twin else n % 2)),
            (SAME, "one", 0.0 if lost_by_one else 1.0),
        )
        for recipe, prompt, value in answers:
            add(builder, n, recipe, f"{n} {prompt}", value)
    return builder.table()


def add(builder: TableBuilder, item: int, recipe: Recipe, key: str, value: float) -> None:
    cell = StoredCell(
        panel=0, variant=variant(item, recipe), edits=1, repeat=0, key=key,
        response=Response(key=key, text="yes"), failure=None,
    )  # fmt: skip
    builder.add(cell, Score(scorer="exact", outcome="scored", value=value, extracted=str(value)))


def test_copies_of_a_question_are_one_cluster() -> None:
    """Forty items of four questions, each asked once: four clusters, so no interval."""
    builder = TableBuilder(replace(RUN, recipes=(BASELINE, ONE)), 0)
    for n in range(40):
        add(builder, n, BASELINE, f"question {n % 4}", float(n % 3 > 0))
        add(builder, n, ONE, f"changed {n % 4}", float(n % 5 > 0))
    (panel,) = analyse_tables([builder.table()], SETTINGS).panels
    assert panel.baseline.clusters == 4 and panel.baseline.low is None
    assert "4 clusters (items with the same clean prompt are one cluster, " in " ".join(panel.notes)
    assert table_with_shared_prompts().clusters is None


def test_a_shared_prompt_counts_with_its_own_answer_in_every_recipe() -> None:
    """The drop of `two` is over all 40 pairs; only `one` is said to have made the 25 prompts."""
    table = table_with_shared_prompts()
    assert int((table.status == SAME_PROMPT).sum()) == 25 + 40
    (panel,) = analyse_tables([table], SETTINGS).panels
    one, two = panel.recipes
    assert (one.label, one.drop.value) == ("one", 14 / 40)
    lost = sum(n % 3 == 0 for n in range(25)) + sum(n % 2 == 0 for n in range(25, 40))
    assert (two.drop.value, two.drop.items) == (lost / 40, 40)
    assert (two.counts.changed, two.counts.same_prompt) == (15, 25)
    assert two.lost == lost
    assert shared_prompts(table, 2) == "of 40 prompts 25 are those of 'one'"


def test_two_recipes_with_the_same_prompts_everywhere_are_one_row() -> None:
    """One row with both labels, and K counts one: the intervals are those of two recipes."""
    table = table_with_shared_prompts()
    (panel,) = analyse_tables([table], SETTINGS).panels
    assert [recipe.name for recipe in panel.recipes] == ["one = same", "two"]
    (alone,) = analyse_tables([table_of_columns(table, [0, 1, 2])], SETTINGS).panels
    assert panel.recipes[1].together.low == alone.recipes[1].together.low
    assert panel.micro.conditions == 2


def test_only_distinct_prompts_are_pairs_of_prompts() -> None:
    """The prompt share does not fall because one prompt stands in two columns."""
    table = table_with_shared_prompts(shared=40)  # `two` and `same` both double `one`
    (panel,) = analyse_tables([table], SETTINGS).panels
    assert [recipe.name for recipe in panel.recipes] == ["one = two = same"]
    once = table_with_shared_prompts(shared=25).once()
    assert np.isnan(once.value).sum(axis=(0, 2)).tolist() == [0, 0, 25, 40]


def table_of_columns(table: Table, columns: list[int]) -> Table:
    """The same table with some of its recipes."""
    cut = {
        name: getattr(table, name)[:, columns]
        for name in ("value", "outcome", "status", "edits", "margin", "in_plan")
    }
    recipes = tuple(table.recipes[n] for n in columns)
    return replace(table, recipes=recipes, doubles={}, output=None, **cut)
