"""Which scorer measures the same as a harness task's metric."""

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

    If no scorer measures the same, the name describes the harness's metric; no scorer has that
    name, so the task runs only with a scorer that the user chooses.

    `exact` and `numeric` are slightly more lenient than `exact_match`: they ignore case, quotes
    and a final full stop. The harness's filter is tried on short replies: one that extracts the
    number means `numeric`, one that changes nothing means `exact`.
    """
    metrics = set(task.aggregation())
    if task.config.process_results is not None:
        return _metric_of_lm_eval(f"{_names(metrics)} by a function of the task's own")
    if task.OUTPUT_TYPE == "multiple_choice":
        if "acc" in metrics:
            return None
        if "acc_norm" in metrics:
            return "choice_likelihood_norm"
        return _metric_of_lm_eval(_names(metrics))
    if "exact_match" not in metrics:
        return _metric_of_lm_eval(_names(metrics))
    settings = _settings(task)
    if _filtered(task, WORDS) == {WORDS} and settings <= LENIENT:
        return "exact"
    extracted = [_filtered(task, reply) for reply in NUMBERS]
    numbers = all(_NUMERIC.fullmatch(t.rpartition("####")[2].strip()) for t in targets)
    digits = [{re.sub(r"\D", "", text) for text in texts} for texts in extracted]
    if numbers and {NUMBER} in digits:
        return "numeric"
    how = "a filter of its own" if _filtered(task, WORDS) != {WORDS} else _names(settings)
    return _metric_of_lm_eval(f"exact_match with {how}")


def _settings(task: Any) -> set[str]:
    """The settings of the task's `exact_match` that change its results."""
    about = {"metric", "aggregation", "higher_is_better", "hf_evaluate"}
    return {
        key
        for metric in task.config.metric_list or ()
        if metric.get("metric") == "exact_match"
        for key, value in metric.items()
        if key not in about and value not in (None, False)
    }


def _filtered(task: Any, reply: str) -> set[str]:
    """A reply after each of the task's filters."""
    from lm_eval.api.instance import Instance
    from lm_eval.filters import build_filter_ensemble

    replies = set()
    for settings in task.config.filter_list or ():
        steps = [
            [step["function"], {k: v for k, v in step.items() if k != "function"}]
            for step in settings["filter"]
        ]
        instance = Instance(
            request_type="generate_until", doc={}, arguments=("", {}), idx=0, resps=[reply]
        )
        build_filter_ensemble(settings["name"], steps).apply([instance])
        replies.add(str(instance.filtered_resps[settings["name"]]))
    return replies or {reply}


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _metric_of_lm_eval(metric: str) -> str:
    return f"{metric} (a metric of lm-eval)"
