"""Recipes applied to demonstrations: each as an item of its own, with its answer unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from falter.core.interfaces import RewriteBank
from falter.core.records import Prompt, Recipe, Section, SectionKind, Step
from falter.perturbations._base import perturbations
from falter.perturbations._recipes import same_prompt, step_rng, stepped
from falter.perturbations._rewriting import NoRewrite, RewritePerturbation

__all__ = ["perturb_demonstration", "reaches_demonstrations"]

ITEM: tuple[SectionKind, ...] = ("input", "document")


def reaches_demonstrations(recipe: Recipe) -> bool:
    """Whether the recipe has a step for the sections of an item, and none that rewrites whole
    prompts, with their demonstrations, itself: `translate`, `crosslingual`."""
    return any(map(_within, recipe.steps)) and not any(map(_rewrites_all, recipe.steps))


def perturb_demonstration(
    key: str,
    prompt: Prompt,
    recipe: Recipe,
    run_seed: int,
    draw: int,
    bank: RewriteBank | None = None,
) -> tuple[Section, ...]:
    """The sections of an example after the recipe's steps for the sections of an item.

    `prompt` is the example as an item, `key` its own key, so that its seeds are those it would
    have as an item. Steps for the whole prompt, options, positions and formats are skipped: they
    are applied to the prompt as a whole. The example stays as it is if a step finds nothing to
    change, if a rewrite is unavailable, or if its answer would have to change too.
    """
    occurrences: Counter[str] = Counter()
    after = prompt
    for step in recipe.steps:
        item_step = _within(step)
        if item_step is not None:
            before, rng = after, step_rng(step, key, run_seed, draw, occurrences[step.name])
            try:
                after = stepped(before, item_step, rng, draw, bank)
            except NoRewrite:
                return prompt.sections
            perturbation = perturbations.get(item_step.name)
            if same_prompt(after, before) and not perturbation.applies(before, **item_step.params):
                return prompt.sections
        occurrences[step.name] += 1
    same_answer = (after.target, after.choices) == (prompt.target, prompt.choices)
    return after.sections if same_answer else prompt.sections


def _within(step: Step) -> Step | None:
    """The step restricted to the sections of an item; None if it concerns something else."""
    kinds = _kinds(step.params.get("scope", ()))
    if not kinds or not _kinds(perturbations.get(step.name).scope):
        return None
    return replace(step, params={**step.params, "scope": kinds})


def _kinds(scope: Sequence[SectionKind]) -> tuple[SectionKind, ...]:
    return tuple(kind for kind in scope if kind in ITEM)


def _rewrites_all(step: Step) -> bool:
    perturbation = perturbations.get(step.name)
    return isinstance(perturbation, RewritePerturbation) and not perturbation.scope
