"""Test doubles: a client that answers from a script, and a store of made-up rewrites."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from falter.records.interfaces import Capabilities
from falter.records.types import ContinuationScore, Model, Request, Response, Rewrite
from falter.text.protection import protect
from falter.text.words import natural_words

Answer = str | Response | Exception
Script = Mapping[str, Answer] | Sequence[Answer] | Callable[[Request], Answer]


class Scripted:
    """A client that answers from a script, and records every request in `requests`.

    The script is a list of answers in order, or a mapping from a text in the prompt to the answer.
    It may also be a function of the request. An answer that is an exception is raised. For scoring
    requests, a text answer is the continuation that gets the highest log-likelihood.

    >>> client = Scripted(["A", "B"])
    """

    def __init__(self, script: Script, *, name: str = "scripted", scores: bool = True) -> None:
        self._script = script
        self._turn = 0
        self.requests: list[Request] = []
        self.model = Model(client="scripted", name=name)
        self.capabilities = Capabilities(generates=True, scores=scores)

    async def check(self) -> None:
        """Do nothing: the client is always ready."""

    async def generate(self, request: Request) -> Response:
        await asyncio.sleep(0)
        answer = self._answer(request)
        if isinstance(answer, Response):
            return replace(answer, key=request.key)
        return Response(key=request.key, text=answer, finish_reason="stop", received_at=time.time())

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        await asyncio.sleep(0)
        return [self._scored_response(request) for request in requests]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _scored_response(self, request: Request) -> Response:
        answer = self._answer(request)
        if isinstance(answer, Response):
            return replace(answer, key=request.key)
        scores = tuple(
            ContinuationScore(logprob=-1.0 if text.strip() == answer.strip() else -100.0, tokens=1)
            for text in request.continuations
        )
        return Response(key=request.key, scores=scores, received_at=time.time())

    def _answer(self, request: Request) -> str | Response:
        self.requests.append(request)
        answer = self._scripted_answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _scripted_answer(self, request: Request) -> Answer:
        """Return the answer to a request.

        Raise `LookupError` if no text of the mapping is in the prompt, or if the list has ended.
        """
        if callable(self._script):
            return self._script(request)
        if isinstance(self._script, Mapping):
            text = request.context + "".join(content for _, content in request.messages)
            for part, answer in self._script.items():
                if part in text:
                    return answer
            raise LookupError(f"no line of the script matches the prompt {text[:200]!r}")
        if self._turn >= len(self._script):
            raise LookupError(
                f"the script has {len(self._script)} answers, but was asked for one more"
            )
        self._turn += 1
        return self._script[self._turn - 1]


_KEPT_WORDS = re.compile(
    r"(?:no|not|never|none|nor|without|cannot|all|any|every|each|few|many|most|some|only"
    r"|one|two|three|four|five|six|seven|eight|nine|ten)",
    re.IGNORECASE,
)


class MadeUpRewrites:
    """A rewrite store that reverses every ordinary word of four letters or more.

    Protected text, negations and numbers stay as they are, just as a careful author leaves them.
    """

    def find(self, key: str, text: str) -> Rewrite | None:
        return Rewrite(
            key=key,
            perturbation="any",
            version=1,
            params={},
            source=text,
            draw=0,
            author="made up",
            status="ok",
            text=_reversed_words(text),
        )


def _reversed_words(text: str) -> str:
    parts: list[str] = []
    at = 0
    for start, end in natural_words(text, protect(text)):
        word = text[start:end]
        if len(word) >= 4 and not _KEPT_WORDS.fullmatch(word):
            parts += [text[at:start], word[::-1].lower()]
            at = end
    return "".join([*parts, text[at:]])
