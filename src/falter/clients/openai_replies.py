"""Validated replies of OpenAI-compatible servers: texts, calls and echoed log-probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import orjson

from falter.clients.answers import Answer, UnusableAnswer, submapping
from falter.records.errors import EndpointError, refusal
from falter.records.types import ContinuationScore

# Tokens that spell nothing in the text: "<s>", "<|endoftext|>", "[CLS]", ""; not "[1]", "the".
SPECIAL = re.compile(r"<.*>|\[[A-Z_]+\]|", re.S)
# Number of tokens at which the server's most likely token is the token itself or the next token.
# If entries are shifted by one, it is nearly always the next token; otherwise only by chance.
MIN_EVIDENCE_TOKENS = 8
TOKEN_SIGNS = str.maketrans({"\u2581": " ", "\u0120": " ", "\u010a": "\n"})
"""Signs of tokenizers: the space of sentencepiece, the space and line break of byte-level BPE."""
MAX_OFFSETS = 64
BYTES_TOKEN = re.compile(r"^bytes:(?:\\x[0-9a-f]{2})+$")


def read_chat(data: Any) -> Answer:
    """Return the answer in the first choice's message; the text may be in the field `refusal`."""
    choice = choices_of(data)[0]
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnusableAnswer("the first choice has no message")
    refusal = message.get("refusal")
    if refusal and isinstance(refusal, str):
        return answer_of(data, refusal, finish_reason="refusal")
    content = _content_text(message.get("content"))
    reason = choice.get("finish_reason")
    _check_finish(content, reason, choice)
    return answer_of(
        data, content, finish_reason=reason, reasoning=_reasoning(message),
        calls=message.get("tool_calls"),
    )  # fmt: skip


def read_completion(data: Any) -> Answer:
    """Return the answer in the first choice's text."""
    choice = choices_of(data)[0]
    content = _content_text(choice.get("text"))
    _check_finish(content, choice.get("finish_reason"), choice)
    return answer_of(data, content, finish_reason=choice.get("finish_reason"))


def choices_of(data: Any) -> list[dict[str, Any]]:
    """Return the list of choices; raise `UnusableAnswer` unless the first choice is a mapping."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        error = data.get("error") if isinstance(data, dict) else None
        reason = f": {orjson.dumps(error).decode()}" if error else ""
        raise UnusableAnswer(f"no choices{reason}")
    return choices


def answer_of(
    data: dict[str, Any],
    text: str | None = None,
    *,
    scores: tuple[ContinuationScore, ...] = (),
    finish_reason: Any = None,
    reasoning: str | None = None,
    calls: Any = None,
) -> Answer:
    """Return an answer with a text or scores, and with the usage, id and server of a body.

    `served_by` is the fingerprint, or else the model's name in the body. If a router names the
    provider, the provider comes first.
    """
    tokens = submapping(data, "usage")
    served, provider = data.get("system_fingerprint") or data.get("model"), data.get("provider")
    if isinstance(provider, str) and provider:
        served = f"{provider}: {served}" if isinstance(served, str) else provider
    return Answer.from_server(
        text,
        scores=scores,
        finish_reason=finish_reason,
        prompt_tokens=tokens.get("prompt_tokens"),
        completion_tokens=tokens.get("completion_tokens"),
        reasoning_tokens=submapping(tokens, "completion_tokens_details").get("reasoning_tokens"),
        cached_tokens=submapping(tokens, "prompt_tokens_details").get("cached_tokens"),
        served_by=served,
        reasoning=reasoning,
        request_id=data.get("id"),
        calls=calls,
    )


def _check_finish(content: str, reason: Any, choice: dict[str, Any]) -> None:
    """Raise `UnusableAnswer` for an empty choice with the finish reason `error`."""
    if reason == "error" and not content.strip():
        said = choice.get("error") or "without a word"
        raise UnusableAnswer(f"finish reason 'error': {orjson.dumps(said).decode()}")


def _reasoning(message: dict[str, Any]) -> str | None:
    """Return the reasoning that a server sends outside of the content, as a text or as details."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    details = message.get("reasoning_details")
    parts = details if isinstance(details, list) else []
    texts = [p.get("text") or p.get("summary") for p in parts if isinstance(p, dict)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _content_text(content: Any) -> str:
    """Return a text, or the joined text parts of a list; an absent content is an empty text."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    raise UnusableAnswer("the content is not text")


# Scoring: log-probabilities of a prompt that the server echoes


class UnfitServer(EndpointError):
    """Raised if the server cannot score at all: no scoring request will ever succeed."""


class Scoring:
    """The state of scoring with one server, learnt from its replies.

    `generated` is the minimum number of tokens that the server agrees to generate. `settled` is
    True once it has agreed, `proven` once it has scored. `same` and `following` count the tokens at
    which the most likely token was the token itself, as it should be, or the next token.
    """

    __slots__ = ("following", "generated", "proven", "same", "settled")

    def __init__(self) -> None:
        self.generated = 0
        self.settled = self.proven = False
        self.same = self.following = 0

    def reader(self, prompts: list[str], context: str) -> Callable[[Any], Answer]:
        """Return a reader of the scores of prompts that begin with a context."""

        def read(data: Any) -> Answer:
            echoes = [_echo_of(choice) for choice in _ordered_choices(data, len(prompts))]
            self._check_shift(echoes[0])
            scores = tuple(
                echo.score(context, prompt) for echo, prompt in zip(echoes, prompts, strict=True)
            )
            return answer_of(data, scores=scores)

        return read

    def _check_shift(self, echo: _Echo) -> None:
        """Raise `UnfitServer` if the log-probabilities belong to the next token.

        Some of these servers leave the first entry empty, as correct servers do. But their most
        likely token is then nearly always the next token, and hardly ever the token itself.
        """
        if self.same + self.following < MIN_EVIDENCE_TOKENS:
            for top, token, following in zip(
                echo.tops, echo.tokens, [*echo.tokens[1:], ""], strict=False
            ):
                if top and token != following:
                    likeliest = max(top, key=top.__getitem__)
                    self.same += likeliest == token
                    self.following += likeliest == following
        if self.same + self.following >= MIN_EVIDENCE_TOKENS and self.following > 3 * self.same:
            raise refusal(UnfitServer, "clients.shifted_tokens")


@dataclass(frozen=True, slots=True)
class _Echo:
    """A prompt's tokens as a server echoes them, with log-probabilities and text offsets.

    `tops` holds the most likely tokens at each position; empty if the server returns none.
    """

    tokens: list[str]
    logprobs: list[float | None]
    starts: list[int]
    tops: list[dict[str, float]]

    def score(self, context: str, prompt: str) -> ContinuationScore:
        """Return the log-likelihood of the part of `prompt` after `context`.

        Raise `EndpointError` if a token of this part has no log-probability.
        """
        beyond = self._continuation_tokens(context, prompt)
        values = [self.logprobs[n] for n in beyond]
        known = [v for v in values if v is not None and math.isfinite(v) and v < 1e-3]
        if not values or len(known) < len(values):
            raise EndpointError("a token of the continuation has no log-probability")
        greedy = None
        if self.tops and all(self.tops[n] for n in beyond):
            best = (max(self.tops[n].values()) for n in beyond)
            greedy = all(v >= top - 1e-6 for v, top in zip(known, best, strict=True))
        return ContinuationScore(logprob=math.fsum(known), tokens=len(known), greedy=greedy)

    def _continuation_tokens(self, context: str, prompt: str) -> list[int]:
        """Return the indices of the tokens that reach beyond the context.

        Offsets are read as characters or else as bytes. A token across the boundary counts, since
        it contains the continuation's first letters. A special token that the server puts before
        the prompt is skipped, and a token that it generates after the prompt is left out.
        """
        tokens, starts = self.tokens, self.starts
        special = SPECIAL.fullmatch(tokens[0]) and not (tokens[0] and prompt.startswith(tokens[0]))
        first = 1 if special and len(tokens) > 1 else 0
        begins = [start - starts[first] for start in starts]
        ends = [*begins[1:], begins[-1] + len(tokens[-1])]
        mixed_up = False
        for measure in (len, _byte_length):
            whole, boundary = measure(prompt), measure(context)
            inside = [n for n in range(first, len(tokens)) if begins[n] < whole]
            generated = len(tokens) - first - len(inside)
            if inside and generated <= 1 and ends[inside[-1]] == whole:
                if _spell_prompt([tokens[n] for n in inside], prompt):
                    return [n for n in inside if ends[n] > boundary or begins[n] >= boundary]
                mixed_up = True
        if mixed_up:
            raise refusal(EndpointError, "clients.foreign_echo")
        raise refusal(EndpointError, "clients.short_echo", end=ends[-1], count=len(prompt))


def _spell_prompt(tokens: list[str], prompt: str) -> bool:
    """Return True if the tokens spell the prompt's text.

    Bytes may be written as letters of Latin-1. Tokenizers' signs for a space and a line break are
    translated. A token with part of a character, written as U+FFFD or `bytes:`, matches any text.
    """
    if "".join(tokens) in (prompt, prompt.encode().decode("latin-1")):
        return True
    plain = "".join(BYTES_TOKEN.sub("\ufffd", token) for token in tokens)
    return any(_is_lossy_copy(plain.translate(signs), prompt) for signs in ({}, TOKEN_SIGNS))


def _is_lossy_copy(text: str, prompt: str) -> bool:
    """Return True if a text is the prompt, with U+FFFD for any character or for none."""
    # The offsets in the prompt at which the part of the text read so far may end.
    offsets = {0}
    for part in re.findall("\ufffd+|[^\ufffd]+", text):
        if part[0] == "\ufffd":
            ends = {offset + n for offset in offsets for n in range(len(part) + 1)}
            offsets = {end for end in ends if end <= len(prompt)}
        else:
            offsets = {at + len(part) for at in offsets if prompt.startswith(part, at)}
        if len(offsets) > MAX_OFFSETS:
            return False
    return len(prompt) in offsets


def _byte_length(text: str) -> int:
    return len(text.encode())


def _ordered_choices(data: Any, number: int) -> list[dict[str, Any]]:
    """Return one choice per prompt, in the prompts' order.

    Raise `UnfitServer` if the server answers one of several prompts only, and `UnusableAnswer` if
    the choices do not fit the prompts.
    """
    choices = choices_of(data)
    if len(choices) == 1 < number:
        raise UnfitServer(
            f"the server answers only one of {number} prompts in a list, so it cannot compute "
            "log-likelihoods"
        )
    if len(choices) != number or not all(isinstance(choice, dict) for choice in choices):
        raise UnusableAnswer(f"{len(choices)} choices for {number} prompts")
    indices = [choice.get("index") for choice in choices]
    if all(index is None for index in indices):
        return choices
    if not _is_list_of(indices, int) or set(indices) != set(range(number)):
        raise UnusableAnswer("the choices are not numbered from 0 to the last")
    return sorted(choices, key=lambda choice: int(choice["index"]))


def _echo_of(choice: dict[str, Any]) -> _Echo:
    entries = choice.get("logprobs")
    if not isinstance(entries, dict) or "tokens" not in entries:
        raise UnfitServer(
            "the server returns no log-probabilities with echo, so it cannot compute "
            "log-likelihoods"
        )
    tokens = _typed_list(entries, "tokens", str)
    logprobs = _typed_list(entries, "token_logprobs", (float, int, type(None)))
    if len(tokens) != len(logprobs):
        raise UnusableAnswer(f"{len(tokens)} tokens with {len(logprobs)} log-probabilities")
    if len(tokens) < 2:
        raise refusal(UnfitServer, "clients.no_echo")
    if logprobs[0] is not None:
        raise refusal(UnfitServer, "clients.shifted_entries", logprobs=logprobs[0])
    if entries.get("text_offset"):
        offsets = _typed_list(entries, "text_offset", int)
    else:
        offsets = list(accumulate(map(len, tokens), initial=0))[:-1]
    if len(offsets) != len(tokens) or offsets != sorted(offsets):
        raise UnusableAnswer("the text offsets do not fit the tokens")
    tops = entries.get("top_logprobs")
    if not isinstance(tops, list) or len(tops) != len(tokens):
        tops = []
    return _Echo(tokens, logprobs, offsets, [_numeric_entries(top) for top in tops])


def _typed_list(entries: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> list[Any]:
    values = entries.get(name)
    if not _is_list_of(values, kind):
        raise UnusableAnswer(f"the log-probabilities have no usable list '{name}'")
    return list(values or ())


def _is_list_of(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, kind) and not isinstance(value, bool) for value in values
    )


def _numeric_entries(top: Any) -> dict[str, float]:
    if not isinstance(top, dict):
        return {}
    return {token: value for token, value in top.items() if isinstance(value, (int, float))}
