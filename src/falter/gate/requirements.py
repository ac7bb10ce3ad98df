"""The requirements of a gate: planned before anything is sent, measured at an interim analysis."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from falter.analysis.keeping import item_shares
from falter.analysis.table import OUTCOMES, UNREADABLE, Table
from falter.engine.gate_settings import GateSpec
from falter.gate.baseline import Baseline
from falter.gate.decision import Criterion, CriterionKind
from falter.gate.feasibility import PlannedCriterion
from falter.measures.keeps_and_reads import shares_of_items
from falter.records.errors import UnknownName, UsageError, refusal
from falter.records.types import Recipe

Floats = NDArray[np.float64]
AVERAGE = "average"
CLEAN = "clean prompt"
KEEP, FOLLOW = "answers kept", "controls followed"
"""Names of two criteria: the share of answers kept, and the share of controls followed."""
USUAL_DISCORDANCE = 0.1
"""Share of responses assumed to flip although nothing changed, unless a better value is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A criterion as the settings request it, with its margin as a fraction.

    `recipe` is the perturbation that the criterion is about. None means all recipes (an average),
    or the clean prompt (a score or a regression). `share` is `KEEP` or `FOLLOW` for a criterion
    about a share of answers.
    """

    kind: CriterionKind
    margin: float
    recipe: Recipe | None = None
    share: str | None = None

    @property
    def name(self) -> str:
        """The name among all criteria: `typos`, `typos, unread`, `clean prompt, score`."""
        if self.recipe is not None:
            label = self.recipe.label
        else:
            label = AVERAGE if self.kind == "average" else self.share or CLEAN
        return label if self.kind in ("drop", "average") else f"{label}, {self.kind}"


def requirements(
    spec: GateSpec, recipes: Sequence[Recipe], *, compared: Sequence[Recipe]
) -> tuple[Requirement, ...]:
    """Return all criteria that the settings request.

    `compared` are the recipes that the version compared with has too. Raises `UsageError` if
    nothing is requested, or if a requested criterion has no recipe.
    """
    changing = [recipe for recipe in recipes if recipe.perturbs and not recipe.controls]
    required = list(_drop_requirements(spec, changing))
    if spec.max_regression is not None:
        margin = spec.max_regression / 100.0
        required += [
            Requirement(kind="regression", margin=margin, recipe=r if r.perturbs else None)
            for r in compared
        ]
    if spec.max_unread is not None:
        margin = spec.max_unread / 100.0
        required += [Requirement(kind="unread", margin=margin, recipe=r) for r in changing]
    if spec.min_score is not None:
        required.append(Requirement(kind="score", margin=spec.min_score / 100.0))
    if spec.keep is not None:
        _require_any(changing, "keep", "a harmless change", "-r tools, or typos")
        required.append(Requirement(kind="score", margin=spec.keep / 100.0, share=KEEP))
    if spec.follow is not None:
        controls = [recipe for recipe in recipes if recipe.controls]
        _require_any(controls, "follow", "a control", "recipes: [tools, controls]")
        required.append(Requirement(kind="score", margin=spec.follow / 100.0, share=FOLLOW))
    if not required:
        raise refusal(UsageError, "gate.nothing_to_hold")
    return tuple(required)


def _require_any(recipes: Sequence[Recipe], name: str, what: str, hint: str) -> None:
    """Raise `UsageError` if a setting of the gate has no recipe that it applies to."""
    if not recipes:
        raise UsageError(f"The gate's '{name}' needs {what}, and has none", hint=f"such as {hint}")


def _drop_requirements(spec: GateSpec, changing: Sequence[Recipe]) -> Iterator[Requirement]:
    """Yield a criterion for each changing recipe, or for each recipe that `max_drop` names.

    The name `average` means the mean over all recipes.
    """
    margins = spec.max_drop
    if margins is None:
        return
    if not isinstance(margins, Mapping):
        for recipe in changing:
            yield Requirement(kind="drop", margin=margins / 100.0, recipe=recipe)
        return
    by_label = {recipe.label: recipe for recipe in changing}
    for name, points in margins.items():
        if name == AVERAGE:
            yield Requirement(kind="average", margin=points / 100.0)
        elif name in by_label:
            yield Requirement(kind="drop", margin=points / 100.0, recipe=by_label[name])
        else:
            raise UnknownName("recipe of max_drop", name, [*by_label, AVERAGE])


# Before anything is sent


def planned_criteria(
    required: Sequence[Requirement],
    spec: GateSpec,
    recipes: Sequence[Recipe],
    *,
    items: int,
    changed: Mapping[str, int],
    baseline: Baseline | None,
    strict: bool,
) -> list[PlannedCriterion]:
    """Return the criteria with their numbers of items and shares of responses that flip.

    `recipes` are all recipes of the run; an average is over the harmless ones. `changed` has the
    number of items that each recipe changes, by recipe id. Under `KEEP` and `FOLLOW` it has the
    number of items that any harmless recipe, or any control, changes.

    The share is the user's, otherwise the baseline file's, otherwise `USUAL_DISCORDANCE`. For
    unparsed responses it is the baseline file's, otherwise 0.
    """

    averaged = {recipe.id for recipe in recipes if recipe.perturbs and not recipe.controls}

    def planned(each: Requirement) -> PlannedCriterion:
        share, source = _flip_share(each, averaged, baseline, strict)
        if spec.discordance is not None and each.kind != "unread":
            share, source = spec.discordance, "the gate's settings"
        score = None
        if each.kind == "score" and each.share is None and baseline is not None:
            score = baseline.accuracy(0, strict=strict)[0]
            source = "" if score is None else "the baseline file"
        return PlannedCriterion(
            name=each.name,
            kind=each.kind,
            margin=each.margin,
            items=items if not _changed_key(each) else changed.get(_changed_key(each), 0),
            discordance=share,
            source=source,
            conditions=max(1, len(averaged)) if each.kind == "average" else 1,
            score=score,
        )

    return [planned(each) for each in required]


def _changed_key(required: Requirement) -> str:
    """Return the key of a criterion in `changed`; an empty text if all items count."""
    if required.kind == "average":
        return KEEP
    return required.share or ("" if required.recipe is None else required.recipe.id)


def _flip_share(
    required: Requirement, averaged: Collection[str], baseline: Baseline | None, strict: bool
) -> tuple[float, str]:
    """Return the share of responses that flip although nothing changed, and its source in words.

    `averaged` are the ids of the recipes that an average is over.
    """
    default = (0.0, "none unread") if required.kind == "unread" else (USUAL_DISCORDANCE, "assumed")
    if required.kind == "score":
        return 0.0, "every answer right" if required.share is None else f"all {required.share}"
    if baseline is None:
        return default
    shares: list[float | None]
    if required.kind == "regression":
        flips = baseline.flips
        shares = [flips[0] / flips[1] if flips and flips[1] else None]
    else:
        wanted = averaged if required.recipe is None else {required.recipe.id}
        shares = [
            baseline.unread_discordance(column)
            if required.kind == "unread"
            else baseline.discordance(column, strict=strict)
            for column, (_, identity) in enumerate(baseline.conditions)
            if identity in wanted
        ]
    known = [share for share in shares if share is not None]
    return (sum(known) / len(known), "the baseline file") if known else default


# At an interim analysis


def measured_criteria(
    required: Sequence[Requirement],
    table: Table,
    order: Sequence[str],
    *,
    strict: bool,
    other: Mapping[str, Floats],
    held: str,
) -> list[Criterion]:
    """Return the criteria with a value for each item, in the order in which the items were drawn.

    `order` has the items' keys. `other` has the scores of the version compared with, by recipe id,
    in that same order. `held` is the reason why a regression must not fail; empty if there is none.
    """
    place = {key: n for n, key in enumerate(table.items)}
    rows = np.array([place[key] for key in order], dtype=np.intp)
    scores, changed = table.matrix(strict=strict)[rows], table.changed()[rows]
    unread = _unread_shares(table)[rows]
    by_id = {recipe.id: n for n, recipe in enumerate(table.recipes)}
    shares: dict[str, Floats] = {}
    if any(requirement.share is not None for requirement in required):
        found = shares_of_items(*item_shares(table))
        shares = {name: share[rows] for name, share in zip((KEEP, FOLLOW), found, strict=True)}

    def values_of(required: Requirement) -> Floats:
        column = 0 if required.recipe is None else by_id[required.recipe.id]
        if required.kind == "average":
            return np.where(changed, scores[:, :1] - scores, np.nan)[:, table.columns]
        if required.kind == "score":
            return scores[:, 0] if required.share is None else shares[required.share]
        if required.kind == "regression":
            values = other[table.recipes[column].id] - scores[:, column]
        elif required.kind == "unread":
            values = unread[:, column] - unread[:, 0]
        else:
            values = scores[:, 0] - scores[:, column]
        return values if required.recipe is None else np.where(changed[:, column], values, np.nan)

    return [
        Criterion(
            name=requirement.name,
            kind=requirement.kind,
            margin=requirement.margin,
            values=values_of(requirement),
            clean=scores[:, 0] if requirement.kind == "average" else None,
            held=held if requirement.kind == "regression" else "",
        )
        for requirement in required
    ]


def scores_by_recipe(table: Table, order: Sequence[str], *, strict: bool) -> dict[str, Floats]:
    """Return a version's scores by recipe id, in the order of the item keys `order`.

    A missing score is NaN.
    """
    rows = {key: n for n, key in enumerate(table.items)}
    scores = table.matrix(strict=strict)
    return {
        recipe.id: np.array([scores[rows[key], n] if key in rows else np.nan for key in order])
        for n, recipe in enumerate(table.recipes)
    }


def _unread_shares(table: Table) -> Floats:
    """Return the share of realisations without a usable answer, with shape (items, recipes).

    It is NaN where no response arrived.
    """
    answered = table.outcome < OUTCOMES.index("failed")
    count = answered.sum(axis=2)
    unread = (np.isin(table.outcome, UNREADABLE) & answered).sum(axis=2)
    return np.asarray(np.where(count > 0, unread / np.maximum(count, 1), np.nan))
