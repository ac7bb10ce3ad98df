"""Export as Inspect logs: one `.eval` file for each panel and recipe, for `inspect view`."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from falter.records.ids import digest, short
from falter.records.types import CUT, Panel, Recipe, Run, Usage
from falter.report.exported import (
    ExportedCell,
    ExportedPart,
    ExportedResult,
    address,
    answer_text,
    expected,
    export_forms,
    prompt_messages,
    safe_name,
    whole_text,
)

VERSION = 2
MAX_SUMMARY_CHARACTERS = 1_000
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS


@export_forms.registers("inspect")
def write_inspect(result: ExportedResult, folder: Path) -> list[Path]:
    """Write the logs and return their files.

    Draws and repeats become epochs. A response without a usable answer has the score N, a failure
    is an error. Samples are written one by one, so that no log is held in memory. If inspect_ai is
    installed, it reads every log and writes it again.
    """
    files: list[Path] = []
    for part in result.parts:
        files += _write_part(part, result, folder)
    _rewrite_with_inspect(files)
    return files


def _write_part(part: ExportedPart, result: ExportedResult, folder: Path) -> Iterator[Path]:
    """Yield the logs of a run as they are finished, with all recipes of one panel open."""
    logs: dict[str, _Log] = {}
    at = -1
    with contextlib.ExitStack() as stack:
        for cell in part.cells():
            if cell.panel != at:
                yield from (log.close() for log in logs.values())
                logs, at = {}, cell.panel
            recipe = cell.variant.recipe
            if recipe.id not in logs:
                logs[recipe.id] = _Log(part, at, recipe, result, folder)
                stack.callback(logs[recipe.id].archive.close)
            logs[recipe.id].add(cell)
        yield from (log.close() for log in logs.values())


@dataclass
class _Totals:
    """The totals of a log's samples, for its header."""

    planned: int = 0
    missing: int = 0
    scored: int = 0
    sum: float = 0.0
    unscored: int = 0
    input: int = 0
    output: int = 0
    items: dict[str, None] = field(default_factory=dict)


class _Log:
    """An `.eval` file that is being written."""

    def __init__(
        self, part: ExportedPart, at: int, recipe: Recipe, result: ExportedResult, folder: Path
    ) -> None:
        self.run, self.panel, self.recipe = part.run, part.run.panels[at], recipe
        self.created = datetime.fromtimestamp(result.study.created_at, UTC).replace(microsecond=0)
        self.name = digest("inspect", part.run.id, at, recipe.id)
        self.study = result.study
        task = safe_name(self.panel.task)
        stamp = self.created.isoformat().replace(":", "-")
        self.path = folder / f"{stamp}_{task}_{short(self.name, 22)}.eval"
        self.archive = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self.summaries: list[dict[str, Any]] = []
        self.totals = _Totals()
        self._write("_journal/start.json", {"version": VERSION, "eval": self._spec(), **_PLAN})

    def add(self, cell: ExportedCell) -> None:
        """Write a cell as a sample; a cell that was never sent is only counted."""
        totals = self.totals
        totals.planned += 1
        if cell.score is None and cell.response is None and cell.failure is None:
            totals.missing += 1
            return
        sample = _sample(cell, self.run, self.panel)
        self._write(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
        self.summaries.append(_summary(sample))
        totals.items[sample["id"]] = None
        usage = cell.response.usage if cell.response else Usage()
        totals.input += usage.prompt_tokens
        totals.output += usage.completion_tokens
        if sample["scores"]:
            value = sample["scores"][self.panel.scorer]["value"]
            totals.scored += 1
            totals.sum += {"C": 1.0, "I": 0.0, "N": 0.0}.get(value, value)
        else:
            totals.unscored += 1

    def close(self) -> Path:
        """Write the summaries and the header, which come last. Return the path."""
        self._write("summaries.json", self.summaries)
        self._write("header.json", self._header())
        self.archive.close()
        return self.path

    def _write(self, name: str, value: Any) -> None:
        info = zipfile.ZipInfo(name, _ZIP_TIME)  # the same bytes every time
        info.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(info, orjson.dumps(value, option=_JSON_OPTIONS))

    def _spec(self) -> dict[str, Any]:
        items = list(self.totals.items) if hasattr(self, "totals") else []
        return {
            "eval_id": short(self.name, 22),
            "run_id": short(self.run.id, 22),
            "created": self.created.isoformat(),
            "task": whole_text(self.panel.task),
            "task_id": short(self.name, 22),
            "task_version": 0,
            "task_args": {"recipe": whole_text(self.recipe.label)},
            "dataset": {"name": whole_text(self.panel.task), "samples": len(items),
                        "sample_ids": items, "shuffled": False},
            "model": whole_text(f"{self.panel.model.client}/{self.panel.model.name}"),
            "model_base_url": address(self.panel.model),
            "model_generate_config": _sampling(self.run, self.recipe),
            "config": {"epochs": self.run.draws * self.run.repeats},
            "packages": {"falter": self.run.version},
            "scorers": [{"name": self.panel.scorer}],
            "metadata": {
                "falter_run": self.run.id,
                "recipe": whole_text(self.recipe.label),
                "is_simulated": self.panel.model.simulated,
                "seed": self.run.seed,
            },
        }  # fmt: skip

    def _header(self) -> dict[str, Any]:
        totals = self.totals
        stamp = self.created.isoformat()
        model = whole_text(f"{self.panel.model.client}/{self.panel.model.name}")
        mean = totals.sum / totals.scored if totals.scored else None
        metrics = {} if mean is None else {"accuracy": {"name": "accuracy", "value": mean}}
        usage = {"input_tokens": totals.input, "output_tokens": totals.output,
                 "total_tokens": totals.input + totals.output}  # fmt: skip
        return {
            "version": VERSION,
            "status": "cancelled" if totals.missing else "success",
            "eval": self._spec(),
            **_PLAN,
            "results": {
                "total_samples": totals.planned,
                "completed_samples": totals.scored,
                "scores": [
                    {
                        "name": self.panel.scorer,
                        "scorer": self.panel.scorer,
                        "scored_samples": totals.scored,
                        "unscored_samples": totals.unscored,
                        "metrics": metrics,
                    }
                ],
            },
            "stats": {"started_at": stamp, "completed_at": stamp, "model_usage": {model: usage}},
        }


_PLAN: dict[str, Any] = {"plan": {"name": "falter", "steps": [], "config": {}}}


def _sampling(run: Run, recipe: Recipe) -> dict[str, Any]:
    known = {**(run.experiment.get("sampling") or {}), **(recipe.sampling or {})}
    return {name: known[name] for name in ("temperature", "top_p", "max_tokens") if name in known}


def _sample(cell: ExportedCell, run: Run, panel: Panel) -> dict[str, Any]:
    """Return a cell in Inspect's format of a sample."""
    variant, response = cell.variant, cell.response
    repeat = cell.repeat - variant.recipe.repeat * run.repeats
    asked = prompt_messages(variant.prompt)
    model = whole_text(f"{panel.model.client}/{panel.model.name}")
    output: dict[str, Any] = {"model": model, "choices": []}
    reply: list[dict[str, Any]] = []
    usage: dict[str, Any] = {}
    if response is not None and response.failure is None:
        reply = [{"role": "assistant", "content": _content(cell), "source": "generate",
                  "model": model}]  # fmt: skip
        usage = _usage(response.usage)
        output |= {
            "choices": [{"message": reply[0], "stop_reason": _stop_reason(response.finish_reason)}],
            "completion": answer_text(cell),
            "usage": usage,
            "time": response.latency,
        }
    sample: dict[str, Any] = {
        "id": safe_name(variant.item.key),
        "epoch": variant.draw * run.repeats + repeat + 1,
        "input": asked,
        "target": expected(variant.prompt),
        "messages": asked + reply,
        "output": output,
        "scores": _scores(cell, panel),
        "metadata": _metadata(cell, repeat),
        "store": {},
        "events": [],
        "model_usage": {model: usage} if usage else {},
        "attachments": {},
    }
    if variant.prompt.choices:
        sample["choices"] = [whole_text(choice) for choice in variant.prompt.choices]
    if not sample["scores"]:
        why = cell.failure or (response.failure if response else None)
        why = why or (cell.score.reason if cell.score else None) or "no answer"
        sample["error"] = {"message": whole_text(why), "traceback": "", "traceback_ansi": ""}
    return sample


def _content(cell: ExportedCell) -> Any:
    """Return the text of the response, with the model's reasoning before it if there is any."""
    reasoning = cell.response.reasoning if cell.response else None
    if not reasoning:
        return answer_text(cell)
    return [
        {"type": "reasoning", "reasoning": whole_text(reasoning)},
        {"type": "text", "text": answer_text(cell)},
    ]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }


def _stop_reason(reason: str | None) -> str:
    if reason in CUT:
        return "max_tokens"
    return reason if reason in ("stop", "tool_calls", "content_filter") else "unknown"


def _scores(cell: ExportedCell, panel: Panel) -> dict[str, Any]:
    """Return the score of a cell: C for correct, I for incorrect, N for no usable answer.

    A score between 0 and 1 stays a number. The result is empty for a failure.
    """
    score = cell.score
    if score is None or score.outcome in ("failed", "missing"):
        return {}
    value: Any = "N"
    if score.outcome == "scored" and score.value is not None:
        value = {1.0: "C", 0.0: "I"}.get(score.value, score.value)
    return {
        panel.scorer: {
            "value": value,
            "answer": None if score.extracted is None else whole_text(score.extracted),
            "explanation": None if score.reason is None else whole_text(score.reason),
            "metadata": {"outcome": score.outcome},
        }
    }


def _metadata(cell: ExportedCell, repeat: int) -> dict[str, Any]:
    variant, response = cell.variant, cell.response
    about: dict[str, Any] = {
        "item": whole_text(variant.item.key),
        "tags": [whole_text(tag) for tag in variant.item.tags],
        "recipe": whole_text(variant.recipe.label),
        "draw": variant.draw,
        "repeat": repeat,
        "prompt": variant.status,
    }
    if response is not None and response.scores:
        about["logprobs"] = [scored.logprob for scored in response.scores]
    return about


def _summary(sample: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a sample that a list of samples shows."""
    scores = {
        name: {
            **score,
            "explanation": (score["explanation"] or "")[:MAX_SUMMARY_CHARACTERS] or None,
        }
        for name, score in sample["scores"].items()
    }
    summary = {
        "id": sample["id"],
        "epoch": sample["epoch"],
        "input": sample["input"][-1]["content"][:MAX_SUMMARY_CHARACTERS],
        "target": sample["target"],
        "metadata": {name: sample["metadata"][name] for name in ("recipe", "draw", "repeat")},
        "scores": scores,
        "model_usage": sample["model_usage"],
        "completed": "error" not in sample,
        "message_count": len(sample["messages"]),
    }
    if "error" in sample:
        summary["error"] = sample["error"]["message"][:MAX_SUMMARY_CHARACTERS]
    return summary


def _rewrite_with_inspect(files: list[Path]) -> None:
    """If inspect_ai is installed, read and rewrite every log with it, one at a time."""
    try:
        from inspect_ai.log import read_eval_log, write_eval_log
    except ImportError:
        return
    for file in files:
        write_eval_log(read_eval_log(str(file)), str(file))
