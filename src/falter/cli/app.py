"""The command group, the table of commands, and conversion of errors to messages and exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from falter import __version__
from falter.records.errors import FalterError, printable

# Commands are imported at their call, so that help and errors appear quickly.


class LazyCommand(click.Command):
    """Placeholder of a command in the list of commands.

    `home` is the command's `module:attribute` in this package.
    """

    def __init__(self, name: str, home: str, summary: str) -> None:
        super().__init__(name, short_help=summary)
        self._home = home

    def load(self) -> click.Command:
        """Import and return the command."""
        module, _, attribute = self._home.partition(":")
        command = getattr(import_module(f"{__package__}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command


class LazyGroup(click.Group):
    """Command group that imports a command when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest


# Names of options in other tools, so that an error can suggest falter's name.


@cache
def option_tables() -> dict[str, dict[str, Any]]:
    """Return the tables of `options.toml`: options by command, and other tools' names for them."""
    return tomllib.loads((files("falter.cli") / "options.toml").read_text("utf-8"))


def usage_message(error: click.UsageError) -> str:
    """Return the message of a usage error; for an unknown option it suggests falter's name."""
    name = error.option_name if isinstance(error, click.NoSuchOption) else ""
    if name in ("--decide", "--looks", "--precision"):
        from falter.engine.settings import removed  # slow to import, and help pages do not need it

        return removed(name.removeprefix("--")).message
    ours = [our for our, others in option_tables()["names elsewhere"].items() if name in others]
    has = [] if error.ctx is None else [o for p in error.ctx.command.params for o in p.opts]
    if not ours or ours[0] not in has:
        return error.format_message()
    return f"No such option '{name}'. Did you mean '{ours[0]}'?"


# The command as the user typed it: stored with its run, and used in error messages.


# `me:secret@` in `https://me:secret@host/v1`
_URL_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


# `models[0].base_url` in `models[0].base_url is …`, and quoted names such as `'base_url'`, but not
# the value in `unparsed is 'data'`
_SETTING_NAMES = re.compile(r"^[a-z_]+(?:\[\d+\])?(?:\.[a-z_]+)?(?= is )|(?<! is )'[a-z_]+'")


class Typed:
    """The arguments of the process. `file` is True if an experiment file is one of them."""

    file = False

    def __init__(self, arguments: Sequence[str]) -> None:
        typed = shlex.join(["falter", *arguments]).replace(f"{Path.home()}{os.sep}", f"~{os.sep}")
        self.command = _URL_CREDENTIALS.sub("…@", typed)


def typed_command() -> str:
    """Return the command line as the user typed it; an empty text if there was none.

    User names in addresses (before an @) are removed, and the home folder is written as `~`.
    """
    typed = click.get_current_context().obj
    return typed.command if isinstance(typed, Typed) else ""


def with_option_names(message: str, typed: object) -> str:
    """Return the message with option names in place of setting names, if no file was given."""
    # "Unknown task 'seed'": the quoted word is a name that the user gave, and no setting.
    if not isinstance(typed, Typed) or typed.file or message.startswith("Unknown "):
        return message
    from falter.engine.config import EXPERIMENT, STUDY
    from falter.engine.settings import options_of

    flags: dict[str, str] = {}
    for option in (*options_of(EXPERIMENT), *options_of(STUDY)):
        names = {option.setting.name, option.setting.field}
        above = f"{option.parent.name}." if option.parent else ""
        flags |= {f"{above}{name}": option.setting.flag for name in names}

    def option_name(match: re.Match[str]) -> str:
        name = re.sub(r"\[\d+\]", "", match[0].strip("'"))
        return flags.get(name, match[0])

    return _SETTING_NAMES.sub(option_name, message)


INTERRUPTED_EXIT_CODE = 1

COMMANDS = {
    "analyze": ("analyze:analyze", "Analyse results of other tools."),
    "answers": ("report:answers", "Show prompts, responses and extracted answers."),
    "baseline": ("gate:baseline", "Save the outcomes of a version, for 'falter gate'."),
    "batch": ("requests:batch", "List the batches that were submitted to providers."),
    "compare": ("compare:compare", "Compare runs, models or prompts, paired by item."),
    "demo": ("run:demo", "Test a small language model on this machine."),
    "doctor": ("doctor:doctor", "Show what is installed and which models respond."),
    "gate": ("gate:gate", "Test a model or an application against margins."),
    "generate": ("generate:generate", "Let a model write items of the enterprise tasks."),
    "init": ("doctor:init", "Write a commented experiment file."),
    "judge": ("ratings:judge", "Measure how well an LLM judge agrees with people."),
    "list": ("listing:list_names", "List the perturbations, tasks, scorers and so on."),
    "mend": ("mend:mend", "Test remedies, and report which one helps."),
    "models": ("listing:models", "List, download or quantise the embedded models."),
    "perturb": ("perturb:perturb", "Perturb a text, or every line of standard input."),
    "plan": ("run:plan", "Show the calls, tokens and cost of a run."),
    "power": ("power:power", "Compute how many items and calls a goal needs."),
    "ratings": ("ratings:ratings", "Export summaries for human rating, import ratings."),
    "recommend": ("variants:recommend", "Propose perturbations that fit a task."),
    "report": ("report:report", "Report the results of a stored run."),
    "requests": ("requests:requests", "Export requests to files, and import responses."),
    "rescore": ("report:rescore", "Score stored responses with another scorer."),
    "rewrites": ("rewrites:rewrites", "Prepare and review rewrites made by a model."),
    "run": ("run:run", "Run an experiment, or resume one."),
    "store": ("store:store", "List, verify, merge and repair stores."),
    "variants": ("variants:variants", "Publish or verify the perturbed prompts."),
    "view": ("view:view", "View the responses in a browser."),
    "watch": ("watch:watch", "Follow a run in progress."),
}
"""Home of each command (imported on use), and its summary in the list of commands."""


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="falter %(version)s")
def cli() -> None:
    """Measure how far a model's score falls when the prompt changes but its meaning does not.

    Start with 'falter demo'. Results go to stdout, messages to stderr.

    Exit codes: 0 success; 1 the run is incomplete, some requests were sent; 2 wrong usage or a
    failed check, nothing was sent. 'falter gate' adds 3 (fail) and 4 (undecided).
    """


for _name, (_home, _summary) in COMMANDS.items():
    cli.add_command(LazyCommand(_name, _home, _summary))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    sys.exit(invoke(arguments))


def invoke(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    typed, stdout = Typed(given), sys.stdout
    try:
        with report_damaged_store(given):
            result = cli.main(given, prog_name="falter", standalone_mode=False, obj=typed)
        sys.stdout.flush()
    except FalterError as error:
        _print_error(with_option_names(error.message, typed), error.hint)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "falter"
        _print_error(usage_message(error), f"'{path} --help' lists its arguments and options")
        return 2
    except click.ClickException as error:
        _print_error(error.format_message(), None)
        return 2
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        _print_error("Interrupted", "all answers so far are stored; run the same command to resume")
        return INTERRUPTED_EXIT_CODE
    except (BrokenPipeError, SystemExit) as error:
        # The reader of our output closed it. Stay silent, as other filters do. Rich and Click turn
        # this error into SystemExit, and Click also replaces `sys.stdout`.
        closed = any(isinstance(each, BrokenPipeError) for each in (error, error.__context__))
        if not closed and sys.stdout is stdout:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


@contextlib.contextmanager
def report_damaged_store(given: Sequence[str]) -> Iterator[None]:
    """Report an unexpected error as a damaged store, if the named store is damaged."""
    try:
        yield
    except (FalterError, click.ClickException, click.Abort, OSError):
        raise
    except Exception:
        named = [after for word, after in pairwise(given) if word == "--store"]
        named += [word.removeprefix("--store=") for word in given if word.startswith("--store=")]
        path = Path(named[-1]) if named else Path("falter.db")
        if path.is_file():
            from falter.store.maintenance import require_sound

            require_sound(path)
        raise


def _print_error(message: str, hint: str | None) -> None:
    click.echo(f"error: {printable(message)}", err=True)
    if hint:
        click.echo(f"\nhint: {printable(hint)}", err=True)
