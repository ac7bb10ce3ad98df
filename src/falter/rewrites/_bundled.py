"""Rewrites that come with falter: written by hand, for some items of bundled tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from falter.perturbations import RewritePerturbation, perturbations
from falter.records.errors import PluginError
from falter.records.types import Rewrite
from falter.rewrites._bank import MemoryBank, hand_written

__all__ = ["HAND_WRITTEN", "bundled_bank", "bundled_rewrites"]

HAND_WRITTEN = "hand-written"
FILES = ("basics_paraphrases.jsonl", "scitldr_paraphrases.jsonl")


@cache
def bundled_rewrites() -> tuple[Rewrite, ...]:
    """Every rewrite that comes with falter.

    The files hold texts and no keys: the key is made for the first draw, with the perturbation's
    default parameters. So a different version of the request, source text, parameter or draw
    finds nothing here.
    """
    folder = resources.files("falter.rewrites").joinpath("data")
    lines = (
        line for name in FILES for line in folder.joinpath(name).read_text("utf-8").split("\n")
    )
    return tuple(_read(json.loads(line)) for line in lines if line)


def _read(row: Mapping[str, str]) -> Rewrite:
    perturbation = perturbations.get(row["perturbation"])
    if not isinstance(perturbation, RewritePerturbation):
        raise PluginError(f"Rewrites are bundled for '{perturbation.name}', which takes none")
    return hand_written(perturbation.wanted(row["source"], 0), row["text"], row["author"])


def bundled_bank() -> MemoryBank:
    """The bundled rewrites as a bank."""
    return MemoryBank(bundled_rewrites())
