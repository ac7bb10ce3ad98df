"""Floor 5: resolves names to objects once; what `falter.run` and the command line share."""
