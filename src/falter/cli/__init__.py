"""Floor 7: the command line. Data goes to stdout, talk to stderr."""

from __future__ import annotations

from falter.cli._main import main

__all__ = ["main"]
