"""Settings, name resolution, plans, runs, studies and results, for Python and command line."""
