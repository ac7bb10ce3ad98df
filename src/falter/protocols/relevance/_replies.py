"""The summaries of a part, one by one, and the panels of their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis import STATUSES, model_names
from falter.core.interfaces import Case
from falter.core.records import Estimate, Recipe, Variant
from falter.protocols._protocol import PartResult
from falter.scorers.summaries import allowed_sentences, summary_sentences

__all__ = ["Scores", "Summary", "arm_of", "arms_of", "article_of", "scores_of", "summaries_of"]

Floats = NDArray[np.float64]
ORIGINAL, AGAIN, EXPECTED = "original", "same article again", "expected summary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One reply: which model wrote it, about which article as it stood in the prompt.

    `sentences` are those that count. `key` is the request's.
    """

    model: str
    task: str
    variant: Variant
    arm: str
    repeat: int
    key: str
    sentences: tuple[str, ...]

    @property
    def item(self) -> str:
        return self.variant.item.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One model on one data set, by one measure: articles × arms, draws averaged.

    A score is NaN where the arm did not change the article. `left_out` counts the articles of
    each arm that lack a usable rewrite.
    """

    model: str
    task: str
    measure: str
    items: tuple[str, ...]
    arms: tuple[str, ...]
    values: Floats
    left_out: tuple[int, ...]
    clusters: tuple[str, ...] | None
    signature: str

    def of(self, arm: str) -> Floats | None:
        """The scores in one arm; None where it was not asked."""
        return self.values[:, self.arms.index(arm)] if arm in self.arms else None

    def signed(self, estimate: Estimate) -> Estimate:
        """The estimate with what it is about."""
        group = {"model": self.model, "task": self.task, "scorer": self.measure}
        return replace(estimate, group={**estimate.group, **group}, signature=self.signature)


def arm_of(recipe: Recipe) -> str:
    """What was done to the article, in words."""
    if not recipe.steps:
        return AGAIN if recipe.repeat else ORIGINAL
    step = recipe.steps[0]
    which = step.name.removeprefix("paraphrase_")
    if which not in ("relevant", "irrelevant") or len(recipe.steps) > 1:
        return recipe.label
    top = int(step.params.get("top", 1))
    return f"{which} sentences" + (f", top {top}" if top > 1 else "")


def arms_of(result: PartResult) -> tuple[str, ...]:
    """The arms of a part, the original first."""
    return tuple(arm_of(recipe) for recipe in result.run.recipes)


def scores_of(result: PartResult) -> tuple[Scores, ...]:
    """One for each model, data set and measure, in the order of the run."""
    names = model_names(result.tables)
    strict = result.analysis.unparsed == "wrong"
    recipes = result.run.recipes
    panels = []
    for table, panel in zip(result.tables, result.analysis.panels, strict=True):
        idle = ~table.changed()
        idle[:, [not recipe.perturbs for recipe in recipes]] = False
        lacking = (table.status == STATUSES.index("no_rewrite")).any(axis=2)
        panels.append(
            Scores(
                model=names[table.panel.model.id],
                task=result.run.panels[table.place].task,
                measure=table.panel.scorer,
                items=table.items,
                arms=arms_of(result),
                values=np.where(idle, np.nan, table.matrix(strict=strict)),
                left_out=tuple(int(count) for count in lacking.sum(axis=0)),
                clusters=table.clusters,
                signature=panel.signature,
            )
        )
    return tuple(panels)


def summaries_of(result: PartResult) -> Iterator[Summary]:
    """Every summary of an article that its arm really changed, each once however it was scored."""
    names = model_names(result.tables)
    seen: set[tuple[str, str, str, str, int]] = set()
    for answered in result.cells():
        cell = answered.cell
        variant, recipe = cell.variant, cell.variant.recipe
        if cell.response is None or (recipe.perturbs and variant.status != "changed"):
            continue
        model, task = names[answered.panel.model.id], answered.panel.task
        repeat = cell.repeat - recipe.repeat * result.run.repeats
        place = model, task, variant.item.key, recipe.id, repeat
        if place in seen:
            continue
        seen.add(place)
        case = Case(variant=variant, response=cell.response)
        kept = summary_sentences(cell.response.text or "")[: allowed_sentences(case)]
        if kept:
            yield Summary(
                model=model,
                task=task,
                variant=variant,
                arm=arm_of(recipe),
                repeat=repeat,
                key=cell.key,
                sentences=tuple(kept),
            )


def article_of(variant: Variant) -> str:
    """The documents of a prompt and what its template puts in, as the recipe left them."""
    sections = variant.prompt.sections
    return "\n\n".join(s.text for s in sections if s.kind in ("document", "input")).strip()
