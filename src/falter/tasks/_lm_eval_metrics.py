"""Which scorer means the same as a harness task's metric."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["scorer_for"]

NUMBER = "7341"
NUMBERS = (f"#### {NUMBER}", f"The answer is {NUMBER}.", f"The answer is {NUMBER}", NUMBER)
WORDS = "Seven hills"
LENIENT = {"ignore_case", "ignore_punctuation"}
_NUMERIC = re.compile(r"[-+]?\$?[\d,]*\.?\d+\.?")


def scorer_for(task: Any, targets: Sequence[str]) -> str | None:
    """The scorer's name, None for plain accuracy.

    Where no scorer means the same it is a name that no scorer has, which says whose metric it is:
    such a task runs only with a scorer that the user chose.

    `exact` and `numeric` are a little milder than `exact_match`: they look past case, quotes
    and a final full stop. A filter of the harness is tried out on short replies: one that
    takes a number out of them is `numeric`, one that leaves them alone is `exact`.
    """
    metrics = set(task.aggregation())
    if task.config.process_results is not None:
        return _foreign(f"{_names(metrics)} by a function of the task's own")
    if task.OUTPUT_TYPE == "multiple_choice":
        if "acc" in metrics:
            return None
        if "acc_norm" in metrics:
            return "choice_likelihood_norm"
        return _foreign(_names(metrics))
    if "exact_match" not in metrics:
        return _foreign(_names(metrics))
    settings = _settings(task)
    if _filtered(task, WORDS) == {WORDS} and settings <= LENIENT:
        return "exact"
    taken = [_filtered(task, reply) for reply in NUMBERS]
    numbers = all(_NUMERIC.fullmatch(t.rpartition("####")[2].strip()) for t in targets)
    if numbers and any(all(_digits(text) == NUMBER for text in found) for found in taken):
        return "numeric"
    how = "a filter of its own" if _filtered(task, WORDS) != {WORDS} else _names(settings)
    return _foreign(f"exact_match with {how}")


def _settings(task: Any) -> set[str]:
    """What the task says about its `exact_match` beyond its name."""
    about = {"metric", "aggregation", "higher_is_better", "hf_evaluate"}
    return {
        key
        for metric in task.config.metric_list or ()
        if metric.get("metric") == "exact_match"
        for key, value in metric.items()
        if key not in about and value not in (None, False)
    }


def _filtered(task: Any, reply: str) -> set[str]:
    """What the task's filters make of a reply."""
    from lm_eval.api.instance import Instance
    from lm_eval.filters import build_filter_ensemble

    found = set()
    for settings in task.config.filter_list or ():
        steps = [
            [step["function"], {k: v for k, v in step.items() if k != "function"}]
            for step in settings["filter"]
        ]
        instance = Instance(
            request_type="generate_until", doc={}, arguments=("", {}), idx=0, resps=[reply]
        )
        build_filter_ensemble(settings["name"], steps).apply([instance])
        found.add(str(instance.filtered_resps[settings["name"]]))
    return found or {reply}


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _foreign(metric: str) -> str:
    return f"{metric} (a metric of lm-eval)"
