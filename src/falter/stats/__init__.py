"""Intervals, tests and variance components; arrays in, named results out."""
