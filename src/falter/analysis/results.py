"""The results of an analysis, ready to be shown. Nothing is computed from here on."""

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
# A share of requests: if more of them failed, the others are no sample of what was asked.
MOST_FAILED = 0.1
# A share of replies: if the second reader would judge more otherwise, the reading is in doubt.
MUCH_REREAD = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeRanking:
    """Agreement of the order of models under a recipe: mean over tasks, and by noise alone.

    `agreement.excluded` counts the tasks left out because all models tie there.
    """

    recipe: str
    agreement: Estimate
    noise: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """The number of recipes that leave the baseline's better model strictly ahead; ties do not."""

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
class Consistency:
    """Agreement of a model's answers and scores, item by item, over the conditions.

    `same` is the share of items with the same answer in all of them, None where answers are not
    known; `scores` are the standard deviations of the items' scores, and what those of zero are.
    """

    model: str
    task: str
    conditions: int
    same: OutputConsistency | None
    scores: ItemStd


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """The numbers that need more than one recipe, panel, task or model.

    `omnibus` are Cochran's Q, one a panel: whether its conditions differ at all. `failures` are,
    for each recipe, how many more answers could not be read than without it. `by_model` and
    `by_task` hold pooled brittleness by name, and `concordance` Kendall's W by task. `neighbours`
    is the share of cells in which two models that follow each other in rank differ. `notes` say
    what these data cannot show, and why.
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
    """The number of cells with each outcome. Outcomes add up to `cells`.

    So do the five kinds of variant, together with the cells of the clean prompt, which has none.
    `same_prompt` are changed prompts that an earlier recipe makes too: asked once, for that one.
    Of the scored answers, `inferred` were taken from prose and not stated; of the unparsed ones,
    `empty` say nothing.
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
        """Replies that came."""
        return self.cells - self.failed - self.missing

    @property
    def mostly_failed(self) -> bool:
        """Return True if so many requests failed that nothing may be concluded."""
        return self.failed > MOST_FAILED * self.cells

    @property
    def hold_no_answer(self) -> bool:
        """Return True if replies came and none of them holds an answer."""
        return self.answers > 0 and self.scored == 0

    @property
    def unreadable(self) -> int:
        """Replies that came and from which no answer could be read; a refusal is none of them."""
        return self.unparsed + self.truncated

    @property
    def unread(self) -> int:
        """Replies that came and hold no answer."""
        return self.unparsed + self.truncated + self.refused


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeResult:
    """One recipe against the baseline.

    `together` is the headline: the drop over the items that the recipe really changed, unparsed
    answers by the run's rule, with an interval and a p-value that hold for all recipes of the panel
    at once. `verdict` follows from it and from `p_equivalent`, and `why_undecided` says why there
    is none. `drop` is the same number with its interval were it the only one asked about.
    `drop_valid` leaves unparsed answers out; `drop_all` carries the
    baseline's outcome into the items that were not changed. Of the `changed` items, `lost` and
    `gained` count those whose answer turned wrong and right; they are None where there is no
    baseline. `bounds` are the drop's worst cases, where enough is missing to matter; `missing` says
    why it does. `everyday` is what people call it: `split words`; empty where it is not known.
    `same` names the recipes that make the same prompts everywhere, and have no result of their own.
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
        """The smallest drop that is possible, whatever the missing answers are."""
        return self.together.low if self.bounds is None else self.bounds.low.low

    @property
    def most(self) -> float | None:
        """The largest drop that is possible, whatever the missing answers are."""
        return self.together.high if self.bounds is None else self.bounds.high.high

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all recipes that this result is about."""
        return self.label, *self.same

    @property
    def name(self) -> str:
        """The labels as one: `typos = swaps`."""
        return " = ".join(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeParts:
    """Of one recipe's drop, how much is real, and its churn.

    `reader` names the second reader; None where unread answers were only left out.
    """

    label: str
    reader: str | None
    split: DropParts
    churn: Churn


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReading:
    """Replies of a panel that its second reader would judge otherwise.

    `different` of the `answers` that came have a score there that is a half or more away from
    their own, unread ones being 0; one that the second reader cannot read is not among them.
    `recipes` are those whose verdict would be another.
    """

    reader: str
    answers: int
    different: int
    recipes: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of replies that are judged otherwise."""
        return self.different / self.answers if self.answers else 0.0

    @property
    def matters(self) -> bool:
        """Return True if the second reader would judge much otherwise, or change a verdict."""
        return bool(self.recipes) or self.share > MUCH_REREAD


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """The mean drop over the recipes of a group, as one paired quantity."""

    group: str
    recipes: tuple[str, ...]
    drop: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRecipe:
    """The items asked and not asked under a recipe, and its drop over all of them."""

    label: str
    asked: int
    not_asked: int
    drop: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAsked:
    """The cells that a budget left out, and estimates about exactly the `items` there are.

    `cells` of all the planned `of` were asked: of `items_asked` items the clean prompt, and the
    fewest and the most recipes of `per_item`. `promised` are the half-widths that were expected
    before: of `brittleness`, of the `average` drop, and of one `recipe`'s.
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
    """Everything about one model on one task.

    `micro` is the average drop under these recipes, `like_these` the same number with an interval
    for other recipes of their kind. `prompt_share` and `flips` are how much the prompt matters, in
    variance and in outcomes, whatever the number of recipes. `worst` is the largest drop, drawn
    towards the others because it was picked. `p_any` is the p-value of "some recipe, or their
    average, moves the score", `threshold` the change of a score from which an item turns. `stated`
    and `read` name the recipes whose verdict is another from the answers that were stated alone,
    and without those that could not be read. `components` holds the variance components by method
    (`plugin`, `crossed`) and name; `brittleness` is the plug-in
    share that the papers report.
    `subjects` is the baseline with every subject counting the same, where items have several.
    `parts` split the recipes' drops; they take a store, so results of others have none. `margin` is
    that of the verdicts. `at_chance`: the baseline cannot be told from guessing. `not_asked` is
    what a budget left out. `second_reading` is None where no second reader is named. `quantile` is
    what nine of ten prompts cost at most, where there are enough prompts to say so. Where too many
    requests failed, no estimate has a value.
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
    """None where no meaning was changed and answers were compared with right ones."""

    @property
    def largest(self) -> RecipeResult | None:
        """The recipe with the largest drop."""
        known = [recipe for recipe in self.recipes if recipe.together.value is not None]
        return max(known, key=lambda recipe: recipe.together.value or 0.0, default=None)

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """The number of recipes with each verdict."""
        counts = Counter(recipe.verdict for recipe in self.recipes)
        return {verdict: counts[verdict] for verdict in get_args(Verdict)}

    @property
    def discordance(self) -> float | None:
        """The mean share of items that turn; without a baseline that of any two conditions."""
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
        """The mean one of the drops, at least 1; 1 without clusters."""
        known = [r.drop.design_effect for r in self.recipes if r.drop.design_effect is not None]
        return max(1.0, fmean(known)) if known else 1.0

    @property
    def flip_rate(self) -> Estimate | None:
        """The share of outcomes that change with the prompt; None without a baseline."""
        return None if self.flips is None else self.flips.rate

    @property
    def title(self) -> str:
        """The subject of the panel: `smollm2 on basics`."""
        return f"{self.model} on {self.panel.task}"

    @property
    def has_no_baseline(self) -> bool:
        """True if no condition is the baseline, so that there are no drops."""
        return bool(self.recipes) and all(recipe.lost is None for recipe in self.recipes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The effect of a recipe on the prompts of a task.

    `lost` counts the changed items that fail each check; `failing` names the first of them with
    what was lost. `same` counts the prompts that earlier recipes make too. `cosine` is the mean
    over `compared` items, `cosine_low` their tenth percentile.
    `change` is one place where the recipe changed a prompt, with a little of what stands around it.
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
        """The share of texts that really changed."""
        return self.changed / self.texts if self.texts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The source of the numbers and the settings of their analysis.

    `margin` is the drop, as a fraction, inside which a recipe counts as equivalent; choose it
    before you look at the results. `replications` is the number of draws of every bootstrap.
    `everyday` gives the name of a recipe that people use, where one is known. `reader` names who
    read the replies that the scorer inferred or could not read. `lines` are those of
    `KeepsAndReads`, `store` is that of `Analysis`.
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
        """The settings and versions behind every number across panels, in one line."""
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
        """The options of every measure that draws samples."""
        return {"level": self.level, "replications": self.replications, "seed": self.seed}

    @property
    def strict(self) -> bool:
        """True if unparsed, truncated and refused answers count as wrong."""
        return self.unparsed == "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Settings):
    """All panels of a run, and what takes several of them.

    `meaning` says, on a sample of items, what the recipes did to them. `store` is where falter
    keeps the run, so that its commands can show the answers; None for results of others.
    """

    panels: tuple[PanelResult, ...]
    meaning: tuple[Meaning, ...] = ()
    across: Across | None = None


def map_estimates(value: T, change: Callable[[Estimate], Estimate]) -> T:
    """Return `value` with `change` applied to every estimate in it, in tuples and records too."""
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
