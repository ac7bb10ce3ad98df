"""Examples of items in both conditions: the prompts with their edits, and the responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from falter.records import numbers as n
from falter.records.figures import Example, Examples, Segment, Side
from falter.report.escape import MAX_TEXT_CHARACTERS, Html, edited, escape
from falter.report.markup import cell, head, label, tag

OPENED_EXAMPLES = 2
MAX_FILTERED_RECIPES = 12
"""Maximum number of recipes with a filter; `figures.css` has a rule for each."""
MAX_CHANGE_CHARACTERS = 80
_FLIP_WORDS = {"lost": "lost", "gained": "gained", "same": "not turned"}
MAX_ANSWER_CHARACTERS = 1_500
CONTEXT_CHARACTERS = 400
MAX_STRUCK_CHARACTERS = 60
MAX_OPTIONS = 30

Version = Literal["before", "after"]


def example_pairs(figure: Examples) -> Html:
    """Return filters that need no script, and the examples: OPENED_EXAMPLES of them are open."""
    examples = figure.examples
    recipes = list(dict.fromkeys(example.recipe for example in examples))[:MAX_FILTERED_RECIPES]
    articles = [
        _example(example, recipes, opened=place < OPENED_EXAMPLES)
        for place, example in enumerate(examples)
    ]
    return tag("div", *_filters(figure, recipes), *articles, class_="examples")


def _filters(figure: Examples, recipes: Sequence[str]) -> list[Html]:
    """Return the filters by direction of the flip and by recipe; none if there is no choice."""
    turned = [kind for kind in ("lost", "gained") if any(e.turned == kind for e in figure.examples)]
    everyday = {example.recipe: example.everyday for example in figure.examples}
    kinds = [(f"only-{kind}", kind.capitalize()) for kind in turned]
    named = [(f"only-r{place}", everyday[recipe] or recipe) for place, recipe in enumerate(recipes)]
    return [
        tag("fieldset", tag("legend", title), *_radio_buttons(f"{figure.name}-{name}", choices))
        for title, name, choices in (("Show", "turned", kinds), ("Under", "recipe", named))
        if len(choices) > 1
    ]


def _radio_buttons(group: str, choices: Sequence[tuple[str, str]]) -> list[Html]:
    every = _radio_button(group, "only-all", "All", checked="")
    return [every, *(_radio_button(group, kind, text, checked=None) for kind, text in choices)]


def _radio_button(group: str, kind: str, text: str, *, checked: str | None) -> Html:
    box = tag("input", type="radio", name=group, class_=f"away {kind}", checked=checked)
    return tag("label", box, tag("span", label(text, 60)))


def _example(example: Example, recipes: Sequence[str], *, opened: bool) -> Html:
    place = recipes.index(example.recipe) if example.recipe in recipes else MAX_FILTERED_RECIPES
    before, after = (s.read or s.answer for s in (example.baseline, example.perturbed))
    title = tag(
        "summary",
        tag("span", _FLIP_WORDS[example.turned], class_=f"turned {example.turned}"),
        " under ",
        label(example.everyday or example.recipe),
        tag("span", " on item ", label(example.item), class_="ci"),
        tag("span", ": ", label(before, 40), " → ", label(after, 40), class_="ci"),
    )
    names = [tag("code", label(example.recipe), class_="ci"), " · "] if example.everyday else []
    expected = tag("b", label(example.expected, MAX_ANSWER_CHARACTERS))
    return tag(
        "details",
        title,
        tag("p", *names, "Expected: ", expected, class_="expected"),
        tag(
            "div",
            _version_column("As asked", example.segments, "before", example.baseline),
            _version_column("As changed", example.segments, "after", example.perturbed),
            class_="pair sides",
        ),
        class_=f"example {example.turned} r{place}",
        open="" if opened else None,
    )


def change_marked(segments: Sequence[Segment]) -> Iterator[Html]:
    """Yield a short change on one line: removed text struck through, new text marked."""
    for segment in segments:
        if segment.kind == "same":
            yield escape(segment.after)
            continue
        if segment.before:
            yield tag("del", edited(segment.before, MAX_CHANGE_CHARACTERS))
        if segment.after:
            yield tag("mark", edited(segment.after, MAX_CHANGE_CHARACTERS))


def _version_column(title: str, segments: Sequence[Segment], which: Version, side: Side) -> Html:
    verdict = ("✓ right", "right") if side.right else (f"✗ {side.word[:60]}", "wrong")
    return tag(
        "div",
        tag("p", title, class_="side-of"),
        tag("div", *_prompt_parts(segments, which), class_="prompt", dir="auto"),
        tag(
            "div",
            tag("span", verdict[0], class_=f"verdict {verdict[1]}"),
            " ",
            tag("span", escape(side.answer, MAX_ANSWER_CHARACTERS), class_="said", dir="auto")
            if side.answer
            else tag("span", "empty answer", class_="ci"),
            class_="answer",
        ),
        tag("p", "reading: ", label(side.reading, MAX_ANSWER_CHARACTERS), class_="ci")
        if side.reading
        else Html(""),
        _options_table(side.detail) if side.detail else Html(""),
        class_="side",
    )


def _options_table(detail: Sequence[tuple[str, float]]) -> Html:
    """Return a table of the options with the log-likelihoods that the model gave them."""
    rows = [
        tag("tr", tag("th", label(text), scope="row"), cell(n.decimal(value, 2), class_="r"))
        for text, value in detail[:MAX_OPTIONS]
    ]
    if len(detail) > MAX_OPTIONS:
        rows.append(tag("tr", cell(f"{len(detail) - MAX_OPTIONS} more options", colspan=2)))
    top = tag("tr", head("Option"), head("Log-likelihood", class_="r"))
    return tag("table", tag("thead", top), tag("tbody", *rows), class_="plain options")


def _prompt_parts(segments: Sequence[Segment], which: Version) -> Iterator[Html]:
    """Yield the prompt before or after the change; unchanged text is shortened before edits."""
    characters_left = MAX_TEXT_CHARACTERS
    for place, segment in enumerate(segments):
        if characters_left <= 0:
            yield tag("span", f"… {len(segments) - place} more pieces", class_="ctl")
            return
        text = segment.before if which == "before" else segment.after
        if segment.kind == "same":
            yield from _shortened_context(text, characters_left)
        else:
            yield _edit_markup(segment, which, min(characters_left, MAX_TEXT_CHARACTERS // 2))
        characters_left -= min(
            len(text),
            2 * CONTEXT_CHARACTERS + 1 if segment.kind == "same" else MAX_TEXT_CHARACTERS // 2,
        )


def _shortened_context(text: str, limit: int) -> Iterator[Html]:
    """Yield unchanged text; of a long text only the beginning and the end, next to the edits."""
    if len(text) <= 3 * CONTEXT_CHARACTERS:
        yield escape(text, max(limit, CONTEXT_CHARACTERS))
        return
    hidden = len(text) - 2 * CONTEXT_CHARACTERS
    yield escape(text[:CONTEXT_CHARACTERS])
    yield tag("span", f"… {n.whole(hidden)} unchanged characters …", class_="ctl")
    yield escape(text[-CONTEXT_CHARACTERS:])


def _edit_markup(segment: Segment, which: Version, limit: int) -> Html:
    if which == "after":
        return tag("mark", edited(segment.after, limit)) if segment.after else _caret("removed")
    if not segment.before:
        return _caret("inserted")
    # A long struck-through text is hard to read, so there the colour alone marks the removal.
    struck = not segment.after or len(segment.before) <= MAX_STRUCK_CHARACTERS
    return tag("del", edited(segment.before, limit), class_=None if struck else "long")


def _caret(what: str) -> Html:
    about = f"text was {what} here"
    return tag("span", class_=f"caret {what}", role="img", aria_label=about, title=about)
