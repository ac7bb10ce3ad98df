"""The records that flow through the house: frozen, slotted, keyword-only.

Those with an `id` give up their slots, so that the hash is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from falter.records.answers import AnswerSchema
from falter.records.ids import digest, raw_digest

SectionKind = Literal[
    "system", "instruction", "input", "document", "choices", "output_format", "cue", "added",
    "reply", "earlier", "call", "result", "tool",
]  # fmt: skip
VariantStatus = Literal["baseline", "changed", "unchanged", "not_applicable", "no_rewrite"]
RewriteStatus = Literal["ok", "refused", "empty", "identical", "cut", "broken", "rejected"]
Outcome = Literal["scored", "unparsed", "truncated", "refused", "failed"]
Tier = Literal["stated", "inferred"]
EstimateStatus = Literal[
    "ok",
    "undefined_zero_denominator",
    "undefined_zero_variance",
    "insufficient_data",
    "too_few_clusters",
    "not_identified",
    "not_informative",
]
Choicewise = Literal["text", "label"]
Asking = Literal["score", "chat", "plain"]
Span = tuple[int, int]
Message = tuple[str, str]
Effect = Literal["keep", "change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One change inside a section: its span in the original text, and in the present one."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A piece of a prompt with one role.

    `protected` are spans that no perturbation may touch. `edits` lead from the section's original
    text to this one; a later step of a chain leaves them alone. `opens`: the section begins a turn
    of a conversation, also where the turn before has the same role.
    """

    name: str
    kind: SectionKind
    text: str
    protected: tuple[Span, ...] = ()
    edits: tuple[Edit, ...] = ()
    opens: bool = False

    def identity(self) -> list[Any]:
        return [self.name, self.kind, self.text, *([True] if self.opens else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """A solved example shown before the item."""

    sections: tuple[Section, ...]
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program that is executed to judge generated code.

    `prefix` stands before the model's code: imports, helpers, the signature. `tests` define
    `check(candidate)`; `entry_point` is the expression that is passed to it.
    """

    prefix: str
    tests: str
    entry_point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An item as structured sections. It includes the target, because a perturbation may move it.

    `target` is the index of the right choice, or the expected text. `program` is for code: changes
    of the wording leave it alone, changes of the code itself change it too. `schema` is for answers
    with several parts. `renames` leads from the new names of tools and parameters to the old ones.
    `contrast` is the user's own version of other meaning, as JSON. With `other` the right answer is
    only known to differ from the one to the clean prompt.
    """

    sections: tuple[Section, ...]
    demonstrations: tuple[Demonstration, ...] = ()
    choices: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    choice_format: str = "{label}. {text}\n"
    answer_as: Choicewise = "text"
    delimiter: str = " "
    target: int | str | None = None
    program: Program | None = None
    schema: AnswerSchema | None = None
    renames: tuple[tuple[str, str], ...] = ()
    contrast: str | None = None
    other: bool = False

    def with_sections(self, sections: tuple[Section, ...]) -> Prompt:
        """The prompt with other sections; `dataclasses.replace`, but three times faster."""
        return Prompt(
            sections=sections,
            demonstrations=self.demonstrations,
            choices=self.choices,
            labels=self.labels,
            choice_format=self.choice_format,
            answer_as=self.answer_as,
            delimiter=self.delimiter,
            target=self.target,
            program=self.program,
            schema=self.schema,
            renames=self.renames,
            contrast=self.contrast,
            other=self.other,
        )

    def identity(self) -> list[Any]:
        """Everything that distinguishes two prompts, as plain JSON."""
        parts: list[Any] = [
            [s.identity() for s in self.sections],
            [[[s.text for s in d.sections], d.answer] for d in self.demonstrations],
            self.choices,
            self.labels,
            [self.choice_format, self.answer_as, self.delimiter],
            self.target,
        ]
        if self.program is not None:
            parts.append([self.program.prefix, self.program.tests, self.program.entry_point])
        if self.schema is not None:
            parts.append(self.schema.identity())
        if self.renames or self.other:
            parts.append({"renames": self.renames, "other": self.other})
        return parts


@dataclass(frozen=True, kw_only=True)
class Item:
    """One data point of a task."""

    task: str
    key: str
    fields: Mapping[str, str]
    choices: tuple[str, ...] = ()
    target: int | str | None = None
    tags: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        return f"sha256:{self.raw_id().hex()}"

    def raw_id(self) -> bytes:
        """The bytes of the id."""
        return raw_digest(
            "item", self.task, self.key, dict(self.fields), self.choices, self.target, self.tags
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The settings of a model's decoding."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int | None = None

    def identity(self) -> list[Any]:
        return [self.temperature, self.top_p, self.max_tokens, self.stop, self.seed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One perturbation of a recipe, with every parameter spelled out.

    `reasons` says that it asks for reasoning before the answer, `effect` whether it keeps the
    meaning. They are not part of the identity, because name and version imply them.
    """

    name: str
    version: int
    params: Mapping[str, Any] = field(default_factory=dict)
    reasons: bool = False
    effect: Effect = "keep"

    def identity(self) -> list[Any]:
        return [self.name, self.version, dict(self.params)]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A chain of steps, plus what else defines the condition. `label` is for people only.

    `template` is the source of another template, `sampling` the settings that differ from the
    run's, `demonstrations` another number of examples, `examples` another set of them,
    `output_format` the required form of the answer. `repeat` shifts the repeat index: the
    `identity` condition is the baseline asked again.
    """

    label: str
    group: str = "baseline"
    steps: tuple[Step, ...] = ()
    template: str | None = None
    sampling: Mapping[str, Any] | None = None
    demonstrations: int | None = None
    language: str | None = None
    output_format: str | None = None
    repeat: int = 0
    examples: int = 0

    @cached_property
    def id(self) -> str:
        return digest(
            "recipe",
            [step.identity() for step in self.steps],
            self.template,
            None if self.sampling is None else dict(self.sampling),
            self.demonstrations,
            self.language,
            self.output_format,
            self.repeat,
            *((self.examples,) if self.examples else ()),
        )

    @cached_property
    def sets(self) -> bool:
        """True if it changes more than the text: template, demonstrations or sampling."""
        others = (self.template, self.demonstrations, self.examples or None)
        sampling = any(name != "max_tokens" for name in self.sampling or ())
        return sampling or any(other is not None for other in others)

    @property
    def reasons(self) -> bool:
        """True if it asks for reasoning before the answer."""
        return any(step.reasons for step in self.steps)

    @property
    def controls(self) -> bool:
        """Return True if it changes the meaning, so that the answer has to change."""
        return any(step.effect == "change" for step in self.steps)

    @property
    def asks_for_a_reply(self) -> bool:
        """True if it affects the answer that a model writes."""
        return bool(self.sampling) or self.output_format is not None or self.reasons

    @property
    def perturbs(self) -> bool:
        """True if it differs from the baseline, however often that is asked."""
        return bool(self.steps) or self.sets


BASELINE = Recipe(label="baseline")
CUT = frozenset({"length", "unclosed_reasoning"})
"""The finish reasons of a reply that was not written to its end."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Item × recipe × draw: the concrete prompt."""

    item: Item
    recipe: Recipe
    draw: int
    prompt: Prompt
    status: VariantStatus

    @cached_property
    def id(self) -> str:
        return digest(
            "variant",
            self.item.id,
            self.recipe.id,
            self.draw,
            self.status,
            self.prompt.identity(),
        )


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model behind a client. It never holds an API key.

    `simulated` says that there is no language model behind it. It is not part of the identity,
    because the client's name implies it.
    """

    client: str
    name: str
    base_url: str | None = None
    weights: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    simulated: bool = False

    @cached_property
    def id(self) -> str:
        return digest(
            "model", self.client, self.name, self.base_url, self.weights, dict(self.options)
        )

    @property
    def label(self) -> str:
        return self.name if self.client == self.name else f"{self.client}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call: messages to answer, or continuations to score.

    With `answers` the model may reply with one of them and nothing else, or with any number where
    there are none of them; None where it may write what it likes. `tools` are offered to it, each
    as one line of JSON.
    """

    key: str
    variant: Variant
    model: Model
    sampling: Sampling
    repeat: int
    messages: tuple[Message, ...] = ()
    context: str = ""
    continuations: tuple[str, ...] = ()
    answers: tuple[str, ...] | None = None
    tools: tuple[str, ...] = ()

    @property
    def scores(self) -> bool:
        """True if this asks for log-likelihoods rather than for text."""
        return bool(self.continuations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationScore:
    """The log-likelihood of one continuation."""

    logprob: float
    tokens: int
    greedy: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens used, which are paid for.

    `completion_tokens` include `reasoning_tokens`; `prompt_tokens` include `cached_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, with its arguments as the model wrote them: JSON, or what should be."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The response to a request key; `failure` is set if nothing usable came back.

    `reasoning` is what a model wrote for itself before the text; it is never scored. `value` is a
    score that came with the answer, from a function that judges itself. `calls` are the calls that
    an API returned as such, beside the text.
    """

    key: str
    text: str | None = None
    scores: tuple[ContinuationScore, ...] = ()
    finish_reason: str | None = None
    usage: Usage = Usage()
    latency: float = 0.0
    served_by: str | None = None
    failure: str | None = None
    received_at: float = 0.0
    reasoning: str | None = None
    value: float | None = None
    request_id: str | None = None
    calls: tuple[Call, ...] = ()

    @property
    def ran_out(self) -> bool:
        """True if the limit was reached before a word of the answer: by reasoning, as a rule."""
        said = self.scores or self.calls or (self.text or "").strip()
        return self.failure is None and not said and self.finish_reason in CUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A text rewritten by a model or a person; `text` only if the status is `ok`.

    `key` hashes the request: perturbation, version, parameters, source text and draw. `author` is
    the model's label, or the person's name.
    """

    key: str
    perturbation: str
    version: int
    params: Mapping[str, Any]
    source: str
    draw: int
    author: str
    status: RewriteStatus
    text: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A scorer's judgement of one response; `value` only when the outcome is `scored`.

    `tier` says how the answer was found: `stated` where the reply is the answer or marks it,
    `inferred` where it was taken from prose. None where the scorer reads no answer out of a reply.
    """

    scorer: str
    outcome: Outcome
    value: float | None = None
    extracted: str | None = None
    reason: str | None = None
    tier: Tier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval, its counts and its signature. Undefined is None with a status.

    `clusters` and `design_effect` are None where items were not clustered. Of `too_few_clusters`
    the value is known, and how sure it is is not. `informative` counts the items that carry the
    rarer side of a mean between 0 and 1; below 20 the interval is wide on purpose.
    """

    measure: str
    value: float | None
    status: EstimateStatus = "ok"
    group: Mapping[str, str] = field(default_factory=dict)
    estimand: str = ""
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    p_value: float | None = None
    method: str = ""
    items: int = 0
    conditions: int = 0
    excluded: int = 0
    clusters: int | None = None
    design_effect: float | None = None
    informative: float | None = None
    seed: int | None = None
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The way a panel is asked: by log-likelihoods, by chat messages or by plain text.

    `constrained`: the model may reply with one of `answers` and nothing else; with any number where
    there are none of them; with one of the options' labels where they are None.
    """

    asking: Asking
    sampling: Sampling
    constrained: bool = False
    answers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One model on one task, asked and scored in one way: a table of items × recipes."""

    task: str
    revision: str
    model: Model
    scorer: str

    def identity(self) -> list[Any]:
        return [self.task, self.revision, self.model.id, self.scorer]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A frozen experiment: with what it planned, a run can be re-analysed without a model."""

    experiment: Mapping[str, Any]
    version: str
    seed: int
    recipes: tuple[Recipe, ...]
    panels: tuple[Panel, ...]
    draws: int = 1
    repeats: int = 1
    origin: Mapping[str, str] = field(default_factory=dict, compare=False)
    """For people, and no part of the identity: the name of its `data`, the `command`, `cells`."""
    ways: tuple[Way, ...] = field(default=(), compare=False)
    """Of each panel. The keys of its requests hold them: they are no part of the identity."""

    @cached_property
    def id(self) -> str:
        return digest(
            "run",
            dict(self.experiment),
            self.version,
            self.seed,
            [recipe.id for recipe in self.recipes],
            [panel.identity() for panel in self.panels],
            self.draws,
            self.repeats,
        )
