"""`anthropic:NAME`: Claude through the Messages API, with thinking, cached prefixes and batches."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from falter.clients import batches as batch
from falter.clients.answers import Answer, submapping
from falter.clients.base import HttpClient
from falter.clients.chat_forms import anthropic_tool, anthropic_turns
from falter.clients.settings import ClientSettings, asks_for_reasoning, clients, option_table
from falter.clients.transport import Transport
from falter.records.batches import BatchLine, BatchStatus, ListedBatch, custom_id, key_of
from falter.records.interfaces import Capabilities
from falter.records.types import Model, Request, Response

OPTIONS = option_table("anthropic")
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
FINAL_ERROR_TYPES = (
    "invalid_request_error",
    "not_found_error",
    "permission_error",
    "request_too_large",
)
"""Error types of a batch's line that a retry would only repeat."""


class Anthropic(HttpClient):
    """One model of Anthropic, or of a server that speaks its API. It has no seeds and no scores."""

    def __init__(self, settings: ClientSettings) -> None:
        self._options = OPTIONS.read(settings)
        url = (settings.base_url or "").rstrip("/")
        if url and not re.search(r"/(v\d+\w*|messages|models)$", url):
            settings = replace(settings, base_url=f"{url}/v1")  # as Anthropic's own library does
        self.transport = Transport(
            settings,
            default_url="https://api.anthropic.com/v1",
            key_variable="ANTHROPIC_API_KEY",
            key_header="x-api-key: {key}",
            headers={"anthropic-version": "2023-06-01"},
            endpoints=("messages", "models"),
            # The list leaves out model names without a date, but the page of one model knows them.
            models_path=f"models/{settings.name}",
            models_of=lambda _: (),
            may_drop=("temperature", "top_p", "stop_sequences"),
        )
        self._url = self.transport.url("messages")
        self.capabilities = Capabilities(
            generates=True,
            scores=False,
            batches=True,
            tools=True,
            system_in_front=True,
            # With thinking, the server requires its own signed thoughts before a call. A
            # conversation in a file has none.
            replays=not (self._options["thinking_tokens"] or asks_for_reasoning(self._options)),
        )
        self.batches = AnthropicBatches(self.transport, self._body, read_message)
        self.model = Model(
            client="anthropic",
            name=settings.name,
            base_url=self.transport.base_url,
            options={n: v for n, v in self._options.items() if v not in (None, False)}
            | {n: v for n, v in settings.options.items() if v is None},
        )

    async def generate(self, request: Request) -> Response:
        """Return the response to a request, or a response with the reason of its failure."""
        return await self.transport.answer(request, self._url, self._body, read_message)

    def _body(self, request: Request) -> dict[str, Any]:
        sampling, options = request.sampling, dict(self._options)
        thinking, keeps = options.pop("thinking_tokens"), options.pop("cache")
        system, turns = anthropic_turns(request.messages or (("user", request.context),), keeps)
        fields = {
            "model": self.model.name,
            "system": system,
            "messages": turns,
            "tools": [anthropic_tool(text) for text in request.tools] or None,
            "stream": False,
            "max_tokens": sampling.max_tokens + (thinking or 0),
            # With thinking, the server takes no temperature but its own.
            "temperature": None if thinking else sampling.temperature,
            "top_p": sampling.top_p if sampling.top_p < 1 else None,
            "stop_sequences": list(sampling.stop) or None,
            "thinking": {"type": "enabled", "budget_tokens": thinking} if thinking else None,
            **options,
        }
        return {name: value for name, value in fields.items() if value is not None}


def read_message(data: Any) -> Answer:
    """Return the answer in a message: its text, thinking and calls.

    Prompt tokens that were written to or read from a cache count.
    """
    usage, reason = data["usage"], data["stop_reason"]
    cached = usage.get("cache_read_input_tokens") or 0
    sent = usage["input_tokens"] + cached + (usage.get("cache_creation_input_tokens") or 0)
    blocks = data["content"]
    return Answer.from_server(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        reasoning="\n".join(b["thinking"] for b in blocks if b["type"] == "thinking") or None,
        finish_reason=FINISH.get(reason, reason),
        prompt_tokens=sent,
        completion_tokens=usage["output_tokens"],
        cached_tokens=cached,
        served_by=data["model"],
        request_id=data.get("id"),
        calls=[
            {"name": b["name"], "arguments": b["input"]} for b in blocks if b["type"] == "tool_use"
        ],
    )


@clients.registers("anthropic")
def connect(settings: ClientSettings) -> Anthropic:
    """Claude by Anthropic's own API; the key is in ANTHROPIC_API_KEY."""
    return Anthropic(settings)


# Batches: requests go in as JSON, results come out as lines.


class AnthropicBatches(batch.ProviderBatches):
    """Batches of one model. They take no mark, so a batch is recognised by its requests."""

    form = "anthropic"
    most_requests = 100_000
    most_bytes = 100_000_000  # Anthropic takes 256 MB; less, since a batch is held in memory
    path = "messages/batches"
    cursor = "after_id"

    def batch_line(self, request: Request) -> bytes:
        params = self._transport.dialect.fields(self._body(request))
        return orjson.dumps({"custom_id": custom_id(request.key), "params": params})

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        return await self.submit_once(self.path, body, "id")

    async def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        """Yield results from the batch's own URL: a URL named by the server could lead anywhere."""
        url = self._transport.url(f"{self.path}/{name}/results")
        async for line in self._transport.lines(url):
            yield read_line(line, self._read, asked, self._transport.clean)

    def entry(self, row: dict[str, Any]) -> ListedBatch:
        return ListedBatch(
            name=row.get("id") or "",
            requests=_request_counts(row)[0],
            created_at=batch.timestamp(row.get("created_at")),
        )

    def state(self, data: Any) -> BatchStatus:
        state, (total, done) = (
            batch.printable_text(data["processing_status"]),
            _request_counts(data),
        )
        return BatchStatus(
            ended=state == "ended",
            said=f"{state}, {done:,} of {total:,}" if total else state,
            cancelled=bool(data.get("cancel_initiated_at")),
        )


def read_line(
    line: Any, read: Callable[[Any], Answer], asked: str, clean: Callable[[str], str]
) -> BatchLine:
    """Return the result in a line of a batch's results."""
    line = line if isinstance(line, dict) else {}
    key, result = key_of(line.get("custom_id")), submapping(line, "result")
    kind = result.get("type")
    if kind == "succeeded":
        return batch.answered(key, result.get("message"), read, asked)
    if kind != "errored":
        return BatchLine(key=key, reason=batch.printable_text(kind) or "no answer")
    error = result.get("error")
    inner = error.get("error", error) if isinstance(error, dict) else error
    final = isinstance(inner, dict) and inner.get("type") in FINAL_ERROR_TYPES
    return batch.declined(key, 400 if final else None, inner, clean)


def _request_counts(data: Mapping[str, Any]) -> tuple[int | None, int]:
    """Return the number of requests in a batch (None if unknown) and the number that ended."""
    counts = data.get("request_counts")
    if not isinstance(counts, dict):
        return None, 0
    known = {name: batch.whole_number(value) or 0 for name, value in counts.items()}
    return sum(known.values()), sum(known.values()) - known.get("processing", 0)
