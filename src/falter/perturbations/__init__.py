"""Floor 1: the transforms, one family a module, and the machinery that chains them."""

from falter.perturbations.additions import framed, with_instruction
from falter.perturbations.base import (
    PromptPerturbation,
    SitePerturbation,
    perturbations,
    prompt_perturbation,
    site_perturbation,
)
from falter.perturbations.configuration import OTHER_TEMPLATE, SettingPerturbation
from falter.perturbations.recipes import (
    ADVICE,
    DEFAULT_RECIPES,
    NOISE_FLOOR,
    RECIPE_SETS,
    Advice,
    Applied,
    apply_recipe,
    everyday_name,
    parse_step,
    perturb,
    perturb_demonstration,
    reaches_demonstrations,
    resolve_step,
    text_key,
    traits_of,
)
from falter.perturbations.rewriting import (
    Ledger,
    NoRewrite,
    RewritePerturbation,
    Wanted,
    rewrite_key,
)
from falter.text import added

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
    "site_perturbation",
    "text_key",
    "traits_of",
    "with_instruction",
]
