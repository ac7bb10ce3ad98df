"""The command group, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

import click

from falter import __version__
from falter.cli._late import LateCommand, LateGroup
from falter.cli._other_names import usage_message
from falter.cli._typed import Typed, in_flags
from falter.records.errors import FalterError, printable

INTERRUPTED = 1

COMMANDS = {
    "analyze": ("_analyze:analyze", "Analyse results from elsewhere."),
    "answers": ("_answers:answers", "Show what was asked, answered and read."),
    "baseline": ("_gate:baseline", "Keep the outcomes of a version, for 'falter gate'."),
    "batch": ("_batch:batch", "Batches that were handed in to providers."),
    "compare": ("_compare:compare", "Compare runs, models or prompts, paired by item."),
    "demo": ("_demo:demo", "See a real language model falter, on this machine."),
    "doctor": ("_doctor:doctor", "Say what is installed and which models answer."),
    "gate": ("_gate:gate", "Hold a model or an application to margins."),
    "generate": ("generate:generate", "Have a model write the items of enterprise tasks."),
    "init": ("_init:init", "Write an experiment file with comments."),
    "judge": ("ratings:judge", "How far a judge agrees with people."),
    "list": ("_inspect:list_names", "List what is registered: perturbations, tasks, ..."),
    "mend": ("_mend:mend", "Try remedies, and say which one helps."),
    "models": ("_inspect:models", "List, download or quantise the embedded models."),
    "perturb": ("_perturb:perturb", "Perturb a text, or every line of standard input."),
    "plan": ("_plan:plan", "Show the calls, tokens and cost of a run."),
    "power": ("_power:power", "Say how many items and calls a goal needs."),
    "ratings": ("ratings:ratings", "Summaries that people rate, out and in."),
    "recommend": ("_recommend:recommend", "Propose recipes for a task, and say why."),
    "report": ("_report:report", "Report a run or a study, in any form."),
    "requests": ("_requests:requests", "Requests as files, for what answers elsewhere."),
    "rescore": ("_rescore:rescore", "Read stored answers with another scorer."),
    "rewrites": ("rewrites:rewrites", "Rewrites that a model makes beforehand."),
    "run": ("_run:run", "Run an experiment, or go on with one."),
    "store": ("_store:store", "List, verify, merge and repair stores."),
    "variants": ("_variants:variants", "Publish the perturbed prompts, or check them."),
    "view": ("_view:view", "Look at the answers in a browser."),
    "watch": ("_watch:watch", "Follow a run that another process makes."),
}
"""Each command: where it is, which is imported when it is used, and what the list says of it."""


@click.group(
    cls=LateGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="falter %(version)s")
def cli() -> None:
    """How far a language model falters when its prompt changes and its meaning does not.

    Start with 'falter demo'. Data goes to stdout, messages to stderr. Exit codes: 0 success; 1 the
    run is incomplete, some requests were sent; 2 wrong usage or a failed check, nothing was sent;
    of 'falter gate' also 3 fail and 4 undecided.
    """


for _name, (_home, _summary) in COMMANDS.items():
    cli.add_command(LateCommand(_name, _home, _summary))


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
        _say_error(usage_message(error), f"'{path} --help' lists its arguments and options")
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
