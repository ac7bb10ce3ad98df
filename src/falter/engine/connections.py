"""The clients of an experiment's models, and checks of their abilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from falter.clients import ClientSettings, clients
from falter.engine.config import EngineSpec, Experiment, ModelSpec
from falter.records.chats import chat_sections, json_line
from falter.records.errors import EndpointError, UsageError, nearest, refusal
from falter.records.interfaces import Client, Scorer
from falter.records.types import BASELINE, Item, Prompt, Request, Response, Sampling, Variant
from falter.scorers.calls import FROM_TEXT, NATIVE, made_calls
from falter.scorers.choosing import usual_scorer


def connect_all(experiment: Experiment) -> tuple[Client, ...]:
    """Return the clients of the models, each in separate engine processes if an engine is set."""
    engine = experiment.engine
    if engine is not None and experiment.batch:
        raise refusal(UsageError, "engine.engine_and_batch")
    return tuple(connect(model, engine) for model in experiment.models)


def connect(spec: ModelSpec, engine: EngineSpec | None = None) -> Client:
    """Return the client of a model; raise if its client is unknown.

    With an engine, the model runs in the engine's worker processes.
    """
    name, mark, rest = spec.name.partition(":")
    if not mark and name not in clients.names() and nearest(name, clients.names()) is None:
        raise refusal(UsageError, "engine.unknown_model", name=name)
    connector = clients.get(name)
    shared = {f.name for f in fields(ClientSettings)} & {f.name for f in fields(spec)} - {"name"}
    given = {name: getattr(spec, name) for name in shared}
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = ClientSettings(name=rest, **chosen)
    client = connector(settings)
    if engine is None:
        return client
    from falter.clients.engines import EngineClient, hosts

    host = hosts.get(engine.name)
    model = client.model
    return EngineClient(client, host(name, settings, model, count=engine.actors, gpus=engine.gpus))


def connect_judge(spec: ModelSpec, *, batch: bool) -> Client:
    """Return the client of a judge; raise if it cannot generate text or use batches.

    Batches are required only with `batch`.
    """
    judge = connect(spec)
    if not judge.capabilities.generates:
        raise refusal(UsageError, "engine.judge_without_text", name=spec.name)
    if batch:
        require_batches(spec, judge)
    return judge


def require_batches(spec: ModelSpec, client: Client, scorer: Scorer | None = None) -> None:
    """Raise unless the scorer's requests to the model can be submitted as a batch."""
    if not client.capabilities.batches:
        raise refusal(UsageError, "engine.no_batches", name=spec.name)
    if scorer is not None and scorer.needs_scores:
        raise UsageError(
            f"The scorer '{scorer.name}' needs log-probabilities, which cannot be requested in "
            "batches",
            hint=f"use scorer {usual_scorer(choices=True, likelihoods=False)}, or leave --batch "
            "out",
        )


# Probes of a model's real responses: one short text, and the log-probabilities of two options.


QUESTION = "What is the capital of France? Answer with one word."
MAX_TOKENS = 16
OPTIONS = (" Paris", " London")
_INPUT = {"type": "object", "properties": {"parcel_id": {"type": "string"}}}
TOOL = {"name": "track_parcel", "description": "Say where a parcel is now.", "parameters": _INPUT}
TOOL_QUESTION = "Please track parcel A1042."
TOOL_TOKENS = 512
CALLS = {NATIVE: "native call", FROM_TEXT: "call in the text", "": "no call"}
REASONING_LIMIT = 4096


async def probed(client: Client) -> dict[str, Any]:
    """Request a text if the model generates text, and log-probabilities if it returns any."""
    found: dict[str, Any] = {"text": None, "log_probabilities": None}
    able = client.capabilities
    if able.generates:
        turns = (("system", "Be brief."), ("user", QUESTION)) if able.chats else ()
        response = await client.generate(_probe_request(client, messages=turns, context=QUESTION))
        found["text"] = _response_data(response)
    if able.scores:
        asked = _probe_request(client, context="The capital of France is", continuations=OPTIONS)
        try:
            (response,) = await client.score_many([asked])
            failure, scores = response.failure, [score.logprob for score in response.scores]
        except EndpointError as error:
            failure, scores = error.message, []
        options = dict(zip(OPTIONS, scores, strict=False))
        found["log_probabilities"] = {"failure": failure, "options": options}
    found["adapted"] = dict(getattr(client, "adapted", {}))
    return found


async def probed_tools(client: Client) -> dict[str, Any]:
    """Ask one question with one tool, and report a native call, a call in the text, or none."""
    if not client.capabilities.tools:
        return {"failure": f"takes none; {client.capabilities.instead}".rstrip("; ")}
    asked = _probe_request(
        client, TOOL_TOKENS, messages=(("user", TOOL_QUESTION),), tools=(json_line(TOOL),)
    )
    response = await client.generate(asked)
    prompt = Prompt(sections=chat_sections([{"role": "user", "content": TOOL_QUESTION}], [TOOL]))
    made, how = made_calls(response, prompt)
    calls = [{"name": call.name, "arguments": call.arguments} for call in made]
    return {**_response_data(response), "how": CALLS[how], "calls": calls}


def tools_text(found: Mapping[str, Any]) -> str:
    """Return the result of `probed_tools` as a line."""
    if found["failure"]:
        return f"tools: {found['failure']}"
    told = json_line(found["calls"]) if found["calls"] else repr(found["text"])
    return f"tools: {found['how']}: {told}"


def probe_text(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the results of `probed` as lines."""
    text, scores = found["text"], found["log_probabilities"]
    if text is not None:
        if text["failure"]:
            yield f"text: failed: {text['failure']}"
        else:
            yield f"text: {text['text']!r}, finish reason {text['finish_reason']}"
            yield _token_counts_text(text)
            if text["served_by"]:
                yield f"served by: {text['served_by']}"
            if text["reasons"]:
                yield (
                    f"reasons before it answers: give max_tokens of {REASONING_LIMIT:,} or more "
                    f"(--max-tokens {REASONING_LIMIT})"
                )
    for field, change in found["adapted"].items():
        yield f"adapted: {field} is {change}"
    if scores is not None:
        options = ", ".join(f"{name!r} {value:.3f}" for name, value in scores["options"].items())
        failure = scores["failure"]
        yield f"log-probabilities: {f'failed: {failure}' if failure else options}"


def _token_counts_text(text: Mapping[str, Any]) -> str:
    """Return the token counts of a response as a line."""
    if not text["prompt_tokens"]:
        return "tokens: the server does not count them"
    extra = [
        f"{text[kind]:,} {word}"
        for kind, word in (("reasoning_tokens", "of reasoning"), ("cached_tokens", "cached"))
        if text[kind]
    ]
    of_these = f" (of these, {', '.join(extra)})" if extra else ""
    return f"tokens: {text['prompt_tokens']:,} in, {text['completion_tokens']:,} out{of_these}"


def _response_data(response: Response) -> dict[str, Any]:
    """Return a response as plain data."""
    usage = response.usage
    return {
        "failure": response.failure,
        "text": None if response.text is None else response.text[:200],
        "finish_reason": response.finish_reason,
        "served_by": response.served_by,
        "reasons": bool(response.reasoning or usage.reasoning_tokens),
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_tokens": usage.cached_tokens,
    }


def _probe_request(client: Client, max_tokens: int = MAX_TOKENS, **asked: Any) -> Request:
    """Return a request of a probe."""
    item = Item(task="probe", key="probe", fields={})
    variant = Variant(
        item=item, recipe=BASELINE, draw=0, prompt=Prompt(sections=()), status="baseline"
    )
    sampling = Sampling(max_tokens=max_tokens)
    key = f"sha256:{'0' * 64}"
    return Request(
        key=key, variant=variant, model=client.model, sampling=sampling, repeat=0, **asked
    )
