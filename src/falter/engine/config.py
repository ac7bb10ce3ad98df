"""The experiment as a file, the command line or Python set it, checked but not yet resolved.

The table of settings is here. To add one, add a field: the options, the reader, the schema, the
example, the identity of a run and the page about it follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from falter.engine.gate_settings import GATE, GateSpec
from falter.engine.setting_types import (
    Budget,
    Columns,
    File,
    Grid,
    GridLevels,
    Headers,
    NamedValues,
    Place,
    Placeholders,
    RecipeSteps,
    Scorers,
    Shape,
    StepSpec,
    Template,
    TemplateFile,
    Value,
)
from falter.engine.settings import Block, Many, Setting, options_of, setting
from falter.records.errors import InvalidValue, UsageError, refusal
from falter.records.planning import Price
from falter.records.types import Sampling
from falter.scorers.choosing import ScorerNames
from falter.tasks.rows import DataSpec, holds_chats, target_column

# The table

# fmt: off
PRICE = Block(
    Price,
    input=Setting("price of a million prompt tokens", low=0, default=0.0),
    output=Setting("price of a million response tokens", low=0, default=0.0),
    currency=Setting("currency of the prices"),
    cached=Setting("price of a million prompt tokens that the provider had cached", low=0),
    batch=Setting("share of the prices that a batch request costs", low=0, high=1, default=0.5),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model by name, and how to reach it."""

    name: str = setting("the client, a colon, and the client's name for the model", default=MISSING,
        names="clients", off="openai:gpt-4o-mini",
        required="for example 'smollm2' or 'openai:gpt-4o-mini'")
    base_url: str | None = setting("base URL of an OpenAI-compatible server", "--base-url",
        metavar="URL", off="http://localhost:8000/v1")
    api: str | None = setting("API of the server", "--api", without="chat",
        shape=Value(str, words=("chat", "completions")))
    api_key_env: str | None = setting("environment variable that holds the API key",
        "--api-key-env", metavar="NAME", off="OPENAI_API_KEY")
    concurrency: int | None = setting("maximum number of concurrent requests", "--concurrency",
        low=1, high=4096, off="64", without="64")
    requests_per_minute: float | None = setting("maximum number of requests per minute", "--rpm",
        low=0.001, off="600")
    tokens_per_minute: float | None = setting("maximum number of tokens per minute", "--tpm", low=1)
    timeout: float | None = setting("maximum duration of a request, in seconds", "--timeout",
        low=0.001, high=86_400, without="60")
    max_attempts: int | None = setting("attempts before a request counts as failed",
        "--max-attempts", low=1, high=100, without="6")
    price: Price | None = setting("price per million tokens, for the cost estimate",
        shape=PRICE, off="{input: 0.15, output: 0.60}")
    scorer: str | None = setting("scorer for this model only",
        names="scorers")
    headers: Mapping[str, str] | None = setting("further HTTP headers, from environment variables",
        shape=Headers(), off="{X-Team: TEAM_TOKEN}")
    options: Mapping[str, Any] = setting("client-specific setting, such as a field of the request",
        "--option", shape=NamedValues(), metavar="NAME=VALUE", factory=dict)


MODEL = Block(ModelSpec)
REACHED_BY = ("base_url", "api", "api_key_env")


class InRole(Block[ModelSpec]):
    """The settings of a model that judges, reads or rewrites; its options carry the role's name."""

    def __init__(self, role: str) -> None:
        super().__init__(ModelSpec)
        self.settings = tuple(
            replace(s, help=f"for the {role}: {s.help}",
                option=f"--{role}-{s.flag[2:]}" if s.name in REACHED_BY else "")
            for s in self.settings
        )


class SameAs(Value):
    """Ways to compare an answer with the clean one; those that a model would decide are refused."""

    def __init__(self) -> None:
        super().__init__(str, words=("auto", "call", "choice", "label", "number", "text"))

    def parse(self, value: Any, place: Place) -> Any:
        if value in ("meaning", "judge"):
            raise UsageError(
                f"{place.name} is '{value}', but falter compares answers only by rule",
                hint="compare the texts with --same text, or the extracted answers with --same "
                "label or --same number",
            )
        return super().parse(value, place)


class Model(Shape[ModelSpec]):
    """A model by its name, or a mapping with how to reach it."""

    expected = "a model's name, or a mapping with its name and how to reach it"

    def __init__(self, block: Block[ModelSpec] | None = None) -> None:
        self.block = block

    def parse(self, value: Any, place: Place) -> ModelSpec:
        return MODEL.parse({"name": value} if isinstance(value, str) else value, place)

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        """A name; the file's settings of that model stay."""
        same = isinstance(before, Mapping) and before.get("name") == value
        return before if same else {"name": Value(str).parse(value, place)}




class Judges(Many[ModelSpec]):
    """Models that judge; a single one is written, kept and hashed without a list."""

    def parse(self, value: Any, place: Place) -> tuple[ModelSpec, ...]:
        if not isinstance(value, (list, tuple)):
            return (self.entry.parse(value, place),)
        return super().parse(value, place)

    def typed(self, value: Any, place: Place, before: Any = None) -> Any:
        known = {
            entry["name"]: entry
            for entry in (before if isinstance(before, (list, tuple)) else [before])
            if isinstance(entry, Mapping) and "name" in entry
        }
        typed = [self.entry.typed(name, place, known.get(name)) for name in value]
        return typed[0] if len(typed) == 1 else typed


class Data(Block[DataSpec]):
    """A mapping, or the file alone, whose target is then the one column that is called so."""

    def values(self, data: Any, place: Place, *, complete: bool = True) -> dict[str, Any]:
        if isinstance(data, str):
            path = self.settings[0].shape.parse(data, place.at("path"))
            data = {"path": data, "target": target_column(path)}
        values = super().values(data, place, complete=complete)
        path = values.get("path", "hub:")
        if "target" not in values and not path.startswith("hub:") and holds_chats(path):
            values["target"] = target_column(path)
        return values


DATA = Data(
    DataSpec,
    path=Setting("a .jsonl, .json, .csv, .tsv or .parquet file, or hub:NAME",
        shape=File("hub:", "memory:"), off="my.jsonl",
        required="give the file that holds the items"),
    target=Setting("column with the right answer", "--target", metavar="COLUMN", off="answer"),
    target_as=Setting("how the target column gives the right option", "--target-as"),
    choices=Setting("column with the list of options, or one column per option", "--choices",
        shape=Columns(tuple), metavar="COLUMN", off="options"),
    fields=Setting("column that fills a placeholder, if their names differ", "--field",
        shape=Placeholders(), metavar="NAME=COLUMN", off="{question: text}"),
    key=Setting("unique key column; otherwise id, key, question_id, name or content", "--key",
        metavar="COLUMN", off="id"),
    drop_duplicates=Setting("keep only the first of identical rows", "--drop-duplicates",
        off="true"),
    tags=Setting("columns to keep with an item; the first one is its family"),
    split=Setting("split of a data set from the hub"),
    turns=Setting("conversations: request the last assistant turn only, or every one"),
    join=Setting("conversations: text between two documents"),
    each=Setting("conversations: format of a document, such as '[{n}] {text}'"),
)

SAMPLING = Block(
    Sampling,
    temperature=Setting("sampling temperature; 0 gives the most likely response", "--temperature",
        low=0, high=2, off="0"),
    top_p=Setting("share of the probability to sample from (nucleus)", low=0.000001, high=1),
    max_tokens=Setting("maximum length of a response, in tokens", "--max-tokens", low=1,
        high=1_000_000, off="256", default=0, without="as long as the task and the scorer need"),
    stop=Setting("texts that end a response"),
    seed=Setting("sampling seed that is sent to the server", low=0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """Processes that hold the models, and how many."""

    name: Literal["ray"] = setting("system that starts the processes", default=MISSING, off="ray",
        required="for example ray")
    actors: int | None = setting("number of processes for each model", "--actors", low=1,
        high=10_000, off="8", without="one per GPU, or one per machine without GPUs")
    gpus: float | None = setting("number of GPUs for each process", "--actor-gpus", low=0, high=64,
        off="1", without="one, if the model runs in the process and there are GPUs")


class Engine(Block[EngineSpec]):
    """A mapping, or the name alone."""

    def values(self, data: Any, place: Place, *, complete: bool = True) -> dict[str, Any]:
        mapping = {"name": data} if isinstance(data, str) else data
        return super().values(mapping, place, complete=complete)


ENGINE = Engine(EngineSpec)

A_TEMPLATE = """\
|
  Answer the question.

  {question}
  Answer:"""

SOME_MODELS = """
  - smollm2                   # the embedded model: no key, no network after the first use"""

SOME_RECIPES = """
  - typos                     # a share of the words, by default half of them
  - typos: {count: 2}         # or exactly two
  - drop_stop_words
  - persona
  - pad_newlines
  - [word_merge, pad_quotes]  # a chain; the order matters
  - identity                  # the same prompt again: the noise floor
"""


Prompts = str | Mapping[str, str] | tuple[tuple[str, str], ...]
"""A template, whole or in parts; or several, each with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Everything that defines a run, with names that are not yet looked up."""

    tasks: tuple[str, ...] = setting("a task by name, or several", name="task", names="tasks",
        default=(), instead=("data", "template"), on="basics",
        above="The items: a task by name …",
        also=(Setting("a task by name, such as basics", "-t --task", names="tasks",
            instead=("data", "template")),))
    data: DataSpec | None = setting("your own items: a .jsonl, .json, .csv, .tsv or .parquet file, "
        "or hub:NAME", "--data", shape=DATA, metavar="FILE", instead=("tasks",),
        above="… or your own items and your own prompt:")
    template: Prompts | None = setting("the prompt: words are the instruction, {placeholders} the "
        "input", shape=Template(), identity="always", off=A_TEMPLATE,
        also=(Setting("file with your prompt, a text with {placeholders}; with several, each "
            "prompt is sent, for 'falter compare'", "--template", shape=TemplateFile(),
            name="template_file", metavar="FILE"),))
    models: tuple[ModelSpec, ...] = setting("a model, such as smollm2, openai:NAME or simulated",
        "-m --model", default=(), shape=Many(Model(), MODEL), on=SOME_MODELS, above="The models.",
        required="name at least one, for example 'smollm2'")
    recipes: tuple[tuple[StepSpec, ...], ...] = setting("a perturbation, such as typos or "
        "typos:count=4, or a chain a+b", "-r --recipe", default=(), shape=Many(RecipeSteps()),
        without="rule-based perturbations, and identity", on=SOME_RECIPES,
        above="How the prompt changes. The clean prompt is always sent as well.")
    grid: GridLevels | None = setting("all combinations of the levels of several factors: "
        "template, demonstrations, temperature, or a name of your own with perturbations as levels",
        "--grid", shape=Grid(), metavar="FACTOR=LEVEL,…", identity="when set",
        off="{template: [own, other], demonstrations: [2, 4], noise: [none, replace_spaces]}",
        above="Instead of recipes: a grid of factors. The first levels are the baseline.",
        instead=("recipes",))
    scorer: ScorerNames | None = setting("scorer of the responses; TASK=NAME for one task only",
        "--scorer", shape=Scorers(), metavar="NAME", without="chosen by task and model",
        off="choice_letter")
    labels: tuple[str, ...] = setting("labels of a closed set; the answer is one of them",
        "--labels", default=(), shape=Columns(tuple), metavar="A,B,C",
        without="the distinct targets", off="[billing, login, other]")
    same: Literal["auto", "call", "choice", "label", "number", "text"] | None = setting(
        "compare each answer with the clean prompt's answer, as this type", "--same",
        shape=SameAs(),
        identity="when set", without="compare with the right answers", off="call")
    ignore_arguments: tuple[str, ...] = setting("tool arguments that may have any value",
        "--ignore-arguments", shape=Columns(tuple), default=(), metavar="A,B,C",
        identity="when set", off="[reason]")
    calls: Literal["any", "native"] = setting("native: ignore tool calls in the text of a response",
        "--calls", default="any", identity="when set", off="native")
    keep_line: float = setting("percent of answers that a robust model must keep", default=90.0,
        low=50, high=99.9, identity="when set", off="90")
    read_line: float = setting("percent of changed meanings that a robust model must follow",
        default=80.0, low=1, high=99.9, identity="when set", off="80")
    limit: int | None = setting("number of items of each task, drawn with the seed",
        "--limit", low=1, identity="always", without="all", on="60")
    demonstrations: int = setting("solved examples before each item; these are not evaluated",
        "--demonstrations", default=0, low=0, high=64, identity="always", off="5")
    perturb_demonstrations: bool = setting("perturb the demonstrations too",
        "--perturb-demonstrations", default=False, identity="when set", off="true")
    remedy: str | None = setting("remedy (mitigation) for every prompt, or a text with {prompt}",
        "--remedy", names="remedies", identity="when set", metavar="NAME", without="none",
        off="tidy_lines")
    draws: int = setting("number of random variants of each perturbation", "--draws",
        default=1, low=1, high=10_000, on="1")
    repeats: int = setting("number of times that each request is sent", "--repeats", default=1,
        low=1, high=10_000, on="1")
    budget: int | str | None = setting("maximum requests, or an amount like '5 USD'; sends a "
        "random sample", "--budget", shape=Budget(), identity="when set", without="all",
        metavar="N", off="2000")
    seed: int = setting("seed of all random numbers", "--seed", default=0, low=0, on="0")
    sampling: Sampling | None = setting("how responses are sampled", shape=SAMPLING,
        identity="always")
    protect: tuple[str, ...] = setting("regular expression: matching text is not perturbed",
        "--protect", default=(), identity="always", off=r"['ACME-\d+']")
    language: str | None = setting("language of the texts, for noise in words", "--language",
        identity="always", without="en", off="de")
    rewriter: ModelSpec | None = setting("model whose paraphrases, tones or translations are used",
        "--rewriter", shape=Model(InRole("rewriter")), metavar="NAME", off="openai:gpt-4o-mini")
    rewrites: str | None = setting("file of rewrites, used before those in the store",
        "--rewrites", shape=File(), metavar="FILE", off="bank.jsonl")
    reader: ModelSpec | None = setting("model that reads responses whose answer is inferred or "
        "unparsed", "--reader", shape=Model(InRole("reader")), metavar="NAME",
        off="openai:gpt-4o-mini")
    unparsed: Literal["wrong", "excluded"] = setting("how responses without a usable answer count",
        "--unparsed", default="wrong", identity="always", on="wrong")
    batch: bool = setting("use the provider's batch API: half the price, within a day",
        "--batch", default=False, off="true")
    engine: EngineSpec | None = setting("run each model in separate worker processes, on this "
        "machine or on a cluster (ray)", "--engine", shape=ENGINE, metavar="ray")
    level: float = setting("confidence level of the intervals", default=0.95, low=0.5, high=0.9999,
        identity="always", on="0.95")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Settings beside those of an experiment: a whole protocol, or a gate."""

    protocol: str | None = setting("a whole protocol, such as brittlebench", "--protocol",
        names="protocols", off="brittlebench",
        above="… or, instead of task and recipes, a whole protocol:")
    preset: str | None = setting("size of the protocol, such as quick or paper", "--preset",
        without="the protocol's first", off="quick")
    parts: tuple[str, ...] = setting("parts (experiments) of the protocol to run, by name",
        "--part", default=(), metavar="NAME", without="all of them", off="[zero-shot, pairs]")
    remedies: tuple[str, ...] = setting("remedies to compare, if the protocol does so",
        "--remedies", default=(), shape=Columns(tuple), metavar="A,B,C", without="all of them",
        off="[tidy_lines, restate]")
    judges: tuple[ModelSpec, ...] = setting("model that rates responses, or several that rate the "
        "same ones", "--judge", name="judge", default=(), shape=Judges(Model(), InRole("judge")),
        metavar="NAME", off="openai:gpt-4o")
    rubrics: str | None = setting("file with your own rubrics for the judge, by name",
        "--rubrics", shape=File(), metavar="FILE", without="the protocol's", off="rubrics.yaml")
    gate: GateSpec | None = setting("requirements for 'falter gate'; other commands ignore them",
        shape=GATE, above="The requirements, for 'falter gate'.")


EXPERIMENT = Block(Experiment)
STUDY = Block(StudySettings)
# fmt: on


# Reading it


def read_experiment(
    data: Any, *, folder: Path = Path(), needs_models: bool = True, needs_tasks: bool = True
) -> Experiment:
    """Read a mapping. Every value is checked, every unknown name is an error."""
    values = EXPERIMENT.values(data, Place(folder=folder), complete=needs_models)
    experiment = Experiment(**values)
    if not needs_tasks and not experiment.tasks and experiment.data is None:
        return experiment
    return _consistent(experiment)


def read_study_settings(
    data: Mapping[str, Any], folder: Path = Path()
) -> tuple[StudySettings, dict[str, Any]]:
    """A mapping's settings of a protocol, and the others, which are an experiment's."""
    names = {setting.name for setting in STUDY.settings}
    of_study = {name: value for name, value in data.items() if name in names}
    return STUDY.parse(of_study, Place(folder=folder)), {
        k: v for k, v in data.items() if k not in names
    }


def spelled_flat() -> dict[str, tuple[str, Setting]]:
    """The settings that may stand beside their block, as on the command line, and the block.

    `falter.run(data="my.jsonl", target="answer", base_url="http://…")`. A name that is a setting of
    the experiment itself, such as `seed`, means that one.
    """
    known = {setting.name for setting in (*EXPERIMENT.settings, *STUDY.settings)}
    blocks = {
        "data": DATA.settings[1:],
        "models": MODEL.settings[1:],
        "sampling": SAMPLING.settings,
    }
    return {
        setting.name: (name, setting)
        for name, settings in blocks.items()
        for setting in settings
        if setting.name not in known
    }


def overlay(data: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file, with options of the command line in their place, each checked."""
    settings = dict(data)
    for option in (*options_of(EXPERIMENT), *options_of(STUDY)):
        typed = options.get(option.key)
        if typed is None or typed == ():
            continue
        top = option.parent or option.setting
        value = option.over(settings.get(top.name), typed)
        if option.parent is None:
            for other in EXPERIMENT.settings:
                if other.field in (top.field, *top.instead):
                    settings.pop(other.name, None)
        settings[top.name] = value
    return settings


def override(
    experiment: Experiment,
    settings: Mapping[str, Any],
    *,
    folder: Path = Path(),
    needs_tasks: bool = True,
) -> Experiment:
    """The experiment with these settings instead of its own.

    A setting that is None goes back to its default. Tasks replace data and template, data replace
    tasks; a block such as `sampling` is replaced as a whole.
    """
    values = EXPERIMENT.values(settings, Place(folder=folder), complete=False)
    reset = {s.field for s in EXPERIMENT.settings if s.name in settings}
    reset |= {other for s in EXPERIMENT.settings if s.field in values for other in s.instead}
    defaults = {s.field: s.default for s in EXPERIMENT.settings if s.field in reset}
    changed = replace(experiment, **defaults | values)
    return _consistent(changed) if needs_tasks else changed


def _consistent(experiment: Experiment) -> Experiment:
    """The experiment with the first levels of its grid, if it has a task or data of its own."""
    if experiment.grid is not None:
        if experiment.recipes:
            raise InvalidValue(
                "recipes",
                "given together with a grid",
                "either recipes or a grid",
                hint="drop one of the two",
            )
        experiment = _with_first_levels(experiment, experiment.grid)
    if not experiment.tasks and experiment.data is None:
        raise refusal(UsageError, "engine.no_task")
    if experiment.tasks and experiment.data is not None:
        raise UsageError("The experiment sets both 'task' and 'data'", hint="keep one of the two")
    _require_target(experiment)
    if experiment.template is not None and experiment.data is None:
        raise refusal(UsageError, "engine.template_without_data")
    return experiment


def _require_target(experiment: Experiment) -> None:
    """Raise where nothing says what is right; conversations may end in their right answer."""
    data = experiment.data
    if data is None or data.target is not None or experiment.same is not None:
        return
    if not data.path.startswith("hub:") and not holds_chats(data.path):
        raise refusal(UsageError, "engine.no_target")


def _with_first_levels(experiment: Experiment, grid: GridLevels) -> Experiment:
    """The experiment as the first level of every factor sets it."""
    first = {factor: levels[0] for factor, levels in grid}
    if "demonstrations" in first:
        experiment = replace(experiment, demonstrations=first["demonstrations"])
    if "temperature" in first:
        sampling = experiment.sampling or Sampling(max_tokens=0)
        sampling = replace(sampling, temperature=first["temperature"])
        experiment = replace(experiment, sampling=sampling)
    return experiment


def listed(recipes: Any) -> tuple[Any, ...]:
    """Recipes as an experiment file has them: one, or a list."""
    return tuple(recipes) if isinstance(recipes, (list, tuple)) else (recipes,) if recipes else ()


def identity_settings(experiment: Experiment) -> dict[str, Any]:
    """The settings that change a run's numbers and are in no other field of it."""
    identity: dict[str, Any] = {}
    for entry in EXPERIMENT.settings:
        value = getattr(experiment, entry.field)
        if entry.identity == "always" or (entry.identity == "when set" and value != entry.default):
            value = value.identity() if isinstance(value, Sampling) else value
            identity[entry.field] = list(value) if isinstance(value, tuple) else value
    return identity
