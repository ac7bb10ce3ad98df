"""Items whose outcome changed with the prompt: both prompts, both answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from falter.figures import Example, Segment, Side
from falter.figures import numbers as n
from falter.report._escape import LIMIT, Html, edited, escape
from falter.report._markup import cell, head, label, tag

__all__ = ["example_pairs"]

FIRST = 3
ANSWER = 1_500
CONTEXT = 400
STRUCK = 60
OPTIONS = 30

Which = Literal["before", "after"]


def example_pairs(examples: Sequence[Example]) -> Html:
    """The first few examples in full, the rest folded away."""
    articles = [_example(example) for example in examples]
    rest = articles[FIRST:]
    more = f"{len(rest)} more {'example' if len(rest) == 1 else 'examples'}"
    folded = tag("details", tag("summary", more), *rest) if rest else Html("")
    return tag("div", *articles[:FIRST], folded, class_="examples")


def _example(example: Example) -> Html:
    return tag(
        "article",
        tag(
            "p",
            label(example.recipe),
            tag("span", " on item ", label(example.item), class_="ci"),
            class_="of",
        ),
        tag("p", "Expected: ", tag("b", label(example.expected, ANSWER)), class_="expected"),
        tag(
            "div",
            _column("As asked", example.segments, "before", example.baseline),
            _column("As changed", example.segments, "after", example.perturbed),
            class_="pair sides",
        ),
        class_="example",
    )


def _column(title: str, segments: Sequence[Segment], which: Which, side: Side) -> Html:
    verdict = ("✓ right", "right") if side.right else (f"✗ {side.word[:60]}", "wrong")
    return tag(
        "div",
        tag("p", title, class_="side-of"),
        tag("div", *_prompt(segments, which), class_="prompt", dir="auto"),
        tag(
            "div",
            tag("span", verdict[0], class_=f"verdict {verdict[1]}"),
            " ",
            tag("span", escape(side.answer, ANSWER), class_="said", dir="auto")
            if side.answer
            else tag("span", "empty answer", class_="ci"),
            class_="answer",
        ),
        tag("p", "read as: ", label(side.read, ANSWER), class_="ci")
        if side.read and side.read != side.answer
        else Html(""),
        _options(side.detail) if side.detail else Html(""),
        class_="side",
    )


def _options(detail: Sequence[tuple[str, float]]) -> Html:
    """The log-likelihood that the model gave each option."""
    rows = [
        tag("tr", tag("th", label(text), scope="row"), cell(n.decimal(value, 2), class_="r"))
        for text, value in detail[:OPTIONS]
    ]
    if len(detail) > OPTIONS:
        rows.append(tag("tr", cell(f"{len(detail) - OPTIONS} more options", colspan=2)))
    top = tag("tr", head("Option"), head("Log-likelihood", class_="r"))
    return tag("table", tag("thead", top), tag("tbody", *rows), class_="plain options")


def _prompt(segments: Sequence[Segment], which: Which) -> Iterator[Html]:
    """One side of the comparison; unchanged text is shortened before edits are."""
    room = LIMIT
    for place, segment in enumerate(segments):
        if room <= 0:
            yield tag("span", f"… {len(segments) - place} more pieces", class_="ctl")
            return
        text = segment.before if which == "before" else segment.after
        if segment.kind == "same":
            yield from _same(text, room)
        else:
            yield _edit(segment, which, min(room, LIMIT // 2))
        room -= min(len(text), 2 * CONTEXT + 1 if segment.kind == "same" else LIMIT // 2)


def _same(text: str, limit: int) -> Iterator[Html]:
    """Unchanged text: its beginning and its end, next to the edits."""
    if len(text) <= 3 * CONTEXT:
        yield escape(text, max(limit, CONTEXT))
        return
    hidden = len(text) - 2 * CONTEXT
    yield escape(text[:CONTEXT])
    yield tag("span", f"… {n.whole(hidden)} unchanged characters …", class_="ctl")
    yield escape(text[-CONTEXT:])


def _edit(segment: Segment, which: Which, limit: int) -> Html:
    if which == "after":
        return tag("mark", edited(segment.after, limit)) if segment.after else _caret("removed")
    if not segment.before:
        return _caret("inserted")
    # A sentence that is struck through cannot be read; there the colour has to suffice.
    struck = not segment.after or len(segment.before) <= STRUCK
    return tag("del", edited(segment.before, limit), class_=None if struck else "long")


def _caret(what: str) -> Html:
    about = f"text was {what} here"
    return tag("span", class_=f"caret {what}", role="img", aria_label=about, title=about)
