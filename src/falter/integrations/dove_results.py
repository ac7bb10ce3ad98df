"""Reader of DOVE's predictions: one answer in each row, with the dimensions of its prompt.

Full rows have the nested fields of the published schema (`evaluation_id`, `model`, `prompt_config`,
`instance`, `evaluation`). Light rows have a column for each dimension (`dimensions_1: enumerator`).
Source: Habba et al. (2025), arXiv 2503.01622, schema.json of SLAB-NLP/DOVE.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falter.readers.cells import MISSING, SCORED, number_in
from falter.readers.results import Log, LogChoice, LogReader, LogsAndNotes, nested
from falter.readers.tables import column_names, json_lines, kind_of, parquet_rows
from falter.records.errors import FalterError, TaskError, refusal

# "dimensions_1: enumerator", "dimension.separator"; not "score".
_LIGHT_COLUMN = re.compile(r"dimensions?(?:_\d+)?\s*[:.]\s*(?P<name>.+)", re.IGNORECASE)
# The fields of a full row that are read; its texts and token probabilities are not.
_FULL_FIELDS = (
    "evaluation_id", "model.model_info", "model.inference_settings.quantization",
    "prompt_config.dimensions", "instance.language", "instance.sample_identifier",
    "evaluation.evaluation_method", "evaluation.score",
)  # fmt: skip
Dimensions = tuple[tuple[str, str], ...]
# "0_shot", "5_shots", "shots_5".
_SHOTS = re.compile(r"(\d+)_shots?|shots?_(\d+)", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_NOT_QUANTISED = ("", "none", "null")
MAX_VALUE_CHARACTERS = 40  # characters; longer values are shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The content of one row; `value` is None without a score."""

    id: str | None
    task: str
    model: str
    item: str
    dimensions: Dimensions
    scorer: str
    value: float | None
    line: str


def _is_dove(path: Path) -> bool:
    """Return True if a JSONL or Parquet file has DOVE's fields; only its first row is read."""
    if kind_of(path) not in ("parquet", "jsonl"):
        return False
    try:
        names = _field_names(path)
    except (FalterError, StopIteration):  # the reader that opens it next says what is wrong
        return False
    return _is_full(names) or _is_light(names)


def _field_names(path: Path) -> list[str]:
    if kind_of(path) == "parquet":
        return column_names(path)
    return [str(name) for _, row in [next(json_lines(path))] for name in row]


def _is_full(names: Sequence[str]) -> bool:
    return {"evaluation_id", "prompt_config", "instance", "evaluation"} <= set(names)


def _is_light(names: Sequence[str]) -> bool:
    return {"sample_index", "score"} <= set(names) and any(map(_LIGHT_COLUMN.match, names))


def read_dove(paths: Sequence[Path], choice: LogChoice) -> LogsAndNotes:
    """Return the rows as logs, one for each task, model and set of prompt dimensions.

    A condition is labelled by the dimensions that differ between any two prompts. An item is the
    place of a question in its data set. The same prompt and item under another evaluation id is
    another run.
    """
    answers = [answer for path in paths for answer in _answers(path)]
    whole = paths[0] if len(paths) == 1 else paths[0].parent
    if not answers:
        raise TaskError(f"{paths[0]} is empty", hint="the file may be incomplete; fetch it again")
    label = _labels({answer.dimensions for answer in answers})
    logs: dict[tuple[str, str, Dimensions], Log] = {}
    runs: Counter[tuple[int, str]] = Counter()
    seen: dict[tuple[int, str, str], int] = {}
    for answer in answers:
        place = (answer.task, answer.model, answer.dimensions)
        log = logs.setdefault(
            place,
            Log(path=whole, task=answer.task, model=answer.model, stamp="",
                scorer=answer.scorer, condition=label[answer.dimensions]),
        )  # fmt: skip
        cell = (id(log), answer.item)
        asked = (*cell, answer.id or "")
        if asked not in seen:
            seen[asked] = runs[cell]
            runs[cell] += 1
        outcome = MISSING if answer.value is None else SCORED
        line = answer.line.removeprefix(f"{whole}").lstrip(",/ ")
        log.add(answer.item, answer.value, outcome, None, line=line, epoch=seen[asked])
    return list(logs.values()), _notes(answers, label)


def _notes(answers: Sequence[_Answer], label: Mapping[Dimensions, str]) -> list[str]:
    names = sorted({name for dimensions in label for name, _ in dimensions})
    scorers = sorted({answer.scorer for answer in answers})
    notes = [f"A condition is a prompt of DOVE, by its {', '.join(names) or 'dimensions'}."]
    if len(scorers) > 1:
        notes.append(f"The rows were scored in several ways: {', '.join(scorers)}.")
    return notes


def _labels(
    found: set[Dimensions],
) -> dict[Dimensions, str]:
    """Return a label for each set of dimensions: `enumerator=capitals separator=\\s`.

    Only the dimensions that differ between sets are in it; without any, the label is `all`.
    """
    values: defaultdict[str, set[str | None]] = defaultdict(set)
    names = {name for dimensions in found for name, _ in dimensions}
    for dimensions in found:
        own = dict(dimensions)
        for name in names:
            values[name].add(own.get(name))
    differing = {name for name in names if len(values[name]) > 1}
    return {
        dimensions: " ".join(f"{k}={v}" for k, v in dimensions if k in differing) or "all"
        for dimensions in found
    }


def _answers(path: Path) -> Iterator[_Answer]:
    for line, row in _rows(path):
        yield _full_answer(row, line) if "prompt_config" in row else _light_answer(row, path, line)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if kind_of(path) != "parquet":
        yield from ((f"{path}, line {number}", row) for number, row in json_lines(path))
        return
    names = column_names(path)
    full = _is_full(names)
    wanted = _FULL_FIELDS if full else [n for n in names if _is_plain(n)]
    rows = parquet_rows(path, [n for n in wanted if not full or n.partition(".")[0] in names])
    yield from ((f"{path}, row {number}", row) for number, row in enumerate(rows, start=1))


def _is_plain(name: str) -> bool:
    plain = ("evaluation_id", "dataset", "model", "sample_index", "language", "shots", "score")
    return name in plain or _LIGHT_COLUMN.match(name) is not None


def _full_answer(row: Mapping[str, Any], line: str) -> _Answer:
    """Return the content of a row with the nested fields of the schema."""
    source = _nested_field(row, line, "instance", "sample_identifier")
    if source.get("hf_index") is None or not source.get("dataset_name"):
        raise TaskError(f"{line} does not identify its question", hint=f"the row needs {_SOURCE}")
    evaluation = _nested_field(row, line, "evaluation")
    method = evaluation.get("evaluation_method")
    about = _nested_field(row, line, "model", "model_info")
    if not about.get("name"):
        raise refusal(TaskError, "integrations.no_model", line=line)
    language = str(_nested_field(row, line, "instance").get("language") or "en")
    task = str(source["dataset_name"])
    return _Answer(
        id=str(row["evaluation_id"]) if row.get("evaluation_id") else None,
        task=task if language == "en" else f"{task} ({language})",
        model=f"{about['name']}{_precision_suffix(row)}",
        item=f"{source.get('hf_split') or 'test'}/{_text(source['hf_index'])}",
        dimensions=_dimensions(_nested_field(row, line, "prompt_config", "dimensions")),
        scorer=_value_text(method.get("method_name") or "score")
        if isinstance(method, Mapping)
        else "score",
        value=number_in(evaluation.get("score"), "score", line),
        line=line,
    )


_SOURCE = "instance.sample_identifier with dataset_name and hf_index"


def _light_answer(row: Mapping[str, Any], path: Path, line: str) -> _Answer:
    """Return the content of a light row.

    Missing fields are taken from the path: MODEL/en/0_shot/TASK.parquet.
    """
    if row.get("sample_index") is None or "score" not in row:
        raise refusal(TaskError, "integrations.no_sample", line=line)
    folders = path.absolute().parts[:-1]
    dimensions = {
        m["name"].strip(): _text(v) for k, v in row.items() if (m := _LIGHT_COLUMN.match(k))
    }
    in_path = next((m for f in reversed(folders) if (m := _SHOTS.fullmatch(f))), None)
    if "shots" in row:
        dimensions.setdefault("shots", _text(row["shots"]))
    elif in_path:
        dimensions.setdefault("shots", in_path[1] or in_path[2])
    # MODEL/LANGUAGE/0_shot: the model's folder contains the language's.
    depth = folders.index(in_path[0]) if in_path else 0
    known = depth >= 2 and _LANGUAGE.fullmatch(folders[depth - 1])
    language = str(row.get("language") or (folders[depth - 1] if known else "en"))
    task = str(row.get("dataset") or path.name.partition(".parquet")[0].partition(".jsonl")[0])
    return _Answer(
        id=str(row["evaluation_id"]) if row.get("evaluation_id") else None,
        task=task if language == "en" else f"{task} ({language})",
        model=str(row.get("model") or (folders[depth - 2] if known else "unnamed")),
        item=_text(row["sample_index"]),
        dimensions=tuple(sorted(dimensions.items())),
        scorer="score",
        value=number_in(row["score"], "score", line),
        line=line,
    )


def _nested_field(row: Mapping[str, Any], line: str, *names: str) -> Mapping[str, Any]:
    """Return a nested field of a full row. Raise `TaskError` if it is no mapping."""
    part = nested(row, *names)
    if not isinstance(part, Mapping):
        raise refusal(TaskError, "integrations.no_field", line=line, names=".".join(names))
    return part


def _precision_suffix(row: Mapping[str, Any]) -> str:
    """Return a suffix such as ` (int8)` for a quantised model, which counts as another model."""
    path = ("model", "inference_settings", "quantization", "bit_precision")
    text = str(nested(row, *path) or "")
    return "" if text.lower() in _NOT_QUANTISED else f" ({text})"


def _dimensions(found: Mapping[str, Any]) -> Dimensions:
    """Return the dimensions of a prompt by short names, without the demonstrations."""
    named = {
        name.removeprefix("mc_"): _value_text(value)
        for name, value in found.items()
        if name != "demonstrations" and value is not None
    }
    return tuple(sorted(named.items()))


def _value_text(value: Any) -> str:
    """Return a value as text; for a value with a description, its name."""
    if isinstance(value, Mapping):
        value = next((value[k] for k in ("name", "method", "methods") if value.get(k)), "none")
    return "+".join(map(_text, value)) if isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    """Return a value as text, with line breaks escaped and whole numbers without `.0`.

    A text above 40 characters is shortened and gets a hash.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    # The hash distinguishes long texts with the same beginning.
    return f"{text[:MAX_VALUE_CHARACTERS]}… {hashlib.sha256(text.encode()).hexdigest()[:6]}"


logs = LogReader(title="DOVE", order=5, takes=_is_dove, read=read_dove, beside_tables=True)
