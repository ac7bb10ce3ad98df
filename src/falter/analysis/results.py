"""Records of the results of an analysis: counts, estimates and verdicts, ready for reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, TypeVar, cast, get_args

from falter.measures.brittleness import PooledBrittleness
from falter.measures.comparison import PairComparison
from falter.measures.consistency import ItemStd, OutputConsistency
from falter.measures.drop_decomposition import DropParts
from falter.measures.flips import SCORE_TOLERANCE, Churn, FlipRate
from falter.measures.keeps_and_reads import LINES, KeepsAndReads
from falter.measures.missing import MissingBounds
from falter.measures.rankings import RankingChanged
from falter.measures.variance import PromptShare
from falter.records.figures import Example, Segment, Verdict
from falter.records.ids import short
from falter.records.types import Estimate, Panel, Recipe

T = TypeVar("T")
MARGIN = 0.02
# Share of requests. If more of them failed, the responses are no sample of the planned cells.
MAX_FAILED_SHARE = 0.1
# Share of responses. If the second extractor judges more of them differently, answer extraction
# is in doubt.
MAX_DIFFERENT_SHARE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRanking:
    """Rank correlation of the models between the baseline and a recipe, averaged over tasks.

    `noise` is the correlation that noise alone leaves. `agreement.excluded` counts the tasks that
    are left out because all models tie there.
    """

    recipe: str
    agreement: Estimate
    noise: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """Share of recipes under which the baseline's better model stays strictly ahead.

    `tied` counts the recipes under which both models tie. A tie does not count as ahead.
    """

    task: str
    better: str
    worse: str
    survival: Estimate
    tied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRange:
    """Ranks of a model that simultaneous tests do not exclude, by its mean score over conditions.

    Rank 1 is the best.
    """

    task: str
    model: str
    mean: Estimate
    best: int
    worst: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """Agreement of a model's answers and scores within items, over the conditions of one task.

    `same` is the share of items with identical answers in all conditions, None where answers are
    not known. `scores` holds the standard deviations of the items' scores.
    """

    model: str
    task: str
    conditions: int
    same: OutputConsistency | None
    scores: ItemStd


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """Results that compare several recipes, panels, tasks or models.

    - `omnibus`: Cochran's Q for each panel, a test of any difference between its conditions.
    - `failures`: for each recipe, its share of unreadable responses minus the baseline's.
    - `by_model`, `by_task`: pooled brittleness by name.
    - `concordance`: Kendall's W for each task.
    - `neighbours`: share of cells in which two models with adjacent ranks differ.
    - `notes`: analyses that these data do not support, with the reasons.
    """

    omnibus: tuple[Estimate, ...] = ()
    pairs: tuple[PairComparison, ...] = ()
    failures: tuple[Estimate, ...] = ()
    consistency: tuple[Consistency, ...] = ()
    by_model: Mapping[str, PooledBrittleness] = field(default_factory=dict)
    by_task: Mapping[str, PooledBrittleness] = field(default_factory=dict)
    rankings: tuple[RecipeRanking, ...] = ()
    changed: RankingChanged | None = None
    ranks: tuple[RankRange, ...] = ()
    concordance: tuple[Estimate, ...] = ()
    survival: tuple[Survival, ...] = ()
    neighbours: Estimate | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Numbers of cells with each outcome. The outcomes add up to `cells`.

    The five variant statuses and the cells of the clean prompt also add up to `cells`.
    `same_prompt` counts changed prompts that an earlier recipe also produces. Such a prompt is sent
    once, for the earlier recipe. `inferred` counts the scored answers that were extracted from
    prose, not stated. `empty` counts the unparsed responses without text.
    """

    cells: int
    scored: int
    unparsed: int
    truncated: int = 0
    refused: int
    failed: int
    missing: int
    changed: int
    unchanged: int
    not_applicable: int
    no_rewrite: int = 0
    same_prompt: int = 0
    inferred: int = 0
    empty: int = 0

    @property
    def answers(self) -> int:
        """Number of responses that arrived."""
        return self.cells - self.failed - self.missing

    @property
    def mostly_failed(self) -> bool:
        """Return True if too many requests failed for any conclusion."""
        return self.failed > MAX_FAILED_SHARE * self.cells

    @property
    def hold_no_answer(self) -> bool:
        """Return True if responses arrived but none was scored."""
        return self.answers > 0 and self.scored == 0

    @property
    def unreadable(self) -> int:
        """Number of responses without an extracted answer. Refusals are not counted."""
        return self.unparsed + self.truncated

    @property
    def unread(self) -> int:
        """Number of responses without a usable answer: unparsed, truncated or refused."""
        return self.unparsed + self.truncated + self.refused


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeResult:
    """Results of one recipe against the baseline.

    - `together`: the drop that reports lead with, over the items that the recipe changed. Its
      interval and p-value are simultaneous over the recipes of the panel. Unparsed answers follow
      the run's rule.
    - `verdict`: follows from `together` and `p_equivalent`. If it is undecided for lack of data,
      `why_undecided` gives the reason.
    - `drop`: the same number with an interval for this recipe alone.
    - `drop_valid`: the drop without unparsed answers.
    - `drop_all`: the drop over all items. Unchanged items keep the baseline's outcome.
    - `lost`, `gained`: of the `changed` items, those that became wrong and right. None without a
      baseline.
    - `bounds`: worst cases of the drop, where enough is missing to matter; `missing` gives the
      reasons.
    - `everyday`: a plain name such as `split words`, or an empty text.
    - `same`: labels of recipes that produce the same prompts for all items and have no own result.
    """

    label: str
    group: str
    accuracy: Estimate
    drop: Estimate
    together: Estimate
    verdict: Verdict
    drop_valid: Estimate
    drop_all: Estimate
    changed: int
    lost: int | None
    gained: int | None
    edits_mean: float | None
    counts: Counts
    p_equivalent: float | None = None
    why_undecided: str = ""
    flips: Estimate | None = None
    bounds: MissingBounds | None = None
    missing: tuple[str, ...] = ()
    everyday: str = ""
    same: tuple[str, ...] = ()

    @property
    def least(self) -> float | None:
        """Smallest drop that is possible for any value of the missing answers."""
        return self.together.low if self.bounds is None else self.bounds.low.low

    @property
    def most(self) -> float | None:
        """Largest drop that is possible for any value of the missing answers."""
        return self.together.high if self.bounds is None else self.bounds.high.high

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of this recipe and of the recipes with the same prompts."""
        return self.label, *self.same

    @property
    def name(self) -> str:
        """All labels in one text, such as `typos = swaps`."""
        return " = ".join(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeParts:
    """Decomposition of one recipe's drop, and its churn.

    `reader` names the second extractor. It is None if there is none.
    """

    label: str
    reader: str | None
    split: DropParts
    churn: Churn


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReading:
    """Responses of a panel that the second extractor judges differently.

    `different` counts, among the `answers` that arrived, those whose two scores differ by 0.5 or
    more. Unparsed responses have score 0. Responses that the second extractor cannot parse are not
    counted. `recipes` names the recipes whose verdict would change.
    """

    reader: str
    answers: int
    different: int
    recipes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Share of responses that the second extractor judges differently."""
        return self.different / self.answers if self.answers else 0.0

    @property
    def matters(self) -> bool:
        """Return True if the second extractor changes a verdict or many scores."""
        return bool(self.recipes) or self.share > MAX_DIFFERENT_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """Mean drop over the recipes of a group, paired by item."""

    group: str
    recipes: tuple[str, ...]
    drop: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRecipe:
    """Numbers of items sent and not sent under a recipe, and its drop over all of them."""

    label: str
    asked: int
    not_asked: int
    drop: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """Cells that a budget left out, and estimates for exactly the `items` of the task.

    `cells` of all `of` planned cells were sent, for `items_asked` items. `per_item` holds the
    minimum and maximum number of recipes of an item, without the clean prompt. `promised` holds the
    half-widths expected before the run, by name: `brittleness`, `average` (drop) and `recipe` (drop
    of one recipe).
    """

    items: int
    items_asked: int
    cells: int
    of: int
    per_item: tuple[int, int]
    brittleness: Estimate
    average: Estimate
    recipes: tuple[AskedRecipe, ...]
    promised: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelResult:
    """All results of one model on one task.

    If too many requests failed, no estimate has a value.

    - `micro`: the average drop under these recipes. `like_these` is the same number, with an
      interval for other recipes of their kind.
    - `prompt_share`, `flips`: effect of the prompt on the variance and on the outcomes. Neither
      depends on the number of recipes.
    - `worst`: the largest drop, shrunken towards the other drops because it was selected.
    - `p_any`: p-value of "a recipe, or the average of all, moves the score".
    - `threshold`: a score that changes by more than this number has flipped.
    - `stated`: recipes with another verdict if inferred answers are left out.
    - `read`: recipes with another verdict under the other rule for unparsed and truncated answers.
    - `components`: variance components by method (`plugin`, `crossed`) and name. `brittleness` is
      the plug-in share that the papers report.
    - `subjects`: the baseline with equal weight for every subject, where subjects have several
      items.
    - `parts`: decomposed drops. They need a store, so results of other tools have none.
    - `margin`: the margin of the verdicts.
    - `at_chance`: True if the baseline cannot be distinguished from guessing.
    - `not_asked`: the cells that a budget left out.
    - `second_reading`: None if the scorer names no second extractor.
    - `quantile`: the drop that nine of ten prompts do not exceed, if there are enough prompts.
    """

    panel: Panel
    model: str
    signature: str
    items: int
    counts: Counts
    baseline: Estimate
    baseline_valid: Estimate
    recipes: tuple[RecipeResult, ...]
    groups: tuple[GroupResult, ...]
    micro: Estimate
    macro: Estimate
    noise_floor: Estimate | None
    brittleness: Estimate
    like_these: Estimate
    prompt_share: PromptShare
    flips: FlipRate | None
    worst: Estimate | None
    margin: float
    components: Mapping[str, Mapping[str, Estimate]]
    examples: tuple[Example, ...] = ()
    served_by: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    subjects: Estimate | None = None
    baseline_counts: Counts | None = None
    parts: tuple[RecipeParts, ...] = ()
    at_chance: bool = False
    not_asked: NotAsked | None = None
    second_reading: SecondReading | None = None
    p_any: float | None = None
    threshold: float = SCORE_TOLERANCE
    stated: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    quantile: Estimate | None = None
    keeping: KeepsAndReads | None = None
    """None without a baseline, or if answers have targets and no recipe changes the meaning."""

    @property
    def largest(self) -> RecipeResult | None:
        """The recipe with the largest drop; None if no drop is known."""
        known = [recipe for recipe in self.recipes if recipe.together.value is not None]
        return max(known, key=lambda recipe: recipe.together.value or 0.0, default=None)

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """Number of recipes with each verdict."""
        counts = Counter(recipe.verdict for recipe in self.recipes)
        return {verdict: counts[verdict] for verdict in get_args(Verdict)}

    @property
    def discordance(self) -> float | None:
        """Mean share of items that flip; without a baseline, between any two conditions.

        None if neither can be computed.
        """
        shares = [
            (r.lost + r.gained) / r.drop.items
            for r in self.recipes
            if r.lost is not None and r.gained is not None and r.drop.items
        ]
        if shares:
            return fmean(shares)
        pert = self.components.get("plugin", {}).get("pert")
        if pert is None or pert.value is None or pert.conditions < 2:
            return None
        # Of 0/1 scores, two of J conditions differ in a share 2 v J/(J - 1), where v is the mean
        # variance within items over all J.
        return min(1.0, 2.0 * pert.value * pert.conditions / (pert.conditions - 1))

    @property
    def design_effect(self) -> float:
        """Mean design effect of the drops, at least 1; 1 without clusters."""
        known = [r.drop.design_effect for r in self.recipes if r.drop.design_effect is not None]
        return max(1.0, fmean(known)) if known else 1.0

    @property
    def flip_rate(self) -> Estimate | None:
        """Share of outcomes that change with the prompt; None without a baseline."""
        return None if self.flips is None else self.flips.rate

    @property
    def title(self) -> str:
        """Model and task in one text, such as `smollm2 on basics`."""
        return f"{self.model} on {self.panel.task}"

    @property
    def has_no_baseline(self) -> bool:
        """Return True if no condition is the baseline, so that there are no drops."""
        return bool(self.recipes) and all(recipe.lost is None for recipe in self.recipes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """Changes that a recipe makes to the prompts of a task, with the results of the meaning checks.

    `lost` counts the changed items that fail each check. `failing` names the first of these items
    with the text that was lost. `same` counts the prompts that earlier recipes also produce.
    `cosine` is the mean over `compared` items, and `cosine_low` their tenth percentile. `change` is
    one place where the recipe changed a prompt, with a few words around it.
    """

    task: str
    recipe: str
    group: str
    texts: int
    changed: int
    unchanged: int
    not_applicable: int
    no_rewrite: int
    edits_per_100_words: float | None
    lost: Mapping[str, int]
    failing: tuple[tuple[str, str, str], ...] = ()
    samples: tuple[tuple[str, str], ...] = ()
    encoder: str | None = None
    compared: int = 0
    cosine: float | None = None
    cosine_low: float | None = None
    same: Mapping[str, int] = field(default_factory=dict)
    change: tuple[Segment, ...] = ()

    @property
    def share_changed(self) -> float | None:
        """Share of texts that the recipe changed; None without texts."""
        return self.changed / self.texts if self.texts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of an analysis, and the run that it is about.

    - `margin`: the largest drop, as a fraction, at which a recipe counts as equivalent. Choose it
      before you look at the results.
    - `replications`: number of draws of every bootstrap.
    - `everyday`: returns a recipe's plain name, or an empty text.
    - `reader`: the model that extracted answers where the scorer inferred or found none.
    - `lines`: the two thresholds of `KeepsAndReads`.
    - `store`: path of the store, see `Analysis`.
    """

    run: str
    version: str
    created_at: float
    seed: int = 0
    level: float = 0.95
    unparsed: Literal["wrong", "excluded"] = "wrong"
    margin: float = MARGIN
    replications: int = 2000
    notes: tuple[str, ...] = ()
    everyday: Callable[[Recipe], str] = lambda recipe: ""
    reader: str = ""
    lines: tuple[float, float] = LINES
    store: Path | None = None

    @property
    def signature(self) -> str:
        """One line with the settings and versions behind the numbers across panels."""
        return " | ".join(
            (
                f"falter {self.version}",
                f"run {short(self.run)}",
                f"unparsed {self.unparsed}",
                f"margin {self.margin:g}",
                f"level {self.level:g}",
                f"replications {self.replications}",
                f"seed {self.seed}",
            )
        )

    @property
    def bootstrap(self) -> dict[str, Any]:
        """Keyword arguments of every measure that resamples."""
        return {"level": self.level, "replications": self.replications, "seed": self.seed}

    @property
    def strict(self) -> bool:
        """Return True if unparsed, truncated and refused answers count as wrong."""
        return self.unparsed == "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Settings):
    """All panels of a run, and the results across them.

    `meaning` holds the meaning checks on a sample of items. `store` is the file that holds the run,
    for commands that show its answers. It is None for results of other tools.
    """

    panels: tuple[PanelResult, ...]
    meaning: tuple[Meaning, ...] = ()
    across: Across | None = None


def map_estimates(value: T, change: Callable[[Estimate], Estimate]) -> T:
    """Return `value` with `change` applied to all estimates in its tuples, dicts and records."""
    mapped: Any = value
    if isinstance(value, Estimate):
        mapped = change(value)
    elif isinstance(value, dict):
        mapped = {name: map_estimates(inner, change) for name, inner in value.items()}
    elif isinstance(value, tuple):
        mapped = tuple(map_estimates(inner, change) for inner in value)
    elif is_dataclass(value) and not isinstance(value, type):
        inner = {f.name: map_estimates(getattr(value, f.name), change) for f in fields(value)}
        mapped = replace(value, **inner)
    return cast(T, mapped)
