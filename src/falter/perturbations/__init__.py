"""Floor 1: the transforms, one family a module, and the machinery that chains them."""

from falter.perturbations._advice import ADVICE, NOISE_FLOOR, Advice, traits_of
from falter.perturbations._asking import added, with_instruction
from falter.perturbations._base import (
    PromptPerturbation,
    SitePerturbation,
    perturbations,
    prompt_perturbation,
    site_perturbation,
)
from falter.perturbations._demonstrations import perturb_demonstration, reaches_demonstrations
from falter.perturbations._everyday import everyday_name
from falter.perturbations._frame import framed
from falter.perturbations._groups import DEFAULT_RECIPES, RECIPE_SETS
from falter.perturbations._recipes import Applied, apply_recipe, perturb, step_rng, text_key
from falter.perturbations._rewriting import (
    Ledger,
    NoRewrite,
    RewritePerturbation,
    Wanted,
    rewrite_key,
    rewriting,
)
from falter.perturbations._steps import parse_step, resolve_step
from falter.perturbations.configuration import OTHER_TEMPLATE, SettingPerturbation

__all__ = [
    "ADVICE",
    "DEFAULT_RECIPES",
    "NOISE_FLOOR",
    "OTHER_TEMPLATE",
    "RECIPE_SETS",
    "Advice",
    "Applied",
    "Ledger",
    "NoRewrite",
    "PromptPerturbation",
    "RewritePerturbation",
    "SettingPerturbation",
    "SitePerturbation",
    "Wanted",
    "added",
    "apply_recipe",
    "everyday_name",
    "framed",
    "parse_step",
    "perturb",
    "perturb_demonstration",
    "perturbations",
    "prompt_perturbation",
    "reaches_demonstrations",
    "resolve_step",
    "rewrite_key",
    "rewriting",
    "site_perturbation",
    "step_rng",
    "text_key",
    "traits_of",
    "with_instruction",
]
