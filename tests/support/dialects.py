"""Answers of real servers: a scripted server for each dialect; run it to write the page.

Each was met by users of other tools, in public issues. The table on docs/clients.md is made of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_server import Asked, Reply

__all__ = ["DIALECTS", "PAGE", "Dialect", "table", "with_table"]

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BEGIN, END = "<!-- dialects: made by tests/support/dialects.py -->", "<!-- end of dialects -->"
KEY = "sk-very/secret-0123456789"
Answer = Callable[[Asked], Reply]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The answers of a server, and the expected result.

    `serve` makes a fresh server. Two requests are sent one after the other, with a system turn,
    temperature 0, `top_p` 1 and a seed. `sent` is how often the server is asked in all, `lacks` and
    `has` are fields of the last body; `text`, `finish`, `served_by`, `reasoning` and `failure` are
    those of the last response (a failure begins so), `raises` is the error instead. `doctor` is
    part of what `falter doctor --probe` says.
    """

    name: str
    says: str
    met: str
    does: str
    serve: Callable[[], Answer]
    doctor: str
    sent: int = 2
    lacks: tuple[str, ...] = ("top_p",)
    has: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = "Paris"
    finish: str | None = "stop"
    served_by: str | None = "m"
    reasoning: str | None = None
    failure: str | None = None
    raises: str | None = None


def good(content: Any = "Paris", finish: str = "stop", **more: Any) -> Reply:
    """An answer; `message` holds further fields of it, the others stand beside the choices."""
    message = {"role": "assistant", "content": content, **more.pop("message", {})}
    usage = {"prompt_tokens": 20, "completion_tokens": 2, **more.pop("usage", {})}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return 200, {"model": "m", "choices": [choice], "usage": usage, **more}


def error(status: int, message: str, **more: Any) -> Reply:
    return status, {"error": {"message": message, **more}}


def plain(reply: Reply) -> Callable[[], Answer]:
    """A server that always says the same."""
    return lambda: lambda _: reply


def in_turn(*replies: Reply) -> Callable[[], Answer]:
    """A server with these replies in order, the last for ever."""

    def serve() -> Answer:
        left = itertools.chain(replies, itertools.repeat(replies[-1]))
        return lambda _: next(left)

    return serve


def refusing(field: str, reply: Reply) -> Callable[[], Answer]:
    """A server that refuses a body with this field."""
    return lambda: lambda asked: reply if field in asked.body else good()


def _one_of_two(asked: Asked) -> Reply:
    if {"temperature", "top_p"} <= set(asked.body):
        return error(400, "`temperature` and `top_p` cannot both be specified for this model.")
    return good()


def _below_one(asked: Asked) -> Reply:
    if asked.body.get("top_p", 0) >= 1:
        return 422, {"error": "`top_p` must be > 0.0 and < 1.0", "error_type": "validation"}
    return good()


def _no_system(asked: Asked) -> Reply:
    if asked.body["messages"][0]["role"] == "system":
        return error(400, "System role not supported")
    return good()


DIALECTS = (
    Dialect(
        name="max_completion_tokens",
        says="`max_tokens` is refused: use `max_completion_tokens`",
        met="gpt-5 and the o-series, through any gateway; litellm#13390",
        does="sent under that name from then on",
        serve=refusing("max_tokens", error(
            400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.", param="max_tokens", code="unsupported_parameter",
        )),
        sent=3, lacks=("max_tokens",), has={"max_completion_tokens": 64},
        doctor="adapted: max_tokens is sent as max_completion_tokens",
    ),
    Dialect(
        name="temperature",
        says="`temperature: 0` is refused: only the default",
        met="the same models, everywhere",
        does="left out from then on; named in “served by” of every answer",
        serve=refusing("temperature", error(
            400, "Unsupported value: 'temperature' does not support 0 with this model. Only the "
            "default (1) value is supported.", param="temperature", code="unsupported_value",
        )),
        sent=3, lacks=("temperature",), served_by="m, asked without temperature",
        doctor="adapted: temperature is not sent",
    ),
    Dialect(
        name="one_of_two",
        says="`temperature` and `top_p` cannot both be specified",
        met="Claude from 4.1 on, through compatible endpoints and Bedrock; langfuse#9882",
        does="`top_p` is never sent when it is 1",
        serve=lambda: _one_of_two, has={"temperature": 0.0}, doctor="text: 'Paris'",
    ),
    Dialect(
        name="top_p_below_1",
        says="`top_p` must be below 1 (422)",
        met="TGI; text-generation-inference#2222",
        does="the same",
        serve=lambda: _below_one, doctor="text: 'Paris'",
    ),
    Dialect(
        name="seed",
        says="`seed`, `stop` or `top_p` is unknown",
        met="Gemini's compatible endpoint",
        does="left out from then on, said and stored",
        serve=refusing("seed", error(400, 'Unknown name "seed": Cannot find field.')),
        sent=3, lacks=("seed",), served_by="m, asked without seed", doctor="text: 'Paris'",
    ),
    Dialect(
        name="system",
        says="the chat template refuses a system turn",
        met="Gemma, some Mistral models; vllm#2964",
        does="its text goes before the first user turn, in all conditions",
        serve=lambda: _no_system, sent=3,
        has={"messages": [{"role": "user", "content": "Be brief.\n\nAnd France?"}]},
        served_by="m, system turn folded into the user's",
        doctor="adapted: the system turn is folded into the first user turn",
    ),
    Dialect(
        name="reasoning_used_up",
        says="no content, reasoning in a field of its own, finish reason `length`",
        met="vLLM, OpenRouter, DeepSeek; vllm#52640, inspect_ai#5467",
        does="`truncated`; the reasoning is stored and never scored; a run of nothing else stops",
        serve=plain(good(
            None, "length", message={"reasoning_content": "The user"},
            usage={"completion_tokens_details": {"reasoning_tokens": 64}},
        )),
        text="", finish="length", reasoning="The user",
        doctor="reasons before it answers: give max_tokens of 4,096 or more",
    ),
    Dialect(
        name="think",
        says="`<think>…</think>` inside the content",
        met="servers without a reasoning parser; lm-eval#3558, lighteval#869",
        does="split off once, and stored apart",
        serve=plain(good("<think>\nEasy.\n</think>\n\nParis")), reasoning="Easy.",
        doctor="text: 'Paris'",
    ),
    Dialect(
        name="unclosed_think",
        says="`<think>` that is never closed",
        met="the same",
        does="`truncated`: there is no answer yet",
        serve=plain(good("<think>Well, Paris")),
        text="", finish="unclosed_reasoning", reasoning="Well, Paris",
        doctor="finish reason unclosed_reasoning",
    ),
    Dialect(
        name="length",
        says="finish reason `length` in an ordinary answer",
        met="all",
        does="`truncated` where the scorer finds no whole answer in it",
        serve=plain(good("Let me see: France is", "length")),
        text="Let me see: France is", finish="length", doctor="finish reason length",
    ),
    Dialect(
        name="filter_400",
        says="HTTP 400 with code `content_filter`",
        met="Azure; helm#3327",
        does="`refused`: an answer, stored and not sent again",
        serve=plain(error(400, "The response was filtered.", code="content_filter")),
        text="", finish="content_filter", served_by=None, doctor="finish reason content_filter",
    ),
    Dialect(
        name="filter_finish",
        says="finish reason `content_filter` or `safety` without content",
        met="Azure, Gemini",
        does="the same",
        serve=plain(good(None, "content_filter")),
        text="", finish="content_filter", doctor="finish reason content_filter",
    ),
    Dialect(
        name="provider",
        says="`provider` differs from answer to answer under one model name",
        met="OpenRouter; inspect_ai#4707",
        does="stored in “served by”; the report says that several served a panel",
        serve=in_turn(good(provider="Near"), good(provider="Far")),
        served_by="Far: m", doctor="served by: Near: m",
    ),
    Dialect(
        name="fingerprint",
        says="`system_fingerprint` or the dated model name changes during a run",
        met="OpenAI",
        does="the same",
        serve=in_turn(good(system_fingerprint="fp_1"), good(system_fingerprint="fp_2")),
        served_by="fp_2", doctor="served by: fp_1",
    ),
    Dialect(
        name="cut_prompt",
        says="`prompt_tokens` stops growing while the prompt grows",
        met="Ollama at 4,096; ollama#17889",
        does="those cells are `truncated_prompt`: failed, left out and listed, never wrong",
        serve=plain(good(usage={"prompt_tokens": 4096})), doctor="tokens: 4,096 in, 2 out",
    ),
    Dialect(
        name="error_in_200",
        says="HTTP 200 with `{\"error\": {\"code\": 429}}`",
        met="OpenRouter",
        does="the inner code counts as the status",
        serve=in_turn(error(200, "slow down", code=429), good()), sent=3, doctor="text: 'Paris'",
    ),
    Dialect(
        name="finish_error",
        says="finish reason `error` without content",
        met="OpenRouter",
        does="sent again, then a failure; never an empty answer",
        serve=plain(good("", "error")), sent=4, text=None, finish=None, served_by=None,
        failure="unusable answer after 2 attempts: finish reason 'error'",
        doctor="text: failed: unusable answer",
    ),
    Dialect(
        name="quota",
        says="429 with code `insufficient_quota`",
        met="OpenAI",
        does="the run stops at once, with the provider's words",
        serve=plain(error(429, "You exceeded your quota.", code="insufficient_quota")),
        sent=1, raises="the quota of this key is exhausted: HTTP 429: You exceeded your quota.",
        doctor="the quota of this key is exhausted",
    ),
    Dialect(
        name="retry_after",
        says="`Retry-After` absurd, negative, or an HTTP date",
        met="gateways",
        does="bounded by `max_wait`",
        serve=in_turn(
            (*error(429, "wait")[:2], {"Retry-After": "999999999"}),
            (*error(503, "wait")[:2], {"Retry-After": "-5"}), good(),
        ),
        sent=4, doctor="text: failed: HTTP 503 after 2 attempts: wait",
    ),
    Dialect(
        name="redirect",
        says="a redirect to another host",
        met="misconfigured proxies",
        does="not followed: the key does not travel",
        serve=plain((307, {}, {"Location": "http://elsewhere.example/v1"})),
        text=None, finish=None, served_by=None,
        failure="HTTP 307: the server moved to http://elsewhere.example/v1;"
        " set base_url to that address",
        doctor="text: failed: HTTP 307: the server moved to http://elsewhere.example/v1; "
        "set base_url",
    ),
    Dialect(
        name="key",
        says="a text that quotes the key, plain or with escapes; a key of one to seven letters",
        met="local servers",
        does="a long key is masked wherever it appears; a short one garbles no text",
        serve=plain((400, b'{"error":{"message":"bad key %s"}}' % KEY.replace(
            "/", "\\/").replace("s", "\\u0073").encode())),
        text=None, finish=None, served_by=None, failure="HTTP 400: bad key …",
        doctor="text: failed: HTTP 400: bad key …",
    ),
)  # fmt: skip


def table() -> str:
    """The dialects as a table in Markdown."""
    rows = ["| what a server says | met at | what is done |", "|---|---|---|"]
    rows += [f"| {d.says} | {d.met} | {d.does} |" for d in DIALECTS]
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with the table as it is now."""
    inside = f"{BEGIN}\n\n{table()}\n\n{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: inside, page, flags=re.S)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
