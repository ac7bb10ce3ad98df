"""The settings of an experiment file as types, for `falter.run(**settings)`.

Made from the table of settings by `python tests/support/experiment_page.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Required, TypedDict

RecipeSettings = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
"""A perturbation's name, a mapping of it to its parameters, or a chain of these."""


class DataFrame(Protocol):
    """A data frame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""


Rows = Sequence[Mapping[str, Any]] | DataFrame
"""Items in memory, for `falter.run`: a list of dictionaries, or a data frame."""


class Columns(TypedDict, total=False):
    """The columns of your own data."""

    target: str | None
    target_as: Literal["auto", "index", "label", "text"] | None
    choices: str | Sequence[str] | None
    fields: Mapping[str, str] | None
    key: str | None
    drop_duplicates: bool | None
    tags: str | Sequence[str] | None
    split: str | None
    turns: Literal["last", "all"] | None
    join: str | None
    each: str | None


class DataSettings(Columns, total=False):
    """Your own data."""

    path: Required[str]


class PriceSettings(TypedDict, total=False):
    """A price."""

    input: float | None
    output: float | None
    currency: str | None
    cached: float | None
    batch: float | None


class Reach(TypedDict, total=False):
    """The way to reach a model."""

    base_url: str | None
    api: Literal["chat", "completions"] | None
    api_key_env: str | None
    concurrency: int | None
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float | None
    max_attempts: int | None
    price: PriceSettings | None
    headers: Mapping[str, Any] | None
    options: Mapping[str, Any] | None


class ModelSettings(Reach, total=False):
    """A model."""

    name: Required[str]
    scorer: str | None


class Writing(TypedDict, total=False):
    """The way responses are sampled."""

    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    stop: str | Sequence[str] | None


class SamplingSettings(Writing, total=False):
    """Sampling."""

    seed: int | None


class EngineSettings(TypedDict, total=False):
    """Worker processes."""

    name: Required[Literal["ray"]]
    actors: int | None
    gpus: float | None


class BudgetSettings(TypedDict, total=False):
    """Budget of a gate."""

    calls: int | None
    usd: float | None


class GateSettings(TypedDict, total=False):
    """A gate."""

    max_drop: float | Mapping[str, float] | None
    max_regression: float | None
    min_score: float | None
    keep: float | None
    follow: float | None
    max_unread: float | None
    level: float | None
    fail_level: float | None
    looks: int | None
    fail_above: Literal["zero", "margin"] | None
    budget: BudgetSettings | None
    cluster: str | None
    discordance: float | None
    undecided: Literal["fail", "neutral", "pass"] | None


class RowsSettings(Columns, total=False):
    """Your own data in memory."""

    rows: Required[Rows]


AnyModel = str | Callable[..., Any] | ModelSettings
"""A model's name, a function that answers, or a mapping of how to reach a model."""


class ExperimentSettings(Columns, Reach, Writing, total=False):
    """An experiment, or a protocol."""

    task: str | Sequence[str] | None
    tasks: str | Sequence[str] | None
    data: str | DataSettings | RowsSettings | Rows | None
    template: str | Mapping[str, str] | None
    template_file: str | Sequence[str] | None
    models: AnyModel | Sequence[AnyModel] | None
    recipes: RecipeSettings | Sequence[RecipeSettings] | None
    grid: Mapping[str, Sequence[Any]] | None
    scorer: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None
    labels: str | Sequence[str] | None
    same: Literal["auto", "call", "choice", "label", "number", "text"] | None
    ignore_arguments: str | Sequence[str] | None
    calls: Literal["any", "native"] | None
    keep_line: float | None
    read_line: float | None
    limit: int | None
    demonstrations: int | None
    perturb_demonstrations: bool | None
    remedy: str | None
    draws: int | None
    repeats: int | None
    budget: int | str | None
    seed: int | None
    sampling: SamplingSettings | None
    protect: str | Sequence[str] | None
    language: str | None
    rewriter: str | ModelSettings | None
    rewrites: str | None
    reader: str | ModelSettings | None
    unparsed: Literal["wrong", "excluded"] | None
    batch: bool | None
    engine: Literal["ray"] | EngineSettings | None
    level: float | None
    protocol: str | None
    preset: str | None
    parts: str | Sequence[str] | None
    remedies: str | Sequence[str] | None
    judge: str | ModelSettings | Sequence[str | ModelSettings] | None
    rubrics: str | None
    gate: GateSettings | None
    model: AnyModel | None
