"""The results across panels, recipes and models, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from falter.core.records import Estimate

__all__ = [
    "Across",
    "Concordance",
    "Consistency",
    "FailureShift",
    "ModelPair",
    "Omnibus",
    "Pooled",
    "RankRange",
    "RankingChange",
    "RecipeRanking",
    "Survival",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """Brittleness of a model over its tasks, or of a task over its models.

    Components are summed first, then divided: `prompt`, `item` and `run` are these sums. `null`
    names the panels in which no outcome differs, `left_out` those that cannot be split, with the
    reason.
    """

    name: str
    brittleness: Estimate
    prompt: Estimate
    item: Estimate
    run: Estimate
    pooled: tuple[str, ...]
    null: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRanking:
    """How far a recipe leaves the order of the models alone: mean over tasks, and by noise alone.

    `agreement.excluded` counts the tasks left out because all models tie there.
    """

    recipe: str
    agreement: Estimate
    noise: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChange:
    """How often (task and recipe) the ranking changes, beside how often chance alone changes it."""

    share: Estimate
    null_swap: Estimate
    null_items: Estimate
    null_repeat: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """How many recipes leave the better model of the baseline strictly ahead; ties do not."""

    task: str
    better: str
    worse: str
    survival: Estimate
    tied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRange:
    """The ranks that simultaneous tests leave a model, 1 the best, by its mean over conditions."""

    task: str
    model: str
    mean: Estimate
    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Concordance:
    """Kendall's W: how far a task's conditions rank the models alike, 0 not at all, 1 fully."""

    task: str
    w: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two models on one task: `first` less `second`, over the same items and recipes.

    `p_drop` is the adjusted p-value of the difference of drops, over all pairs of the task.
    """

    task: str
    first: str
    second: str
    accuracy: Estimate
    drop: Estimate
    prompt_share: Estimate
    flip_rate: Estimate
    p_drop: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Omnibus:
    """Cochran's Q of a panel: whether its conditions differ at all."""

    model: str
    task: str
    q: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureShift:
    """How many more answers could not be read under a recipe than without it."""

    model: str
    task: str
    recipe: str
    difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """How far a model's items stay the same over the conditions.

    `output` is the share of items with the same answer in all conditions; an answer that could not
    be read equals no other. `valid` compares only answers that could be read; `right` and `wrong`
    split `output`. All four are None where answers are not known. `spread` is the mean standard
    deviation of an item's scores; `all_right`, `all_wrong` and `steady` are the shares of items
    where it is zero.
    """

    model: str
    task: str
    conditions: int
    output: Estimate | None
    valid: Estimate | None
    right: Estimate | None
    wrong: Estimate | None
    spread: Estimate
    all_right: Estimate
    all_wrong: Estimate
    steady: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """The numbers that need more than one recipe, panel, task or model.

    `neighbours` is the share of cells in which two models that
    follow each other in rank differ. `notes` say what these data cannot show, and why.
    """

    omnibus: tuple[Omnibus, ...] = ()
    pairs: tuple[ModelPair, ...] = ()
    failures: tuple[FailureShift, ...] = ()
    consistency: tuple[Consistency, ...] = ()
    by_model: tuple[Pooled, ...] = ()
    by_task: tuple[Pooled, ...] = ()
    rankings: tuple[RecipeRanking, ...] = ()
    changed: RankingChange | None = None
    ranks: tuple[RankRange, ...] = ()
    concordance: tuple[Concordance, ...] = ()
    survival: tuple[Survival, ...] = ()
    neighbours: Estimate | None = None
    notes: tuple[str, ...] = ()
