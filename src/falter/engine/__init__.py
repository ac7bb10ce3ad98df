"""Resolves names to objects once; what `falter.run` and the command line share."""
