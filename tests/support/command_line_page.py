"""docs/command-line.md, made from the program itself.

python tests/support/command_line_page.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from falter.cli.app import LazyCommand, cli
from falter.records import errors

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"

HEAD = """\
# The command line

Results go to stdout, messages to stderr. `python tests/support/command_line_page.py` generates this
page, and a test compares it with the program.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the run is incomplete (failed requests, Ctrl-C); some requests were sent |
| 2 | wrong usage or a failed check; nothing was sent |
| 3 | `falter gate`: fail |
| 4 | `falter gate`: undecided |

Every option that defines an experiment can be set in an [experiment file](experiment-file.md)
instead (`falter init` writes one). Options override the file. `FALTER_STORE` sets the default
store, and `FALTER_CACHE` the folder for model weights. falter reads the API key from
`OPENAI_API_KEY`, or from the variable that `--api-key-env` names.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, "## falter\n", _help(cli, "falter")]
    for name in sorted(cli.commands):
        stand_in = cli.commands[name]
        assert isinstance(stand_in, LazyCommand)
        command = stand_in.load()
        parts += [f"## falter {name}\n", _help(command, f"falter {name}")]
        if isinstance(command, click.Group):
            for inner in sorted(command.commands):
                title = f"falter {name} {inner}"
                parts += [f"### {title}\n", _help(command.commands[inner], title)]
    parts += ["## Errors\n", _errors()]
    return "\n".join(parts)


def _help(command: click.Command, name: str) -> str:
    context = click.Context(
        command, info_name=name, max_content_width=100, terminal_width=100,
        help_option_names=["-h", "--help"],
    )  # fmt: skip
    return f"```text\n{command.get_help(context)}\n```\n"


def _errors() -> str:
    rows = ["| error | exit code | meaning |", "|---|---|---|"]
    for name, thing in sorted(vars(errors).items()):
        if inspect.isclass(thing) and thing.__module__ == errors.__name__:
            meaning = (thing.__doc__ or "").strip().partition("\n")[0]
            rows.append(f"| `{name}` | {thing.exit_code} | {meaning} |")
    return (
        "All errors are subclasses of `FalterError`, with `message` and `hint`.\n\n"
        + "\n".join(rows)
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
