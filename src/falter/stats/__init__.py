"""Floor 1: intervals, tests and variance components; arrays in, named results out."""

from typing import TYPE_CHECKING

from falter.core.lazy_room import door

if TYPE_CHECKING:
    from falter.stats._agreement import (
        ExactAgreement,
        KrippendorffAlpha,
        WeightedKappa,
        exact_agreement,
        krippendorff_alpha,
        round_half_up,
        weighted_kappa,
    )
    from falter.stats._aipw import aipw_mean, neyman_probabilities
    from falter.stats._anova import Anova, AnovaTerm, anova
    from falter.stats._beta_binomial import AllAlike, ItemCorrelation, all_alike, item_correlation
    from falter.stats._bootstrap import bootstrap
    from falter.stats._clusters import ClusterParts, cluster_parts, too_few_clusters
    from falter.stats._cochran import CochranQ, cochran_q
    from falter.stats._components import Components, components
    from falter.stats._condition import condition_intervals
    from falter.stats._d_study import Design, VarianceParts, mean_error
    from falter.stats._fixed_width import FixedWidthStop, fixed_width_stop
    from falter.stats._goals import (
        BrittlenessPrecision,
        DropPrecision,
        EquivalencePower,
        Goal,
        MicroPrecision,
        RankingPower,
    )
    from falter.stats._interval import Interval, no_interval, normal_quantile, outer
    from falter.stats._jackknife import jackknife, jackknife_error
    from falter.stats._layout import (
        Layout,
        budget_layout,
        planned_half_widths,
        promised_half_width,
    )
    from falter.stats._logistic_mixed import (
        LogisticMixed,
        MarginalDrop,
        MarginalProbability,
        logistic_mixed,
    )
    from falter.stats._mask import balanced_mask
    from falter.stats._max_t import MaxT, MaxTMember, SplitWorst, max_t, split_worst
    from falter.stats._mcnemar import McNemar, mcnemar
    from falter.stats._mean import ItemMean, clustered, item_mean, least_error
    from falter.stats._mixed import (
        DifferenceInDrops,
        FixedEffect,
        MixedEffects,
        difference_in_drops,
        mixed_effects,
    )
    from falter.stats._multiplicity import holm
    from falter.stats._noninferiority import (
        noninferiority_critical_z,
        noninferiority_p,
        noninferiority_power,
        noninferiority_z,
        paired_upper_limit,
    )
    from falter.stats._paired import PairedDifference, paired_difference
    from falter.stats._paired_proportions import bonett_price, paired_proportions_interval, tango
    from falter.stats._poststratified import poststratified_drop
    from falter.stats._proportions import agresti_coull, clopper_pearson, wilson_interval
    from falter.stats._ranks import (
        Concordance,
        RankCorrelation,
        average_ranks,
        kendall_w,
        spearman,
    )
    from falter.stats._rate import between_drops, between_rates, mean_drop, mean_rate
    from falter.stats._rates import Between
    from falter.stats._sample_size import SampleSize, cheapest_design, sample_size
    from falter.stats._sequence import ConfidenceSequence, confidence_sequence
    from falter.stats._sign_flip import SignFlip, sign_flip_test
    from falter.stats._simulate import (
        ProbitModel,
        SimulatedTruth,
        simulate_outcomes,
        simulated_truth,
    )
    from falter.stats._spending import (
        SequentialBoundaries,
        crossing_probabilities,
        sequential_boundaries,
        spending,
    )
    from falter.stats._subsample import MaskedComponents, masked_components, masked_drop
    from falter.stats._target import SampleEstimate
    from falter.stats._tost import Tost, equivalence_p, tost

__all__ = [
    "AllAlike",
    "Anova",
    "AnovaTerm",
    "Between",
    "BrittlenessPrecision",
    "ClusterParts",
    "CochranQ",
    "Components",
    "Concordance",
    "ConfidenceSequence",
    "Design",
    "DifferenceInDrops",
    "DropPrecision",
    "EquivalencePower",
    "ExactAgreement",
    "FixedEffect",
    "FixedWidthStop",
    "Goal",
    "Interval",
    "ItemCorrelation",
    "ItemMean",
    "KrippendorffAlpha",
    "Layout",
    "LogisticMixed",
    "MarginalDrop",
    "MarginalProbability",
    "MaskedComponents",
    "MaxT",
    "MaxTMember",
    "McNemar",
    "MicroPrecision",
    "MixedEffects",
    "PairedDifference",
    "ProbitModel",
    "RankCorrelation",
    "RankingPower",
    "SampleEstimate",
    "SampleSize",
    "SequentialBoundaries",
    "SignFlip",
    "SimulatedTruth",
    "SplitWorst",
    "Tost",
    "VarianceParts",
    "WeightedKappa",
    "agresti_coull",
    "aipw_mean",
    "all_alike",
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
    "confidence_sequence",
    "crossing_probabilities",
    "difference_in_drops",
    "equivalence_p",
    "exact_agreement",
    "fixed_width_stop",
    "holm",
    "item_correlation",
    "item_mean",
    "jackknife",
    "jackknife_error",
    "kendall_w",
    "krippendorff_alpha",
    "least_error",
    "logistic_mixed",
    "masked_components",
    "masked_drop",
    "max_t",
    "mcnemar",
    "mean_drop",
    "mean_error",
    "mean_rate",
    "mixed_effects",
    "neyman_probabilities",
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
    "poststratified_drop",
    "promised_half_width",
    "round_half_up",
    "sample_size",
    "sequential_boundaries",
    "sign_flip_test",
    "simulate_outcomes",
    "simulated_truth",
    "spearman",
    "spending",
    "split_worst",
    "tango",
    "too_few_clusters",
    "tost",
    "weighted_kappa",
    "wilson_interval",
]

__getattr__ = door(__name__)
