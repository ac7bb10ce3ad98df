"""A group of commands that are imported when they are used, so that help and errors are quick."""

from __future__ import annotations

from importlib import import_module

import click


class LateCommand(click.Command):
    """Stands for a command in the list of commands; its home is `module:attribute` of this room."""

    def __init__(self, name: str, home: str, summary: str) -> None:
        super().__init__(name, short_help=summary)
        self._home = home

    def load(self) -> click.Command:
        """The command itself."""
        module, _, attribute = self._home.partition(":")
        command = getattr(import_module(f"{__package__}.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command


class LateGroup(click.Group):
    """Knows its commands by name and summary, and imports the one that is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LateCommand) else command, rest
