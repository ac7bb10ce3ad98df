"""Arguments and options of commands, read from `options.toml`; output in the requested forms."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from falter.cli.app import Typed, option_tables
from falter.engine.config import EXPERIMENT, STUDY, Experiment, overlay, read_experiment
from falter.engine.experiment_file import check_permits, read_settings
from falter.engine.settings import Block, Option, options_of
from falter.records.errors import InvalidValue, UnknownName, UsageError, refusal

if TYPE_CHECKING:
    from falter.records.figures import Study


# `--env-file`: variables of a file, for keys that are not in the environment.


F = TypeVar("F", bound=Callable[..., Any])
# ENV_LINE: `export KEY=abc`. QUOTED_VALUE: `'a b' # note`.
ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
QUOTED_VALUE = re.compile(r"""(["'])(.*)\1(?:\s+#.*)?""")


class EnvFile(click.Path):
    """Path of a file whose variables are added to the environment before the command begins."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        for name, variable in read_env_file(path):
            os.environ.setdefault(name, variable)
        return path


def read_env_file(path: Path) -> Iterator[tuple[str, str]]:
    """Yield names and values of `NAME=value` lines, without quotes, `export` and comments.

    Raise UsageError with the line's number for any other line. The line is not shown, because it
    may contain a key.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(f"The file {path} cannot be read: {reason}") from None
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = ENV_LINE.fullmatch(line)
        if match is None:
            raise refusal(UsageError, "cli.no_pair", number=number, path=path)
        quoted = QUOTED_VALUE.fullmatch(match[2])
        yield match[1], quoted[2] if quoted else re.sub(r"(?:^|\s+)#.*", "", match[2])


STORE_PATH = Path("falter.db")


def experiment_from(options: dict[str, Any]) -> Experiment:
    """Return the experiment of a file, overridden by the options; models are optional.

    Raise UsageError for a protocol.
    """
    data, folder = settings_from(options, needs_models=False)
    if data.get("protocol") is not None:
        raise refusal(UsageError, "cli.no_protocol")
    return read_experiment(data, folder=folder, needs_models=False)


def named_experiment(options: dict[str, Any]) -> Experiment | None:
    """Return the experiment if a file or any option is given, otherwise None."""
    given = [v for v in options.values() if v not in (None, ()) and v is not False]
    return experiment_from(options) if given else None


def settings_from(
    options: dict[str, Any], *, needs_models: bool = True
) -> tuple[dict[str, Any], Path]:
    """Return the settings of file and options, and the folder that paths are relative to.

    Raise UsageError if neither a file nor a model is given but `needs_models` is set.
    """
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
        raise refusal(UsageError, "cli.no_model")
    return overlay({}, options), Path()


# Report forms, equal for every command that shows a report.


class OutputFile(click.Path):
    """Path of a file to write. It is checked before anything is sent, and created later."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        from falter.engine.results import report_form

        path = Path(str(super().convert(value, param, ctx)))
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not folder.is_dir():
            self.fail(f"'{folder}' is a file, not a folder.", param, ctx)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"The folder '{folder}' cannot be written to.", param, ctx)
        if param.name == "html_path":
            try:
                report_form(path)
            except InvalidValue as error:
                raise InvalidValue("--html", str(value), error.expected) from error
        return path


FORM_OF_OPTION = {"json": "json", "csv": "csv", "md": "md", "latex": "tex"}
"""Options of the forms on standard output, with each form's file ending."""


def show(
    study: Study,
    *,
    html_path: Path | None,
    parquet_path: Path | None,
    svg_folder: Path | None,
    figures: tuple[str, ...],
    **printed: bool,
) -> None:
    """Write and print a study in the requested forms, or print it for the terminal.

    Raise click.UsageError for several printed forms, and UnknownName for an unknown figure.
    """
    from falter.engine.results import report_text, write_report
    from falter.records.figures import figures_named
    from falter.report.drawing.pictures import write_pictures
    from falter.report.forms.terminal import terminal

    forms = [form for form in FORM_OF_OPTION if printed[f"show_{form}"]]
    if len(forms) > 1:
        raise click.UsageError(
            f"{' and '.join(f'--{form}' for form in forms)} cannot be used together"
        )
    every_name = [figure.name for figure in study.figures]
    names = list(every_name) if "all" in figures else []
    for name in figures:
        figures_found = [figure.name for figure in figures_named(study.figures, name)]
        if not figures_found and name != "all":
            raise UnknownName("figure", name, [*every_name, "all"])
        names += figures_found
    if names:
        chosen = tuple(figure for figure in study.figures if figure.name in names)
        selected = replace(study, figures=chosen, headline=(), panels=())
    else:
        selected = study
    if html_path is not None:
        write_page(selected, html_path)
    if parquet_path is not None:
        write_report(selected, parquet_path)
        click.echo(f"numbers: {parquet_path}", err=True)
    if svg_folder is not None:
        files = write_pictures(selected.figures, svg_folder)
        click.echo(f"charts: {len(files)} files in {svg_folder}", err=True)
    for form in forms:
        click.echo(report_text(selected, FORM_OF_OPTION[form]).rstrip("\n"))
    if not (forms or html_path or parquet_path or svg_folder):
        from rich.console import Console

        terminal(study, Console(), names)


def write_page(study: Study, path: Path) -> None:
    """Write the report as an HTML page, and print its path to stderr."""
    from falter.engine.results import write_report

    write_report(study, path)
    click.echo(f"report: {path}", err=True)


# Arguments and options of commands, as listed in `options.toml`.


def _split_at_commas(names: str) -> tuple[str, ...]:
    return tuple(filter(None, names.split(",")))


_SETTINGS: dict[str, Block[Any]] = {"experiment settings": EXPERIMENT, "protocol settings": STUDY}
_CLICK_TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "seconds": click.FloatRange(1, 3600),
    "columns": _split_at_commas,
    "name": click.Path(),
    "file name": click.Path(dir_okay=False),
    "path": click.Path(path_type=Path),
    "file": click.Path(dir_okay=False, path_type=Path),
    "folder": click.Path(file_okay=False, path_type=Path),
    "stored file": click.Path(exists=True, dir_okay=False, path_type=Path),
    "new file": OutputFile(),
    "env file": EnvFile(dir_okay=False),
    "word and path": (str, click.Path(path_type=Path)),
}


def takes(table: str) -> Callable[[F], F]:
    """Return a decorator that adds the arguments and options of a table to a command."""

    def add(command: F) -> F:
        for declared in reversed(list(_option_decorators(table))):
            command = declared(command)
        return command

    return add


def take_options(options: dict[str, Any], table: str) -> dict[str, Any]:
    """Remove the values of a table's arguments and options from `options`, and return them."""
    taken: dict[str, Any] = {}
    for row, about in option_tables()[table].items():
        name = row.split()[-1].lstrip("-").replace("-", "_")
        taken |= {name: options.pop(name)} if about else take_options(options, row)
    return taken


def _option_decorators(table: str) -> Iterator[Callable[[Any], Any]]:
    if table in _SETTINGS:
        yield from map(_setting_option, options_of(_SETTINGS[table]))
        return
    for row, settings in option_tables()[table].items():
        if not settings:
            yield from _option_decorators(row)
            continue
        names: dict[str, Any] = (
            {"help": settings, "is_flag": True} if isinstance(settings, str) else dict(settings)
        )
        if "type" in names:
            names["type"] = _click_type(names["type"])
        if not row.startswith("-"):
            yield click.argument(row, **names)
        else:
            yield click.option(*row.split(), **{"show_default": "default" in names, **names})


def _click_type(name: str | list[str]) -> Any:
    """Return the click type for a name, a range (`1..9`), listed words, or `module:attribute`."""
    if isinstance(name, list):
        return click.Choice(name)
    if ".." in name:
        low, high = name.split("..")
        return click.IntRange(int(low), int(high) if high else None)
    module, _, words = name.partition(":")
    return click.Choice(getattr(import_module(module), words)) if words else _CLICK_TYPES[name]


def _setting_option(option: Option) -> Callable[[Any], Any]:
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
