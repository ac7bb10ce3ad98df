"""Log-probabilities of a prompt that an OpenAI-compatible server echoes, read with mistrust."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from falter.clients._answers import Answer, UnusableAnswer
from falter.clients._openai_replies import answer_of, choices_of
from falter.core.errors import EndpointError
from falter.core.records import ContinuationScore

__all__ = ["Scoring", "UnfitServer"]

SPECIAL = re.compile(r"<.*>|\[[A-Z_]+\]|", re.S)
ENOUGH_EVIDENCE = 8
SIGNS = str.maketrans({"\u2581": " ", "\u0120": " ", "\u010a": "\n"})
"""The space of sentencepiece, the space and line break of byte-level BPE."""
MOST_PLACES = 64
BYTES = re.compile(r"^bytes:(?:\\x[0-9a-f]{2})+$")


class UnfitServer(EndpointError):
    """The server cannot score at all: no request of this kind will ever succeed."""


class Scoring:
    """What has been learnt about a server's way of scoring.

    `generated` is the fewest tokens it agrees to generate, `settled` whether it has agreed,
    `proven` whether it has scored. `same` and `following` count where the likeliest token was
    the token itself, as it should be, and where it was the one after it.
    """

    __slots__ = ("following", "generated", "proven", "same", "settled")

    def __init__(self) -> None:
        self.generated = 0
        self.settled = self.proven = False
        self.same = self.following = 0

    def reader(self, prompts: list[str], context: str) -> Callable[[Any], Answer]:
        """Reads the scores of prompts that begin with a context."""

        def read(data: Any) -> Answer:
            echoes = [_echo_of(choice) for choice in _in_order(data, len(prompts))]
            self._check_shift(echoes[0])
            scores = tuple(
                echo.score(context, prompt) for echo, prompt in zip(echoes, prompts, strict=True)
            )
            return answer_of(data, scores=scores)

        return read

    def _check_shift(self, echo: _Echo) -> None:
        """Refuse a server whose log-probabilities belong to the token before.

        Some blank the first entry all the same. But what such a server holds most likely at a
        token is then what follows it, and hardly ever the token itself.
        """
        if self.same + self.following < ENOUGH_EVIDENCE:
            for top, token, following in zip(
                echo.tops, echo.tokens, [*echo.tokens[1:], ""], strict=False
            ):
                if top and token != following:
                    likeliest = max(top, key=top.__getitem__)
                    self.same += likeliest == token
                    self.following += likeliest == following
        if self.same + self.following >= ENOUGH_EVIDENCE and self.following > 3 * self.same:
            raise UnfitServer(
                "the server's log-probabilities are shifted by one: the likeliest token of an "
                "entry is the token after it; its scores would be wrong"
            )


@dataclass(frozen=True, slots=True)
class _Echo:
    """A prompt's tokens as a server sees them."""

    tokens: list[str]
    logprobs: list[float | None]
    starts: list[int]
    tops: list[dict[str, float]]

    def score(self, context: str, prompt: str) -> ContinuationScore:
        """The log-likelihood of what `prompt` has beyond `context`."""
        beyond = self._beyond(context, prompt)
        values = [self.logprobs[n] for n in beyond]
        known = [v for v in values if v is not None and math.isfinite(v) and v < 1e-3]
        if not values or len(known) < len(values):
            raise EndpointError("a token of the continuation has no log-probability")
        greedy = None
        if self.tops and all(self.tops[n] for n in beyond):
            best = (max(self.tops[n].values()) for n in beyond)
            greedy = all(v >= top - 1e-6 for v, top in zip(known, best, strict=True))
        return ContinuationScore(logprob=math.fsum(known), tokens=len(known), greedy=greedy)

    def _beyond(self, context: str, prompt: str) -> list[int]:
        """The tokens that reach beyond the context, in characters or else in bytes.

        A token across the boundary counts: a tokenizer that joins the two sides has no other
        place for the continuation's first letters. A special token that a server puts before
        the prompt is stepped over; a token it generates after the prompt is left out.
        """
        tokens, starts = self.tokens, self.starts
        special = SPECIAL.fullmatch(tokens[0]) and not (tokens[0] and prompt.startswith(tokens[0]))
        first = 1 if special and len(tokens) > 1 else 0
        begins = [start - starts[first] for start in starts]
        ends = [*begins[1:], begins[-1] + len(tokens[-1])]
        mixed_up = False
        for measure in (len, _bytes):
            whole, boundary = measure(prompt), measure(context)
            inside = [n for n in range(first, len(tokens)) if begins[n] < whole]
            generated = len(tokens) - first - len(inside)
            if inside and generated <= 1 and ends[inside[-1]] == whole:
                if _spell([tokens[n] for n in inside], prompt):
                    return [n for n in inside if ends[n] > boundary or begins[n] >= boundary]
                mixed_up = True
        if mixed_up:
            raise EndpointError(
                "the echoed tokens are not the prompt's: the server may have mixed up the prompts "
                "of a request"
            )
        raise EndpointError(
            f"the echoed tokens do not add up to the prompt: they end at {ends[-1]}, the prompt "
            f"has {len(prompt)} characters"
        )


def _spell(tokens: list[str], prompt: str) -> bool:
    """Whether the tokens are the prompt's text.

    Bytes may be written as letters of Latin-1. Tokenizers' own signs for a space and a line break
    count as such. A token that holds part of a character, as U+FFFD or as `bytes:`, stands for any.
    """
    if "".join(tokens) in (prompt, prompt.encode().decode("latin-1")):
        return True
    plain = "".join(BYTES.sub("\ufffd", token) for token in tokens)
    return any(_fits(plain.translate(signs), prompt) for signs in ({}, SIGNS))


def _fits(text: str, prompt: str) -> bool:
    """Whether a text is the prompt, where each run of U+FFFD is up to as many characters."""
    places = {0}
    for part in re.findall("\ufffd+|[^\ufffd]+", text):
        if part[0] == "\ufffd":
            ends = {place + n for place in places for n in range(len(part) + 1)}
            places = {end for end in ends if end <= len(prompt)}
        else:
            places = {at + len(part) for at in places if prompt.startswith(part, at)}
        if len(places) > MOST_PLACES:
            return False
    return len(prompt) in places


def _bytes(text: str) -> int:
    return len(text.encode())


def _in_order(data: Any, number: int) -> list[dict[str, Any]]:
    """One choice a prompt, in the prompts' order."""
    choices = choices_of(data)
    if len(choices) != number or not all(isinstance(choice, dict) for choice in choices):
        raise UnusableAnswer(f"{len(choices)} choices for {number} prompts")
    places = [choice.get("index") for choice in choices]
    if all(place is None for place in places):
        return choices
    if not _all(places, int) or set(places) != set(range(number)):
        raise UnusableAnswer("the choices are not numbered from 0 to the last")
    return sorted(choices, key=lambda choice: int(choice["index"]))


def _echo_of(choice: dict[str, Any]) -> _Echo:
    entries = choice.get("logprobs")
    if not isinstance(entries, dict):
        raise UnfitServer("the server gives no log-probabilities with echo; it cannot score")
    tokens = _list(entries, "tokens", str)
    logprobs = _list(entries, "token_logprobs", (float, int, type(None)))
    if len(tokens) != len(logprobs):
        raise UnusableAnswer(f"{len(tokens)} tokens with {len(logprobs)} log-probabilities")
    if len(tokens) < 2:
        raise UnfitServer(
            "the server does not echo the prompt's log-probabilities; it cannot score"
        )
    if logprobs[0] is not None:
        raise UnfitServer(
            f"the server's log-probabilities are shifted by one: its first entry is {logprobs[0]}, "
            "and nothing stands before the first token; its scores would be wrong"
        )
    if entries.get("text_offset"):
        offsets = _list(entries, "text_offset", int)
    else:
        offsets = list(accumulate(map(len, tokens), initial=0))[:-1]
    if len(offsets) != len(tokens) or offsets != sorted(offsets):
        raise UnusableAnswer("the text offsets do not fit the tokens")
    tops = entries.get("top_logprobs")
    if not isinstance(tops, list) or len(tops) != len(tokens):
        tops = []
    return _Echo(tokens, logprobs, offsets, [_numbers(top) for top in tops])


def _list(entries: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> list[Any]:
    values = entries.get(name)
    if not _all(values, kind):
        raise UnusableAnswer(f"the log-probabilities have no usable list '{name}'")
    return list(values or ())


def _all(values: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, kind) and not isinstance(value, bool) for value in values
    )


def _numbers(top: Any) -> dict[str, float]:
    if not isinstance(top, dict):
        return {}
    return {token: value for token, value in top.items() if isinstance(value, (int, float))}
