"""`lm-eval:MODELTYPE,name=value,…`: any model that lm-evaluation-harness can run.

The harness's model class loads and answers; its evaluator is not used. Requests go to it in lists
of `Instance`s, from one thread.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import math
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from falter.clients._base import SECRET, ClientSettings, clients
from falter.clients._batching import Batcher
from falter.core.errors import InvalidValue, MissingExtra, PreflightError, UnknownName
from falter.core.interfaces import Capabilities, Client
from falter.core.records import ContinuationScore, Model, Request, Response

__all__ = ["LmEval", "connect"]

TEMPLATE = "apply_chat_template"
LONGEST_REASON = 500
_Content: TypeAlias = "str | tuple[ContinuationScore, ...]"


class LmEval:
    """A model of the harness. What it raises for a request is that request's failure."""

    def __init__(self, settings: ClientSettings) -> None:
        self._type, _, self._arguments = settings.name.partition(",")
        _check(settings, self._type, self._arguments)
        self._class = _model_class(self._type)
        scores = _implemented(self._class, "loglikelihood")
        templated = _implemented(self._class, TEMPLATE)
        self._chats = _chats(settings, default=templated and not scores)
        self.capabilities = Capabilities(
            generates=_implemented(self._class, "generate_until"),
            scores=scores,
            chats=self._chats,
        )
        self.model = Model(client="lm-eval", name=settings.name, options={TEMPLATE: self._chats})
        self._lm: Any = None
        self._thread: Batcher[Request, _Content] = Batcher(
            self._answer, most=settings.concurrency, name="lm-eval"
        )

    async def check(self) -> None:
        """Load the model."""
        if self._lm is None:
            await self._thread.call(self._load)

    async def generate(self, request: Request) -> Response:
        """One answer, in a list with whatever else is asked at the time."""
        return await self._ask(request)

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """The continuations' log-likelihoods, in a list with whatever else is asked."""
        return await asyncio.gather(*(self._ask(request) for request in requests))

    async def close(self) -> None:
        """Let go of the model."""
        await self._thread.close()
        self._lm = None

    async def _ask(self, request: Request) -> Response:
        await self.check()
        started = time.perf_counter()
        try:
            content = await self._thread.ask(request)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
            return Response(key=request.key, failure=reason, received_at=time.time())
        return Response(
            key=request.key,
            latency=time.perf_counter() - started,
            served_by=f"lm-eval {self._type}",
            received_at=time.time(),
            text=content if isinstance(content, str) else None,
            scores=() if isinstance(content, str) else content,
        )

    # On the model's thread

    def _load(self) -> None:
        if self._lm is not None:
            return
        try:
            self._lm = self._class.create_from_arg_string(self._arguments)
        except Exception as error:
            raise PreflightError(
                f"lm-eval could not load '{self._type}': {error!r:.{LONGEST_REASON}}",
                hint=f"its arguments are '{self._arguments}'; some types need libraries of "
                "their own, such as lm_eval[hf]",
            ) from error

    def _answer(self, requests: Sequence[Request]) -> Sequence[_Content]:
        texts = iter(self._generated([r for r in requests if not r.scores]))
        scores = iter(self._scores([r for r in requests if r.scores]))
        return [next(scores) if request.scores else next(texts) for request in requests]

    def _generated(self, requests: Sequence[Request]) -> list[str]:
        if not requests:
            return []
        instances = [
            _instance("generate_until", n, self._context(request), _settings(request))
            for n, request in enumerate(requests)
        ]
        answers = list(_quiet(self._lm.generate_until)(instances))
        if any(not isinstance(text, str) for text in answers):
            raise ValueError("the harness's model gave no text")
        return answers

    def _context(self, request: Request) -> Any:
        if not request.messages:
            return request.context
        turns = [{"role": role, "content": text} for role, text in request.messages]
        return self._lm.apply_chat_template(turns)

    def _scores(self, requests: Sequence[Request]) -> list[tuple[ContinuationScore, ...]]:
        if not requests:
            return []
        instances = [
            _instance("loglikelihood", n, request.context, text)
            for request in requests
            for n, text in enumerate(request.continuations)
        ]
        found = iter(_quiet(self._lm.loglikelihood)(instances))
        return [
            tuple(self._scored(text, next(found)) for text in request.continuations)
            for request in requests
        ]

    def _scored(self, text: str, found: tuple[float, bool]) -> ContinuationScore:
        logprob, greedy = float(found[0]), bool(found[1])
        if not math.isfinite(logprob):
            raise ValueError(f"the log-likelihood of {text!r:.60} is {logprob}")
        return ContinuationScore(logprob=logprob, tokens=0, greedy=greedy)  # it does not say


def _check(settings: ClientSettings, kind: str, arguments: str) -> None:
    if not kind:
        raise InvalidValue(
            "name", settings.name, "a model type with its arguments",
            hint="as in lm-eval:hf,pretrained=NAME",
        )  # fmt: skip
    secret = SECRET.search(arguments)
    if secret:
        raise InvalidValue(
            "name", f"{kind},…{secret[0]}=…", "arguments without keys or passwords",
            hint="the harness reads keys from environment variables such as OPENAI_API_KEY",
        )  # fmt: skip
    if settings.base_url is not None:
        raise InvalidValue(
            "base_url", settings.base_url, "None", hint="write it into the arguments: base_url=…"
        )
    for name in settings.options:
        if name != TEMPLATE:
            raise UnknownName("option of lm-eval", name, [TEMPLATE])


def _chats(settings: ClientSettings, *, default: bool) -> bool:
    chosen = settings.options.get(TEMPLATE, default)
    if not isinstance(chosen, bool):
        raise InvalidValue(f"options.{TEMPLATE}", chosen, "true or false")
    return chosen


def _model_class(kind: str) -> Any:
    if importlib.util.find_spec("lm_eval") is None:
        raise MissingExtra("Models of lm-eval", "lm-eval", "lm_eval")
    importlib.import_module("lm_eval.models")  # which registers the types
    from lm_eval.api.registry import get_model, model_registry

    if kind not in model_registry:
        raise UnknownName("model type of lm-eval", kind, [str(name) for name in model_registry])
    try:
        return get_model(kind)
    except Exception as error:
        raise PreflightError(
            f"The lm-eval model type '{kind}' cannot be used here: {error!r:.{LONGEST_REASON}}",
            hint="install what it needs, for example: pip install 'lm_eval[hf]'",
        ) from error


def _implemented(kind: Any, method: str) -> bool:
    """Whether a method does more than say that it is not there."""
    body = re.sub(r'""".*?"""', "", inspect.getsource(getattr(kind, method)), flags=re.DOTALL)
    statements = re.split(r"\)[^:()]*:\s*\n", body, maxsplit=1)[-1].strip()
    return not statements.startswith(("raise NotImplementedError", "pass"))


def _instance(kind: str, number: int, *arguments: Any) -> Any:
    from lm_eval.api.instance import Instance

    return Instance(request_type=kind, doc={}, arguments=tuple(arguments), idx=number)


def _settings(request: Request) -> dict[str, Any]:
    """Decoding in the harness's words; a request's own seed has no place in them."""
    sampling = request.sampling
    settings: dict[str, Any] = {
        "until": list(sampling.stop),
        "max_gen_toks": sampling.max_tokens,
        "temperature": sampling.temperature,
        "do_sample": sampling.temperature > 0,
    }
    if sampling.temperature > 0 and sampling.top_p < 1:
        settings["top_p"] = sampling.top_p
    return settings


def _quiet(method: Callable[..., Any]) -> Callable[..., Any]:
    """Without the harness's progress bar, where it can be left out."""
    if "disable_tqdm" in inspect.signature(method).parameters:
        return partial(method, disable_tqdm=True)
    return method


@clients.registers("lm-eval")
def connect(settings: ClientSettings) -> Client:
    """A model of lm-evaluation-harness."""
    return LmEval(settings)
