"""Texts for judges, in our own words, and the marks of quoted material.

A changed text needs a new version.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from falter.records.errors import InvalidValue, UnknownName, UsageError
from falter.tasks.enterprise_data import read_yaml

VERSION = 1


@cache
def rubric(name: str) -> str:
    """A text of `rubrics.yaml`."""
    texts: Mapping[str, str] = read_yaml(
        resources.files("falter.protocols").joinpath("rubrics.yaml").read_text("utf-8")
    )
    return texts[name]


def _rating(name: str) -> str:
    return f"{rubric(name)}\n{rubric('material')}"


PREFERENCE = _rating("preference")
RUBRICS: Mapping[str, str] = {
    name: _rating(name)
    for name in ("similarity", "faithfulness", "completeness", "relevance", "citations",
                 "conciseness")
}  # fmt: skip
OF_PAIRS = next(iter(RUBRICS))
"""The rubric of two replies; the others are of one."""
SIMILARITY = RUBRICS[OF_PAIRS]
LONGEST_RUBRIC = 20_000


def read_rubrics(path: Path) -> dict[str, str]:
    """Return the bundled rubrics of pairs and replies with those of a YAML file in their place."""
    import yaml

    try:
        own = read_yaml(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"The rubrics in {path} cannot be read: {error}") from None
    if not isinstance(own, dict):
        raise UsageError(
            f"{path} contains no rubrics",
            hint=f"write them as 'name: text', with the names {', '.join(RUBRICS)}",
        )
    for name, text in own.items():
        if name not in RUBRICS:
            raise UnknownName(f"rubric in {path}", str(name), RUBRICS)
        if not isinstance(text, str) or not 0 < len(text.strip()) <= LONGEST_RUBRIC:
            raise InvalidValue(
                f"{path}: {name}", text, f"a text of up to {LONGEST_RUBRIC:,} characters"
            )
    ours = {name: f"{text.strip()}\n{rubric('material')}" for name, text in own.items()}
    return {**RUBRICS, **ours}


OUTPUT, AGAIN = rubric("output"), rubric("again")


def quoted(text: str, longest: int) -> str:
    """The text with `|` before every line, so that none can pass for a line of the rubric.

    Control characters become spaces; of a long text the beginning and the end are shown.
    """
    if len(text) <= longest:
        return _lines(text)
    head, tail = longest * 5 // 8, longest * 3 // 8
    gap = f"[{len(text) - head - tail:,} characters are left out here]"
    return f"{_lines(text[:head])}\n{gap}\n{_lines(text[-tail:])}"


def _lines(text: str) -> str:
    lines = (
        "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in line)
        for line in text.splitlines()
    )
    return "\n".join(f"| {line}" for line in lines)
