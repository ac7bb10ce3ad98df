"""Search for a remedy that helps: it is picked on one half of the items and tested on the other."""

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
    """Scores with a remedy less scores without it.

    `gain` is (items, recipes), `clean` is (items,) for the clean prompts. NaN where a score is
    missing or the recipe did not change the prompt.
    """

    gain: ArrayLike
    clean: ArrayLike


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyEffect:
    """The mean gain of a remedy under perturbation, and its mean effect on clean prompts."""

    gain: Estimate
    clean: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedRemedy:
    """The effect of every remedy over all items, the picked remedy, and the result of its test.

    `on_first` has all effects on the half that picks. `on_second` has the picked remedy's effect on
    the other half. `helps` is True if the test confirms it. `picked` and `on_second` are None if no
    remedy can be picked. `halves` has the numbers of items in both halves.
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

    A seeded hash puts the items, or whole clusters, into two halves. On the first half, the
    candidates are the remedies whose gain has an interval above 0 and that lose at most `margin` on
    clean prompts. The candidate with the largest mean gain is picked. It helps if two conditions
    are met on the second half: the interval of its gain lies above 0 again, and no loss beyond the
    margin is shown on clean prompts. If nothing helps, a false claim has a probability of at most
    (1 − level)/2, however many remedies are tried.

    Parameters
    ----------
    scores : for each remedy its differences, see `RemedyScores`
    items : the keys of the items, in the order of the scores
    margin : the largest loss on clean prompts, from 0 to below 1
    clusters : the cluster of each item; None for independent items
    level : two-sided level of the intervals, which are `micro_average`'s
    together : the number of remedies that are picked at once, for other models or tasks
        The intervals on the second half are then simultaneous by Bonferroni's rule, at 1 − (1 −
        level)/together each. So the bound holds for any false claim among them. The first halves
        alone decide which remedies are picked, so only these count.
    """
    if together < 1:
        raise InvalidValue("together", together, "1 or more")
    if not 0.0 <= margin < 1.0:
        raise InvalidValue("margin", margin, "a number from 0 to below 1", hint="5 points are 0.05")
    is_first_half = _first_half(items if clusters is None else clusters, seed)

    def effect(name: str, rows: NDArray[np.bool_], family: int = 1) -> RemedyEffect:
        own = None if clusters is None else [c for c, r in zip(clusters, rows, strict=True) if r]
        return _effect(scores[name], rows, own, level, family)

    all_items = np.ones(len(items), dtype=bool)
    on_first = {name: effect(name, is_first_half) for name in scores}
    candidates = [name for name in scores if _is_candidate(on_first[name], margin)]
    # Chosen by the first half alone: testing it there again would reward luck.
    picked = max(candidates, key=lambda name: on_first[name].gain.value or 0.0, default=None)
    on_second = None if picked is None else effect(picked, ~is_first_half, together)
    return ConfirmedRemedy(
        effects={name: effect(name, all_items) for name in scores},
        on_first=on_first,
        picked=picked,
        on_second=on_second,
        helps=on_second is not None and _is_confirmed(on_second, margin),
        margin=margin,
        halves=(int(is_first_half.sum()), int((~is_first_half).sum())),
    )


def _first_half(names: Sequence[Hashable], seed: int) -> NDArray[np.bool_]:
    """Return True for each name, of an item or cluster, in the first half of the hashed order."""
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
    """Return the mean over items; for one of a `family` with a simultaneous interval."""
    own = 1.0 - (1.0 - level) / family
    estimate = micro_average(values, clusters=clusters, level=own)
    what = f"{what}, with the remedy less without it, items like these"
    how = f", simultaneous over {family}, bonferroni" if family > 1 else ""
    method = f"{estimate.method}{how}" if estimate.method else ""
    return replace(estimate, measure=measure, estimand=what, level=level, method=method)


def _shows_gain(effect: RemedyEffect) -> bool:
    return effect.gain.low is not None and effect.gain.low > 0.0


def _is_candidate(effect: RemedyEffect, margin: float) -> bool:
    """Return True if the gain's interval lies above 0 and clean prompts lose at most the margin."""
    # The value and not its interval: half of the items rarely excludes a loss of a few points, and
    # the picked remedy is only a candidate.
    clean = effect.clean.value
    return _shows_gain(effect) and clean is not None and clean >= -margin


def _is_confirmed(effect: RemedyEffect, margin: float) -> bool:
    """Return True if the gain's interval lies above 0 and the clean loss may be within `margin`."""
    high = effect.clean.high
    return _shows_gain(effect) and high is not None and high >= -margin
