"""Options: the listed choices in another order, or under other labels."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.interfaces import Parameter
from falter.core.records import Prompt
from falter.core.rng import Rng
from falter.perturbations._base import prompt_perturbation
from falter.perturbations._choices import is_listed, movable, relisted, target_of
from falter.perturbations._relabelling import STYLES, relabelled

__all__ = ["relabel_choices", "shuffle_choice_order", "shuffle_choice_texts"]

_FAMILY = _GROUP = "options"


def _can_shuffle(prompt: Prompt) -> bool:
    return is_listed(prompt) and bool(movable(prompt.choices, prompt.labels))


def _can_relabel(prompt: Prompt, labels: str) -> bool:
    return is_listed(prompt) and relabelled(prompt, labels) is not None


def _order(prompt: Prompt, rng: Rng) -> list[int]:
    """The option for each place, in an order that reads differently."""
    choices = prompt.choices
    groups = movable(choices, prompt.labels)
    while True:
        order = list(range(len(choices)))
        for group in groups:
            for place, drawn in zip(group, rng.order(len(group)), strict=True):
                order[place] = group[drawn]
        if tuple([choices[at] for at in order]) != choices:
            return order


def _reordered(values: Sequence[str], order: Sequence[int]) -> list[str]:
    return [values[at] for at in order]


def _moved(prompt: Prompt, order: Sequence[int]) -> int | str | None:
    """Where the target is now."""
    target = target_of(prompt)
    return prompt.target if target is None else order.index(target)


@prompt_perturbation(
    "shuffle_choice_texts",
    title="options under other labels",
    family=_FAMILY,
    group=_GROUP,
    scope=("choices",),
    invariants=("choice set", "target text", "lines", "negations"),
    eligible=_can_shuffle,
)
def shuffle_choice_texts(prompt: Prompt, rng: Rng) -> Prompt:
    """Shuffles the options' texts and leaves the labels in place.

    The target's label changes with its text. Options that refer to others keep their place.
    """
    order = _order(prompt, rng)
    return relisted(prompt, _reordered(prompt.choices, order), prompt.labels, _moved(prompt, order))


@prompt_perturbation(
    "shuffle_choice_order",
    title="options in another order",
    family=_FAMILY,
    group=_GROUP,
    scope=("choices",),
    invariants=("choice set", "target text", "lines", "negations"),
    eligible=_can_shuffle,
)
def shuffle_choice_order(prompt: Prompt, rng: Rng) -> Prompt:
    """Lists the options in another order, each with its own label."""
    order = _order(prompt, rng)
    choices, labels = _reordered(prompt.choices, order), _reordered(prompt.labels, order)
    return relisted(prompt, choices, labels, _moved(prompt, order))


@prompt_perturbation(
    "relabel_choices",
    title="other option labels",
    family=_FAMILY,
    group=_GROUP,
    scope=("choices",),
    parameters=(
        Parameter(name="labels", type=str, default="digits", options=STYLES, help="the new labels"),
    ),
    invariants=("choice set", "target text", "target", "lines", "negations"),
    eligible=_can_relabel,
)
def relabel_choices(prompt: Prompt, rng: Rng, labels: str) -> Prompt:
    """Gives the options other labels, or none, in the prompt and its demonstrations.

    Words of the template about letters are adapted. Nothing changes if an option names another by
    its label, or if its text would be the new label of another.
    """
    return relabelled(prompt, labels) or prompt
