"""Functions that are asked as models, imported by name in the processes of Ray's actors."""

from __future__ import annotations

import os

__all__ = ["steady", "unsteady"]


def steady(prompt: str) -> str:
    """An answer that is right now and then."""
    return "AB"[len(prompt) % 2]


def unsteady(prompt: str) -> str:
    """The same, but one question ends the process, as a fault in a library of C would."""
    if "after 17?" in prompt:
        os._exit(139)
    return steady(prompt)
