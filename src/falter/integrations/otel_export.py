"""Export as OpenTelemetry spans of generative models, in lines of OTLP JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from falter.records.ids import digest, short
from falter.records.types import Panel, Run
from falter.report.exported import (
    ExportedCell,
    ExportedPart,
    ExportedResult,
    address,
    export_forms,
    safe_name,
    whole_text,
)

INTERNAL, CLIENT, ERROR = 1, 3, 2
_NANOSECONDS = 10**9


@export_forms.registers("otel")
def write_spans(result: ExportedResult, folder: Path) -> list[Path]:
    """Write a trace for each item of a panel, with a span for each request that was sent.

    Each line is an `ExportTraceServiceRequest`, as in the files of OpenTelemetry's exporter.
    Prompts and answers are left out, as its conventions for generative models recommend.
    """
    files: list[Path] = []
    for part in result.parts:
        path = folder / f"{safe_name(part.name)}.spans.jsonl"
        with path.open("wb") as file:
            for spans in _traces(part):
                file.write(orjson.dumps(_export_request(spans, part.run)) + b"\n")
        files.append(path)
    return files


def _export_request(spans: list[dict[str, Any]], run: Run) -> dict[str, Any]:
    resource = {"attributes": _attributes({"service.name": "falter", "falter.run": run.id})}
    scope = {"name": "falter", "version": run.version}
    return {"resourceSpans": [
        {"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}
    ]}  # fmt: skip


def _traces(part: ExportedPart) -> Iterator[list[dict[str, Any]]]:
    """Yield the spans of each item in each panel; cells that share a request share a span."""
    seen: set[tuple[int, str]] = set()

    def place(cell: ExportedCell) -> tuple[int, str]:
        return cell.panel, cell.variant.item.key

    for (at, item), cells in itertools.groupby(part.cells(), place):
        by_key: dict[str, list[ExportedCell]] = {}
        for cell in cells:
            if cell.response is not None or cell.failure is not None:
                by_key.setdefault(cell.key, []).append(cell)
        fresh = [own for key, own in by_key.items() if (at, key) not in seen]
        seen |= {(at, key) for key in by_key}
        if fresh:
            yield _item_trace(part.run, at, item, fresh)


def _item_trace(
    run: Run, at: int, item: str, requests: Iterable[list[ExportedCell]]
) -> list[dict[str, Any]]:
    trace = short(digest("trace", run.id, at, item), 32)
    root = short(digest("span", run.id, at, item), 16)
    panel = run.panels[at]
    asked = [_RequestSpan(own) for own in requests]
    times = [time for one in asked if (time := one.times) is not None]
    whole = (min((t[0] for t in times), default=0), max((t[1] for t in times), default=0))
    spans = [
        {
            "traceId": trace,
            "spanId": root,
            "name": "item",
            "kind": INTERNAL,
            "startTimeUnixNano": str(whole[0]),
            "endTimeUnixNano": str(whole[1]),
            "attributes": _attributes({"falter.task": panel.task, "falter.item": item}),
        }
    ]
    for one in asked:
        start, end = one.times or (whole[0], whole[0])
        span: dict[str, Any] = {
            "traceId": trace,
            "spanId": short(digest("span", run.id, at, one.first.key), 16),
            "parentSpanId": root,
            "name": whole_text(f"{one.operation} {panel.model.name}"),
            "kind": CLIENT,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(end),
            "attributes": _attributes(one.attributes(run, panel)),
        }
        if one.failure is not None:
            span["status"] = {"code": ERROR, "message": whole_text(one.failure)}
        spans.append(span)
    return spans


class _RequestSpan:
    """A request and the cells that share its response."""

    def __init__(self, cells: list[ExportedCell]) -> None:
        self.cells, self.first = cells, cells[0]
        self.response = self.first.response
        failed = self.response.failure if self.response else None
        self.failure = failed or (self.first.failure if self.response is None else None)
        scored = self.response is not None and bool(self.response.scores)
        self.operation = "text_completion" if scored else "chat"

    @property
    def times(self) -> tuple[int, int] | None:
        """Unix times of sending and of the response in nanoseconds; None if unknown."""
        response = self.response
        if response is None or response.received_at <= 0:
            return None
        end = int(response.received_at * _NANOSECONDS)
        return end - int(max(0.0, response.latency) * _NANOSECONDS), end

    def attributes(self, run: Run, panel: Panel) -> dict[str, Any]:
        first, response = self.first, self.response
        sampling = {
            **(run.experiment.get("sampling") or {}), **(first.variant.recipe.sampling or {})
        }  # fmt: skip
        usage = response.usage if response and self.failure is None else None
        finish = response.finish_reason if response else None
        score = first.score
        return {
            "gen_ai.operation.name": self.operation,
            "gen_ai.provider.name": panel.model.client,
            "gen_ai.request.model": panel.model.name,
            "gen_ai.request.temperature": sampling.get("temperature"),
            "gen_ai.request.top_p": sampling.get("top_p"),
            "gen_ai.request.max_tokens": sampling.get("max_tokens"),
            "gen_ai.response.model": response.served_by if response else None,
            "gen_ai.response.id": response.request_id if response else None,
            "gen_ai.response.finish_reasons": [finish] if finish else None,
            "gen_ai.usage.input_tokens": usage.prompt_tokens if usage else None,
            "gen_ai.usage.output_tokens": usage.completion_tokens if usage else None,
            "server.address": urlsplit(address(panel.model) or "").hostname,
            "error.type": "_OTHER" if self.failure is not None else None,
            "falter.recipes": [cell.variant.recipe.label for cell in self.cells],
            "falter.draw": first.variant.draw,
            "falter.outcome": score.outcome if score else "missing",
            "falter.score": score.value if score else None,
        }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the values that are not None as a list of OTLP attributes."""
    return [
        {"key": name, "value": _value(value)} for name, value in values.items() if value is not None
    ]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": whole_text(str(value))}
