"""Gates: criteria, interim analyses, decisions, runs, baselines, and the pytest plugin.

Import each module by its name. `decision` and `feasibility` work on arrays and margins: they know
no model and no file. `robust` and `pytest_plugin` load the engine only when a test needs it.
"""
