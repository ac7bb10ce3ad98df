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
    input=Setting("the price of a million tokens of prompts", low=0, default=0.0),
    output=Setting("the price of a million tokens of answers", low=0, default=0.0),
    currency=Setting("the currency of these"),
    cached=Setting("the price of a million tokens of a beginning that the provider kept", low=0),
    batch=Setting("the share of these that a batch costs", low=0, high=1, default=0.5),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model by name, and how to reach it."""

    name: str = setting("the client, then a colon and its name for the model", default=MISSING,
        names="clients", off="openai:gpt-4o-mini",
        required="for example 'smollm2' or 'openai:gpt-4o-mini'")
    base_url: str | None = setting("where an OpenAI-compatible server listens", "--base-url",
        metavar="URL", off="http://localhost:8000/v1")
    api: str | None = setting("which API of the server to use", "--api", without="chat",
        shape=Value(str, words=("chat", "completions")))
    api_key_env: str | None = setting("the environment variable that holds the key",
        "--api-key-env", metavar="NAME", off="OPENAI_API_KEY")
    concurrency: int | None = setting("requests in flight at once", "--concurrency", low=1,
        high=4096, off="64", without="64")
    requests_per_minute: float | None = setting("requests per minute, at most", "--rpm",
        low=0.001, off="600")
    tokens_per_minute: float | None = setting("tokens per minute, at most", "--tpm", low=1)
    timeout: float | None = setting("seconds a request may take", "--timeout", low=0.001,
        high=86_400, without="60")
    max_attempts: int | None = setting("how often a request is sent before it counts as failed",
        "--max-attempts", low=1, high=100, without="6")
    price: Price | None = setting("what a million tokens cost, for the estimate and the meter",
        shape=PRICE, off="{input: 0.15, output: 0.60}")
    scorer: str | None = setting("how this model's answers are scored, if not like the others'",
        names="scorers")
    headers: Mapping[str, str] | None = setting("further headers, as names of variables",
        shape=Headers(), off="{X-Team: TEAM_TOKEN}")
    options: Mapping[str, Any] = setting("settings of this client only, such as fields of "
        "the request", "--option", shape=NamedValues(), metavar="NAME=VALUE", factory=dict)


MODEL = Block(ModelSpec)
REACHED_BY = ("base_url", "api", "api_key_env")


class InRole(Block[ModelSpec]):
    """The settings of a model that judges, reads or rewrites; its options carry the role's name."""

    def __init__(self, role: str) -> None:
        super().__init__(ModelSpec)
        self.settings = tuple(
            replace(s, help=f"the {role}'s: {s.help}",
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
    target=Setting("the column with the right answer", "--target", metavar="COLUMN", off="answer"),
    target_as=Setting("how that column names the right option", "--target-as"),
    choices=Setting("the column that holds the options, or one column for each", "--choices",
        shape=Columns(tuple), metavar="COLUMN", off="options"),
    fields=Setting("the column for a placeholder, if their names differ", "--field",
        shape=Placeholders(), metavar="NAME=COLUMN", off="{question: text}"),
    key=Setting("column of unique keys; else id, key, question_id, name or content", "--key",
        metavar="COLUMN", off="id"),
    drop_duplicates=Setting("keep the first of rows that are the same", "--drop-duplicates",
        off="true"),
    tags=Setting("columns to keep with an item; the first is its family"),
    split=Setting("the split of a data set from the hub"),
    turns=Setting("of conversations: ask for the last turn of the assistant, or for each"),
    join=Setting("what stands between two documents of a conversation"),
    each=Setting("how a document of a conversation is written, as in '[{n}] {text}'"),
)

SAMPLING = Block(
    Sampling,
    temperature=Setting("how random answers are; 0 for the likeliest", "--temperature",
        low=0, high=2, off="0"),
    top_p=Setting("the share of the probability that answers are drawn from", low=0.000001, high=1),
    max_tokens=Setting("the longest answer, in tokens", "--max-tokens", low=1, high=1_000_000,
        off="256", default=0, without="what the task and the scorer need"),
    stop=Setting("texts that end an answer"),
    seed=Setting("the seed that is sent to the server", low=0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """Processes that hold the models, and how many."""

    name: Literal["ray"] = setting("what starts them", default=MISSING, off="ray",
        required="for example ray")
    actors: int | None = setting("how many processes for each model", "--actors", low=1,
        high=10_000, off="8", without="one for each GPU, else one a machine")
    gpus: float | None = setting("how many GPUs each has", "--actor-gpus", low=0, high=64,
        off="1", without="one, where the model runs in the process and there are any")


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
        above="What is asked: a task by name …",
        also=(Setting("a task by name, such as basics", "-t --task", names="tasks",
            instead=("data", "template")),))
    data: DataSpec | None = setting("your own items: a .jsonl, .json, .csv, .tsv or .parquet file, "
        "or hub:NAME", "--data", shape=DATA, metavar="FILE", instead=("tasks",),
        above="… or your own items and your own prompt:")
    template: Prompts | None = setting("your words are the instruction, "
        "{placeholders} the input", shape=Template(), identity="always", off=A_TEMPLATE,
        also=(Setting("the file with your prompt, a text with {placeholders}; of several, each is "
            "asked, for 'falter compare'", "--template",
            shape=TemplateFile(), name="template_file", metavar="FILE"),))
    models: tuple[ModelSpec, ...] = setting("a model, such as smollm2, openai:NAME or simulated",
        "-m --model", default=(), shape=Many(Model(), MODEL), on=SOME_MODELS, above="Who answers.",
        required="name at least one, for example 'smollm2'")
    recipes: tuple[tuple[StepSpec, ...], ...] = setting("a perturbation, such as typos or "
        "typos:count=4; a+b is a chain", "-r --recipe", default=(), shape=Many(RecipeSteps()),
        without="a set of rule-made ones, and identity", on=SOME_RECIPES,
        above="How the prompt changes. The clean prompt is always asked.")
    grid: GridLevels | None = setting("every combination of the levels of these factors: template, "
        "demonstrations, temperature, or a name of yours with perturbations", "--grid",
        shape=Grid(), metavar="FACTOR=LEVEL,…", identity="when set",
        off="{template: [own, other], demonstrations: [2, 4], noise: [none, replace_spaces]}",
        above="Instead of recipes: a grid. Its first levels are the baseline.",
        instead=("recipes",))
    scorer: ScorerNames | None = setting("how answers are scored; "
        "TASK=NAME for one task only", "--scorer", shape=Scorers(), metavar="NAME",
        without="what fits task and model", off="choice_letter")
    labels: tuple[str, ...] = setting("the labels of a closed set, one of which is the answer",
        "--labels", default=(), shape=Columns(tuple), metavar="A,B,C",
        without="the different targets", off="[billing, login, other]")
    same: Literal["auto", "call", "choice", "label", "number", "text"] | None = setting(
        "compare every answer with that to the clean prompt, read as this", "--same",
        shape=SameAs(),
        identity="when set", without="compare with the right answers", off="call")
    ignore_arguments: tuple[str, ...] = setting("arguments of tools that may be anything",
        "--ignore-arguments", shape=Columns(tuple), default=(), metavar="A,B,C",
        identity="when set", off="[reason]")
    calls: Literal["any", "native"] = setting("native: take no call of a tool from a reply's text",
        "--calls", default="any", identity="when set", off="native")
    keep_line: float = setting("percent of answers that a robust model keeps", default=90.0,
        low=50, high=99.9, identity="when set", off="90")
    read_line: float = setting("percent of changed meanings that a robust model follows",
        default=80.0, low=1, high=99.9, identity="when set", off="80")
    limit: int | None = setting("how many items of each task to ask, drawn with the seed",
        "--limit", low=1, identity="always", without="all", on="60")
    demonstrations: int = setting("solved examples before each item; they are not asked themselves",
        "--demonstrations", default=0, low=0, high=64, identity="always", off="5")
    perturb_demonstrations: bool = setting("let recipes change the demonstrations too",
        "--perturb-demonstrations", default=False, identity="when set", off="true")
    remedy: str | None = setting("a remedy for every prompt, or a text with {prompt} in it",
        "--remedy", names="remedies", identity="when set", metavar="NAME", without="nothing",
        off="tidy_lines")
    draws: int = setting("how many random versions of each recipe to ask", "--draws",
        default=1, low=1, high=10_000, on="1")
    repeats: int = setting("how often to send every request", "--repeats", default=1, low=1,
        high=10_000, on="1")
    budget: int | str | None = setting("the most requests, or '5 USD': a random part is asked",
        "--budget", shape=Budget(),
        identity="when set", without="all", metavar="N", off="2000")
    seed: int = setting("the seed of everything random", "--seed", default=0, low=0, on="0")
    sampling: Sampling | None = setting("how answers are written", shape=SAMPLING,
        identity="always")
    protect: tuple[str, ...] = setting("text that no recipe may change, as a regular expression",
        "--protect", default=(), identity="always", off=r"['ACME-\d+']")
    language: str | None = setting("the language of the texts, for word noise", "--language",
        identity="always", without="en", off="de")
    rewriter: ModelSpec | None = setting("the model whose paraphrases, tones or translations "
        "are used", "--rewriter", shape=Model(InRole("rewriter")), metavar="NAME",
        off="openai:gpt-4o-mini")
    rewrites: str | None = setting("a file of rewrites, which go before those of the store",
        "--rewrites", shape=File(), metavar="FILE", off="bank.jsonl")
    reader: ModelSpec | None = setting("the model that reads replies which are inferred or "
        "unparsed", "--reader", shape=Model(InRole("reader")), metavar="NAME",
        off="openai:gpt-4o-mini")
    unparsed: Literal["wrong", "excluded"] = setting("how unreadable answers count",
        "--unparsed", default="wrong", identity="always", on="wrong")
    batch: bool = setting("ask in the provider's batches: half the price, within a day",
        "--batch", default=False, off="true")
    engine: EngineSpec | None = setting("hold the models in processes of their own, here or on "
        "a cluster: ray", "--engine", shape=ENGINE, metavar="ray")
    level: float = setting("the level of the intervals", default=0.95, low=0.5, high=0.9999,
        identity="always", on="0.95")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Settings beside those of an experiment: a whole protocol, or a gate."""

    protocol: str | None = setting("a whole protocol, such as brittlebench", "--protocol",
        names="protocols", off="brittlebench",
        above="… or, instead of task and recipes, a whole protocol:")
    preset: str | None = setting("the size of a protocol, such as quick or paper", "--preset",
        without="the protocol's first", off="quick")
    parts: tuple[str, ...] = setting("the parts of a protocol to run, by name", "--part",
        default=(), metavar="NAME", without="all of them", off="[zero-shot, pairs]")
    remedies: tuple[str, ...] = setting("the remedies to compare, if a protocol does so",
        "--remedies", default=(), shape=Columns(tuple), metavar="A,B,C", without="all of them",
        off="[tidy_lines, restate]")
    judges: tuple[ModelSpec, ...] = setting("the model that rates replies, or several that each "
        "rate the same", "--judge", name="judge", default=(),
        shape=Judges(Model(), InRole("judge")), metavar="NAME", off="openai:gpt-4o")
    rubrics: str | None = setting("a file with rubrics of your own for the judge, by name",
        "--rubrics", shape=File(), metavar="FILE", without="the protocol's", off="rubrics.yaml")
    gate: GateSpec | None = setting("what must hold for 'falter gate', which other commands leave "
        "alone", shape=GATE, above="What must hold, for 'falter gate'.")


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
