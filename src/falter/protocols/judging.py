"""Rubrics for judges, and the quotation of the texts that they judge.

The wording is falter's, not the papers'. A changed text needs a new `VERSION`.
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
    """Return the text with this name in `rubrics.yaml`."""
    texts: Mapping[str, str] = read_yaml(
        resources.files("falter.protocols").joinpath("rubrics.yaml").read_text("utf-8")
    )
    return texts[name]


def _rating_rubric(name: str) -> str:
    return f"{rubric(name)}\n{rubric('material')}"


PREFERENCE = _rating_rubric("preference")
RUBRICS: Mapping[str, str] = {
    name: _rating_rubric(name)
    for name in ("similarity", "faithfulness", "completeness", "relevance", "citations",
                 "conciseness")
}  # fmt: skip
PAIR_RUBRIC = next(iter(RUBRICS))
"""Name of the only rubric that compares two responses; the other rubrics rate one response."""
SIMILARITY = RUBRICS[PAIR_RUBRIC]
MAX_RUBRIC_CHARACTERS = 20_000


def read_rubrics(path: Path) -> dict[str, str]:
    """Return the bundled rubrics by name; texts of a YAML file replace rubrics of the same name.

    Raises UsageError for an unreadable file or a file without a mapping. Raises UnknownName or
    InvalidValue for an unknown name, an empty text or a text over `MAX_RUBRIC_CHARACTERS`.
    """
    import yaml

    try:
        user_rubrics = read_yaml(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"The rubrics in {path} cannot be read: {error}") from None
    if not isinstance(user_rubrics, dict):
        raise UsageError(
            f"{path} contains no rubrics",
            hint=f"write them as 'name: text', with the names {', '.join(RUBRICS)}",
        )
    for name, text in user_rubrics.items():
        if name not in RUBRICS:
            raise UnknownName(f"rubric in {path}", str(name), RUBRICS)
        if not isinstance(text, str) or not 0 < len(text.strip()) <= MAX_RUBRIC_CHARACTERS:
            raise InvalidValue(
                f"{path}: {name}", text, f"a text of up to {MAX_RUBRIC_CHARACTERS:,} characters"
            )
    ours = {name: f"{text.strip()}\n{rubric('material')}" for name, text in user_rubrics.items()}
    return {**RUBRICS, **ours}


OUTPUT, RETRY_OUTPUT = rubric("output"), rubric("again")


def quoted(text: str, longest: int) -> str:
    """Return the text with `|` before every line, so that no line can pass for the rubric.

    Control characters and surrogates become spaces. A text of more than `longest` characters is
    shortened to 5/8 of `longest` from its beginning and 3/8 from its end.
    """
    if len(text) <= longest:
        return _quoted_lines(text)
    head, tail = longest * 5 // 8, longest * 3 // 8
    gap = f"[{len(text) - head - tail:,} characters are left out here]"
    return f"{_quoted_lines(text[:head])}\n{gap}\n{_quoted_lines(text[-tail:])}"


def _quoted_lines(text: str) -> str:
    lines = (
        "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in line)
        for line in text.splitlines()
    )
    return "\n".join(f"| {line}" for line in lines)
