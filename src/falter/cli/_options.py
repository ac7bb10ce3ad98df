"""The options that define an experiment, shared by every command that takes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from falter.cli._env_file import env_file_option
from falter.clients import is_code
from falter.core.errors import UsageError
from falter.experiment import (
    EXPERIMENT,
    STUDY,
    Block,
    Experiment,
    Option,
    options_of,
    overlay,
    read_experiment,
    read_settings,
)

__all__ = [
    "STORE_PATH",
    "experiment_from",
    "experiment_options",
    "protocol_options",
    "settings_from",
    "store_option",
]

F = TypeVar("F", bound=Callable[..., Any])

STORE_PATH = Path("falter.db")

store_option = click.option(
    "--store",
    "store_path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=STORE_PATH,
    envvar="FALTER_STORE",
    show_default=True,
    help="The database of answers and runs; stored answers are not asked for again.",
)

_allow_code = click.option(
    "--allow-code",
    is_flag=True,
    default=None,
    help="Import the functions that the experiment file names as models.",
)
_file = click.argument("file", metavar="[EXPERIMENT.yaml]", required=False, type=click.Path())


def experiment_options(command: F) -> F:
    """Add the experiment's options to a command."""
    return _file(env_file_option(_allow_code(_with_options(command, EXPERIMENT))))


def protocol_options(command: F) -> F:
    """Add the options about protocols to a command."""
    return _with_options(command, STUDY)


def _with_options(command: F, block: Block[Any]) -> F:
    for option in reversed(options_of(block)):
        command = _option(option)(command)
    return command


def _option(option: Option) -> Callable[[F], F]:
    setting, shape = option.setting, option.setting.shape
    words = "|".join(getattr(shape, "words", ()))
    help = setting.help[0].upper() + setting.help[1:]
    return click.option(
        *setting.option.split(),
        option.key,
        type=shape.takes,
        is_flag=shape.takes is bool,
        default=None,
        multiple=shape.many,
        metavar=f"[{words}]" if words else setting.metavar,
        help=f"{help}  [default: {setting.otherwise}]" if setting.otherwise else f"{help}.",
    )


def experiment_from(options: dict[str, Any], *, needs_models: bool = True) -> Experiment:
    """The experiment in a file, with options of the command line in place of its settings."""
    data, folder = settings_from(options, needs_models=needs_models)
    if data.get("protocol") is not None:
        raise UsageError(
            "This command needs an experiment, not a protocol",
            hint="'falter run', 'plan' and 'rewrites prepare' take a protocol",
        )
    return read_experiment(data, folder=folder, needs_models=needs_models)


def _refuse_code(settings: Mapping[str, Any], file: str) -> None:
    """A file from somewhere else does not import what it likes; who types a name may."""
    models = settings.get("models")
    entries = models if isinstance(models, list) else [models]
    named = [e.get("name") if isinstance(e, dict) else e for e in entries]
    for name in (*named, settings.get("rewriter"), settings.get("judge")):
        name = name.get("name") if isinstance(name, dict) else name
        if isinstance(name, str) and is_code(name):
            raise UsageError(
                f"{file} has '{name}' as a model, which imports code",
                hint="--allow-code allows it, if you trust the file",
            )


def settings_from(
    options: dict[str, Any], *, needs_models: bool = True
) -> tuple[dict[str, Any], Path]:
    """The settings of a file and the options, and the folder that paths are relative to."""
    file, allowed = options.pop("file"), options.pop("allow_code")
    if file is not None:
        if not allowed:
            _refuse_code(read_settings(file), file)
        return overlay(read_settings(file), options), Path(file).parent
    if needs_models and not options.get("models"):
        raise UsageError(
            "No model is named",
            hint="give an experiment file, or --task basics --model smollm2",
        )
    return overlay({}, options), Path()
