"""Floor 1: intervals, tests and variance components; arrays in, named results out."""
