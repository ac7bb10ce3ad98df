"""Reader of HELM's run folders: `per_instance_stats.json` and the files next to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falter.readers.cells import MISSING, SCORED, number_in
from falter.readers.results import Log, LogChoice, LogReader, LogsAndNotes, is_chosen, nested
from falter.readers.tables import read_json
from falter.records.errors import TaskError, UnknownName, refusal

SCORES, ANSWERS, STATE, SPEC = (
    "per_instance_stats.json", "display_predictions.json", "scenario_state.json", "run_spec.json",
)  # fmt: skip
HELM_FILES = (SCORES, ANSWERS, STATE)
# The condition of an instance that was not changed.
UNCHANGED = "baseline"
# Metrics of correctness, the preferred metric first; the first that a run has is used.
PREFERRED_METRICS = (
    "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match",
    "final_number_exact_match", "math_equiv_chain_of_thought", "f1_score", "ifeval_strict_accuracy",
)  # fmt: skip
# Fields of a perturbation's description that do not affect the prompt.
_NON_PROMPT_FIELDS = ("name", "robustness", "fairness", "computed_on", "seed")
Perturbation = tuple[tuple[str, str], ...]
_MODEL_ARGUMENTS = ("model=", "model_deployment=", "data_augmentation=")


@dataclass(frozen=True, slots=True)
class _Key:
    """The key of one answer: instance, perturbation with its seed, and trial."""

    item: str
    perturbation: Perturbation
    seed: int | None
    trial: int


@dataclass(slots=True, kw_only=True)
class _HelmRun:
    """The contents of one run folder."""

    folder: Path
    task: str
    model: str
    stats: dict[_Key, dict[str, float | None]]
    answers: Mapping[_Key, str] = field(default_factory=dict)


def read_helm(paths: Sequence[Path], choice: LogChoice) -> LogsAndNotes:
    """Return the logs of the run folders, one for each condition.

    A perturbation is a condition; unchanged instances are the condition `baseline`. The trials
    (other demonstrations) and the seeds of a perturbation are runs. A folder without scores, which
    HELM has not finished, is left out with a note. If no folder has scores, `TaskError` is raised.
    """
    folders = list(dict.fromkeys(path.parent for path in paths))
    finished = [folder for folder in folders if (folder / SCORES).is_file()]
    if not finished:
        raise refusal(TaskError, "integrations.no_scores_file", folders=folders[0], scores=SCORES)
    notes = [f"{f.name} holds no {SCORES} and was left out." for f in folders if f not in finished]
    logs: list[Log] = []
    for folder in finished:
        run = _read_run(folder)
        about = Log(path=folder / SCORES, task=run.task, model=run.model, stamp="", scorer="")
        logs += _logs(run, choice) if is_chosen(about, choice) else [about]
    notes.append(f"A condition is a perturbation of HELM; '{UNCHANGED}' is none.")
    return logs, notes


def _read_run(folder: Path) -> _HelmRun:
    task, model = _task_and_model(folder)
    stats = _read_stats(folder / SCORES)
    if not stats:
        raise TaskError(f"{folder / SCORES} holds no instance", hint="finish the run with helm-run")
    return _HelmRun(folder=folder, task=task, model=model, stats=stats, answers=_answers(folder))


def _task_and_model(folder: Path) -> tuple[str, str]:
    """Return task and model from the run's specification, or else from the folder's name."""
    name, model = folder.name, ""
    if (folder / SPEC).is_file():
        spec = _require_dict(read_json(folder / SPEC), folder / SPEC)
        name = str(spec.get("name") or name)
        model = str(nested(spec, "adapter_spec", "model") or "")
    scenario, _, rest = name.partition(":")
    arguments = rest.split(",") if rest else []
    of_model = next((a for a in arguments if a.startswith("model=")), "")
    own = [a for a in arguments if not a.startswith(_MODEL_ARGUMENTS)]
    task = f"{scenario}:{','.join(own)}" if own else scenario
    return task, model or of_model.removeprefix("model=") or "unnamed"


def _read_stats(path: Path) -> dict[_Key, dict[str, float | None]]:
    """Return the mean of every metric for each answer, whose metrics may be in several rows."""
    found: defaultdict[_Key, dict[str, float | None]] = defaultdict(dict)
    for place, row in _rows(read_json(path), path):
        key = _answer_key(row, row.get("perturbation"), place)
        stats = row.get("stats")
        if not isinstance(stats, list):
            raise refusal(TaskError, "integrations.no_stats", place=place)
        own = found[key]
        for stat in stats:
            name, mean = _named_mean(stat, place)
            known = own.setdefault(name, mean)
            if known != mean:
                raise TaskError(
                    f"{place} has two values of '{name}' for instance '{key.item}': {known} and "
                    f"{mean}"
                )
    return dict(found)


def _named_mean(stat: Any, place: str) -> tuple[str, float | None]:
    """Return a metric's name and its mean; the mean is None if nothing was counted."""
    name = nested(stat, "name", "name")
    if not isinstance(name, str):
        raise refusal(TaskError, "integrations.unnamed_stat", place=place)
    mean = stat.get("mean")
    if not stat.get("count", 1):
        return name, None
    return name, number_in(mean, name, place)


def _answer_key(row: Mapping[str, Any], perturbation: Any, place: str) -> _Key:
    item, trial = row.get("instance_id"), row.get("train_trial_index", 0)
    if not isinstance(item, (str, int)) or item == "":
        raise TaskError(f"{place} has no instance_id", hint="give a run folder that HELM wrote")
    if not isinstance(trial, int) or not 0 <= trial <= 100_000:
        raise TaskError(f"{place} has the train_trial_index {str(trial)[:20]!r}")
    if perturbation is None:
        return _Key(str(item), (), None, trial)
    described = perturbation if isinstance(perturbation, dict) else {}
    if not isinstance(described.get("name"), str):
        raise TaskError(f"{place} has a perturbation without a name")
    rest = sorted((k, str(v)[:40]) for k, v in described.items() if k not in _NON_PROMPT_FIELDS)
    seed = described.get("seed")
    named = (("name", described["name"]), *rest)
    return _Key(str(item), named, seed if isinstance(seed, int) else None, trial)


def _answers(folder: Path) -> dict[_Key, str]:
    """Return the answers from the predictions, or else from the requests.

    The result is empty if the folder has neither file.
    """
    found: dict[_Key, str] = {}
    if (folder / ANSWERS).is_file():
        for place, row in _rows(read_json(folder / ANSWERS), folder / ANSWERS):
            text = row.get("mapped_output") or row.get("predicted_text")
            if isinstance(text, str) and text:
                found[_answer_key(row, row.get("perturbation"), place)] = text
        return found
    if not (folder / STATE).is_file():
        return {}
    state = _require_dict(read_json(folder / STATE), folder / STATE)
    twice = set()
    for place, row in _rows(state.get("request_states"), folder / STATE):
        instance = _require_dict(row.get("instance"), folder / STATE)
        about = {**row, "instance_id": instance.get("id")}
        key = _answer_key(about, instance.get("perturbation"), place)
        text = _completion(row)
        # Several requests, one for each option: none of them is the answer.
        twice |= {key} if key in found else set()
        if text:
            found[key] = text
    return {key: text for key, text in found.items() if key not in twice}


def _completion(row: Mapping[str, Any]) -> str | None:
    completions = nested(row, "result", "completions")
    text = nested(next(iter(completions), None), "text") if isinstance(completions, list) else None
    if not isinstance(text, str) or not text.strip():
        return None
    mapped = nested(row, "output_mapping", text.strip())
    return mapped if isinstance(mapped, str) else text


def _logs(run: _HelmRun, choice: LogChoice) -> Iterator[Log]:
    """Yield a log for each condition."""
    scorer = _metric(run, choice.metric)
    labels = _labels({key.perturbation for key in run.stats})
    by_label: defaultdict[str, list[_Key]] = defaultdict(list)
    for key in run.stats:
        by_label[labels[key.perturbation]].append(key)
    for label in sorted(by_label, key=lambda label: label != UNCHANGED):
        log = Log(path=run.folder / SCORES, task=run.task, model=run.model, stamp="",
                  scorer=scorer, condition=label)  # fmt: skip
        seeds = sorted({key.seed for key in by_label[label] if key.seed is not None})
        for key in by_label[label]:
            value = run.stats[key].get(scorer)
            outcome = MISSING if value is None else SCORED
            draw = 0 if key.seed is None else seeds.index(key.seed)
            log.add(key.item, value, outcome, run.answers.get(key), line=f"instance {key.item}",
                    epoch=key.trial * max(1, len(seeds)) + draw)  # fmt: skip
        yield log


def _labels(described: set[Perturbation]) -> dict[Perturbation, str]:
    """Return the name of each perturbation, with its parameters if the name is ambiguous."""
    names = [of[0][1] for of in described if of]
    labels: dict[Perturbation, str] = {(): UNCHANGED}
    for about in described - {()}:
        name = about[0][1]
        several = names.count(name) > 1 or name == UNCHANGED
        labels[about] = " ".join([name, *(f"{k}={v}" for k, v in about[1:] if several)])
    return labels


def _metric(run: _HelmRun, chosen: str | None) -> str:
    names = sorted({name for stats in run.stats.values() for name in stats})
    if chosen is not None and chosen not in names:
        raise UnknownName(f"metric of {run.folder.name}", chosen, names)
    usual = next((name for name in PREFERRED_METRICS if name in names), None)
    if chosen is None and usual is None:
        raise TaskError(
            f"{run.folder / SCORES} has none of the usual metrics",
            hint=f"name one with --metric: {', '.join(names[:20])}",
        )
    return chosen or str(usual)


def _rows(value: Any, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(value, list):
        raise TaskError(f"{path} holds no list", hint="give a complete run folder that HELM wrote")
    for number, row in enumerate(value, start=1):
        place = f"{path}, entry {number}"
        yield place, _require_dict(row, place)


def _require_dict(value: Any, where: Path | str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refusal(TaskError, "integrations.no_object", where=where)
    return value


logs = LogReader(title="HELM", order=2, takes=lambda path: path.name in HELM_FILES, read=read_helm)
