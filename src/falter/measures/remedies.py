"""Find the remedy that helps, if any: pick it on one half of the items, confirm it on the other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.averages import micro_average
from falter.measures.estimates import Clusters, Floats
from falter.records.errors import InvalidValue
from falter.records.ids import digest
from falter.records.types import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyScores:
    """Scores with a remedy less those without it: items x recipes, and of the clean prompts.

    NaN where one of the two is missing or the recipe did not change the prompt.
    """

    gain: ArrayLike
    clean: ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyEffect:
    """The gain of a remedy under perturbation, and its effect on clean prompts."""

    gain: Estimate
    clean: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedRemedy:
    """The effect of every remedy over all items, the one that was picked, and whether it helps.

    `on_first` are the effects on the half that picks, `on_second` is the picked one's on the other.
    Without a remedy that can be picked, `picked` is None.
    """

    effects: Mapping[str, RemedyEffect]
    on_first: Mapping[str, RemedyEffect]
    picked: str | None
    on_second: RemedyEffect | None
    helps: bool
    margin: float
    halves: tuple[int, int]


def confirmed_remedy(
    scores: Mapping[str, RemedyScores],
    items: Sequence[Hashable],
    *,
    seed: int = 0,
    margin: float = 0.05,
    clusters: Clusters = None,
    level: float = 0.95,
    together: int = 1,
) -> ConfirmedRemedy:
    """The remedy that helps, if one does: picked on one half of the items, tested on the other.

    `scores` are those with each remedy less those without it, for the same `items`. A seeded hash
    puts the items, or whole `clusters`, into two halves. On the first, the remedy with the largest
    mean gain is picked among those whose interval lies above 0 and that lose at most `margin` on
    clean prompts. It helps if on the second half, where it stands alone, the interval of its gain
    lies above 0 again and no loss beyond the margin is shown on clean prompts. So a false claim
    comes about in at most (1 − level)/2 of studies in which nothing helps, however many remedies
    are tried. Intervals are those of `micro_average`.

    With as many as `together` remedies picked at once, for other models or tasks, the intervals on
    the second half are simultaneous by Bonferroni's rule, at 1 − (1 − level)/together each, so that
    the bound holds for any false claim among them. Who was picked is known from the first halves
    alone, so only those count.
    """
    if together < 1:
        raise InvalidValue("together", together, "1 or more")
    if not 0.0 <= margin < 1.0:
        raise InvalidValue("margin", margin, "a number from 0 to below 1", hint="5 points are 0.05")
    first = _first_half(items if clusters is None else clusters, seed)

    def effect(name: str, rows: NDArray[np.bool_], family: int = 1) -> RemedyEffect:
        own = None if clusters is None else [c for c, r in zip(clusters, rows, strict=True) if r]
        return _effect(scores[name], rows, own, level, family)

    everyone = np.ones(len(items), dtype=bool)
    on_first = {name: effect(name, first) for name in scores}
    fit = [name for name in scores if _is_fit(on_first[name], margin)]
    # Chosen by the first half alone: testing it there again would reward luck.
    picked = max(fit, key=lambda name: on_first[name].gain.value or 0.0, default=None)
    on_second = None if picked is None else effect(picked, ~first, together)
    return ConfirmedRemedy(
        effects={name: effect(name, everyone) for name in scores},
        on_first=on_first,
        picked=picked,
        on_second=on_second,
        helps=on_second is not None and _is_confirmed(on_second, margin),
        margin=margin,
        halves=(int(first.sum()), int((~first).sum())),
    )


def _first_half(names: Sequence[Hashable], seed: int) -> NDArray[np.bool_]:
    """The items whose name, or whose cluster's name, is in the first half of the hashed order."""
    # Sorted by hash, so that the halves do not depend on the order of the items.
    ranked = sorted(set(names), key=lambda name: digest("half", seed, str(name)))
    chosen = set(ranked[: (len(ranked) + 1) // 2])
    return np.array([name in chosen for name in names], dtype=bool)


def _effect(
    scores: RemedyScores, rows: NDArray[np.bool_], clusters: Clusters, level: float, family: int
) -> RemedyEffect:
    gain = np.asarray(scores.gain, dtype=np.float64)[rows]
    clean = np.asarray(scores.clean, dtype=np.float64)[rows, None]
    return RemedyEffect(
        gain=_mean(gain, "remedy_gain", "gain over these recipes", clusters, level, family),
        clean=_mean(clean, "remedy_clean", "change on clean prompts", clusters, level, family),
    )


def _mean(
    values: Floats, measure: str, what: str, clusters: Clusters, level: float, family: int
) -> Estimate:
    """The mean over items; one of a family has an interval that holds for all of it at once."""
    own = 1.0 - (1.0 - level) / family
    estimate = micro_average(values, clusters=clusters, level=own)
    what = f"{what}, with the remedy less without it, items like these"
    how = f", simultaneous over {family}, bonferroni" if family > 1 else ""
    method = f"{estimate.method}{how}" if estimate.method else ""
    return replace(estimate, measure=measure, estimand=what, level=level, method=method)


def _gains(effect: RemedyEffect) -> bool:
    return effect.gain.low is not None and effect.gain.low > 0.0


def _is_fit(effect: RemedyEffect, margin: float) -> bool:
    """Return True if the gain's interval lies above 0 and clean prompts lose at most the margin."""
    # The value and not its interval: half of the items rarely excludes a loss of a few points, and
    # what is picked here is only a candidate.
    clean = effect.clean.value
    return _gains(effect) and clean is not None and clean >= -margin


def _is_confirmed(effect: RemedyEffect, margin: float) -> bool:
    """Return True if the gain's interval lies above 0 and the clean loss may be within `margin`."""
    high = effect.clean.high
    return _gains(effect) and high is not None and high >= -margin
