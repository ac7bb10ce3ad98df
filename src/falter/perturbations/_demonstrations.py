"""Recipes applied to demonstrations: each as an item of its own, its answer as it was."""

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
    have as an item. Steps of the whole prompt, of options, positions and formats are passed over:
    they are applied to the prompt as a whole. The example stays as it is where a step finds
    nothing to change, where a rewrite is not to be had, and where its answer would have to change
    with it.
    """
    seen: Counter[str] = Counter()
    after = prompt
    for step in recipe.steps:
        own = _within(step)
        if own is not None:
            before, rng = after, step_rng(step, key, run_seed, draw, seen[step.name])
            try:
                after = stepped(before, own, rng, draw, bank)
            except NoRewrite:
                return prompt.sections
            if same_prompt(after, before) and not _applies(own, before):
                return prompt.sections
        seen[step.name] += 1
    kept = (after.target, after.choices) == (prompt.target, prompt.choices)
    return after.sections if kept else prompt.sections


def _applies(step: Step, prompt: Prompt) -> bool:
    return perturbations.get(step.name).applies(prompt, **step.params)


def _within(step: Step) -> Step | None:
    """The step for the sections of an item alone; None when it is about something else."""
    own = _kinds(step.params.get("scope", ()))
    if not own or not _kinds(perturbations.get(step.name).scope):
        return None
    return replace(step, params={**step.params, "scope": own})


def _kinds(scope: Sequence[SectionKind]) -> tuple[SectionKind, ...]:
    return tuple(kind for kind in scope if kind in ITEM)


def _rewrites_all(step: Step) -> bool:
    made = perturbations.get(step.name)
    return isinstance(made, RewritePerturbation) and not made.scope
