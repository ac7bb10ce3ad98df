"""Gates: their criteria, decisions, runs, baselines, and their tests in pytest.

Its modules are imported by their names. `decision` and `feasibility` know no model and no file;
`robust` and `pytest_plugin` load the engine when a test needs it.
"""
