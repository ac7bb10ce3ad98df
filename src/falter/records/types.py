"""Records that all packages share: frozen, slotted, keyword-only dataclasses.

Records with an `id` have no slots, so that the hash is computed once and cached.
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
    """One change inside a section: its span in the original text and its span in the new text."""

    start: int
    end: int
    new_start: int
    new_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a prompt with one role.

    `protected` are spans that no perturbation may touch. `edits` lead from the section's original
    text to `text`, and later steps of a chain leave them unchanged. `opens` is True if the section
    begins a turn of a conversation, even after a turn with the same role.
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
    """A solved example before the item."""

    sections: tuple[Section, ...]
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program that is executed to judge generated code.

    `prefix` is the code before the model's code: imports, helpers, the signature. `tests` define
    `check(candidate)`. `entry_point` is the expression that is passed as the candidate.
    """

    prefix: str
    tests: str
    entry_point: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An item as structured sections. It includes the target, because a perturbation may move it.

    `target` is the index of the right choice, or the expected text. `program` is for code. Changes
    of the wording leave it unchanged, changes of the code change it too. `schema` is for answers
    with several parts. `renames` maps the new names of tools and parameters to the old ones.
    `contrast` is the user's own version with another meaning, as JSON. If `other` is True, the
    right answer is only known to differ from the clean prompt's.
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
        """Return the prompt with other sections, three times faster than `dataclasses.replace`."""
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
        """Return everything that distinguishes two prompts, as plain JSON."""
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
        """Return the 32 bytes of the id."""
        return raw_digest(
            "item", self.task, self.key, dict(self.fields), self.choices, self.target, self.tags
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Decoding settings of a model."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int | None = None

    def identity(self) -> list[Any]:
        return [self.temperature, self.top_p, self.max_tokens, self.stop, self.seed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One perturbation of a recipe, with the values of all parameters.

    `reasons`: it asks for reasoning before the answer. `effect`: it keeps or changes the meaning.
    Both are no part of the identity, because name and version imply them.
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
    """A chain of steps, with the other settings of its condition. `label` is for display only.

    `template` is the source of another template. `sampling` holds the settings that differ from the
    run's. `demonstrations` is another number of examples, `examples` the number of another set of
    them. `output_format` is the required form of the answer. `repeat` shifts the repeat index: the
    `identity` condition repeats the baseline.
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
        """Return True if it changes more than the text: template, demonstrations or sampling."""
        others = (self.template, self.demonstrations, self.examples or None)
        sampling = any(name != "max_tokens" for name in self.sampling or ())
        return sampling or any(other is not None for other in others)

    @property
    def reasons(self) -> bool:
        """Return True if it asks for reasoning before the answer."""
        return any(step.reasons for step in self.steps)

    @property
    def controls(self) -> bool:
        """Return True if it changes the meaning, so that the answer has to change."""
        return any(step.effect == "change" for step in self.steps)

    @property
    def asks_for_a_reply(self) -> bool:
        """Return True if it affects the answer that a model writes."""
        return bool(self.sampling) or self.output_format is not None or self.reasons

    @property
    def perturbs(self) -> bool:
        """Return True if the prompt or the settings may differ from the baseline's."""
        return bool(self.steps) or self.sets


BASELINE = Recipe(label="baseline")
CUT = frozenset({"length", "unclosed_reasoning"})
"""Finish reasons of a truncated response."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The concrete prompt of one item, recipe and draw."""

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
    """A model behind a client, without API keys.

    `simulated` is True if there is no language model. It is no part of the identity, because the
    client's name implies it.
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

    `answers` restricts the response to one of these texts, () to any number; None is no
    restriction. `tools` are offered to the model, each as one line of JSON.
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
        """Return True if this requests log-likelihoods instead of text."""
        return bool(self.continuations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationScore:
    """The log-likelihood of one continuation, over its `tokens`.

    `greedy` is True if every token was the most likely one, None if this is unknown.
    """

    logprob: float
    tokens: int
    greedy: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that are paid for.

    `completion_tokens` include `reasoning_tokens`; `prompt_tokens` include `cached_tokens`.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool. `arguments` is the model's text, which may be invalid JSON."""

    name: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The response to a request key; `failure` is set if nothing usable arrived.

    `reasoning` is text that the model wrote before the answer. It is never scored. `value` is a
    score that a function under test returned with its answer. `calls` are the tool calls that an
    API returned separately from the text.
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
        """Return True if the token limit was reached before the answer, usually by reasoning."""
        said = self.scores or self.calls or (self.text or "").strip()
        return self.failure is None and not said and self.finish_reason in CUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A text rewritten by a model or a person; `text` is set only if the status is `ok`.

    `key` hashes the request: perturbation, version, parameters, source text and draw. `author` is
    the model's label or the person's name.
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
    """A scorer's judgement of one response; `value` is set only if the outcome is `scored`.

    `tier` is `stated` if the response is the answer or marks it, and `inferred` if the answer was
    extracted from prose. It is None if the scorer extracts no answer.
    """

    scorer: str
    outcome: Outcome
    value: float | None = None
    extracted: str | None = None
    reason: str | None = None
    tier: Tier | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval, counts and provenance. If it is undefined, `value` is None.

    `status` gives the reason. If it is `too_few_clusters`, the value is known but has no interval.
    `clusters` and `design_effect` are None for items without clusters. `informative` is the number
    of items on the rarer side of a mean between 0 and 1. Below 20 the interval is deliberately
    wide.
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
    """The form of a panel's requests: log-likelihoods, chat messages or plain text.

    If `constrained` is True, the model may only reply with one of `answers`. An empty tuple allows
    any number, None the labels of the options.
    """

    asking: Asking
    sampling: Sampling
    constrained: bool = False
    answers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One model on one task, with one scorer: a table of items × recipes."""

    task: str
    revision: str
    model: Model
    scorer: str

    def identity(self) -> list[Any]:
        return [self.task, self.revision, self.model.id, self.scorer]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A frozen experiment with its plan.

    Its stored responses can be analysed again without a model.
    """

    experiment: Mapping[str, Any]
    version: str
    seed: int
    recipes: tuple[Recipe, ...]
    panels: tuple[Panel, ...]
    draws: int = 1
    repeats: int = 1
    origin: Mapping[str, str] = field(default_factory=dict, compare=False)
    """For display, no part of the identity: the name of its `data`, the `command`, `cells`."""
    ways: tuple[Way, ...] = field(default=(), compare=False)
    """One for each panel.

    They are no part of the identity: the keys of the requests contain them.
    """

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
