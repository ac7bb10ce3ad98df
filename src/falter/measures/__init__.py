"""Floor 2: robustness quantities over items x conditions, every one an Estimate."""

from falter.measures._accuracy import accuracy, accuracy_drop
from falter.measures._averages import group_average, macro_average, micro_average
from falter.measures._noise_floor import noise_floor
from falter.measures._variance_components import (
    CrossedComponents,
    OnewayComponents,
    PluginComponents,
    variance_components,
)

__all__ = [
    "CrossedComponents",
    "OnewayComponents",
    "PluginComponents",
    "accuracy",
    "accuracy_drop",
    "group_average",
    "macro_average",
    "micro_average",
    "noise_floor",
    "variance_components",
]
