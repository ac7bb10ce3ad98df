"""Floor 1: intervals, tests and variance components; arrays in, named results out."""

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.stats.agreement import (
        average_ranks,
        exact_agreement,
        kendall_w,
        krippendorff_alpha,
        round_half_up,
        spearman,
        weighted_kappa,
    )
    from falter.stats.clusters import cluster_parts, too_few_clusters
    from falter.stats.condition import condition_intervals
    from falter.stats.equivalence import (
        equivalence_p,
        noninferiority_critical_z,
        noninferiority_p,
        noninferiority_power,
        noninferiority_z,
        paired_upper_limit,
    )
    from falter.stats.factorial import anova
    from falter.stats.goals import (
        BrittlenessPrecision,
        DropPrecision,
        EquivalencePower,
        Goal,
        MicroPrecision,
        RankingPower,
        SampleSize,
        cheapest_design,
        sample_size,
    )
    from falter.stats.intervals import (
        Between,
        Interval,
        agresti_coull,
        bonett_price,
        clopper_pearson,
        no_interval,
        normal_quantile,
        outer,
        paired_proportions_interval,
        tango,
        wilson_interval,
    )
    from falter.stats.layout import Layout, balanced_mask, budget_layout, planned_half_widths
    from falter.stats.logistic import LogisticMixed, logistic_mixed
    from falter.stats.mean import ItemMean, clustered, item_mean, least_error
    from falter.stats.mixed import MixedEffects, difference_in_drops, mixed_effects
    from falter.stats.multiplicity import MaxTMember, holm, max_t, sequential_boundaries
    from falter.stats.paired import cochran_q, mcnemar, paired_difference, sign_flip_test
    from falter.stats.rates import between_drops, between_rates, mean_drop, mean_rate
    from falter.stats.resampling import bootstrap, jackknife, jackknife_error
    from falter.stats.simulate import (
        ProbitModel,
        SimulatedTruth,
        simulate_outcomes,
        simulated_truth,
    )
    from falter.stats.subsample import SampleEstimate, masked_brittleness, masked_drop
    from falter.stats.variance import Components, Design, VarianceParts, components, mean_error

__all__ = [
    "Between",
    "BrittlenessPrecision",
    "Components",
    "Design",
    "DropPrecision",
    "EquivalencePower",
    "Goal",
    "Interval",
    "ItemMean",
    "Layout",
    "LogisticMixed",
    "MaxTMember",
    "MicroPrecision",
    "MixedEffects",
    "ProbitModel",
    "RankingPower",
    "SampleEstimate",
    "SampleSize",
    "SimulatedTruth",
    "VarianceParts",
    "agresti_coull",
    "anova",
    "average_ranks",
    "balanced_mask",
    "between_drops",
    "between_rates",
    "bonett_price",
    "bootstrap",
    "budget_layout",
    "cheapest_design",
    "clopper_pearson",
    "cluster_parts",
    "clustered",
    "cochran_q",
    "components",
    "condition_intervals",
    "difference_in_drops",
    "equivalence_p",
    "exact_agreement",
    "holm",
    "item_mean",
    "jackknife",
    "jackknife_error",
    "kendall_w",
    "krippendorff_alpha",
    "least_error",
    "logistic_mixed",
    "masked_brittleness",
    "masked_drop",
    "max_t",
    "mcnemar",
    "mean_drop",
    "mean_error",
    "mean_rate",
    "mixed_effects",
    "no_interval",
    "noninferiority_critical_z",
    "noninferiority_p",
    "noninferiority_power",
    "noninferiority_z",
    "normal_quantile",
    "outer",
    "paired_difference",
    "paired_proportions_interval",
    "paired_upper_limit",
    "planned_half_widths",
    "round_half_up",
    "sample_size",
    "sequential_boundaries",
    "sign_flip_test",
    "simulate_outcomes",
    "simulated_truth",
    "spearman",
    "tango",
    "too_few_clusters",
    "weighted_kappa",
    "wilson_interval",
]

__getattr__ = door(__name__)
