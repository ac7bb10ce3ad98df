"""The same fields in another layout: labels, separators, the list of options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from falter.core.interfaces import Parameter
from falter.core.records import Prompt, Section
from falter.core.rng import Rng
from falter.perturbations._asking import added, cue_at
from falter.perturbations._base import prompt_perturbation
from falter.perturbations._choices import is_listed, relisted, shows_labels
from falter.text import Replacement, blocked, overlaps, replace_spans

__all__ = ["input_format"]

Layout = Literal["key_value", "markdown", "plain", "xml"]
_LAYOUTS: tuple[Layout, ...] = ("plain", "markdown", "xml", "key_value")
_LAYOUT = Parameter(
    name="layout",
    type=str,
    default="draw",
    help="plain: label, separator, field; markdown: bold labels or headings; xml: tags; key_value: "
    "label = field; draw: one of them for each item and draw",
    options=("draw", *_LAYOUTS),
)
_SEPARATORS = (": ", " - ", ":\n", "\t", " :: ", " > ", ":   ")
_CASINGS: tuple[Callable[[str], str], ...] = (str, str.upper, str.lower, str.title)
_LISTS = ("{label}) {text}\n", "({label}) {text}\n", "[{label}] {text}\n", "{label}: {text}\n",
          "- {label}. {text}\n", "{label}.\t{text}\n")  # fmt: skip
# Before a number or a formula these would read as a part of it.
_SIGNS = (" - ", " > ")
_FORMULA = re.compile(r"\s*(?:[\d+=<>(\[√π−–-]|[a-z]\s*[+=<>*/^(−–-])")
_LABEL = re.compile(r"(?:\A|(?<=\n))([A-Z][A-Za-z]*(?: [A-Za-z\d]+){0,2})(:[ \t]?|:\n)\Z")


class _Place(NamedTuple):
    """A label in the template: its section, its span with the separator, and its words."""

    section: int
    start: int
    end: int
    label: str
    field: int | None  # the section that it labels; None for the answer cue


def _places(prompt: Prompt) -> list[_Place]:
    """The labels right before a field, and the answer cue, where nothing closes them."""
    sections = prompt.sections
    places: list[_Place] = []
    for at, section in enumerate(sections[:-1]):
        field = sections[at + 1]
        if section.kind in ("instruction", "added") and field.kind in ("input", "document"):
            places += _place(section, at, at + 1)
    cue = cue_at(sections)
    if cue is not None:
        places += _place(sections[cue], cue, None)
    return places


def _place(section: Section, at: int, field: int | None) -> list[_Place]:
    text = section.text.rstrip(" \n") if field is None else section.text
    match = _LABEL.search(text)
    if match is None or overlaps(blocked(section), *match.span()):
        return []
    return [_Place(at, match.start(), match.end(), match[1], field)]


def _can_format(prompt: Prompt, layout: str) -> bool:
    if prompt.demonstrations:
        return False
    return any(place.field is not None for place in _places(prompt)) or _relists(prompt)


def _relists(prompt: Prompt) -> bool:
    return is_listed(prompt) and shows_labels(prompt.choice_format)


@prompt_perturbation(
    "input_format",
    title="another layout of the question",
    family="format",
    group="input format",
    scope=("instruction", "choices", "cue"),
    parameters=(_LAYOUT,),
    invariants=("target", "choices", "target text", "negations", "code"),
    eligible=_can_format,
)
def input_format(prompt: Prompt, rng: Rng, layout: str) -> Prompt:
    """Lays the same fields out in another way: plain text, Markdown, tags or key and value.

    Separators, the case of labels and the list of options are drawn from a grammar, a point of it
    for each item and draw. What is put in stays as it is.
    """
    places = _places(prompt)
    chosen = _LAYOUTS[rng.below(len(_LAYOUTS))] if layout == "draw" else layout
    if chosen == "xml" and not any(place.field is not None for place in places):
        chosen = "plain"
    cased, separator = rng.choice(_CASINGS), rng.choice(_SEPARATORS)
    fields = (prompt.sections[place.field].text for place in places if place.field is not None)
    if any(map(_FORMULA.match, fields)):
        chosen = "plain" if chosen == "key_value" else chosen
        separator = ": " if separator in _SIGNS else separator
    heading, line = rng.below(2), rng.choice(_LISTS)
    changes: dict[int, list[Replacement]] = {}
    closing: dict[int, Section] = {}
    for place in places:
        if chosen == "xml" and place.field is not None:
            tag = place.label.lower().replace(" ", "_")
            label = f"<{tag}>\n"
            closing[place.field] = added(f"{tag}_end", f"\n</{tag}>")
        else:
            label = _labelled(cased(place.label), chosen, separator, heading, place.field is None)
        changes.setdefault(place.section, []).append((place.start, place.end, label))
    if _relists(prompt):
        choices, labels = prompt.choices, prompt.labels
        new = line if line != prompt.choice_format else _LISTS[0]
        prompt = relisted(prompt, choices, labels, prompt.target, choice_format=new)
    return prompt.with_sections(_laid_out(prompt.sections, changes, closing))


def _labelled(label: str, layout: str, separator: str, heading: int, cue: bool) -> str:
    if cue and (layout == "xml" or separator == "\t"):
        return f"{label}:"
    if layout == "markdown":
        return f"## {label}\n" if heading and not cue else f"**{label}:**{'' if cue else ' '}"
    if layout == "key_value":
        return f"{label} =" if cue else f"{label} = "
    return f"{label}{separator}".rstrip() if cue else f"{label}{separator}"


def _laid_out(
    sections: Sequence[Section],
    changes: dict[int, list[Replacement]],
    closing: dict[int, Section],
) -> tuple[Section, ...]:
    out: list[Section] = []
    for at, section in enumerate(sections):
        out.append(replace_spans(section, changes[at]) if at in changes else section)
        if at in closing:
            out.append(closing[at])
    return tuple(out)
