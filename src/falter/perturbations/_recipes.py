"""Recipes applied: chains of steps over one prompt."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from falter.core.errors import InvalidValue
from falter.core.ids import digest, step_seed
from falter.core.interfaces import RewriteBank
from falter.core.records import Prompt, Recipe, Section, Step, VariantStatus
from falter.core.render import plain
from falter.core.rng import Rng
from falter.perturbations._base import perturbations
from falter.perturbations._rewriting import NoRewrite, RewritePerturbation
from falter.perturbations._steps import parse_step

__all__ = [
    "Applied",
    "apply_recipe",
    "perturb",
    "same_prompt",
    "step_rng",
    "stepped",
    "text_key",
]


class Applied(NamedTuple):
    """A prompt after a recipe, its status, and the step that found nothing to change."""

    prompt: Prompt
    status: VariantStatus
    step: str | None = None


def apply_recipe(
    item_key: str,
    prompt: Prompt,
    recipe: Recipe,
    run_seed: int,
    draw: int,
    bank: RewriteBank | None = None,
) -> Applied:
    """The prompt after the recipe's steps, in their order, and what became of it.

    `baseline`: no steps. `not_applicable`: some step found nothing it could change (it is named),
    `no_rewrite`: a model gave nothing usable for it; the prompt is the original. `unchanged`: the
    same text as before. Otherwise `changed`. A later step never touches what an earlier one
    edited.
    """
    if not recipe.steps:
        return Applied(prompt, "baseline")
    occurrences: Counter[str] = Counter()
    after = prompt
    for step in recipe.steps:
        before, rng = after, step_rng(step, item_key, run_seed, draw, occurrences[step.name])
        try:
            after = stepped(before, step, rng, draw, bank)
        except NoRewrite:
            return Applied(prompt, "no_rewrite", step.name)
        if same_prompt(after, before) and not perturbations.get(step.name).applies(
            before, **step.params
        ):
            return Applied(prompt, "not_applicable", step.name)
        occurrences[step.name] += 1
    return Applied(after, "unchanged" if same_prompt(after, prompt) else "changed")


def same_prompt(after: Prompt, before: Prompt) -> bool:
    """Whether a model would see the same prompt; comparing the texts mostly suffices."""
    if after is before:
        return True
    if len(after.sections) != len(before.sections):
        return False
    for new, old in zip(after.sections, before.sections, strict=True):
        if new.text != old.text:
            return False
    return after.identity() == before.identity()


def step_rng(step: Step, item_key: str, run_seed: int, draw: int, occurrence: int) -> Rng:
    """The generator of one step on one item."""
    return Rng(lambda: step_seed(run_seed, step.name, step.version, occurrence, item_key, draw))


def stepped(prompt: Prompt, step: Step, rng: Rng, draw: int, bank: RewriteBank | None) -> Prompt:
    """The prompt after one step; raises `NoRewrite` if a rewrite is unavailable."""
    perturbation = perturbations.get(step.name)
    if perturbation.version != step.version:
        raise InvalidValue(
            f"{step.name}.version",
            step.version,
            f"{perturbation.version}, the version installed",
            hint="install the version of falter that made this recipe, or plan the run again",
        )
    if isinstance(perturbation, RewritePerturbation) and bank is not None:
        return perturbation.bind(bank, draw)(prompt, rng, **step.params)
    return perturbation(prompt, rng, **step.params)


def perturb(text: str, *steps: str | Step, seed: int = 0, draw: int = 0) -> str:
    """One text after one or more perturbations, given by name, as `name:count=4`, or as steps.

    The text is the input of a prompt with nothing else in it; perturbations of the whole prompt
    add text around it. A step that finds nothing to change leaves it as it is.
    """
    chain = tuple(step if isinstance(step, Step) else parse_step(step) for step in steps)
    prompt = Prompt(sections=(Section(name="input", kind="input", text=text),))
    recipe = Recipe(label="perturb", steps=chain)
    return plain(apply_recipe(text_key(text), prompt, recipe, seed, draw).prompt)


def text_key(text: str) -> str:
    """The key of a text that is an item by itself: its content."""
    return digest("text", text)
