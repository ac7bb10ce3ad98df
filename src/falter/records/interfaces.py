"""Protocols of the parts that other packages and plug-ins implement: clients, scorers, stores, …"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Protocol, runtime_checkable

from falter.records.errors import InvalidValue, nearest
from falter.records.rng import Rng
from falter.records.types import (
    Model,
    Prompt,
    Request,
    Response,
    Rewrite,
    Score,
    SectionKind,
    Variant,
)

AnswerKind = Literal["option", "text", "number", "code"]
Style = Literal["cloze", "letter", "open"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a perturbation or client: its type, default and accepted values."""

    name: str
    type: type
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()


def declared_parameter(**stated: Any) -> Parameter:
    """Return the parameter that a data file declares. Without a `type` it is a text."""
    kind = {"int": int, "float": float, "bool": bool}.get(stated.pop("type", ""), str)
    options = tuple(stated.pop("options", ()))
    return Parameter(**{"default": None, **stated}, type=kind, options=options)


class Perturbation(Protocol):
    """One change of a prompt: a pure function of the prompt and a random generator.

    `title` is its everyday name, such as `split words`. `reply_tokens` above 0 means that the
    perturbation needs a written answer of so many tokens. `output_format` is the form that it asks
    for. `reasons` is True if it asks for reasoning before the answer. The answer is then extracted
    from the end of the response.
    """

    name: str
    family: str
    group: str
    version: int
    summary: str
    title: str
    scope: tuple[SectionKind, ...]
    parameters: tuple[Parameter, ...]
    invariants: frozenset[str]
    languages: frozenset[str] | None
    needs_model: bool
    reply_tokens: int
    output_format: str | None
    reasons: bool

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt: ...

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Return True if the perturbation could change anything in the prompt."""


class RewriteBank(Protocol):
    """Rewrites prepared before a run."""

    def find(self, key: str, text: str) -> Rewrite | None:
        """Return the rewrite of a text, usable or not; None if no rewrite was requested.

        `key` is sufficient. `text` is for banks that produce rewrites on demand.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of a client, known before the first paid call.

    - `chats`: it takes messages instead of one plain text.
    - `lanes`: number of requests that it serves at once, if the client is the bottleneck. None: as
      many as the user allows.
    - `batch`: number of scoring requests that it takes together.
    - `constrains`: it can restrict a model to a few responses.
    - `reasons`: the model was asked to reason first.
    - `keeps_prefixes`: each lane caches the prompt that it read last. Prompts with a common
      beginning are then sent one after the other.
    - `batches`: its provider answers many requests together, later and at a lower price.
    - `tools`: it takes tools, calls and their results. `instead` is advice if it does not.
    - `replays`: earlier turns may contain calls that the client did not make.
    - `system_in_front`: system turns are moved before all others.
    """

    generates: bool
    scores: bool
    chats: bool = True
    lanes: int | None = None
    batch: int = 1
    constrains: bool = False
    reasons: bool = False
    keeps_prefixes: bool = False
    batches: bool = False
    tools: bool = False
    replays: bool = True
    system_in_front: bool = False
    instead: str = (
        "use a chat server, openai:NAME, or a function with the parameters messages and tools, "
        "function:MODULE:NAME"
    )


class Client(Protocol):
    """Protocol of a client: it sends requests to one model and returns the responses."""

    model: Model
    capabilities: Capabilities

    async def check(self) -> None:
        """Raise `PreflightError` if the first request could only fail."""

    async def generate(self, request: Request) -> Response: ...

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Return log-likelihoods of all continuations of each request, or its failure."""

    async def close(self) -> None: ...


@runtime_checkable
class ChunkClient(Protocol):
    """A client that takes many requests at once; scoring requests are computed together.

    `chunk` is the number of requests in the next chunk, `capabilities.lanes` the number of parallel
    chunks.
    """

    @property
    def chunk(self) -> int: ...

    async def answer_many(self, requests: Sequence[Request]) -> Sequence[Response]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A variant with its response: the input of a scorer.

    `baseline` is the same model's response to the item's clean prompt, in the same repeat. If that
    repeat has none, it is the first available response, and never a failure. Only scorers with
    `needs_baseline` receive one.
    """

    variant: Variant
    response: Response
    baseline: Response | None = None


class Scorer(Protocol):
    """Protocol of a scorer, which judges one response.

    - `style`: the task's form: continue with an option's text (`cloze`), choose among listed
      options (`letter`), or answer freely (`open`).
    - `answer_kind`: kind of the extracted answer.
    - `max_tokens`: limit of a response, unless the user sets another limit.
    - `needs_scores`: it needs log-likelihoods of options.
    - `needs_choices`: it needs items with options.
    - `needs_prompt`: it needs the sections and demonstrations of `case.variant.prompt`. Other
      scorers do not get them.
    - `needs_baseline`: it needs `case.baseline`.
    - `second_reader`: name of a scorer that extracts answers more leniently, or None. It
      distinguishes wrong answers from answers that extraction missed.
    """

    name: str
    summary: str
    style: Style
    answer_kind: AnswerKind
    max_tokens: int
    needs_scores: bool
    needs_choices: bool
    needs_prompt: bool
    needs_baseline: bool
    second_reader: str | None

    def check(self) -> None:
        """Raise an error if a requirement, such as a sandbox, is missing. Nothing was sent yet."""

    def fault(self, target: str) -> str | None:
        """Return the reason that no response can be compared with this target; None if one can."""

    def score(self, case: Case) -> Score: ...


@runtime_checkable
class PreparedScorer(Protocol):
    """A scorer that prepares many cases at once; `score` then uses the prepared results."""

    def prepare(self, cases: Sequence[Case]) -> None: ...


@runtime_checkable
class ConstrainedScorer(Protocol):
    """A scorer whose model may only reply with certain answers."""

    constrains: bool

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """Return a task's answers: None for the labels of each prompt, () for any number."""


class ResponseStore(Protocol):
    """The part of the store that a run needs: look-up and storage of responses."""

    def missing(self, keys: Sequence[str]) -> set[str]: ...

    def put_responses(self, responses: Sequence[tuple[Request, Response]]) -> None: ...

    def put_failures(self, responses: Sequence[Response]) -> None: ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that several processes fill at once. A process leases requests before it sends them.

    `claim` returns the keys that it leased. It leaves out requests that another process is sending,
    or that were answered since `missing`.
    """

    def claim(self, keys: Collection[str]) -> set[str]: ...

    def release(self, keys: Collection[str]) -> None: ...


# Values of declared parameters: checked and converted to the declared type.


TYPE_NAMES: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    tuple: "a list of texts",
    dict: "a mapping of names to numbers",
}


def parameter_value(argument: str, parameter: Parameter, value: Any) -> Any:
    """Return the value in the parameter's type, so that 1 and 1.0 are one value.

    Raise InvalidValue for any other value. None is accepted if it is the default. A text with a
    `low` must not be empty. The range of a mapping holds for each of its numbers.
    """
    if value is None and parameter.default is None:
        return None
    if parameter.type in (int, float):
        return _number(argument, parameter, value)
    if parameter.type is tuple:
        return _text_tuple(argument, parameter, value)
    if parameter.type is dict:
        if not isinstance(value, Mapping):
            raise InvalidValue(argument, value, _expected(parameter))
        return {name: _number(f"{argument}.{name}", parameter, n) for name, n in value.items()}
    if not isinstance(value, parameter.type):
        raise InvalidValue(argument, value, _expected(parameter))
    if parameter.type is str and parameter.low and not value:
        raise InvalidValue(argument, value, _expected(parameter))
    _check_listed(argument, parameter, value)
    return value


def _number(argument: str, parameter: Parameter, value: Any) -> int | float:
    kind: type = int if parameter.type is int else float
    if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
        raise InvalidValue(argument, value, _expected(parameter, number=True))
    number: int | float = kind(value)
    low = -math.inf if parameter.low is None else parameter.low
    high = math.inf if parameter.high is None else parameter.high
    if not (math.isfinite(number) and low <= number <= high):
        raise InvalidValue(argument, value, _expected(parameter, number=True))
    return number


def _text_tuple(argument: str, parameter: Parameter, value: Any) -> tuple[str, ...]:
    listed: Sequence[Any] = (value,) if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(text, str) for text in listed):
        raise InvalidValue(argument, value, _expected(parameter))
    for text in listed:
        _check_listed(argument, parameter, text)
    return tuple(listed)


def _check_listed(argument: str, parameter: Parameter, value: Any) -> None:
    if parameter.options and value not in parameter.options:
        close = nearest(str(value), parameter.options)
        hint = None if close is None else f"did you mean '{close}'?"
        raise InvalidValue(argument, value, _expected(parameter), hint=hint)


def _expected(parameter: Parameter, *, number: bool = False) -> str:
    if parameter.options:
        return f"one of: {', '.join(parameter.options)}"
    kind = TYPE_NAMES[float if number and parameter.type is dict else parameter.type]
    if parameter.type is str:
        return f"{kind} that is not empty" if parameter.low else kind
    if parameter.low is not None and parameter.high is not None:
        return f"{kind} from {parameter.low:g} to {parameter.high:g}"
    return kind if parameter.low is None else f"{kind} of at least {parameter.low:g}"
