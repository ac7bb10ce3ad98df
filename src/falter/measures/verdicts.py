"""One verdict for every recipe of a panel, with a family-wise error rate; and the worst recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.measures.drops import accuracy_drop
from falter.measures.estimates import Basis, Clusters, Floats
from falter.records.errors import DuplicateName, InvalidValue
from falter.records.types import Estimate
from falter.stats.clusters import cluster_codes, cluster_parts
from falter.stats.equivalence import equivalence_p
from falter.stats.multiplicity import MaxTMember, holm, max_t, recipe_level

Verdict = Literal["degraded", "improved", "equivalent", "undecided"]
VERDICT_ORDER: tuple[Verdict, ...] = ("degraded", "improved", "equivalent", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeVerdict:
    """The verdict on one recipe, with its evidence.

    `drop` has the recipe's individual interval. `together` has the simultaneous interval and the
    p-value that is adjusted for the family. It excludes 0 exactly if the verdict is degraded or
    improved. `p_equivalent` is Holm's, None without an interval. `why` is the reason if nothing
    could be decided.
    """

    name: str
    verdict: Verdict
    drop: Estimate
    together: Estimate
    p_equivalent: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyVerdicts:
    """The verdicts on all recipes, and the largest drop: shrunken (`worst`) and `observed_worst`.

    Each simultaneous interval is the recipe's individual interval at the level 1 - `tail`.
    """

    recipes: tuple[RecipeVerdict, ...]
    worst: Estimate
    observed_worst: Estimate
    worst_name: str | None
    margin: float
    level: float
    tail: float

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """The number of recipes with each verdict, in the order of `VERDICT_ORDER`."""
        found = Counter(recipe.verdict for recipe in self.recipes)
        return {verdict: found[verdict] for verdict in VERDICT_ORDER}

    def __getitem__(self, name: str) -> RecipeVerdict:
        """Return the verdict on the recipe with this name."""
        return {recipe.name: recipe for recipe in self.recipes}[name]


def recipe_verdicts(
    baseline: ArrayLike,
    perturbed: ArrayLike,
    *,
    names: Sequence[str],
    clusters: Clusters = None,
    margin: float = 0.02,
    level: float = 0.95,
    replications: int = 2000,
    seed: int = 0,
) -> FamilyVerdicts:
    """Return a verdict on every recipe, with a family-wise error rate per kind of verdict.

    `degraded`, `improved`: the simultaneous interval (`max_t`) of baseline - perturbed lies above,
    below 0. Its level is `recipe_level`, 96 % at 0.95. The last fifth of the error rate is for the
    average of the panel (see `panel_p`). Else `equivalent`: Holm's p-value of the two one-sided
    tests of |drop| >= margin is below 1 - level. Else `undecided`. A recipe without an interval is
    always `undecided`: with fewer than 6 clusters, with fewer than two items, or with equal drops
    of all items on a scale.

    Parameters
    ----------
    baseline : array_like of shape (items,) or (items, recipes)
    perturbed : array_like of shape (items, recipes)
        Both finite, NaN where missing.
    names : distinct names of the recipes
    clusters : the cluster of each item; None for independent items
    margin : the drop, above 0, within which a recipe counts as equivalent
    level : family-wise confidence level
        1 - level bounds the probability of any false degraded or improved, together with the
        panel's average. It also bounds the probability of any false equivalent.

    Notes
    -----
    The worst recipe has the largest drop d_j. Picked from K recipes, this drop is too large. The
    shrunken value moves all drops towards their mean d̄ (positive-part James and Stein):

        d̄ + max(0, 1 − (K − 3) v/Σ_j (d_j − d̄)²) (d_j − d̄)

    v is the sum of the error variances of all d_j − d̄, divided by K − 1. With up to three recipes
    nothing is shrunk. The interval is the simultaneous interval of the picked recipe.

    References
    ----------
    Westfall and Young (1993); Holm (1979); Schuirmann (1987); Efron and Morris (1973).
    """
    before, after = _checked_scores(baseline, perturbed, names)
    if not 0.0 < margin < np.inf:
        raise InvalidValue("margin", margin, "a difference above 0", hint="2 points are 0.02")
    drops = before - after
    own = recipe_level(level)
    family = max_t(drops, clusters=clusters, level=own, replications=replications, seed=seed)
    # Equivalence is a separate family with the full error rate 1 − level.
    p_equivalent = holm([equivalence_p(m.mean, margin=margin) for m in family.members])
    recipes = []
    for j, (name, member) in enumerate(zip(names, family.members, strict=True)):
        verdict = _verdict(member, p_equivalent[j], level)
        recipes.append(
            RecipeVerdict(
                name=name,
                verdict=verdict,
                drop=accuracy_drop(before[:, j], after[:, j], clusters=clusters, level=level),
                together=_simultaneous_drop(member, own, seed),
                p_equivalent=p_equivalent[j],
                why=_why(member),
            )
        )
    codes = cluster_codes(clusters, len(drops))
    place, worst, observed = _worst_recipe(drops, tuple(recipes), codes, own, seed)
    return FamilyVerdicts(
        recipes=tuple(recipes),
        worst=worst,
        observed_worst=observed,
        worst_name=None if place is None else names[place],
        margin=margin,
        level=level,
        tail=family.tail,
    )


def _verdict(member: MaxTMember, p_equivalent: float | None, level: float) -> Verdict:
    low, high = member.together.low, member.together.high
    if low is not None and low > 0.0:
        return "degraded"
    if high is not None and high < 0.0:
        return "improved"
    # Last, because a drop that is shown to exist is never called equivalent, however small.
    if p_equivalent is not None and p_equivalent < 1.0 - level:
        return "equivalent"
    return "undecided"


def _why(member: MaxTMember) -> str:
    """Return the reason for which there is no interval; empty if there is one."""
    if member.together.low is not None:
        return ""
    if member.mean.value is None:
        return "fewer than two items"
    return member.together.method.removeprefix("none: ")


def _simultaneous_drop(member: MaxTMember, level: float, seed: int) -> Estimate:
    """Return the drop with its simultaneous interval and adjusted p-value."""
    basis = Basis(
        estimand="score(baseline) - score(this condition), all recipes at once, items like these",
        items=0,
        conditions=2,
        level=level,
        seed=seed,
    ).counting(member.mean)
    return basis.of_mean(
        "drop_together", member.mean, member.together, p_value=member.adjusted_p, why=_why(member)
    )


def _worst_recipe(
    drops: Floats,
    recipes: tuple[RecipeVerdict, ...],
    codes: NDArray[np.intp],
    level: float,
    seed: int,
) -> tuple[int | None, Estimate, Estimate]:
    """Return the index of the largest drop, its shrunken estimate, and its observed estimate."""
    known = [j for j, recipe in enumerate(recipes) if recipe.together.value is not None]
    estimand = "the drop of the recipe with the largest one, items like these"
    if not known:
        basis = Basis(estimand=estimand, items=0, excluded=len(drops), level=level, seed=seed)
        none = basis.undefined("worst_drop", "insufficient_data", "fewer than two items")
        return None, none, replace(none, measure="worst_drop.observed")
    values = np.array([recipes[j].together.value for j in known], dtype=np.float64)
    at = int(np.argmax(values))
    picked = recipes[known[at]].together
    observed = replace(
        picked,
        measure="worst_drop.observed",
        estimand=estimand,
        conditions=len(known) + 1,
        method=f"{picked.method}; too large, as it was picked from {len(known)}",
    )
    value = (
        float(_shrunken(values, drops[:, known], codes)[at])
        if len(known) > 3
        else float(values[at])
    )
    shrunken = replace(
        observed,
        measure="worst_drop",
        value=value,
        # Shrinking may move the value below the interval of the recipe that was picked.
        low=None if picked.low is None else min(picked.low, value),
        method=f"{picked.method}; value: positive-part James-Stein over {len(known)}"
        if len(known) > 3
        else observed.method,
    )
    return known[at], shrunken, observed


def _shrunken(values: Floats, drops: Floats, codes: NDArray[np.intp]) -> Floats:
    """Return the means shrunk towards their average, by as much as their errors explain."""
    present = ~np.isnan(drops)
    residuals = np.where(present, drops - values, 0.0)
    parts = cluster_parts(residuals, present, codes).parts
    width = len(values)
    # Summed over clusters and columns: the variances of all d_j − d̄, with K − 1 degrees of freedom.
    variance = float(np.square(parts - parts.mean(axis=1, keepdims=True)).sum()) / (width - 1)
    away = values - values.mean()
    spread = float(away @ away)
    # K − 3, because the mean uses one dimension. A factor below 0 would reverse the order.
    factor = max(0.0, 1.0 - (width - 3) * variance / spread) if spread > 0.0 else 0.0
    return np.asarray(values.mean() + factor * away)


def _checked_scores(
    baseline: ArrayLike, perturbed: ArrayLike, names: Sequence[str]
) -> tuple[Floats, Floats]:
    before = np.asarray(baseline, dtype=np.float64)
    after = np.asarray(perturbed, dtype=np.float64)
    shapes = (after.shape[:1], after.shape)
    if after.ndim != 2 or before.shape not in shapes:
        expected = "a vector of scores, and items x recipes in the same order"
        raise InvalidValue("baseline, perturbed", (before.shape, after.shape), expected)
    if np.isinf(before).any() or np.isinf(after).any():
        raise InvalidValue("perturbed", "an infinite score", "finite numbers, NaN where missing")
    if len(names) != after.shape[1]:
        raise InvalidValue("names", list(names), f"a name for each of {after.shape[1]} recipes")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DuplicateName(f"Recipe '{twice[0]}' is named twice")
    return np.broadcast_to(before if before.ndim == 2 else before[:, None], after.shape), after
