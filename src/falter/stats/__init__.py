"""Floor 1: intervals, tests and variance components; arrays in, named results out."""

from falter.stats._bootstrap import bootstrap
from falter.stats._components import Components, components
from falter.stats._condition import condition_intervals
from falter.stats._interval import Interval, no_interval
from falter.stats._jackknife import jackknife, jackknife_error
from falter.stats._mcnemar import McNemar, mcnemar
from falter.stats._mean import ItemMean, item_mean
from falter.stats._multiplicity import holm
from falter.stats._paired import PairedDifference, paired_difference
from falter.stats._paired_proportions import bonett_price, paired_proportions_interval, tango
from falter.stats._proportions import agresti_coull, clopper_pearson, wilson_interval
from falter.stats._simulate import (
    ProbitModel,
    SimulatedTruth,
    simulate_outcomes,
    simulated_truth,
)

__all__ = [
    "Components",
    "Interval",
    "ItemMean",
    "McNemar",
    "PairedDifference",
    "ProbitModel",
    "SimulatedTruth",
    "agresti_coull",
    "bonett_price",
    "bootstrap",
    "clopper_pearson",
    "components",
    "condition_intervals",
    "holm",
    "item_mean",
    "jackknife",
    "jackknife_error",
    "mcnemar",
    "no_interval",
    "paired_difference",
    "paired_proportions_interval",
    "simulate_outcomes",
    "simulated_truth",
    "tango",
    "wilson_interval",
]
