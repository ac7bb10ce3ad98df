"""`openai:NAME`: any server that speaks OpenAI's chat or completions API.

Chat generates. Completions generate and score: a scoring request sends context + continuation
and asks for the prompt's own log-probabilities back (`echo`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import orjson

from falter.clients import batches as batch
from falter.clients.answers import Answer, RequestRefused, failed, submapping
from falter.clients.base import HttpClient
from falter.clients.constrained import PLAIN_FORMS, constraint_fields, likeliest
from falter.clients.dialect import habits_of
from falter.clients.openai_replies import Scoring, UnfitServer, read_chat, read_completion
from falter.clients.settings import ClientSettings, asks_for_reasoning, clients, option_table
from falter.clients.transport import CHARACTERS_A_TOKEN, Transport
from falter.records.batches import BatchLine, BatchStatus, ListedBatch, custom_id, key_of
from falter.records.chats import openai_tools
from falter.records.chats import turns as chat_turns
from falter.records.errors import EndpointError, refusal
from falter.records.interfaces import Capabilities
from falter.records.types import Model, Request, Response, Sampling

OPTIONS = option_table("openai")
SILENT_HABIT = "the absent content of a call"


@clients.registers("openai")
def connect(settings: ClientSettings) -> OpenAI:
    """A client of OpenAI, or of the server at `base_url`."""
    return OpenAI(settings)


async def _unfit_failure(request: Request) -> Response:
    return failed(
        request,
        "'hold_by: top_logprobs' returns the most likely option, so it needs temperature 0 and "
        "answers that are not numbers",
    )


class OpenAI(HttpClient):
    """One model behind one base URL. Failed requests become responses.

    Errors that end the run are raised: a refused key, a used-up quota, a missing endpoint.
    """

    def __init__(self, settings: ClientSettings) -> None:
        options = OPTIONS.read(settings)
        form = options.pop("hold_by")
        self._constraint_form = form or "json_schema"
        self.transport = Transport(
            settings,
            default_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            renames={"max_tokens": "max_completion_tokens"},
            may_drop=("temperature", "top_p", "seed", "stop"),
            habits=habits_of("openai"),
        )
        self._chat = settings.api == "chat"
        if self._chat and self.transport.is_home:
            self.transport.dialect.rename("max_tokens")
        self._url = self.transport.url("chat/completions" if self._chat else "completions")
        self._read_answer = read_chat if self._chat else read_completion
        self._omitted = {name for name, value in options.items() if value is None}
        fields = {name: value for name, value in options.items() if value is not None}
        self._head = orjson.dumps({"model": settings.name, "stream": False, **fields})[:-1]
        self._sampling_tails: dict[tuple[int, Sampling], bytes] = {}
        self._scoring = Scoring()
        self.capabilities = Capabilities(
            generates=True,
            scores=not self._chat,
            chats=self._chat,
            constrains=self._chat or self._constraint_form in PLAIN_FORMS,
            reasons=asks_for_reasoning(fields),
            batches=self._constraint_form != "top_logprobs",
            tools=self._chat,
        )
        endpoint = "/v1/chat/completions" if self._chat else "/v1/completions"
        self.batches = OpenAIBatches(self.transport, self._body, self._read_answer)
        self.batches.endpoint = endpoint
        self.model = Model(
            client="openai",
            name=settings.name,
            base_url=self.transport.base_url,
            options={"api": settings.api, **options, **({"hold_by": form} if form else {})},
        )

    def generate(self, request: Request) -> Coroutine[Any, Any, Response]:
        """Return the response to a request, or a response with the reason of its failure."""
        read: Callable[[Any], Answer] = self._read_answer
        if request.answers is not None and self._constraint_form == "top_logprobs":
            if request.sampling.temperature > 0 or not request.answers:
                return _unfit_failure(request)
            read = likeliest(request.answers, read)
        return self.transport.answer(request, self._url, self._body, read)

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return log-likelihoods, with one call per request; raise if the server cannot score."""
        if len(requests) == 1:
            return [await self._score_request(requests[0])]
        tasks = [asyncio.ensure_future(self._score_request(request)) for request in requests]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _body(self, request: Request) -> bytes:
        """Return the body: a head common to all requests, the content, and a tail per sampling."""
        turns = request.messages
        content: Any
        if self._chat:
            name = b',"messages":'
            asked = self.transport.dialect.turns(turns or (("user", request.context),))
            silent = "" if SILENT_HABIT in self.transport.dialect.learnt else None
            content = chat_turns(asked, silent=silent)
        else:
            # A completion has no turns, so the messages of a chat are joined.
            name = b',"prompt":'
            content = "\n\n".join(text for _, text in turns) if turns else request.context
        sampling, extra = request.sampling, b""
        if request.tools:
            extra = b',"tools":' + orjson.dumps(openai_tools(request.tools))
        if request.answers is not None:
            fields = constraint_fields(self._constraint_form, request.answers)
            sampling = replace(sampling, max_tokens=fields.pop("max_tokens", sampling.max_tokens))
            extra += b"," + orjson.dumps(fields)[1:-1]
        return self._head + name + orjson.dumps(content) + extra + self._sampling_tail(sampling)

    def _sampling_tail(self, sampling: Sampling) -> bytes:
        """Return the sampling fields as JSON. They are always sent, since servers' defaults differ.

        Only a `top_p` of 1 is not: some servers refuse it together with a temperature, or always.
        """
        dialect = self.transport.dialect
        key = (dialect.version, sampling)
        tail = self._sampling_tails.get(key)
        if tail is None:
            fields = {
                "temperature": sampling.temperature,
                "top_p": sampling.top_p if sampling.top_p < 1 else None,
                "max_tokens": sampling.max_tokens,
                "stop": sampling.stop or None,
                "seed": sampling.seed,
            }
            kept = {n: v for n, v in fields.items() if v is not None and n not in self._omitted}
            sent = dialect.fields(kept)
            tail = self._sampling_tails[key] = b"," + orjson.dumps(sent)[1:] if sent else b"}"
        return tail

    async def _score_request(self, request: Request) -> Response:
        try:
            if self._chat:
                raise refusal(EndpointError, "clients.chat_without_scores")
            if not request.context.strip():
                raise EndpointError("the context is empty: its first token has no log-probability")
            answer, seconds = await self._echoed_answer(request)
        except EndpointError as error:
            if isinstance(error, UnfitServer) and not self._scoring.proven:
                raise
            return failed(request, error.message)
        self._scoring.proven = True
        return answer.response(request, seconds)

    async def _echoed_answer(self, request: Request) -> tuple[Answer, float]:
        """Have the prompts echoed; if the server refuses to generate no token, generate one."""
        state = self._scoring
        try:
            echoed = await self._request_echo(request, state.generated)
        except RequestRefused as error:
            if state.settled or state.generated or error.status not in (400, 422):
                raise
            echoed = await self._request_echo(request, 1)
            state.generated = 1
        state.settled = True
        return echoed

    async def _request_echo(self, request: Request, generated: int) -> tuple[Answer, float]:
        prompts = [request.context + text for text in request.continuations]
        tail = {"max_tokens": generated, "temperature": 0, "echo": True, "logprobs": 1}
        try:
            body = (
                self._head + b',"prompt":' + orjson.dumps(prompts) + b"," + orjson.dumps(tail)[1:]
            )
        except orjson.JSONEncodeError as error:
            raise EndpointError(f"the prompt cannot be sent as JSON: {error}") from None
        return await self.transport.ask(
            self._url,
            body,
            sum(map(len, prompts)) // CHARACTERS_A_TOKEN,
            self._scoring.reader(prompts, request.context.rstrip()),
        )


# Batches, also of hosts with the same interface: one file is uploaded, two files are returned.

ENDED_STATES = ("completed", "failed", "expired", "cancelled")
BATCH_LINE = b'{"custom_id":"%b","method":"POST","url":"%b","body":%b}'


class OpenAIBatches(batch.ProviderBatches):
    """Batches of one `endpoint`, named as hosts name it, such as `/v1/chat/completions`."""

    form = "openai"
    most_requests = 50_000
    most_bytes = 100_000_000  # OpenAI takes 200 MB; less, since a batch is held in memory
    endpoint = ""

    def batch_line(self, request: Request) -> bytes:
        name = custom_id(request.key).encode()
        return BATCH_LINE % (name, self.endpoint.encode(), self._body(request))

    async def submit(self, mark: str, lines: Sequence[bytes]) -> str | None:
        """Upload a file and submit the batch.

        The upload is retried, since a second file costs nothing. The batch is submitted only once.
        """
        boundary = f"falter-{custom_id(mark)}"
        data = await self._transport.call(
            self._transport.url("files"),
            _multipart_form(boundary, b"\n".join(lines)),
            kind=f"multipart/form-data; boundary={boundary}",
        )
        asked = {
            "input_file_id": _safe_file_id(data.get("id") if isinstance(data, dict) else None),
            "endpoint": self.endpoint,
            "completion_window": "24h",
            "metadata": {"falter": mark},
        }
        return await self.submit_once("batches", orjson.dumps(asked), "id")

    async def results(self, name: str, asked: str) -> AsyncGenerator[BatchLine]:
        """Yield the answers, then the errors; an expired or cancelled batch also has both."""
        data = await self.call(f"batches/{name}")
        for field in ("output_file_id", "error_file_id"):
            if isinstance(data, dict) and data.get(field):
                url = self._transport.url(f"files/{_safe_file_id(data[field])}/content")
                async for line in self._transport.lines(url):
                    yield read_line(line, self._read, asked, self._transport.clean)

    def entry(self, row: dict[str, Any]) -> ListedBatch:
        return ListedBatch(
            name=row.get("id") or "",
            mark=batch.printable_text(submapping(row, "metadata").get("falter"), 100) or None,
            requests=batch.whole_number(submapping(row, "request_counts").get("total")),
            created_at=batch.timestamp(row.get("created_at")),
        )

    def state(self, data: Any) -> BatchStatus:
        state, counts = batch.printable_text(data["status"]), data.get("request_counts") or {}
        total, done = (batch.whole_number(counts.get(name)) for name in ("total", "completed"))
        errors = (data.get("errors") or {}).get("data") or []
        failed = state == "failed"
        first = errors[0] if failed and errors else {}
        code = batch.printable_text(first.get("code"))
        return BatchStatus(
            ended=state in ENDED_STATES,
            said=f"{state}, {done:,} of {total:,}" if total and done is not None else state,
            failure=(batch.printable_text(first.get("message"), 400) or code or "failed")
            if failed
            else "",
            too_much="token_limit" in code or "batch_limit" in code,
            cancelled=state == "cancelled",
        )


def read_line(
    line: Any, read: Callable[[Any], Answer], asked: str, clean: Callable[[str], str]
) -> BatchLine:
    """Return the result in a line of the output file or of the error file."""
    line = line if isinstance(line, dict) else {}
    key, response = key_of(line.get("custom_id")), line.get("response")
    if not isinstance(response, dict):
        return batch.declined(key, None, line.get("error") or "no answer", clean)
    status = response.get("status_code")
    body = response.get("body")
    if status is None or (type(status) is int and status < 300):
        return batch.answered(key, body, read, asked)
    error = body.get("error", body) if isinstance(body, dict) else body
    return batch.declined(key, status if type(status) is int else None, error, clean)


def _multipart_form(boundary: str, content: bytes) -> bytes:
    """Return a multipart form with the purpose and the file."""
    start = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
        'filename="falter.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
    )
    return start.encode() + content + f"\n\r\n--{boundary}--\r\n".encode()


def _safe_file_id(value: Any) -> str:
    """Return the server's id of a file; raise `EndpointError` if it is unsafe in a URL."""
    if batch.is_name(value):
        return str(value)
    raise refusal(EndpointError, "clients.bad_file_id", value=batch.printable_text(value))
