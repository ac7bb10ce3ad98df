"""Escaping of untrusted text for HTML, terminals and spreadsheets.

Item texts, responses, labels and reasons come from data sets, models and servers. They must not act
as markup or as terminal sequences, nor reorder or hide the text around them.
"""

from __future__ import annotations

import html
import re
from typing import Any

from falter.records.errors import inert

MAX_TEXT_CHARACTERS = 4_000
MAX_LABEL_CHARACTERS = 120
_SLACK = 20

# Controls except tab and newline, lone surrogates, and characters that are without width or change
# the writing direction. A zero-width joiner between two emoji belongs to them and stays.
_EMOJI = "\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_ACTIVE_CHARACTERS = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_HIDDEN = re.compile(f"(?!(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])){_ACTIVE_CHARACTERS}")
_MAY_HIDE = re.compile(
    _ACTIVE_CHARACTERS
).search  # a quick test, because most texts have none of these
_SPACING = re.compile(r"(\n|\t| {2,}|^ | $|[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000])")


# Spreadsheets also accept the full-width forms of the ASCII signs.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class Html(str):
    """A string that is markup. Any other string is text and is escaped when put into markup."""

    __slots__ = ()


def clip(text: str, limit: int) -> tuple[str, str]:
    """Return the first `limit` characters, and a note on how many were left out.

    A text that is at most 20 characters longer stays whole, with an empty note.
    """
    left_out = len(text) - limit
    return (text, "") if left_out <= _SLACK else (text[:limit], f"… {left_out:,} more characters")


def _code_point(character: str) -> str:
    """Return a character's code point as text, such as `U+202E` for a right-to-left override.

    Symbols such as ␛ are missing in many fonts.
    """
    return f"U+{ord(character):04X}"


def unhide(text: str) -> str:
    """Return the text with hidden characters spelled out, as `⟨U+202E⟩`. Tabs and newlines stay."""
    if _MAY_HIDE(text) is None:
        return text
    return _HIDDEN.sub(lambda match: f"⟨{_code_point(match[0])}⟩", text)


def line(text: str, limit: int = MAX_LABEL_CHARACTERS) -> str:
    """Return the text on one line for terminals and table cells, clipped, with nothing hidden."""
    head, note = clip(text, limit)
    return unhide(head).replace("\n", "⏎").replace("\t", "⇥") + note


def spreadsheet_cell(value: Any) -> Any:
    """Return a value for a CSV file on which no spreadsheet and no build server acts.

    None becomes an empty text. A text that looks like a formula gets an apostrophe before it.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        text = inert(unhide(value))
        return f"'{text}" if value.lstrip(" ").startswith(_FORMULA) else text
    return repr(value) if isinstance(value, float) else value


def text_only(text: str, limit: int = MAX_TEXT_CHARACTERS) -> Html:
    """Return the text escaped and clipped for attributes and titles, which allow no elements."""
    head, note = clip(text, limit)
    return Html(html.escape(unhide(head), quote=True) + note)


def escape(text: str, limit: int = MAX_TEXT_CHARACTERS) -> Html:
    """Return the text as markup: escaped, clipped, with hidden characters spelled out."""
    head, note = clip(text, limit)
    if note:
        return Html(f'{_escaped_text(head)}<span class="ctl">{note}</span>')
    return Html(_escaped_text(head))


def edited(text: str, limit: int = MAX_TEXT_CHARACTERS) -> Html:
    """Return the text as `escape` does, with newlines, tabs and unusual spaces made visible.

    Spaces at the edges and repeated spaces are made visible too.
    """
    head, note = clip(text, limit)
    cut = _SPACING.split(head)
    parts = [_visible_spacing(part) if n % 2 else _escaped_text(part) for n, part in enumerate(cut)]
    return Html("".join(parts) + (_control(note) if note else ""))


def _escaped_text(text: str) -> str:
    if _MAY_HIDE(text) is None:
        return html.escape(text, quote=True)
    out, at = [], 0
    for match in _HIDDEN.finditer(text):
        out += [html.escape(text[at : match.start()], quote=True), _control(_code_point(match[0]))]
        at = match.end()
    return "".join((*out, html.escape(text[at:], quote=True)))


def _visible_spacing(text: str) -> str:
    if text == "\n":
        return _control("⏎") + "\n"
    if text == "\t":
        return _control("⇥") + "\t"
    if text.startswith(" "):
        return "".join(_control("·") + "<wbr>" for _ in text)
    return _control(_code_point(text))


def _control(name: str) -> str:
    return f'<span class="ctl">{name}</span>'
