"""falter: measure how far a model's score falls when the prompt changes and its meaning does not.

>>> import falter
>>> falter.perturb("What is the capital of France?", "typos", seed=0)
>>> print(falter.plan(task="basics", models=["smollm2"], limit=50))
>>> result = falter.run(task="basics", models=["smollm2"], limit=50)
>>> print(result.summary())
>>> falter.open("falter.db").newest
>>> falter.compare("3f1c", "9ab2")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from falter.engine.comparison import Comparison, compare
    from falter.engine.plans import Plan, plan
    from falter.engine.results import Result, run
    from falter.engine.results import open_store as open
    from falter.gate.robust import Case, cases, robust
    from falter.perturbations import perturb
    from falter.records.answers import Reply, Scored

__all__ = [
    "Case",
    "Comparison",
    "Plan",
    "Reply",
    "Result",
    "Scored",
    "__version__",
    "cases",
    "compare",
    "open",
    "perturb",
    "plan",
    "robust",
    "run",
]

_HOMES = {
    "Case": ("falter.gate.robust", "Case"),
    "Comparison": ("falter.engine.comparison", "Comparison"),
    "Plan": ("falter.engine.plans", "Plan"),
    "Reply": ("falter.records.answers", "Reply"),
    "Result": ("falter.engine.results", "Result"),
    "Scored": ("falter.records.answers", "Scored"),
    "cases": ("falter.gate.robust", "cases"),
    "compare": ("falter.engine.comparison", "compare"),
    "open": ("falter.engine.results", "open_store"),
    "perturb": ("falter.perturbations", "perturb"),
    "plan": ("falter.engine.plans", "plan"),
    "robust": ("falter.gate.robust", "robust"),
    "run": ("falter.engine.results", "run"),
}
"""Module and attribute of each public name."""


def __getattr__(name: str) -> Any:
    """Import a public name on first access, so that `import falter` itself stays fast.

    Raises `AttributeError` for a name that is not in `_HOMES`.
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'falter' has no attribute '{name}'")
    import importlib

    room, attribute = _HOMES[name]
    return getattr(importlib.import_module(room), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
