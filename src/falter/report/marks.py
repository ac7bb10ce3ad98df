"""Preparation of figures for readers: marks of simulated models, removal of repeated labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from falter.records.figures import Figure, Study, renamed, without_shared_labels
from falter.report.escape import clip

MARK = " (simulated)"


def marked(study: Study, limit: int | None = 60) -> tuple[Figure, ...]:
    """Return the figures with `(simulated)` after every name of a simulated model.

    A name longer than `limit` is shortened first, so that later clipping keeps the mark. None keeps
    names whole.
    """
    rename = _renamer(study.simulated, limit)
    return tuple(renamed(figure, rename) for figure in study.figures)


def readable(study: Study) -> tuple[Figure, ...]:
    """Return the marked figures; a label that all rows of a table share moves into its text."""
    return tuple(without_shared_labels(figure) for figure in marked(study))


def model_names(study: Study, limit: int | None = 60) -> tuple[str, ...]:
    """Return the names of the models; names of simulated models carry the mark."""
    rename = _renamer(study.simulated, limit)
    return tuple(rename(model) for model in study.models)


def warning(study: Study) -> str:
    """Return the warning that some models are simulated; empty if none is."""
    names = [clip(name, 60)[0] for name in dict.fromkeys(study.simulated)]
    if not names:
        return ""
    if len(names) == 1:
        return f"{names[0]} is simulated: its numbers describe a formula, not a language model."
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{listed} are simulated: their numbers describe formulas, not language models."


def _renamer(simulated: Sequence[str], limit: int | None) -> Callable[[str], str]:
    names = sorted(filter(None, set(simulated)), key=len, reverse=True)
    if not names:
        return lambda text: text
    # Whole names only: not in "my-NAME", "NAME-2" or "NAME.gguf", and not before a mark.
    every = "|".join(map(re.escape, names))
    whole = re.compile(rf"(?<![\w.:/-])(?:{every})(?![\w:/-])(?!\.\w)(?!{re.escape(MARK)})")

    def marked_name(match: re.Match[str]) -> str:
        name = match[0]
        if limit is not None and len(name) > limit:
            name = name[:limit] + "…"
        return name + MARK

    return lambda text: whole.sub(marked_name, text)
