"""`gemini:NAME`: Gemini through Google's API, with thinking budgets, safety filters, batches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from falter.clients import batches as batch
from falter.clients.answers import Answer, RequestRefused, UnusableAnswer, submapping
from falter.clients.base import HttpClient
from falter.clients.chat_forms import gemini_contents, gemini_declaration
from falter.clients.dialect import habits_of
from falter.clients.settings import ClientSettings, clients, option_table
from falter.clients.transport import Transport
from falter.records.batches import BatchLine, BatchStatus, ListedBatch, custom_id, key_of
from falter.records.chats import system_text
from falter.records.interfaces import Capabilities
from falter.records.types import Model, Request, Response

OPTIONS = option_table("gemini")
HARM_CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
SIGNATURE, SCHEMA = "the unsigned call of a conversation", "parametersJsonSchema"
FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "IMAGE_SAFETY": "safety", "OTHER": "other"}


class Gemini(HttpClient):
    """One model of Google, or of a server that speaks its API. It has no scores."""

    def __init__(self, settings: ClientSettings) -> None:
        self._options = OPTIONS.read(settings)
        self.transport = Transport(
            settings,
            default_url="https://generativelanguage.googleapis.com/v1beta",
            key_variable="GEMINI_API_KEY",
            key_header="x-goog-api-key: {key}",
            endpoints=("models",),
            models_path="models?pageSize=1000",
            may_drop=("temperature", "topP", "stopSequences", "seed"),
            habits=habits_of("gemini"),
        )
        self._url = self.transport.url(f"models/{settings.name}:generateContent")
        self.capabilities = Capabilities(
            generates=True,
            scores=False,
            constrains=True,
            batches=True,
            tools=True,
            system_in_front=True,
        )
        self.batches = GeminiBatches(self.transport, self._body, read_candidates)
        self.batches.model = settings.name
        known = {parameter.name for parameter in OPTIONS.known}
        self.model = Model(
            client="gemini",
            name=settings.name,
            base_url=self.transport.base_url,
            options={
                name: value
                for name, value in self._options.items()
                if value is not None or name not in known
            },
        )

    async def generate(self, request: Request) -> Response:
        """Return the response to a request, or a response with the reason of its failure."""
        return await self.transport.answer(request, self._url, self._body, read_candidates)

    def _body(self, request: Request) -> dict[str, Any]:
        turns = request.messages or (("user", request.context),)
        options = dict(self._options)
        budget, threshold = options.pop("thinking_budget"), options.pop("safety_threshold")
        sampling = request.sampling
        config = {
            "temperature": sampling.temperature,
            "topP": sampling.top_p if sampling.top_p < 1 else None,
            "maxOutputTokens": sampling.max_tokens + (budget or 0),
            "stopSequences": list(sampling.stop) or None,
            "seed": sampling.seed,
            "thinkingConfig": None if budget is None else {"thinkingBudget": budget},
            **({} if request.answers is None else _answer_schema(request.answers)),
            **options,
        }
        config = {name: value for name, value in config.items() if value is not None}
        body: dict[str, Any] = {
            "contents": list(gemini_contents(turns, SIGNATURE in self.transport.dialect.learnt)),
            "generationConfig": self.transport.dialect.fields(config),
        }
        if request.tools:
            plain = SCHEMA in self.transport.dialect.learnt
            declared = [gemini_declaration(tool, plain) for tool in request.tools]
            body["tools"] = [{"functionDeclarations": declared}]
        system = system_text(turns)
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if threshold is not None:
            body["safetySettings"] = [
                {"category": f"HARM_CATEGORY_{name}", "threshold": threshold}
                for name in HARM_CATEGORIES
            ]
        return body


def _answer_schema(answers: Sequence[str]) -> dict[str, Any]:
    """Return the settings that constrain the response to an object with one of the answers."""
    options = {"type": "STRING", "format": "enum", "enum": list(answers)}
    answer = options if answers else {"type": "NUMBER"}
    schema = {"type": "OBJECT", "properties": {"answer": answer}, "required": ["answer"]}
    return {"responseMimeType": "application/json", "responseSchema": schema}


def read_candidates(data: Any) -> Answer:
    """Return the answer in the first candidate: its text, thoughts and calls.

    A blocked prompt has an empty text, with the reason as its finish reason. Raise `UnusableAnswer`
    if there is no candidate for another reason.
    """
    usage = data.get("usageMetadata") or {}
    counted = {
        "prompt_tokens": usage.get("promptTokenCount"),
        "completion_tokens": (usage.get("candidatesTokenCount") or 0)
        + (usage.get("thoughtsTokenCount") or 0),
        "reasoning_tokens": usage.get("thoughtsTokenCount"),
        "cached_tokens": usage.get("cachedContentTokenCount"),
        "served_by": data.get("modelVersion"),
        "request_id": data.get("responseId"),
    }
    if not data.get("candidates"):
        blocked = (data.get("promptFeedback") or {}).get("blockReason")
        if not blocked:
            raise UnusableAnswer("no candidates")
        reason = blocked.lower() if blocked in ("SAFETY", "BLOCKLIST") else "content_filter"
        return Answer.from_server("", finish_reason=reason, **counted)
    candidate = data["candidates"][0]
    parts = (candidate.get("content") or {}).get("parts") or []
    reason = candidate.get("finishReason") or ""
    return Answer.from_server(
        "".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        reasoning="".join(p["text"] for p in parts if "text" in p and p.get("thought")) or None,
        finish_reason=FINISH.get(reason, reason.lower()),
        calls=[
            {"name": part["functionCall"]["name"], "arguments": part["functionCall"].get("args")}
            for part in parts
            if "functionCall" in part
        ],
        **counted,
    )


@clients.registers("gemini")
def connect(settings: ClientSettings) -> Gemini:
    """Gemini by Google's own API; the key is in GEMINI_API_KEY."""
    return Gemini(settings)


# Batches: the call that submits a batch contains its requests; its state contains the answers.

ENDED_STATES = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
FINAL_ERROR_CODES = (3, 5, 7, 9, 11, 12)
"""Google's codes of errors that a retry would only repeat; other errors may pass."""


class GeminiBatches(batch.ProviderBatches):
    """Batches of one model, small enough to be submitted without a file."""

    form = "gemini"
    most_requests = 5_000
    most_bytes = 15_000_000  # the limit is 20 MB, which includes the JSON around the requests
    page_size, rows = "pageSize", "operations"
    newest_first = False  # Google does not document the order
    model = ""

    def batch_line(self, request: Request) -> bytes:
        metadata = {"key": custom_id(request.key)}
        return orjson.dumps({"request": self._body(request), "metadata": metadata})

    def file_line(self, request: Request) -> bytes:
        """Return a request as a line of a file, which has the key outside of the metadata."""
        key = custom_id(request.key)
        return orjson.dumps({"key": key, "request": self._body(request)})

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        requests = b'{"requests":{"requests":[' + b",".join(lines) + b"]}}"
        body = b'{"batch":{"displayName":%b,"inputConfig":%b}}' % (orjson.dumps(mark), requests)
        return await self.submit_once(f"models/{self.model}:batchGenerateContent", body, "name")

    def following(self, page: Mapping[str, Any], found: Sequence[ListedBatch]) -> str:
        token = page.get("nextPageToken")
        return (
            f"&pageToken={quote(token[:2000], safe='')}" if token and isinstance(token, str) else ""
        )

    async def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        for line in _response_lines(await self.call(f"batches/{name}")):
            yield read_line(line, self._read, asked, self._transport.clean)

    def entry(self, row: dict[str, Any]) -> ListedBatch:
        inner = submapping(row, "metadata")
        return ListedBatch(
            name=str(row.get("name") if inner else "").removeprefix("batches/"),
            mark=batch.printable_text(inner.get("displayName"), 100) or None,
            requests=batch.whole_number(submapping(inner, "batchStats").get("requestCount")),
            created_at=batch.timestamp(inner.get("createTime")),
        )

    def state(self, data: Any) -> BatchStatus:
        state = batch.printable_text(submapping(data, "metadata").get("state") or data.get("state"))
        state = state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        error = submapping(data, "error")
        failed = state == "FAILED" or bool(error)
        return BatchStatus(
            ended=state in ENDED_STATES or bool(data.get("done")),
            said=state.lower() or "unknown",
            failure=(batch.printable_text(error.get("message"), 400) or "failed") if failed else "",
            too_much=error.get("code") in (8, 429),
            cancelled=state == "CANCELLED",
        )


def read_line(
    line: Any, read: Callable[[Any], Answer], asked: str, clean: Callable[[str], str]
) -> BatchLine:
    """Return the result in an inlined response, or in a line of a file of results."""
    line = line if isinstance(line, dict) else {}
    metadata = line.get("metadata")
    key = key_of(metadata.get("key") if isinstance(metadata, dict) else line.get("key"))
    if isinstance(line.get("response"), dict):
        return batch.answered(key, line["response"], read, asked)
    error = line.get("error")
    final = isinstance(error, dict) and (
        error.get("code") in FINAL_ERROR_CODES or error.get("code") == 400
    )
    return batch.declined(key, 400 if final else None, error or "no answer", clean)


def _response_lines(data: Any) -> list[Any]:
    """Return a batch's inlined responses, which servers nest at two different depths.

    Raise `RequestRefused` if the results are in a file.
    """
    output = (data.get("response") if isinstance(data, dict) else None) or {}
    output = output.get("output") or output if isinstance(output, dict) else {}
    inlined = output.get("inlinedResponses")
    inlined = inlined.get("inlinedResponses") if isinstance(inlined, dict) else inlined
    if inlined is None and output.get("responsesFile"):
        raise RequestRefused(
            "the batch's results are in a file instead of the response", status=None
        )
    return inlined if isinstance(inlined, list) else []
