"""`gemini:NAME`: Gemini by its own API: thinking budgets, reasons of its safety filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from falter.clients._answers import Answer, UnusableAnswer
from falter.clients._client import HttpClient
from falter.clients._gemini_batches import GeminiBatches
from falter.clients._options import OptionTable
from falter.clients._settings import ClientSettings, clients
from falter.clients._transport import Transport
from falter.core.interfaces import Capabilities, Parameter
from falter.core.records import Model, Request, Response

__all__ = ["Gemini", "connect", "read_candidates"]

BUDGET = "tokens for thinking, on top of the limit; 0 turns it off where a model allows it"
SAFETY = "the threshold of every safety filter, such as BLOCK_NONE"
OPTIONS = OptionTable(
    client="gemini",
    known=(
        Parameter(name="thinking_budget", type=int, default=None, low=0, help=BUDGET),
        Parameter(name="safety_threshold", type=str, default=None, low=1, help=SAFETY),
    ),
    name="the model's name, as in 'gemini:NAME'",
    passes_on=True,
    ours=(
        "contents", "systemInstruction", "candidateCount", "thinkingConfig", "responseSchema",
        "responseMimeType",
    ),
    sampling=("temperature", "topP", "maxOutputTokens", "stopSequences", "seed"),
)  # fmt: skip
CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
FINISH = {"STOP": "stop", "MAX_TOKENS": "length", "IMAGE_SAFETY": "safety", "OTHER": "other"}


class Gemini(HttpClient):
    """One model of Google's, or of a server that speaks its API. It has no scores."""

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
        )
        self._url = self.transport.url(f"models/{settings.name}:generateContent")
        self.capabilities = Capabilities(
            generates=True, scores=False, constrains=True, batches=True
        )
        self.batches = GeminiBatches(self.transport, settings.name, self._body, read_candidates)
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
        """One answer, or a response that says why there is none."""
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
            **(_held(request.answers) if request.answers else {}),
            **options,
        }
        config = {name: value for name, value in config.items() if value is not None}
        body: dict[str, Any] = {
            "contents": [
                {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}
                for role, text in turns
                if role != "system"
            ],
            "generationConfig": self.transport.shape.fields(config),
        }
        system = "\n\n".join(text for role, text in turns if role == "system")
        if system:
            body["systemInstruction"] = {"parts": [{"text": system}]}
        if threshold is not None:
            body["safetySettings"] = [
                {"category": f"HARM_CATEGORY_{name}", "threshold": threshold} for name in CATEGORIES
            ]
        return body


def _held(answers: Sequence[str]) -> dict[str, Any]:
    """The settings that let the model write one of the answers: an object by its schema."""
    answer = {"type": "STRING", "format": "enum", "enum": list(answers)}
    schema = {"type": "OBJECT", "properties": {"answer": answer}, "required": ["answer"]}
    return {"responseMimeType": "application/json", "responseSchema": schema}


def read_candidates(data: Any) -> Answer:
    """The first candidate's text, thoughts apart; a prompt that was blocked has none."""
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
        **counted,
    )


@clients.registers("gemini")
def connect(settings: ClientSettings) -> Gemini:
    """Gemini by Google's own API; the key is in GEMINI_API_KEY."""
    return Gemini(settings)
