"""The review sheet as a page: one file without network access, its only script allowed by hash."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from falter.records.reviews import Sample
from falter.rewrites._sheet import described, flags_of

__all__ = ["sheet_page"]


def sheet_page(sheet: str, rows: Mapping[str, Sample], *, language: str | None = None) -> str:
    """A page to review a sheet in a browser. Texts are data, never markup.

    Drafts stay in the browser's own storage; a button saves the same CSV as a spreadsheet would.
    """
    script, style = _part("review.js"), _part("review.css")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'"
    )
    data = {
        "sheet": sheet,
        "rows": [_row(row, sample, language) for row, sample in rows.items()],
    }
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>Review of {len(rows):,} rewrites</title><style>{style}</style></head>"
        f'<body>{_part("review.html")}<script type="application/json" id="data">{_data(data)}'
        f"</script><script>{script}</script></body></html>\n"
    )


def _row(row: str, sample: Sample, language: str | None) -> dict[str, object]:
    shown: dict[str, object] = {
        "row": row,
        "perturbation": described(sample),
        "source": sample.source,
        "rewrite": sample.shown,
    }
    if language is not None:
        shown["flags"] = flags_of(sample, language)
    return shown


def _data(value: object) -> str:
    """JSON that no tag can end: every < is written as an escape."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _part(name: str) -> str:
    return files("falter.rewrites").joinpath("data", name).read_text("utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
