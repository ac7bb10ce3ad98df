"""One verdict for every recipe of a panel, from one rule of error; and the worst of them."""

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
ORDER: tuple[Verdict, ...] = ("degraded", "improved", "equivalent", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeVerdict:
    """The verdict on one recipe, with its evidence.

    `drop` has this recipe's own interval; `together` the simultaneous one, with the p-value that is
    adjusted for the family: it leaves out 0 just where the verdict is degraded or improved.
    `p_equivalent` is Holm's, None without an interval; `why` says why nothing could be decided.
    """

    name: str
    verdict: Verdict
    drop: Estimate
    together: Estimate
    p_equivalent: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyVerdicts:
    """Every recipe's verdict, and the worst: shrunken (`worst`) and as seen (`observed_worst`).

    Every simultaneous interval is the recipe's own one at the level 1 - `tail`.
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
        """The number of recipes with each verdict, in the order of the verdicts."""
        found = Counter(recipe.verdict for recipe in self.recipes)
        return {verdict: found[verdict] for verdict in ORDER}

    def __getitem__(self, name: str) -> RecipeVerdict:
        """The verdict on one recipe."""
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
    """Return a verdict on every recipe; a false one is as rare in the family as 1 - level.

    `perturbed` is items x recipes, `baseline` a score per item, or one for every recipe too, NaN
    where missing.

    `degraded`, `improved`: the simultaneous interval (`max_t`) of baseline - perturbed
    lies above, below 0. Its level is `recipe_level`, 96 % at 0.95: the other fifth of the error
    rate is for the average of the panel (see `panel_p`). Else `equivalent`: Holm's p-value of the
    two one-sided tests of |drop| >= margin is below 1 - level. Else `undecided`, as is a recipe
    with fewer than 6 clusters, fewer than two items, or the same drop for every item, which has no
    interval.

    The worst recipe is the one with the largest drop d_j. Picked from K it is too large; its
    shrunken value draws all towards their mean d̄ (positive-part James and Stein):

        d̄ + max(0, 1 − (K − 3) v/Σ_j (d_j − d̄)²) (d_j − d̄)

    with v the mean error variance of d_j − d̄; up to three recipes are not drawn. Its interval is
    the simultaneous one of the recipe that was picked. Source: Westfall and Young (1993); Holm
    (1979); Schuirmann (1987); Efron and Morris (1973).
    """
    before, after = _checked(baseline, perturbed, names)
    if not 0.0 < margin < np.inf:
        raise InvalidValue("margin", margin, "a difference above 0", hint="2 points are 0.02")
    drops = before - after
    own = recipe_level(level)
    family = max_t(drops, clusters=clusters, level=own, replications=replications, seed=seed)
    # Equivalence is a family of its own, with all of the error rate 1 − level.
    p_equivalent = holm([equivalence_p(m.mean, margin=margin) for m in family.members])
    recipes = []
    for j, (name, member) in enumerate(zip(names, family.members, strict=True)):
        verdict = _verdict(member, p_equivalent[j], level)
        recipes.append(
            RecipeVerdict(
                name=name,
                verdict=verdict,
                drop=accuracy_drop(before[:, j], after[:, j], clusters=clusters, level=level),
                together=_together(member, own, seed),
                p_equivalent=p_equivalent[j],
                why=_why(member),
            )
        )
    codes = cluster_codes(clusters, len(drops))
    place, worst, observed = _worst(drops, tuple(recipes), codes, own, seed)
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
    # Only now: a drop that is shown to exist is never called equivalent, however small.
    if p_equivalent is not None and p_equivalent < 1.0 - level:
        return "equivalent"
    return "undecided"


def _why(member: MaxTMember) -> str:
    """Return the reason that there is no interval; empty if there is one."""
    if member.together.low is not None:
        return ""
    if member.mean.value is None:
        return "fewer than two items"
    return member.together.method.removeprefix("none: ")


def _together(member: MaxTMember, level: float, seed: int) -> Estimate:
    """The drop with its simultaneous interval and adjusted p-value."""
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


def _worst(
    drops: Floats,
    recipes: tuple[RecipeVerdict, ...],
    codes: NDArray[np.intp],
    level: float,
    seed: int,
) -> tuple[int | None, Estimate, Estimate]:
    """Return the place of the largest drop, the shrunken estimate of it, and the observed one."""
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
    # Σ_g over the parts less their mean over columns: K − 1 times the variance of d_j − d̄.
    variance = float(np.square(parts - parts.mean(axis=1, keepdims=True)).sum()) / (width - 1)
    away = values - values.mean()
    spread = float(away @ away)
    # K − 3, since one dimension goes to the mean. Below 0 the order would be turned over.
    factor = max(0.0, 1.0 - (width - 3) * variance / spread) if spread > 0.0 else 0.0
    return np.asarray(values.mean() + factor * away)


def _checked(
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
