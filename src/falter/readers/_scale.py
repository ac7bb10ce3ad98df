"""Scores between 0 and 1, whatever scale they were given on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.core.errors import InvalidValue, TaskError
from falter.readers._cells import Cells

__all__ = ["Scale", "on_scale", "scale_of"]

# A limit beyond this is a slip of the keyboard, and a score beyond it an overflow.
FARTHEST = 1e9
# What rounding may have added to a score of exactly 0 or 1.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Scale:
    """The least and the greatest score there can be."""

    low: float
    high: float


def scale_of(text: str) -> Scale:
    """`100` is 0 to 100, `1,5` is 1 to 5.

    >>> scale_of("1,5")
    Scale(low=1.0, high=5.0)
    """
    parts = text.split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    low, high = (0.0, *numbers) if len(numbers) == 1 else (*numbers, math.nan, math.nan)[:2]
    if len(numbers) > 2 or not -FARTHEST <= low < high <= FARTHEST:
        raise InvalidValue(
            "--scale", text, "the greatest score, as 100, or the least and the greatest, as 1,5"
        )
    return Scale(low, high)


def on_scale(cells: Cells, scale: Scale | None) -> Cells:
    """The cells with scores from 0 to 1: (score - low) / (high - low).

    Without a scale they have to lie there already. A score outside is an error that says which and
    what to do, because a bare number must never be shown as percent.
    """
    least, most = (0.0, 1.0) if scale is None else (scale.low, scale.high)
    value = (cells.value - least) / (most - least)
    outside = (value < -SLACK) | (value > 1.0 + SLACK)
    if outside.any():
        message, hint = _refusal(cells, outside, scale)
        raise TaskError(message, hint=hint)
    noted = cells.notes if scale is None else (*cells.notes, _note(scale))
    return replace(cells, value=np.clip(value, 0.0, 1.0), notes=noted)


def _note(scale: Scale) -> str:
    return (
        f"Scores were given on a scale from {scale.low:g} to {scale.high:g} and are shown as "
        "shares of it."
    )


def _refusal(cells: Cells, outside: NDArray[np.bool_], scale: Scale | None) -> tuple[str, str]:
    """The message and the hint for the first score that lies outside."""
    first = int(np.flatnonzero(outside)[0])
    known = cells.value[~np.isnan(cells.value)]
    task = cells.task.names[int(cells.task.codes[first])]
    scorer = cells.scorers.get(task, "score")
    item = cells.item.names[int(cells.item.codes[first])][:80]
    limits = "0 to 1" if scale is None else f"{scale.low:g} to {scale.high:g}, as --scale says"
    message = (
        f"The score '{scorer}' of item '{item}' of task '{task}' is {cells.value[first]:g}, "
        f"outside {limits}; the scores lie between {known.min():g} and {known.max():g}"
    )
    if max(abs(known.min()), abs(known.max())) > FARTHEST:
        return message, "is that a score? correct the file, or choose another score"
    return message, (
        "say which scale the scores are on: --scale 100 for percent, --scale 1,5 for ratings from "
        "1 to 5; a number without bounds, as a perplexity, is no accuracy: choose another score "
        "with --score or --metric"
    )
