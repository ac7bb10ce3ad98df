"""The options that define an experiment, shared by every command that takes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from falter.core.errors import InvalidValue, UsageError
from falter.experiment import Experiment, names_protocol, read_experiment, read_settings

__all__ = [
    "experiment_from",
    "experiment_options",
    "protocol_options",
    "settings_from",
    "store_option",
]

F = TypeVar("F", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("falter.db"),
    envvar="FALTER_STORE",
    show_default=True,
    help="The file that keeps everything; also the cache that runs resume from.",
)

_OPTIONS = (
    click.argument("file", metavar="[EXPERIMENT.yaml]", required=False, type=click.Path()),
    click.option("-t", "--task", "tasks", multiple=True, help="A task by name, e.g. basics."),
    click.option("--data", help="Your own items: a .jsonl, .json, .csv, .tsv or .parquet file."),
    click.option("--template", help="The file with your prompt: text with {placeholders}."),
    click.option("--target", help="The column with the right answer."),
    click.option("--target-as", help="How to read it: auto, index, label or text."),
    click.option("--choices", multiple=True, help="The column(s) with the options."),
    click.option("--key", help="The column with a unique key; without it the content is the key."),
    click.option(
        "--field", "fields", multiple=True, metavar="NAME=COLUMN",
        help="Fill the placeholder NAME from COLUMN, where their names differ.",
    ),
    click.option("-m", "--model", "models", multiple=True, help="smollm2, openai:NAME, simulated."),
    click.option("--base-url", help="Where an OpenAI-compatible server listens."),
    click.option("--api", help="How to ask it: chat (default) or completions."),
    click.option("--api-key-env", help="The environment variable that holds the key."),
    click.option("--concurrency", type=int, help="Requests in flight at once  [default: 64]"),
    click.option("--rpm", type=float, help="At most so many requests a minute."),
    click.option("--tpm", type=float, help="At most so many tokens a minute."),
    click.option("--timeout", type=float, help="Seconds a request may take  [default: 60]"),
    click.option("--max-attempts", type=int, help="Tries before a request fails  [default: 6]"),
    click.option(
        "-r", "--recipe", "recipes", multiple=True,
        help="A perturbation, e.g. typos or typos:count=4; a chain is a+b. "
        "Without it: the eleven rule-made ones and identity.",
    ),
    click.option("--scorer", help="How an answer is judged; without it, what fits task and model."),
    click.option("--limit", type=int, help="So many items, drawn by the seed."),
    click.option("--demonstrations", type=int, help="Solved examples before each item."),
    click.option(
        "--perturb-demonstrations", is_flag=True, default=None,
        help="What a recipe does to an item's text, it does to theirs too.",
    ),
    click.option("--draws", type=int, help="Random realisations of each recipe."),
    click.option("--repeats", type=int, help="Times every request is asked."),
    click.option("--seed", type=int, help="The seed of everything random  [default: 0]"),
    click.option("--temperature", type=float, help="Sampling temperature  [default: 0]"),
    click.option("--max-tokens", type=int, help="Longest answer, in tokens."),
    click.option("--protect", multiple=True, help="A regular expression no change may touch."),
    click.option("--language", help="The language of the texts, for word noise  [default: en]"),
    click.option("--rewriter", help="The model whose paraphrases, tones or translations to use."),
    click.option("--rewrites", help="A file of rewrites, to use before those of the store."),
    click.option("--unparsed", help="Unreadable answers count as wrong (default) or are excluded."),
)  # fmt: skip


def experiment_options(command: F) -> F:
    """Add the experiment's options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_PROTOCOL = (
    click.option("--protocol", help="Run a whole protocol, e.g. brittlebench."),
    click.option("--preset", help="Its settings: quick or paper  [default: quick]"),
    click.option("--judge", help="The model that rates reasoning, where the protocol asks for it."),
)


def protocol_options(command: F) -> F:
    """Add the options about protocols to a command."""
    for option in reversed(_PROTOCOL):
        command = option(command)
    return command


def experiment_from(options: dict[str, Any], *, needs_models: bool = True) -> Experiment:
    """The experiment that a file and the options on top of it describe."""
    data, folder = settings_from(options, needs_models=needs_models)
    if names_protocol(data):
        raise UsageError(
            "This command takes an experiment and no protocol",
            hint="'falter run', 'plan' and 'rewrites prepare' take a protocol",
        )
    return read_experiment(data, folder=folder, needs_models=needs_models)


def settings_from(
    options: dict[str, Any], *, needs_models: bool = True
) -> tuple[dict[str, Any], Path]:
    """What a file and the options on top of it say, and the folder that paths are relative to."""
    file = options.pop("file")
    given = {key: value for key, value in options.items() if value not in (None, ())}
    if file is None:
        if needs_models and not given.get("models"):
            raise UsageError(
                "No model is named",
                hint="give an experiment file, or --task basics --model smollm2",
            )
        return _overlay({}, given), Path()
    return _overlay(dict(read_settings(file)), given), Path(file).parent


def _overlay(data: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The mapping with command-line values put over it."""
    for key in (
        "scorer", "limit", "demonstrations", "perturb_demonstrations", "draws", "repeats", "seed",
        "unparsed", "language", "protocol", "preset", "judge",
    ):  # fmt: skip
        if key in given:
            data[key] = given[key]
    if "rewriter" in given:
        data["rewriter"] = _rewriter(data.get("rewriter"), given["rewriter"])
    if "rewrites" in given:
        data["rewrites"] = str(Path(given["rewrites"]).absolute())
    if "tasks" in given:
        data.pop("data", None)
        data["tasks"] = list(given["tasks"])
        data.pop("task", None)
    if "recipes" in given:
        data["recipes"] = list(given["recipes"])
    if "protect" in given:
        data["protect"] = list(given["protect"])
    if "template" in given:
        data.pop("template", None)
        data["template_file"] = str(Path(given["template"]).absolute())
    _overlay_data(data, given)
    _overlay_sampling(data, given)
    _overlay_models(data, given)
    return data


def _rewriter(entry: Any, name: str) -> Any:
    """The file's own words about a rewriter stay when the name is the same."""
    same = isinstance(entry, dict) and entry.get("name") == name
    return entry if same else {"name": name}


def _overlay_data(data: dict[str, Any], given: dict[str, Any]) -> None:
    spec = dict(data.get("data") or {})
    for key, name in (("target", "target"), ("target_as", "target_as"), ("key", "key")):
        if key in given:
            spec[name] = given[key]
    if "data" in given:
        path = given["data"]
        spec["path"] = path if path.startswith("hub:") else str(Path(path).absolute())
        data.pop("task", None)
        data.pop("tasks", None)
    if "choices" in given:
        spec["choices"] = [c for value in given["choices"] for c in value.split(",")]
    if "fields" in given:
        spec["fields"] = dict(_pair(text) for text in given["fields"])
    if spec:
        if "path" not in spec:
            raise UsageError(
                "--target, --choices, --key and --field describe your own data",
                hint="give the file with --data",
            )
        data["data"] = spec


def _pair(text: str) -> tuple[str, str]:
    name, mark, column = text.partition("=")
    if not mark or not name or not column:
        raise InvalidValue("--field", text, "NAME=COLUMN", hint="for example question=prompt_text")
    return name, column


def _overlay_sampling(data: dict[str, Any], given: dict[str, Any]) -> None:
    sampling = dict(data.get("sampling") or {})
    for key in ("temperature", "max_tokens"):
        if key in given:
            sampling[key] = given[key]
    if sampling:
        data["sampling"] = sampling


def _overlay_models(data: dict[str, Any], given: dict[str, Any]) -> None:
    if "models" in given:
        data["models"] = [{"name": name} for name in given["models"]]
    reach = {
        "base_url": "base_url", "api": "api", "api_key_env": "api_key_env",
        "concurrency": "concurrency", "rpm": "requests_per_minute", "tpm": "tokens_per_minute",
        "timeout": "timeout", "max_attempts": "max_attempts",
    }  # fmt: skip
    over = {name: given[key] for key, name in reach.items() if key in given}
    if over:
        models = data.get("models") or []
        entries = models if isinstance(models, list) else [models]
        data["models"] = [
            {**({"name": entry} if isinstance(entry, str) else entry), **over} for entry in entries
        ]
