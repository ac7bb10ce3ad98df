"""Perturbations, one module per family, and the functions that define, parse and apply them."""

from __future__ import annotations

from falter.perturbations.additions import framed, with_instruction
from falter.perturbations.base import perturbations, prompt_perturbation, site_perturbation
from falter.perturbations.recipes import apply_recipe, parse_step, perturb
from falter.text.spans import added

__all__ = [
    "added",
    "apply_recipe",
    "framed",
    "parse_step",
    "perturb",
    "perturbations",
    "prompt_perturbation",
    "site_perturbation",
    "with_instruction",
]
