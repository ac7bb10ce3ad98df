"""A page around its parts: one file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Iterable

from falter.report._escape import Html, text_only
from falter.report._markup import tag
from falter.report._style import STYLE

__all__ = ["page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, parts: Iterable[str], style: str = "") -> str:
    """A whole page. `title` is text; `style` comes after the style that all pages share."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", text_only(title)),
        tag("style", Html(STYLE + style)),
    )
    body = tag("body", tag("main", *parts))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
