"""Extraction of the rewritten text from a rewriter's response.

A model's response may be anything, so its length is checked before any pattern is tried on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from falter.perturbations.rewriting import Wanted
from falter.records.lazy_regex import lazy_regex, named_regex
from falter.records.types import Response, Rewrite, RewriteStatus
from falter.text.code import fenced_blocks

_bundled_regex = partial(named_regex, "rewrites")

# A rewrite may have `MAX_LENGTH_RATIO` times the characters of its source, plus `EXTRA_CHARACTERS`.
MAX_LENGTH_RATIO, EXTRA_CHARACTERS = 4, 200
# A response may have twice that length plus `MAX_WRAPPING_CHARACTERS`; no pattern is tried on a
# longer one.
MAX_WRAPPING_CHARACTERS = 4_000


class Reading(NamedTuple):
    """The result of an extraction: a status, the text if it is `ok`, and otherwise the reason."""

    status: RewriteStatus
    text: str | None = None
    reason: str | None = None


def read_rewrite(wanted: Wanted, response: Response, author: str) -> Rewrite:
    """Return the record of an author's rewrite of a text, extracted from a response."""
    reading = read_reply(wanted, response)
    return wanted.rewrite(author, reading.text, reading.status, reading.reason)


def read_reply(wanted: Wanted, response: Response) -> Reading:
    """Return the new text, without words that models put around it, and its status.

    If the text cannot be used, the result has the reason instead.
    """
    source, reply = wanted.text, _without_thoughts(response.text or "")
    if response.finish_reason == "content_filter":
        return Reading("refused", reason="the server's content filter stopped the reply")
    if (
        len(reply)
        > 2 * (MAX_LENGTH_RATIO * len(source) + EXTRA_CHARACTERS) + MAX_WRAPPING_CHARACTERS
    ):
        return Reading("broken", reason=f"{len(reply):,} characters for {len(source):,}")
    text = _bare_rewrite(reply, source)
    if _is_refusal(text, source):
        return Reading("refused", reason=_first_line(text))
    if response.finish_reason == "length":
        return Reading("cut", reason="the reply reached its limit of tokens")
    if not text:
        return Reading("empty", reason="the reply has no text")
    if text.split() == source.split() and not wanted.perturbation.may_repeat(source):
        return Reading("identical", reason="the reply repeats the text unchanged")
    problem = (
        _shape_fault(text, source)
        or wanted.perturbation.problem(source, text, wanted.asked)
        or _answer_fault(text, source, wanted.answers)
    )
    return Reading("ok", text) if problem is None else Reading("broken", reason=problem)


def _shape_fault(text: str, source: str) -> str | None:
    """Return the reason why a text cannot be one rewrite of the source, or None."""
    if len(text) > MAX_LENGTH_RATIO * len(source) + EXTRA_CHARACTERS:
        return f"{len(text):,} characters for {len(source):,}"
    if _SEVERAL_VERSIONS.match(text) and not _SEVERAL_VERSIONS.match(source):
        return "several rewrites instead of one"
    return None


# Characters of the shortest answer that is searched for; shorter ones would occur by chance.
_MIN_ANSWER_CHARACTERS = 3
_WORD = lazy_regex(r"[^\W_]+")


def _answer_fault(text: str, source: str, answers: Sequence[str]) -> str | None:
    """Return the reason why a text is an answer rather than a rewrite, or None."""
    new, old = _plain_words(text), _plain_words(source)
    for answer in answers:
        words = _plain_words(answer)
        if len(words.strip()) >= _MIN_ANSWER_CHARACTERS and words in new and words not in old:
            return (
                f"the rewrite contains the answer {answer.strip()[:60]!r}, which the text does not"
            )
    return None


def _plain_words(text: str) -> str:
    """Return the words in lower case, with one blank on each side of every word."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= 160 else line[:159] + "…"


# Patterns of the words that models put around an answer.
_REASONING_TAGS = ("think", "thinking", "reasoning")
_OPENING_TAG, _MAX_TAGGED_TEXTS = lazy_regex(r"<(text_*)>"), 3
_TAG = lazy_regex(r"\s{0,9}</?text_*>\s{0,9}", re.IGNORECASE)
_LEAD_IN = _bundled_regex("lead_in")
_AFTERWORD = _bundled_regex("afterword")
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“", "「": "」", "`": "`"}
_SEVERAL_VERSIONS = _bundled_regex("several")
_REFUSAL = _bundled_regex("refusal")
_FOREIGN_TEXT = _bundled_regex("foreign")
_SORRY = lazy_regex(r"\b(?:sorry|apolog|unable|cannot|can['’]t)", re.IGNORECASE)


def _is_refusal(text: str, source: str) -> bool:
    """Return True if the model itself refuses, rather than the text that it was to reword."""
    if _REFUSAL.match(text):
        return _REFUSAL.match(source) is None
    return _FOREIGN_TEXT.match(text) is not None and _SORRY.search(source) is None


def _without_thoughts(reply: str) -> str:
    """Return the reply after its leading reasoning block; empty if the block never ends."""
    reply = reply.strip()
    for name in _REASONING_TAGS:
        if reply.startswith(f"<{name}>"):
            return reply.partition(f"</{name}>")[2].strip()
    return reply


def _bare_rewrite(reply: str, source: str) -> str:
    """Return the answer without fences, tags, lead-ins, quotation marks and afterwords.

    Such a part stays if the source has it, too.
    """
    text = _unwrapped(reply, source)
    lead = _LEAD_IN.match(text)
    if lead and text[lead.end() :].strip() and not _LEAD_IN.match(source):
        text = _unwrapped(text[lead.end() :].strip(), source)
    after = _AFTERWORD.search(text)
    if after and after.start() and not _AFTERWORD.search(source):
        text = _unwrapped(text[: after.start()].strip(), source)
    return text


def _untagged(text: str, source: str) -> str:
    """Return the text in the last tags that does not repeat the source.

    If there is none, repetitions of the source and all tags are removed. A repetition that is the
    whole text stays.
    """
    for start, inside, end in _tagged_texts(text):
        if inside.split() != source.split():
            return inside or text
        text = text[:start] + text[end:] if (text[:start] + text[end:]).strip() else text
    return _TAG.sub("", text).strip()


def _tagged_texts(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield the first texts in tags, at most three, in reverse order.

    Each is the start of its opening tag, the text, and the end of its closing tag.
    """
    pieces: list[tuple[int, str, int]] = []
    at = 0
    while len(pieces) < _MAX_TAGGED_TEXTS and (tag := _OPENING_TAG.search(text, at)) is not None:
        close = text.find(f"</{tag[1]}>", tag.end())
        if close < 0:
            break
        at = close + len(tag[1]) + 3
        pieces.append((tag.start(), text[tag.end() : close].strip(), at))
    return reversed(pieces)


def _unwrapped(text: str, source: str) -> str:
    """Return the text without a fence, tags or quotation marks around all of it."""
    if not _TAG.search(source):
        text = _untagged(text, source)
    blocks = list(fenced_blocks(text))
    if len(blocks) == 1 and blocks[0].span == (0, len(text)) and not source.startswith("```"):
        text = text[slice(*blocks[0].inside)].strip()
    close = _QUOTES.get(text[:1])
    if close is not None and len(text) > 2 and not source.startswith(text[0]):
        inside = text[1:-1]
        if text.endswith(close) and close not in inside:
            text = inside.strip()
    return text
