"""`responses:NAME`: OpenAI's Responses API, the only API that serves some of its models."""

from __future__ import annotations

import json
from typing import Any

from falter.clients.answers import Answer, UnusableAnswer, stop_at
from falter.clients.base import HttpClient
from falter.clients.chat_forms import responses_items
from falter.clients.constrained import answer_schema
from falter.clients.settings import ClientSettings, asks_for_reasoning, clients, option_table
from falter.clients.transport import Transport
from falter.records.chats import merged_turns
from falter.records.interfaces import Capabilities
from falter.records.types import Model, Request, Response

OPTIONS = option_table("responses")
FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


class Responses(HttpClient):
    """One model behind the Responses API; with `store` false the server keeps nothing.

    The API has no seed and no stop sequences, so responses are truncated here, before the first
    stop sequence.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._options = OPTIONS.read(settings)
        self.transport = Transport(
            settings,
            default_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            endpoints=("responses", "chat/completions", "completions", "models"),
            may_drop=("temperature", "top_p"),
        )
        self._url = self.transport.url("responses")
        reasons = asks_for_reasoning(self._options)
        self.capabilities = Capabilities(
            generates=True, scores=False, constrains=True, reasons=reasons, tools=True
        )
        url = self.transport.base_url
        self.model = Model(
            client="responses", name=settings.name, base_url=url, options=self._options
        )

    async def generate(self, request: Request) -> Response:
        """Return the response to a request, or a response with the reason of its failure."""
        stop = request.sampling.stop
        return await self.transport.answer(
            request, self._url, self._body, lambda data: _read_reply(data, stop)
        )

    def _body(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        turns = request.messages or (("user", request.context),)
        fields = {
            "model": self.model.name,
            "input": [item for turn in merged_turns(turns) for item in responses_items(*turn)],
            "tools": [{"type": "function", "strict": False, **json.loads(t)} for t in request.tools]
            or None,
            "max_output_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if sampling.top_p < 1 else None,
            "store": False,
            "stream": False,
            **self._options,
        }
        if request.answers is not None:
            form = {"type": "json_schema", "name": "answer", "strict": True}
            form["schema"] = answer_schema(request.answers)
            fields["text"] = {**(self._options.get("text") or {}), "format": form}
        return {name: value for name, value in fields.items() if value is not None}


def _read_reply(data: Any, stop: tuple[str, ...]) -> Answer:
    """Return the answer in a reply: its text or refusal, reasoning summaries and calls."""
    if data.get("status") == "failed":
        raise UnusableAnswer(f"failed: {data.get('error')}")
    messages = [
        part for out in data["output"] if out["type"] == "message" for part in out["content"]
    ]
    thoughts = [
        part["text"]
        for out in data["output"]
        if out["type"] == "reasoning"
        for part in out.get("summary") or ()
    ]
    refused = "".join(part["refusal"] for part in messages if part["type"] == "refusal")
    text = "".join(part["text"] for part in messages if part["type"] == "output_text")
    why = (data.get("incomplete_details") or {}).get("reason")
    reason = "refusal" if refused else FINISH.get(why, why) if why else "stop"
    end = stop_at(text, stop)
    usage = data.get("usage") or {}
    return Answer.from_server(
        refused or text[:end],
        reasoning="\n".join(thoughts) or None,
        finish_reason="stop" if end is not None and not refused else reason,
        prompt_tokens=usage.get("input_tokens"),
        completion_tokens=usage.get("output_tokens"),
        reasoning_tokens=(usage.get("output_tokens_details") or {}).get("reasoning_tokens"),
        cached_tokens=(usage.get("input_tokens_details") or {}).get("cached_tokens"),
        served_by=data.get("model"),
        request_id=data.get("id"),
        calls=[out for out in data["output"] if out["type"] == "function_call"],
    )


@clients.registers("responses")
def connect(settings: ClientSettings) -> Responses:
    """OpenAI's Responses API; the key is in OPENAI_API_KEY."""
    return Responses(settings)
