"""The options that define an experiment, shared by every command that takes one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from falter.cli.app import Typed
from falter.engine.config import EXPERIMENT, STUDY, Experiment, overlay, read_experiment
from falter.engine.experiment_file import check_permits, read_settings
from falter.engine.settings import Block, Option, options_of
from falter.records.errors import InvalidValue, UnknownName, UsageError

if TYPE_CHECKING:
    from falter.records.figures import Study


# `--env-file`: variables of a file, for keys that are not in the environment.


F = TypeVar("F", bound=Callable[..., Any])
LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
QUOTED = re.compile(r"""(["'])(.*)\1(?:\s+#.*)?""")


def _load(_: click.Context, __: click.Parameter, path: Path | None) -> None:
    if path is not None:
        for name, value in read_env_file(path):
            os.environ.setdefault(name, value)


def env_file_option(command: F) -> F:
    """Add the option; what the file says is in the environment before the command begins."""
    return click.option(
        "--env-file",
        type=click.Path(dir_okay=False, path_type=Path),
        is_flag=False,
        flag_value=".env",
        is_eager=True,
        expose_value=False,
        callback=_load,
        metavar="[FILE]",
        help="Read variables, such as keys, from a file (alone: .env); those that are set stay.",
    )(command)


def read_env_file(path: Path) -> Iterator[tuple[str, str]]:
    """Names and values of `NAME=value` lines; quotes, `export` and comments are left out.

    A line of another form is an error with its number; it is not shown, since it may be a key.
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
        found = LINE.fullmatch(line)
        if found is None:
            raise UsageError(f"Line {number} of {path} is not NAME=value", hint="one to a line")
        quoted = QUOTED.fullmatch(found[2])
        yield found[1], quoted[2] if quoted else re.sub(r"(?:^|\s+)#.*", "", found[2])


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
allow_code_option = click.option(
    "--allow-code",
    is_flag=True,
    default=None,
    help="Let the file run code: 'inspect:FILE.py', 'function:' and trust_remote_code.",
)


def file_options(command: F) -> F:
    """Add an experiment file and what it may do, without the options that are laid over it."""
    return _file(env_file_option(_allow_env(allow_code_option(command))))


def experiment_options(command: F) -> F:
    """Add the experiment's options to a command."""
    return _file(env_file_option(_with_options(_allow_env(allow_code_option(command)), EXPERIMENT)))


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


# The forms of a report on the command line, the same for every command that shows one.


class OutputFile(click.Path):
    """A file that will be written: checked before anything is sent, and not made yet."""

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


FILE = OutputFile()
PRINTED = {"json": "json", "csv": "csv", "md": "md", "latex": "tex"}
"""The options of the forms on standard output, with the ending of each form."""

FORM_NAMES = (
    "html_path",
    "parquet_path",
    "svg_folder",
    "figures",
    *(f"show_{form}" for form in PRINTED),
)

html_option = click.option("--html", "html_path", type=FILE, help="Write the report as a page.")
published_option = click.option(
    "--published", is_flag=True, help="Show the tables of the protocol's paper beside your numbers."
)
_FORMS = (
    html_option,
    click.option("--parquet", "parquet_path", type=FILE, help="Write one row for each number."),
    click.option("--json", "show_json", is_flag=True, help="Print everything as nested JSON."),
    click.option("--csv", "show_csv", is_flag=True, help="Print one row for each number as CSV."),
    click.option("--md", "show_md", is_flag=True, help="Print Markdown tables."),
    click.option("--latex", "show_latex", is_flag=True, help="Print a LaTeX document of tables."),
    click.option(
        "--svg", "svg_folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
        help="Write every chart as an SVG file into this folder.",
    ),
    click.option(
        "--figure", "figures", multiple=True, metavar="NAME",
        help="Show only the figure with this name, in any form; 'all' prints all of them.",
    ),
)  # fmt: skip


def form_options(command: F) -> F:
    """Add the options for the form of a report; `show` takes them."""
    for option in reversed(_FORMS):
        command = option(command)
    return command


def show(
    study: Study,
    *,
    html_path: Path | None,
    parquet_path: Path | None,
    svg_folder: Path | None,
    figures: tuple[str, ...],
    **printed: bool,
) -> None:
    """Write and print a study in the forms that were asked for; else print it for the terminal."""
    from falter.engine.results import report_text, write_report
    from falter.records.figures import figures_named
    from falter.report.drawing.pictures import write_pictures
    from falter.report.forms.terminal import terminal

    forms = [form for form in PRINTED if printed[f"show_{form}"]]
    if len(forms) > 1:
        raise click.UsageError(
            f"{' and '.join(f'--{form}' for form in forms)} cannot be used together"
        )
    every_name = [figure.name for figure in study.figures]
    names = list(every_name) if "all" in figures else []
    for name in figures:
        found = [figure.name for figure in figures_named(study.figures, name)]
        if not found and name != "all":
            raise UnknownName("figure", name, [*every_name, "all"])
        names += found
    if names:
        chosen = tuple(figure for figure in study.figures if figure.name in names)
        shown = replace(study, figures=chosen, headline=(), panels=())
    else:
        shown = study
    if html_path is not None:
        write_page(shown, html_path)
    if parquet_path is not None:
        write_report(shown, parquet_path)
        click.echo(f"numbers: {parquet_path}", err=True)
    if svg_folder is not None:
        files = write_pictures(shown.figures, svg_folder)
        click.echo(f"charts: {len(files)} files in {svg_folder}", err=True)
    for form in forms:
        click.echo(report_text(shown, PRINTED[form]).rstrip("\n"))
    if not (forms or html_path or parquet_path or svg_folder):
        from rich.console import Console

        terminal(study, Console(), names)


def write_page(study: Study, path: Path) -> None:
    """Write the report as a page, and say where it is."""
    from falter.engine.results import write_report

    write_report(study, path)
    click.echo(f"report: {path}", err=True)
