"""What lm-evaluation-harness writes with --log_samples: a JSONL file a task, results beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falter.core.errors import TaskError, UnknownName
from falter.readers._cells import MISSING, SCORED, UNPARSED, Cells
from falter.readers._files import json_lines, read_json
from falter.readers._logs import Log, LogChoice, cells_of, wanted

__all__ = ["is_samples", "read_lm_eval"]

_NAME = re.compile(
    r"samples_(?P<task>.+?)(?:_(?P<stamp>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl(?:\.gz)?$"
)
# What its filters write where they find nothing.
NOTHING_FOUND = "[invalid]"
_OTHERS = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
     "doc_hash", "prompt_hash", "target_hash")
)  # fmt: skip


def is_samples(path: Path) -> bool:
    """Whether a file has the name of logged samples."""
    return _NAME.match(path.name) is not None


@dataclass(slots=True, kw_only=True)
class _Samples:
    """One file: its log, and two ways to name the items."""

    log: Log
    hashes: list[str | None] = field(default_factory=list)


def read_lm_eval(paths: Sequence[Path], choice: LogChoice) -> Cells:
    """The sample files as cells, items paired by `doc_hash`, or by `doc_id` where these differ."""
    read = [_read(path, choice) for path in paths]
    found = [samples for samples, _ in read]
    notes = list(dict.fromkeys(note for _, told in read for note in told))
    read_ones = [samples for samples in found if samples.hashes]
    # Tasks that are conditions of one another have to name their items in the same way.
    as_one = choice.condition_from == "task"
    for task in dict.fromkeys("" if as_one else samples.log.task for samples in read_ones):
        same = [samples for samples in read_ones if as_one or samples.log.task == task]
        if _hashed(same):
            for samples in same:
                samples.log.items = [h or "" for h in samples.hashes]
        elif any(samples.hashes[:1] != [None] for samples in same):
            told = ", ".join(dict.fromkeys(samples.log.task for samples in same))
            notes.append(f"Items of {told} are paired by doc_id: their doc_hash differ.")
    return cells_of([samples.log for samples in found], choice, notes)


def _hashed(files: Sequence[_Samples]) -> bool:
    """Whether the hashes name every item once and a file's are among those of the others.

    A perturbation of the documents changes some hashes: their items have the same doc_id.
    """
    sets = []
    for samples in files:
        known = [h for h in samples.hashes if h]
        own = set(known)
        if len(known) != len(samples.hashes) or len(own) != len(known):
            return False
        sets.append(own)
    first = sets[0] if sets else set()
    return bool(first) and all(own <= first or first <= own for own in sets)


def _read(path: Path, choice: LogChoice) -> tuple[_Samples, list[str]]:
    """The samples of one file that the chosen filter made, and what to say about it."""
    match = _NAME.match(path.name)
    task, stamp = (match["task"], match["stamp"] or "") if match else (path.stem, "")
    log = Log(path=path, task=task, model=_model(path, stamp), stamp=stamp, scorer="")
    samples = _Samples(log=log)
    if not wanted(log, choice):
        return samples, []
    filters: dict[str, None] = {}
    metric: str | None = None
    kept = choice.filter
    for line, row in json_lines(path):
        name = str(row.get("filter", "none"))
        filters[name] = None
        kept = name if kept is None else kept
        if name != kept:
            continue
        metric = _metric(row, choice.metric, path, line) if metric is None else metric
        _add(samples, row, metric, line)
    if not filters:
        raise TaskError(f"{path} is empty", hint="run lm-eval with --log_samples again")
    if kept not in filters:
        raise UnknownName("filter", str(kept), filters)
    others = [name for name in filters if name != kept]
    log.scorer = str(metric) if kept == "none" else f"{metric}, {kept}"
    more = f"'{log.task}' has more filters: {', '.join(others)}; --filter chooses one."
    return samples, [more] if others else []


def _add(samples: _Samples, row: Mapping[str, Any], metric: str, line: int) -> None:
    path = samples.log.path
    if "doc_id" not in row:
        raise TaskError(f"{path}, line {line} has no doc_id", hint="is it a samples file?")
    value = _number(row.get(metric), metric, f"{path}, line {line}")
    outcome = MISSING if value is None else SCORED
    output = _output(row, metric)
    if output == NOTHING_FOUND and not value:
        outcome, value, output = UNPARSED, None, None
    samples.log.add(str(row["doc_id"]), value, outcome, output, line=line)
    known = row.get("doc_hash")
    samples.hashes.append(known if isinstance(known, str) and known else None)


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """The scores of a sample: as it lists them, else whatever is a number."""
    told = row.get("metrics")
    if isinstance(told, list) and told:
        return [str(name) for name in told]
    return [k for k, v in row.items() if k not in _OTHERS and isinstance(v, (bool, int, float))]


def _metric(row: Mapping[str, Any], wanted: str | None, path: Path, line: int) -> str:
    known = [name for name in _metrics(row) if isinstance(row.get(name), (bool, int, float))]
    if wanted is not None:
        if wanted not in known:
            raise UnknownName(f"metric of {path.name}", wanted, known)
        return wanted
    if not known:
        raise TaskError(f"{path}, line {line} has no score that is a number")
    return "acc" if "acc" in known else known[0]


def _number(value: Any, metric: str, where: str) -> float | None:
    """A score; None where there is none, also for NaN."""
    if value is None or value != value:
        return None
    if not isinstance(value, (bool, int, float)) or abs(value) == float("inf"):
        raise TaskError(f"{where} has {str(value)[:40]!r} as {metric}; expected a number")
    return float(value)


def _output(row: Mapping[str, Any], metric: str) -> str | None:
    """What was answered: the filtered text, or the option whose likelihood is the largest."""
    given = row.get("filtered_resps")
    if not isinstance(given, list) or not given:
        return None
    if len(given) == 1 and isinstance(given[0], str):
        return given[0]
    if metric == "acc" and len(given) > 1 and all(_scored(option) for option in given):
        likelihoods = [float(option[0]) for option in given]
        return str(likelihoods.index(max(likelihoods)))
    return None


def _scored(option: Any) -> bool:
    """A log-likelihood with whether it was the greedy choice; both may have become texts."""
    if not isinstance(option, list) or len(option) != 2:
        return False
    try:
        return float(option[0]) == float(option[0])
    except (TypeError, ValueError):
        return False


def _model(path: Path, stamp: str) -> str:
    """From the results beside it, else from the folder."""
    beside = path.with_name(f"results_{stamp}.json")
    if stamp and beside.is_file():
        told = read_json(beside)
        if isinstance(told, dict):
            for name in (told.get("model_name"), told.get("model_source")):
                if isinstance(name, str) and name:
                    return name
    return path.absolute().parent.name
