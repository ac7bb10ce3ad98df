"""Reader of lm-evaluation-harness's logs (--log_samples): JSONL for each task, with results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falter.readers.cells import MISSING, SCORED, UNPARSED, finite
from falter.readers.results import Log, LogChoice, LogReader, LogsAndNotes, is_chosen
from falter.readers.tables import json_lines, kind_of, read_json
from falter.records.errors import TaskError, UnknownName, refusal

# "samples_gsm8k_2024-05-01T10-00-00.123.jsonl", "samples_arc_easy.jsonl.gz".
_SAMPLES_NAME = re.compile(
    r"samples_(?P<task>.+?)(?:_(?P<stamp>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl(?:\.gz)?$"
)
# Text that the harness's filters write if they find nothing.
NOTHING_FOUND = "[invalid]"
_NO_METRICS = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics",
     "doc_hash", "prompt_hash", "target_hash")
)  # fmt: skip


def _is_samples(path: Path) -> bool:
    """Return True if a file has the name of logged samples."""
    return _SAMPLES_NAME.match(path.name) is not None


@dataclass(slots=True, kw_only=True)
class _Samples:
    """The samples of one file: a log with items named by `doc_id`, and their `doc_hash`."""

    log: Log
    hashes: list[str | None] = field(default_factory=list)


def read_lm_eval(paths: Sequence[Path], choice: LogChoice) -> LogsAndNotes:
    """Return the sample files as logs, with items named by `doc_hash`, or else by `doc_id`."""
    files = [_read_samples(path, choice) for path in paths]
    every_file = [samples for samples, _ in files]
    notes = list(dict.fromkeys(note for _, file_notes in files for note in file_notes))
    non_empty = [samples for samples in every_file if samples.hashes]
    # If tasks are conditions, all of them must name their items in the same way.
    as_one = choice.condition_from == "task"
    for task in dict.fromkeys("" if as_one else samples.log.task for samples in non_empty):
        same = [samples for samples in non_empty if as_one or samples.log.task == task]
        if _hashes_name_items(same):
            for samples in same:
                samples.log.items = [h or "" for h in samples.hashes]
        elif any(samples.hashes[:1] != [None] for samples in same):
            tasks = ", ".join(dict.fromkeys(samples.log.task for samples in same))
            notes.append(f"Items of {tasks} are paired by doc_id, because their doc_hash differ.")
    return [samples.log for samples in every_file], notes


def _hashes_name_items(files: Sequence[_Samples]) -> bool:
    """Return True if the hashes are unique in each file and pair the items of all files.

    Each file's hashes must be a subset or a superset of the first file's. A perturbation of the
    documents changes some hashes; the items then still have the same doc_id.
    """
    sets = []
    for samples in files:
        hashes = [h for h in samples.hashes if h]
        distinct = set(hashes)
        if len(hashes) != len(samples.hashes) or len(distinct) != len(hashes):
            return False
        sets.append(distinct)
    first = sets[0] if sets else set()
    return bool(first) and all(distinct <= first or first <= distinct for distinct in sets)


def _read_samples(path: Path, choice: LogChoice) -> tuple[_Samples, list[str]]:
    """Return the samples of one file under the chosen filter, and notes about it."""
    match = _SAMPLES_NAME.match(path.name)
    task, stamp = (match["task"], match["stamp"] or "") if match else (path.stem, "")
    log = Log(path=path, task=task, model=_model_name(path, stamp), stamp=stamp, scorer="")
    samples = _Samples(log=log)
    if not is_chosen(log, choice):
        return samples, []
    filters: dict[str, None] = {}
    metric: str | None = None
    chosen = choice.filter
    for line, row in json_lines(path):
        name = str(row.get("filter", "none"))
        filters[name] = None
        chosen = name if chosen is None else chosen
        if name != chosen:
            continue
        metric = _metric(row, choice.metric, path, line) if metric is None else metric
        _add_sample(samples, row, metric, line)
    if not filters:
        raise TaskError(f"{path} is empty", hint="run lm-eval with --log_samples again")
    if chosen not in filters:
        raise UnknownName("filter", str(chosen), filters)
    ignored = [name for name in filters if name != chosen]
    log.scorer = str(metric) if chosen == "none" else f"{metric}, {chosen}"
    note = f"'{log.task}' also has the filters {', '.join(ignored)}; choose with --filter."
    return samples, [note] if ignored else []


def _add_sample(samples: _Samples, row: Mapping[str, Any], metric: str, line: int) -> None:
    path = samples.log.path
    if "doc_id" not in row:
        raise refusal(TaskError, "integrations.no_doc_id", path=path, line=line)
    value = _number(row.get(metric), metric, f"{path}, line {line}")
    outcome = MISSING if value is None else SCORED
    output = _output(row, metric)
    if output == NOTHING_FOUND and not value:
        outcome, value, output = UNPARSED, None, None
    samples.log.add(str(row["doc_id"]), value, outcome, output, line=line)
    doc_hash = row.get("doc_hash")
    samples.hashes.append(doc_hash if isinstance(doc_hash, str) and doc_hash else None)


def _metrics(row: Mapping[str, Any]) -> list[str]:
    """Return the names of a sample's scores: its list, or else every field with a number."""
    listed = row.get("metrics")
    if isinstance(listed, list) and listed:
        return [str(name) for name in listed]
    return [k for k, v in row.items() if k not in _NO_METRICS and isinstance(v, (bool, int, float))]


def _metric(row: Mapping[str, Any], chosen: str | None, path: Path, line: int) -> str:
    names = [name for name in _metrics(row) if isinstance(row.get(name), (bool, int, float))]
    if chosen is not None:
        if chosen not in names:
            raise UnknownName(f"metric of {path.name}", chosen, names)
        return chosen
    if not names:
        raise TaskError(f"{path}, line {line} has no score that is a number")
    return "acc" if "acc" in names else names[0]


def _number(value: Any, metric: str, where: str) -> float | None:
    """Return a score; None if it is missing or NaN. Raise `TaskError` if it is no number."""
    if value is None or value != value:
        return None
    number = finite(value)
    if number is None:
        raise TaskError(f"{where} has {str(value)[:40]!r} as {metric}; expected a number")
    return number


def _output(row: Mapping[str, Any], metric: str) -> str | None:
    """Return the answer: the filtered text, or the index of the likeliest option, or None."""
    replies = row.get("filtered_resps")
    if not isinstance(replies, list) or not replies:
        return None
    if len(replies) == 1 and isinstance(replies[0], str):
        return replies[0]
    if (
        metric == "acc"
        and len(replies) > 1
        and all(_is_scored_option(option) for option in replies)
    ):
        likelihoods = [float(option[0]) for option in replies]
        return str(likelihoods.index(max(likelihoods)))
    return None


def _is_scored_option(option: Any) -> bool:
    """Return True for a list of a log-likelihood and a greedy flag; both may be texts."""
    if not isinstance(option, list) or len(option) != 2:
        return False
    try:
        return float(option[0]) == float(option[0])
    except (TypeError, ValueError):
        return False


def _model_name(path: Path, stamp: str) -> str:
    """Return the model's name from the results file next to the samples, or else the folder."""
    beside = path.with_name(f"results_{stamp}.json")
    if stamp and beside.is_file():
        results = read_json(beside)
        if isinstance(results, dict):
            for name in (results.get("model_name"), results.get("model_source")):
                if isinstance(name, str) and name:
                    return name
    return path.absolute().parent.name


logs = LogReader(
    title="lm-eval",
    order=1,
    takes=_is_samples,
    may_take=lambda path: kind_of(path) == "jsonl",
    read=read_lm_eval,
)
