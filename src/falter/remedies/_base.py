"""The registry of remedies, and those that are a text around the prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from falter.core.errors import InvalidValue
from falter.core.records import Prompt
from falter.core.registry import Registry
from falter.remedies._placing import around

__all__ = ["PLACE", "Remedy", "remedies", "remedy", "remedy_from"]

Change = Callable[[Prompt], Prompt]
PLACE = "{prompt}"
"""Where the prompt stands in a remedy that is written as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Something done to every prompt before it is sent, perturbed or not: a pure function.

    It sees the prompt as it arrives, and never the item, the recipe or the right answer.
    `reasons` says that it asks for reasoning before the answer, which takes `reply_tokens`.
    `examples` is how many solved examples it shows ahead of every prompt; with `noise` they are
    perturbed as the items of the experiment are.
    """

    name: str
    summary: str
    change: Change
    reasons: bool = False
    reply_tokens: int = 0
    examples: int = 0
    noise: bool = False

    def __call__(self, prompt: Prompt) -> Prompt:
        return self.change(prompt)


remedies: Registry[Remedy] = Registry("remedy", "falter.remedies")


def remedy(
    name: str,
    *,
    reasons: bool = False,
    reply_tokens: int = 0,
    examples: int = 0,
    noise: bool = False,
) -> Callable[[Change], Change]:
    """Register a function from prompt to prompt as a remedy; its first line says what it does."""

    def register(change: Change) -> Change:
        summary = (change.__doc__ or "").strip().partition("\n")[0]
        made = Remedy(
            name=name, summary=summary, change=change, reasons=reasons,
            reply_tokens=reply_tokens, examples=examples, noise=noise,
        )  # fmt: skip
        remedies.register(name, made)
        return change

    return register


def remedy_from(text: str) -> Remedy:
    """A remedy by its name, or a text of the user's own with `{prompt}` in it, once."""
    if text.partition(":")[0] == "vote":
        raise InvalidValue(
            "remedy", text, "something done to one prompt; a vote asks several for one answer",
            hint="'falter mend' compares votes with other remedies",
        )  # fmt: skip
    if "{" not in text:
        return remedies.get(text)
    before, place, after = text.partition(PLACE)
    if not place or PLACE in after:
        raise InvalidValue(
            "remedy", text, "the name of a remedy, or a text with {prompt} in it, once",
            hint=f"known remedies: {', '.join(remedies.names())}",
        )  # fmt: skip
    return Remedy(
        name=text,
        summary="words of your own around the prompt",
        change=lambda prompt: around(prompt, "remedy", before, after),
    )
