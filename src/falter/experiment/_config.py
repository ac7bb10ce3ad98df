"""The experiment: what a file, the command line or Python say, checked but not yet resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import yaml

from falter.core.errors import InvalidValue, UsageError
from falter.core.records import Sampling
from falter.experiment._reader import Reader
from falter.plan import Price
from falter.tasks import DataSpec, read_template_file

__all__ = [
    "Experiment",
    "ModelSpec",
    "StepSpec",
    "read_experiment",
    "read_file",
    "read_model",
    "read_settings",
]

Unparsed = Literal["wrong", "excluded"]
DEFAULT_MAX_TOKENS = 0  # replaced by what the scorer needs
StepSpec = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A model by name, and how to reach it."""

    name: str
    base_url: str | None = None
    api: str | None = None
    api_key_env: str | None = None
    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float | None = None
    max_attempts: int | None = None
    price: Price | None = None
    scorer: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Everything that defines a run, in the user's own names."""

    models: tuple[ModelSpec, ...]
    tasks: tuple[str, ...] = ()
    data: DataSpec | None = None
    template: str | Mapping[str, str] | None = None
    recipes: tuple[tuple[StepSpec, ...], ...] = ()
    scorer: str | None = None
    limit: int | None = None
    demonstrations: int = 0
    perturb_demonstrations: bool = False
    draws: int = 1
    repeats: int = 1
    seed: int = 0
    level: float = 0.95
    unparsed: Unparsed = "wrong"
    sampling: Sampling | None = None
    protect: tuple[str, ...] = ()
    language: str | None = None
    rewriter: ModelSpec | None = None
    rewrites: str | None = None
    source: Mapping[str, Any] = field(default_factory=dict)


def read_file(path: Path | str, *, needs_models: bool = True) -> Experiment:
    """Read an experiment file. Paths in it are relative to the file."""
    return read_experiment(read_settings(path), folder=Path(path).parent, needs_models=needs_models)


def read_settings(path: Path | str) -> Mapping[str, Any]:
    """The mapping that an experiment file holds, not checked yet."""
    path = Path(path)
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise UsageError(
            f"The experiment file {path} does not exist", hint="write one with 'falter init'"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The experiment file {path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path} is not YAML: {error}", hint="check the indentation") from error
    if data is None:
        raise UsageError(
            f"The experiment file {path} is empty", hint="write one with 'falter init'"
        )
    if not isinstance(data, Mapping):
        raise InvalidValue("the experiment", data, "a mapping of names to values")
    return data


def read_experiment(data: Any, *, folder: Path = Path(), needs_models: bool = True) -> Experiment:
    """Read a mapping. Every value is checked, every unknown name is an error."""
    reader = Reader(data, "")
    if needs_models:
        reader.need("models", "name at least one, for example 'smollm2'")
    tasks = reader.texts("task") + reader.texts("tasks")
    spec = _read_data(reader.child("data"), folder)
    if not tasks and spec is None:
        raise UsageError(
            "The experiment names no task",
            hint="give 'task: basics', or 'data:' with your own file",
        )
    if tasks and spec is not None:
        raise UsageError("The experiment gives both 'task' and 'data'", hint="keep one of the two")
    experiment = Experiment(
        tasks=tasks,
        data=spec,
        template=_read_template(reader, folder),
        models=tuple(
            read_model(entry, f"models[{n}]") for n, entry in enumerate(reader.entries("models"))
        ),
        recipes=tuple(
            _read_recipe(entry, f"recipes[{n}]", folder)
            for n, entry in enumerate(reader.entries("recipes"))
        ),
        scorer=reader.text("scorer"),
        limit=reader.whole("limit", 1),
        demonstrations=reader.whole("demonstrations", 0, 64) or 0,
        perturb_demonstrations=reader.flag("perturb_demonstrations"),
        draws=reader.whole("draws", 1, 10_000) or 1,
        repeats=reader.whole("repeats", 1, 10_000) or 1,
        seed=reader.whole("seed", 0) or 0,
        level=reader.number("level", 0.5, 0.9999) or 0.95,
        unparsed=cast(Unparsed, reader.one_of("unparsed", ("wrong", "excluded")) or "wrong"),
        sampling=_read_sampling(reader.child("sampling")),
        protect=reader.texts("protect"),
        language=reader.text("language"),
        rewriter=_read_rewriter(reader.raw("rewriter")),
        rewrites=_read_path(reader.text("rewrites"), folder),
        source=dict(data),
    )
    reader.finish()
    if experiment.template is not None and spec is None:
        raise UsageError(
            "'template' goes with 'data'; a named task brings its own", hint="drop one of the two"
        )
    return experiment


def _read_data(reader: Reader | None, folder: Path) -> DataSpec | None:
    if reader is None:
        return None
    reader.need("path", "give the file that holds the items")
    path = cast(str, reader.text("path"))
    spec = DataSpec(
        path=path if path.startswith("hub:") else str(folder / path),
        fields={k: str(v) for k, v in reader.mapping("fields").items()},
        choices=reader.texts("choices"),
        target=reader.text("target"),
        target_as=cast(
            Any, reader.one_of("target_as", ("auto", "index", "label", "text")) or "auto"
        ),
        key=reader.text("key"),
        tags=reader.texts("tags"),
        split=reader.text("split") or "test",
    )
    reader.finish()
    if spec.target is None:
        raise UsageError(
            f"{reader.name('target')} is missing",
            hint="name the column that holds the right answer",
        )
    return spec


def _read_template(reader: Reader, folder: Path) -> str | Mapping[str, str] | None:
    file, text = reader.text("template_file"), reader.raw("template")
    if file and text is not None:
        raise UsageError("Both 'template' and 'template_file' are given", hint="keep one of them")
    if file:
        return read_template_file(folder / file)
    if text is None or isinstance(text, str):
        return text
    if isinstance(text, Mapping) and all(isinstance(v, str) for v in text.values()):
        return {str(k): v for k, v in text.items()}
    raise InvalidValue("template", text, "a text, or a mapping of parts to texts")


def read_model(entry: Any, where: str) -> ModelSpec:
    """A model: its name, or a mapping with how to reach it."""
    if isinstance(entry, str):
        return ModelSpec(name=entry)
    reader = Reader(entry, where)
    reader.need("name", "for example 'smollm2' or 'openai:gpt-4o-mini'")
    spec = ModelSpec(
        name=cast(str, reader.text("name")),
        base_url=reader.text("base_url"),
        api=reader.one_of("api", ("chat", "completions")),
        api_key_env=reader.text("api_key_env"),
        concurrency=reader.whole("concurrency", 1, 4096),
        requests_per_minute=reader.number("requests_per_minute", 0.001),
        tokens_per_minute=reader.number("tokens_per_minute", 1),
        timeout=reader.number("timeout", 0.001, 86_400),
        max_attempts=reader.whole("max_attempts", 1, 100),
        price=_read_price(reader.child("price")),
        scorer=reader.text("scorer"),
        options=reader.mapping("options"),
    )
    reader.finish()
    return spec


def _read_rewriter(entry: Any) -> ModelSpec | None:
    return None if entry is None else read_model(entry, "rewriter")


def _read_path(path: str | None, folder: Path) -> str | None:
    return None if path is None else str(folder / path)


def _read_price(reader: Reader | None) -> Price | None:
    if reader is None:
        return None
    price = Price(
        input=reader.number("input", 0) or 0.0,
        output=reader.number("output", 0) or 0.0,
        currency=reader.text("currency") or "USD",
    )
    reader.finish()
    return price


def _read_recipe(entry: Any, where: str, folder: Path) -> tuple[StepSpec, ...]:
    """`typos`, `typos:count=4`, `typos+persona`, `{typos: {count: 4}}`, or a list of those."""
    if isinstance(entry, str):
        return tuple((part.strip(), {}) for part in entry.split("+"))
    if isinstance(entry, Mapping):
        if len(entry) != 1:
            raise InvalidValue(where, dict(entry), "one perturbation with its parameters")
        name, params = next(iter(entry.items()))
        if params is not None and not isinstance(params, Mapping):
            raise InvalidValue(f"{where}.{name}", params, "a mapping of parameters")
        given = dict(params or {})
        if isinstance(given.get("file"), str):
            given["file"] = str(folder / given["file"])
        return ((str(name), given),)
    if isinstance(entry, (list, tuple)) and entry:
        steps: list[StepSpec] = []
        for n, inner in enumerate(entry):
            steps += _read_recipe(inner, f"{where}[{n}]", folder)
        return tuple(steps)
    raise InvalidValue(where, entry, "a perturbation's name, or a list of names for a chain")


def _read_sampling(reader: Reader | None) -> Sampling | None:
    if reader is None:
        return None
    sampling = Sampling(
        temperature=reader.number("temperature", 0, 10) or 0.0,
        top_p=reader.number("top_p", 0.000001, 1) or 1.0,
        stop=reader.texts("stop"),
        seed=reader.whole("seed", 0),
        max_tokens=reader.whole("max_tokens", 1, 1_000_000) or DEFAULT_MAX_TOKENS,
    )
    reader.finish()
    return sampling
