"""Solved examples ahead of the prompt: the engine takes them from the task, and shows them."""

from __future__ import annotations

from falter.core.records import Prompt
from falter.remedies._base import remedy

__all__ = ["examples", "noisy_examples"]

COUNT = 4


@remedy("examples", examples=COUNT)
def examples(prompt: Prompt) -> Prompt:
    """Shows four solved items of the task ahead of the prompt, which are not asked then."""
    return prompt


@remedy("noisy_examples", examples=COUNT, noise=True)
def noisy_examples(prompt: Prompt) -> Prompt:
    """Shows solved items of the task, or the examples there are, perturbed as the items are."""
    return prompt
