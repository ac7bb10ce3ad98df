"""The few protocols that rooms meet through."""

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
    """One parameter of a perturbation or client: its type, default and what it accepts."""

    name: str
    type: type
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    options: tuple[str, ...] = ()


def declared_parameter(**stated: Any) -> Parameter:
    """Return the parameter that a data file states; without a `type` it is a text."""
    kind = {"int": int, "float": float, "bool": bool}.get(stated.pop("type", ""), str)
    options = tuple(stated.pop("options", ()))
    return Parameter(**{"default": None, **stated}, type=kind, options=options)


class Perturbation(Protocol):
    """One meaning-preserving change: a pure function of prompt and rng.

    `title` is its everyday name, as it stands after "under": `split words`.
    `reply_tokens` above 0 says that it needs a written answer, and how many tokens that answer
    takes; `output_format` is the form that it asks for; `reasons` says that it asks for reasoning
    before the answer, so that the answer is read from the end of the reply.
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
        """Return True if there is anything in the prompt that this could change."""


class RewriteBank(Protocol):
    """Rewrites prepared before a run."""

    def find(self, key: str, text: str) -> Rewrite | None:
        """The rewrite of a text, usable or not; None if nobody was asked for one.

        The key is sufficient; the text is for banks that make up rewrites on the spot.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The abilities of a client, known before the first paid call.

    `chats` says whether it takes messages rather than one plain text; `lanes` is how many
    requests it serves at once when the client itself is the bottleneck (None: as many as the
    user allows); `batch` is how many scoring requests it takes together. `constrains` says whether
    it can hold a model to a few replies, `reasons` whether the model was asked to think first.
    With `keeps_prefixes` each lane remembers what it read last: prompts that begin alike are then
    sent one after the other. `batches` says whether its provider answers many written requests
    together, later and for less. `tools` says whether it takes tools, calls and their results, and
    `replays` whether calls that it did not make itself may stand in earlier turns; `instead` is
    advice for who has tools where there are none. With `system_in_front` system turns stand before
    all others, wherever a conversation has them.
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
    """Something that answers requests."""

    model: Model
    capabilities: Capabilities

    async def check(self) -> None:
        """Raise `PreflightError` when the first request could only fail."""

    async def generate(self, request: Request) -> Response: ...

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Log-likelihoods of each request's continuations: all of a request, or a failure."""

    async def close(self) -> None: ...


@runtime_checkable
class ChunkClient(Protocol):
    """A client that takes many requests at once, those to be scored and the others together.

    `chunk` is how many it should be given next; `capabilities.lanes` is how many chunks at once.
    """

    @property
    def chunk(self) -> int: ...

    async def answer_many(self, requests: Sequence[Request]) -> Sequence[Response]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A variant with its response: the input of a scorer.

    `baseline` is the same model's response to the item's clean prompt, in the same repeat or, if
    that has none, in the first that has. Only scorers that need it get it, and only if there is
    one; it is never a failure.
    """

    variant: Variant
    response: Response
    baseline: Response | None = None


class Scorer(Protocol):
    """Judges one response.

    `style` is how items are asked: to continue with an option's text (`cloze`), to choose among
    listed options (`letter`), or openly. `answer_kind` is what it reads from a reply. `max_tokens`
    limits a reply unless the user sets another limit. It may need log-likelihoods of options
    (`needs_scores`), items with options (`needs_choices`), the sections and demonstrations of
    `case.variant.prompt`, which others do not get (`needs_prompt`), or `case.baseline`
    (`needs_baseline`). `second_reader` names the scorer that reads the same replies more
    leniently, to tell answers that were only read badly from wrong ones; None if there is none.
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
        """Raise when something that it needs, such as a sandbox, is missing. Nothing was sent."""

    def fault(self, target: str) -> str | None:
        """Return the reason that no reply can be compared with this target; None if one can."""

    def score(self, case: Case) -> Score: ...


@runtime_checkable
class PreparedScorer(Protocol):
    """A scorer whose work is worth doing for many cases at once; `score` then finds it done."""

    def prepare(self, cases: Sequence[Case]) -> None: ...


@runtime_checkable
class ConstrainedScorer(Protocol):
    """A scorer whose model may reply with certain answers and nothing else."""

    constrains: bool

    def allowed(self, task: str) -> tuple[str, ...] | None:
        """The answers of a task; None for the labels of each prompt's options, () for a number."""


class ResponseStore(Protocol):
    """The part of the store that the runner uses."""

    def missing(self, keys: Sequence[str]) -> set[str]: ...

    def put_responses(self, responses: Sequence[tuple[Request, Response]]) -> None: ...

    def put_failures(self, responses: Sequence[Response]) -> None: ...


@runtime_checkable
class SharedStore(Protocol):
    """A store that several processes may fill at once: each claims what it is about to send.

    `claim` leaves out what another process is sending, or has had answered since `missing`.
    """

    def claim(self, keys: Collection[str]) -> set[str]: ...

    def release(self, keys: Collection[str]) -> None: ...


# Values of declared parameters: checked and converted to the declared type.


KINDS: dict[type, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    tuple: "a list of texts",
    dict: "a mapping of names to numbers",
}


def parameter_value(argument: str, parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's type, so that 1 and 1.0 are one value; else `InvalidValue`.

    None is accepted if it is the default. A text with a `low` must not be empty; the
    range of a mapping holds for each of its numbers.
    """
    if value is None and parameter.default is None:
        return None
    if parameter.type in (int, float):
        return _number(argument, parameter, value)
    if parameter.type is tuple:
        return _texts(argument, parameter, value)
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


def _texts(argument: str, parameter: Parameter, value: Any) -> tuple[str, ...]:
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
    kind = KINDS[float if number and parameter.type is dict else parameter.type]
    if parameter.type is str:
        return f"{kind} that is not empty" if parameter.low else kind
    if parameter.low is not None and parameter.high is not None:
        return f"{kind} from {parameter.low:g} to {parameter.high:g}"
    return kind if parameter.low is None else f"{kind} of at least {parameter.low:g}"
