"""The analysis as data: everything as JSON, one row a panel and recipe as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from dataclasses import fields
from typing import Any

from falter.analysis import Analysis, Counts, PanelResult, RecipeResult
from falter.core.codec import to_json
from falter.core.records import Estimate
from falter.report._across import facts
from falter.report._escape import unhide

__all__ = ["across_csv", "as_csv", "as_json", "dumped", "safe"]

# Beyond the brief ASCII set: a spreadsheet also takes the full-width forms for the signs.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_ACROSS = (
    "run", "version", "seed", "unparsed_rule",
    "section", "model", "against", "task", "recipe", "told",
    "value", "low", "high", "level", "p", "items", "conditions", "excluded",
    "status", "estimand", "method", "signature",
)  # fmt: skip
_ACTING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def as_json(analysis: Analysis) -> str:
    """Everything, in full precision and always in the same order.

    `falter.core.codec.from_json(Analysis, …)` reads it back. Numbers that JSON does not have
    become null. Characters that a terminal would act upon are written as escapes.
    """
    return dumped(analysis)


def dumped(value: Any) -> str:
    """Any record as JSON, with the same promises."""
    text = json.dumps(
        _finite(to_json(value)),
        ensure_ascii=False,
        sort_keys=True,
        indent=2,
        allow_nan=False,
    )
    return text.translate({ord(c): _escaped(c) for c in set(text) - {"\n"} if _acts(c)}) + "\n"


def _acts(character: str) -> bool:
    return unicodedata.category(character) in _ACTING


def _escaped(character: str) -> str:
    """As JSON escapes: two for a character beyond the first 65,536."""
    return json.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(analysis: Analysis) -> str:
    """One row a panel and recipe, fractions in full precision, an empty cell for no number.

    Text that a spreadsheet would take for a formula is led by an apostrophe.
    """
    rows = [_row(analysis, panel, recipe) for panel in analysis.panels for recipe in panel.recipes]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_columns())
    writer.writerows([safe(value) for value in row.values()] for row in rows)
    return file.getvalue()


def across_csv(analysis: Analysis) -> str:
    """One row a number across panels: section, what it is about, value, interval, counts."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_ACROSS)
    for fact in facts(analysis.across) if analysis.across else ():
        e = fact.estimate
        row = (
            analysis.run, analysis.version, analysis.seed, analysis.unparsed,
            fact.section, fact.model, fact.against, fact.task, fact.recipe, fact.told,
            e.value, e.low, e.high, e.level, e.p_value, e.items, e.conditions, e.excluded,
            e.status, e.estimand, e.method, e.signature,
        )  # fmt: skip
        writer.writerow([safe(value) for value in row])
    return file.getvalue()


def _columns() -> list[str]:
    """The names, also where there is no row to take them from."""
    counts = [f.name for f in fields(Counts)]
    numbers = ["accuracy", "drop", "drop_valid", "drop_all"]
    spread = [column for name in numbers for column in _estimate(name, None)]
    return [
        "run", "version", "seed", "level", "unparsed_rule",
        "model", "task", "revision", "scorer",
        "recipe", "group",
        *_estimate("baseline", None), *spread, "p_holm",
        "lost", "gained", "edits_mean",
        *counts,
        "signature",
    ]  # fmt: skip


def _row(analysis: Analysis, panel: PanelResult, recipe: RecipeResult) -> dict[str, Any]:
    counts = recipe.counts
    row: dict[str, Any] = {
        "run": analysis.run,
        "version": analysis.version,
        "seed": analysis.seed,
        "level": analysis.level,
        "unparsed_rule": analysis.unparsed,
        "model": panel.model,
        "task": panel.panel.task,
        "revision": panel.panel.revision,
        "scorer": panel.panel.scorer,
        "recipe": recipe.label,
        "group": recipe.group,
        **_estimate("baseline", panel.baseline),
        **_estimate("accuracy", recipe.accuracy),
        **_estimate("drop", recipe.drop),
        **_estimate("drop_valid", recipe.drop_valid),
        **_estimate("drop_all", recipe.drop_all),
        "p_holm": recipe.p_holm,
        "lost": recipe.lost,
        "gained": recipe.gained,
        "edits_mean": recipe.edits_mean,
        **{f.name: getattr(counts, f.name) for f in fields(Counts)},
        "signature": panel.signature,
    }
    return {name: row[name] for name in _columns()}


def _estimate(name: str, estimate: Estimate | None) -> dict[str, Any]:
    return {
        name: estimate and estimate.value,
        f"{name}_low": estimate and estimate.low,
        f"{name}_high": estimate and estimate.high,
        f"{name}_p": estimate and estimate.p_value,
        f"{name}_items": estimate and estimate.items,
        f"{name}_status": estimate and estimate.status,
        f"{name}_method": estimate and estimate.method,
    }


def safe(value: Any) -> Any:
    """A value of a cell that no spreadsheet acts upon; an empty one for None."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = unhide(value)
        return f"'{text}" if value.lstrip(" ").startswith(_FORMULA) else text
    return repr(value) if isinstance(value, float) else value
