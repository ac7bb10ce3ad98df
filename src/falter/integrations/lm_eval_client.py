"""`lm-eval:MODELTYPE,name=value,…`: any model that lm-evaluation-harness can run.

The harness's model class loads the model and answers; its evaluator is not used. Requests reach the
model as lists of `Instance` objects, from one thread.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from falter.clients.answers import Answer
from falter.clients.base import BatchClient
from falter.clients.permits import server_of
from falter.clients.settings import SECRET_NAME, ClientSettings, OptionTable, clients, require
from falter.records.errors import InvalidValue, PreflightError, UnknownName
from falter.records.interfaces import Capabilities, Client
from falter.records.types import ContinuationScore, Model, Request

TEMPLATE = "apply_chat_template"
MAX_REASON_CHARACTERS = 500
OPTIONS = OptionTable.of("lm-eval")


class LmEval(BatchClient):
    """Client of a harness model. An exception in a request is only that request's failure."""

    def __init__(self, settings: ClientSettings) -> None:
        options = OPTIONS.read(settings)
        super().__init__(most=settings.concurrency, name="lm-eval")
        self._type, _, self._arguments = settings.name.partition(",")
        _check_arguments(self._type, self._arguments)
        self._class = _model_class(self._type)
        scores = _implemented(self._class, "loglikelihood")
        templated = _implemented(self._class, TEMPLATE)
        chats = templated and not scores if options[TEMPLATE] is None else options[TEMPLATE]
        self.capabilities = Capabilities(
            generates=_implemented(self._class, "generate_until"), scores=scores, chats=chats
        )
        self.model = Model(client="lm-eval", name=settings.name, options={TEMPLATE: chats})
        self._lm: Any = None

    @property
    def address(self) -> str | None:
        """Server in the arguments, or else a note that lm-eval chooses the address; or None."""
        address, key = server_of("lm-eval", self.model.name)
        return address or (key and f"the address that lm-eval has for {self._type}")

    @property
    def key_variable(self) -> str | None:
        """Environment variable from which the harness reads the key for this model type."""
        return server_of("lm-eval", self.model.name)[1]

    async def close(self) -> None:
        """Release the model."""
        await super().close()
        self._lm = None

    # On the model's thread

    def load(self) -> None:
        """Create the harness's model from its arguments. Raise `PreflightError` if that fails."""
        try:
            self._lm = self._class.create_from_arg_string(self._arguments)
        except Exception as error:
            raise PreflightError(
                f"lm-eval could not load '{self._type}': {error!r:.{MAX_REASON_CHARACTERS}}",
                hint=f"check the arguments '{self._arguments}' and install the libraries of this "
                "type, such as lm_eval[hf]",
            ) from error

    def answer(self, requests: Sequence[Request]) -> Sequence[Answer]:
        """Answer all requests with one list of instances."""
        served_by = f"lm-eval {self._type}"
        if requests[0].scores:
            return [Answer(scores=s, served_by=served_by) for s in self._scores(requests)]
        return [Answer(text=text, served_by=served_by) for text in self._texts(requests)]

    def _texts(self, requests: Sequence[Request]) -> list[str]:
        instances = [
            _harness_instance("generate_until", n, self._context(request), _sampling(request))
            for n, request in enumerate(requests)
        ]
        answers = list(_without_progress_bar(self._lm.generate_until)(instances))
        if any(not isinstance(text, str) for text in answers):
            raise ValueError("the harness's model returned no text")
        return answers

    def _context(self, request: Request) -> Any:
        if not request.messages:
            return request.context
        turns = [{"role": role, "content": text} for role, text in request.messages]
        return self._lm.apply_chat_template(turns)

    def _scores(self, requests: Sequence[Request]) -> list[tuple[ContinuationScore, ...]]:
        instances = [
            _harness_instance("loglikelihood", n, request.context, text)
            for request in requests
            for n, text in enumerate(request.continuations)
        ]
        scores = iter(_without_progress_bar(self._lm.loglikelihood)(instances))
        return [
            tuple(_finite_score(text, *next(scores)) for text in request.continuations)
            for request in requests
        ]


def _check_arguments(kind: str, arguments: str) -> None:
    secret = SECRET_NAME.search(arguments)
    if secret:
        raise InvalidValue(
            "name", f"{kind},…{secret[0]}=…", "arguments without keys or passwords",
            hint="the harness reads keys from environment variables such as OPENAI_API_KEY",
        )  # fmt: skip


def _model_class(kind: str) -> Any:
    require("Models of lm-eval", "lm-eval", "lm_eval")
    importlib.import_module("lm_eval.models")  # which registers the types
    from lm_eval.api.registry import get_model, model_registry

    if kind not in model_registry:
        raise UnknownName("model type of lm-eval", kind, [str(name) for name in model_registry])
    try:
        return get_model(kind)
    except Exception as error:
        raise PreflightError(
            f"The lm-eval model type '{kind}' cannot be used here: "
            f"{error!r:.{MAX_REASON_CHARACTERS}}",
            hint="install what it needs, for example: pip install 'lm_eval[hf]'",
        ) from error


def _implemented(kind: Any, method: str) -> bool:
    """Return True if a method does more than raise `NotImplementedError` or pass."""
    body = re.sub(r'""".*?"""', "", inspect.getsource(getattr(kind, method)), flags=re.DOTALL)
    statements = re.split(r"\)[^:()]*:\s*\n", body, maxsplit=1)[-1].strip()
    return not statements.startswith(("raise NotImplementedError", "pass"))


def _harness_instance(kind: str, number: int, *arguments: Any) -> Any:
    from lm_eval.api.instance import Instance

    return Instance(request_type=kind, doc={}, arguments=tuple(arguments), idx=number)


def _finite_score(text: str, logprob: float, greedy: bool) -> ContinuationScore:
    """Return the score of a continuation. Raise `ValueError` if it is not finite.

    `tokens` is 0, because the harness does not report the number of tokens.
    """
    if not math.isfinite(logprob):
        raise ValueError(f"the log-likelihood of {text!r:.60} is {float(logprob)}")
    return ContinuationScore(logprob=float(logprob), tokens=0, greedy=bool(greedy))


def _sampling(request: Request) -> dict[str, Any]:
    """Return the sampling settings in the harness's terms, which have no seed for a request."""
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


def _without_progress_bar(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method without the harness's progress bar, if that can be disabled."""
    if "disable_tqdm" in inspect.signature(method).parameters:
        return partial(method, disable_tqdm=True)
    return method


@clients.registers("lm-eval")
def connect(settings: ClientSettings) -> Client:
    """A model of lm-evaluation-harness."""
    return LmEval(settings)
