"""The command group, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

import click

from falter import __version__
from falter.cli._analyze import analyze
from falter.cli._answers import answers
from falter.cli._baseline import baseline
from falter.cli._batch import batch
from falter.cli._compare import compare
from falter.cli._demo import demo
from falter.cli._gate import gate
from falter.cli._generate import generate
from falter.cli._init import init
from falter.cli._inspect import doctor, list_names, models
from falter.cli._judge import judge
from falter.cli._mend import mend
from falter.cli._perturb import perturb
from falter.cli._plan import plan
from falter.cli._power import power
from falter.cli._ratings import ratings
from falter.cli._recommend import recommend
from falter.cli._report import report
from falter.cli._requests import requests
from falter.cli._rescore import rescore
from falter.cli._rewrites import rewrites
from falter.cli._run import run
from falter.cli._store import store
from falter.cli._typed import Typed, in_flags
from falter.cli._variants import variants
from falter.cli._view import view
from falter.cli._watch import watch
from falter.core.errors import FalterError, printable

__all__ = ["cli", "main"]

INTERRUPTED = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="falter %(version)s")
def cli() -> None:
    """How far a language model falters when its prompt changes and its meaning does not.

    Start with 'falter demo'. Data goes to stdout, messages to stderr. Exit codes: 0 success; 1 the
    run is incomplete, some requests were sent; 2 wrong usage or a failed check, nothing was sent;
    of 'falter gate' also 3 fail and 4 undecided.
    """


for _command in (
    demo,
    init,
    plan,
    run,
    report,
    answers,
    compare,
    rescore,
    mend,
    view,
    gate,
    baseline,
    watch,
    analyze,
    power,
    perturb,
    recommend,
    rewrites,
    ratings,
    judge,
    generate,
    list_names,
    models,
    doctor,
    batch,
    requests,
    store,
    variants,
):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    typed, stdout = Typed(given), sys.stdout
    try:
        result = cli.main(given, prog_name="falter", standalone_mode=False, obj=typed)
        sys.stdout.flush()
    except FalterError as error:
        _say_error(in_flags(error.message, typed), error.hint)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "falter"
        _say_error(error.format_message(), f"'{path} --help' lists its arguments and options")
        return 2
    except click.ClickException as error:
        _say_error(error.format_message(), None)
        return 2
    except (click.Abort, KeyboardInterrupt, asyncio.CancelledError):
        _say_error("Interrupted", "all answers so far are stored; run the same command to resume")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # The reader of our output has closed it; stay silent, as other filters do. Rich makes an
        # exit of it, and so does Click, which then puts another stream in the place of stdout.
        closed = any(isinstance(each, BrokenPipeError) for each in (error, error.__context__))
        if not closed and sys.stdout is stdout:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _say_error(message: str, hint: str | None) -> None:
    click.echo(f"error: {printable(message)}", err=True)
    if hint:
        click.echo(f"\nhint: {printable(hint)}", err=True)
