"""Requests written to files, and results that were produced elsewhere, in several formats.

A provider's format is the format of its batches. `jsonl` is falter's, which any program can read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from falter.clients import anthropic, gemini, openai
from falter.clients.answers import Answer, failed_key, submapping
from falter.clients.batches import printable_text
from falter.clients.openai_replies import read_chat, read_completion
from falter.clients.settings import FORMS
from falter.records.batches import BatchClient, BatchLine, custom_id, key_of
from falter.records.chats import openai_tools, turns
from falter.records.errors import UsageError, printable, refusal
from falter.records.interfaces import Client
from falter.records.types import ContinuationScore, Request

PLAIN_FORM = FORMS[-1]
VERSION_SUFFIX = re.compile(r"(?:[-@:_.](?:\d[\d.-]*|v\d[\d.]*|latest|preview))*", re.I)
MAX_REASON_CHARACTERS = 300
MAX_TOKEN_COUNT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLine:
    """One result of a file, and the model that it names; None if it names none."""

    line: BatchLine
    model: str | None


def usual_form(client: Client) -> str:
    """Return the format of a client's batches, or else `jsonl`."""
    return client.batches.form if isinstance(client, BatchClient) else PLAIN_FORM


def request_line(request: Request, client: Client, form: str) -> bytes:
    """Return a request as a line in a format.

    Raise `UsageError` if the client does not use the format, or if the format cannot hold scoring
    requests.
    """
    if form == PLAIN_FORM:
        return _plain_line(request)
    if usual_form(client) != form or not isinstance(client, BatchClient):
        raise UsageError(
            f"{client.model.label} does not use the format '{form}'",
            hint=f"use --format {usual_form(client)}",
        )
    if request.scores:
        raise refusal(UsageError, "clients.no_scores_form", form=form, plain=PLAIN_FORM)
    return client.batches.file_line(request)


def read_result(data: Any) -> ResultLine | None:
    """Return the result in a line of any format, or None if the line has no known format."""
    if not isinstance(data, dict):
        return None
    if "custom_id" in data and "result" in data:
        line = anthropic.read_line(data, anthropic.read_message, "", _short_line)
        return ResultLine(line=line, model=_name(submapping(data["result"], "message"), "model"))
    if "custom_id" in data:
        body = submapping(data.get("response"), "body")
        line = openai.read_line(data, _read_openai, "", _short_line)
        return ResultLine(line=line, model=_name(body, "model"))
    if "metadata" in data or ("key" in data and ("response" in data or "error" in data)):
        line = gemini.read_line(data, gemini.read_candidates, "", _short_line)
        return ResultLine(line=line, model=_name(data.get("response"), "modelVersion"))
    if "key" in data:
        return ResultLine(line=_read_plain(data), model=_name(data, "model"))
    return None


def is_named(asked: str, named: str) -> bool:
    """Return True if a server's model name fits the requested one, up to folder, version and date.

    `gpt-4o-2024-08-06` fits a request for `gpt-4o`; `gpt-4o-mini` does not.
    """
    asked, named = (name.casefold().rpartition("/")[2] for name in (asked, named))
    return named.startswith(asked) and VERSION_SUFFIX.fullmatch(named[len(asked) :]) is not None


def _plain_line(request: Request) -> bytes:
    sampling = {
        name: value
        for name in ("temperature", "top_p", "max_tokens", "stop", "seed")
        if (value := getattr(request.sampling, name)) not in (None, ())
    }
    fields = {
        "key": custom_id(request.key),
        "model": request.model.name,
        "messages": turns(request.messages),
        "tools": openai_tools(request.tools),
        "prompt": request.context,
        "continuations": list(request.continuations),
        "answers": request.answers,
        "sampling": {} if request.scores else sampling,
        "repeat": request.repeat,
    }
    return orjson.dumps(
        {name: value for name, value in fields.items() if value not in ("", [], None)}
    )


def _read_plain(data: Mapping[str, Any]) -> BatchLine:
    """Return the result in a line of falter's format: a text, scores or the reason of a failure."""
    key = key_of(str(data.get("key")).removeprefix("sha256:"))
    text, scores, failure = data.get("text"), data.get("scores"), data.get("failure")
    if isinstance(failure, str) and failure:
        return BatchLine(key=key, response=failed_key(key, _short_line(failure)))
    read = tuple(map(_continuation_score, scores)) if isinstance(scores, list) else ()
    if (not isinstance(text, str) and not read) or None in read:
        return BatchLine(key=key, reason="neither a text nor log-probabilities")
    answer = Answer.from_server(
        text if isinstance(text, str) else None,
        scores=tuple(score for score in read if score is not None),
        finish_reason=data.get("finish_reason"),
        prompt_tokens=data.get("prompt_tokens"),
        completion_tokens=data.get("completion_tokens"),
        reasoning=data.get("reasoning"),
        served_by=data.get("served_by") or data.get("model"),
    )
    return BatchLine(key=key, response=answer.stored(key))


def _continuation_score(value: Any) -> ContinuationScore | None:
    """Return a log-probability with its number of tokens, or None if the value is not valid."""
    fields = value if isinstance(value, dict) else {}
    logprob, tokens = fields.get("logprob"), fields.get("tokens")
    if (
        not isinstance(logprob, (int, float))
        or isinstance(logprob, bool)
        or type(tokens) is not int
    ):
        return None
    if not math.isfinite(logprob) or logprob > 0 or not 0 < tokens < MAX_TOKEN_COUNT:
        return None
    return ContinuationScore(logprob=float(logprob), tokens=tokens)


def _read_openai(data: Any) -> Answer:
    choices = data.get("choices") if isinstance(data, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    is_chat = isinstance(first, dict) and "message" in first
    return read_chat(data) if is_chat else read_completion(data)


def _name(data: Any, field: str) -> str | None:
    return printable_text(data.get(field), 200) or None if isinstance(data, dict) else None


def _short_line(text: str) -> str:
    return printable(" ".join(text[: 8 * MAX_REASON_CHARACTERS].split()))[:MAX_REASON_CHARACTERS]
