"""Confidence intervals, tests and variance components: functions from arrays to named results."""
