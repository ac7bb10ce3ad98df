"""The options that define an experiment, shared by every command that takes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from falter.cli._env_file import env_file_option
from falter.cli._typed import Typed
from falter.engine.config import EXPERIMENT, STUDY, Experiment, overlay, read_experiment
from falter.engine.experiment_file import check_permits, read_settings
from falter.engine.settings import Block, Option, options_of
from falter.records.errors import UsageError

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

_file = click.argument("file", metavar="[EXPERIMENT.yaml]", required=False, type=click.Path())


def connection_options(command: F) -> F:
    """Add the options for a model that is not one of the experiment's."""
    for option in (
        click.option("--concurrency", type=int, help="Requests in flight at once  [default: 64]"),
        click.option("--api-key-env", help="The environment variable that holds its key."),
        click.option("--base-url", help="Where its server listens."),
    ):
        command = option(command)
    return command


_allow_env = click.option(
    "--allow-env",
    "allow_env",
    metavar="NAME",
    multiple=True,
    help="Let the file send this environment variable, as a key, to the server that it names.",
)
_allow_code = click.option(
    "--allow-code",
    is_flag=True,
    default=None,
    help="Let the file run code: 'inspect:FILE.py', 'function:' and trust_remote_code.",
)


def file_options(command: F) -> F:
    """Add an experiment file and what it may do, without the options that are laid over it."""
    return _file(env_file_option(_allow_env(_allow_code(command))))


def experiment_options(command: F) -> F:
    """Add the experiment's options to a command."""
    return _file(env_file_option(_with_options(_allow_env(_allow_code(command)), EXPERIMENT)))


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


def settings_from(
    options: dict[str, Any], *, needs_models: bool = True
) -> tuple[dict[str, Any], Path]:
    """The settings of a file and the options, and the folder that paths are relative to."""
    file = options.pop("file")
    env, code = options.pop("allow_env", ()), options.pop("allow_code", False)
    if file is not None:
        typed = click.get_current_context().obj
        if isinstance(typed, Typed):
            typed.file = True
        settings = read_settings(file)
        check_permits(settings, Path(file), env=env, code=bool(code))
        return overlay(settings, options), Path(file).parent
    if needs_models and not options.get("models"):
        raise UsageError(
            "No model is named",
            hint="give an experiment file, or --task basics --model smollm2",
        )
    return overlay({}, options), Path()
