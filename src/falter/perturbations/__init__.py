"""Floor 1: the transforms, one family a module, and the machinery that chains them."""

from falter.perturbations._base import (
    PromptPerturbation,
    SitePerturbation,
    perturbations,
    prompt_perturbation,
    site_perturbation,
)
from falter.perturbations._recipes import apply_recipe, perturb, text_key
from falter.perturbations._steps import parse_step, resolve_step

__all__ = [
    "PromptPerturbation",
    "SitePerturbation",
    "apply_recipe",
    "parse_step",
    "perturb",
    "perturbations",
    "prompt_perturbation",
    "resolve_step",
    "site_perturbation",
    "text_key",
]
