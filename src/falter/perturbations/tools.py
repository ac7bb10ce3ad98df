"""Perturbations of tools described as JSON: another order, layout or spelling of names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from falter.perturbations.base import locked_spans, prompt_perturbation
from falter.perturbations.template_parts import another_order
from falter.perturbations.tool_json import (
    COMPACT,
    LIST_KEYS,
    SCHEMA_KEYS,
    SPACED,
    STYLES,
    Array,
    Leaf,
    Node,
    Object,
    Style,
    is_tool,
    nodes,
    style_of,
    tool_blocks,
    tools_in,
    with_values,
    written,
)
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Demonstration, Prompt, Section, Span
from falter.text.spans import overlaps, replace_spans

# If a text counts tools or parameters, their order means something.
_COUNTED = named_regex("perturbations", "counted_tools")
# Arguments without names are identified by their order: weather("Rome", 3).
_POSITIONAL = re.compile(r"""[A-Za-z_][\w.]*\(\s*(?:["'\d\[{-]|True\b|False\b|None\b)""")
# For a prompt that asks about the JSON itself, another layout changes the question.
_ABOUT_JSON = named_regex("perturbations", "about_json")


class _Block(NamedTuple):
    """JSON with tools: its section index, its span in that section, and its value."""

    section: int
    span: Span
    node: Node


def _tool_blocks(prompt: Prompt) -> list[_Block]:
    """Return the tools of a prompt that may be written anew.

    Empty if the prompt is about its JSON, or if the answer copies from it.
    """
    found: list[_Block] = []
    around: list[str] = []
    for at, section in enumerate(prompt.sections):
        closed = locked_spans(section)
        blocks = tool_blocks(section.text) if section.kind != "choices" else []
        found += [_Block(at, span, node) for span, node in blocks if not overlaps(closed, *span)]
        around.append(_without_spans(section.text, [span for span, _ in blocks]))
    target = prompt.target if isinstance(prompt.target, str) else ""
    copied = "{" in target and any(_block_text(prompt, b).find(target.strip()) >= 0 for b in found)
    return [] if copied or any(map(_ABOUT_JSON.search, around)) else found


def _without_spans(text: str, spans: Sequence[Span]) -> str:
    """Return the text without these spans, a space in place of each."""
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    return " ".join(text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))


def _block_text(prompt: Prompt, block: _Block) -> str:
    return prompt.sections[block.section].text[slice(*block.span)]


# Order


def _order_matters(prompt: Prompt) -> bool:
    """Return True if something in the prompt depends on the order of tools or parameters."""
    answers = [d.answer for d in prompt.demonstrations]
    answers += [prompt.target] if isinstance(prompt.target, str) else []
    counted = any(_COUNTED.search(section.text) for section in prompt.sections)
    return counted or any(map(_POSITIONAL.search, (*answers, *prompt.choices)))


def _reordered(node: Node, rng: Rng) -> Node:
    """Return the tools, and the parameters of each tool, in another order."""
    if isinstance(node, Array):
        return Array(tuple(_reordered(item, rng) for item in _shuffled(node.items, rng)))
    if not is_tool(node):
        return with_values(node, lambda k, v: _reordered(v, rng) if k in LIST_KEYS else v)

    def change(key: str, value: Node) -> Node:
        if key == "function":
            return _reordered(value, rng)
        return _reordered_schema(value, rng) if key in SCHEMA_KEYS else value

    return with_values(node, change)


def _shuffled(nodes: Sequence[Node], rng: Rng) -> Sequence[Node]:
    texts = [written(node, COMPACT) for node in nodes]
    if len(set(texts)) < 2:
        return nodes
    return [nodes[n] for n in another_order(texts, rng)]


def _reordered_schema(node: Node, rng: Rng) -> Node:
    """Return a JSON schema with its properties in another order, at every level."""
    return with_values(node, lambda key, value: _reordered_value(key, value, rng))


def _reordered_value(key: str, value: Node, rng: Rng) -> Node:
    if key in ("properties", "$defs", "definitions") and isinstance(value, Object):
        inner = with_values(value, lambda _, schema: _reordered_schema(schema, rng))
        if not isinstance(inner, Object) or key != "properties" or len(inner.pairs) < 2:
            return inner
        order = another_order([name for name, _ in inner.pairs], rng)
        return Object(tuple(inner.pairs[n] for n in order))
    if key == "required" and isinstance(value, Array):
        return Array(tuple(_shuffled(value.items, rng)))
    return _reordered_schema(value, rng) if key in ("items", "anyOf", "oneOf", "allOf") else value


def _can_reorder(prompt: Prompt, blocks: Sequence[_Block]) -> bool:
    if _order_matters(prompt):
        return False
    several = any(len(run) > 1 for run in _adjacent_blocks(prompt, blocks))
    several = several or sum(prompt.sections[b.section].kind == "tool" for b in blocks) > 1
    return several or any(_has_order(node) for block in blocks for _, node in nodes(block.node))


def _has_order(node: Node) -> bool:
    """Return True if there are two tools, or two properties of one tool."""
    properties = node.get("properties") if isinstance(node, Object) else None
    several = isinstance(properties, Object) and len(properties.pairs) > 1
    return several or len(tools_in(node)) > 1


def _adjacent_blocks(prompt: Prompt, blocks: Sequence[_Block]) -> list[list[_Block]]:
    """Return the blocks in runs: tools with nothing but white space between them."""
    runs: list[list[_Block]] = []
    for block in blocks:
        last = runs[-1][-1] if runs else None
        text = prompt.sections[block.section].text
        if (
            last is not None
            and last.section == block.section
            and is_tool(last.node)
            and is_tool(block.node)
            and not text[last.span[1] : block.span[0]].strip()
        ):
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


# Descriptions

_DESCRIPTION_END = re.compile(r'[\w)]\.?"\Z')


def _with_full_stops(node: Node, stop: bool) -> Node:
    """Return the node with a full stop at the end of every description, or without.

    Descriptions that do not end with a word stay.
    """

    def change(key: str, value: Node) -> Node:
        if key != "description" or not isinstance(value, Leaf):
            return _with_full_stops(value, stop)
        if _DESCRIPTION_END.search(value.text) is None:
            return value
        return Leaf(value.text[:-1].removesuffix(".") + ('."' if stop else '"'))

    return with_values(node, change)


def _other_stop(blocks: Sequence[_Block]) -> bool | None:
    """Return True if descriptions get a full stop, False if they lose it.

    The first description that ends with a word decides. None if there is no such description.
    """
    described = [
        node.text
        for block in blocks
        for key, node in nodes(block.node)
        if key == "description" and isinstance(node, Leaf)
    ]
    ends = [text for text in described if _DESCRIPTION_END.search(text)]
    return None if not ends else not ends[0].endswith('."')


# Layout


def _fitting_styles(prompt: Prompt, run: Sequence[_Block]) -> tuple[Style, ...]:
    """Return the layouts that a run of blocks may have.

    One line only, if there are several blocks or if the line begins a quote, a list item or a
    heading.
    """
    text, start = prompt.sections[run[0].section].text, run[0].span[0]
    before = text[text.rfind("\n", 0, start) + 1 : start].strip()
    one_line = len(run) > 1 or before[:1] in (">", "|", "-", "*", "#")
    styles = (COMPACT, SPACED) if one_line else STYLES
    return styles if isinstance(run[0].node, Array) else tuple(s for s in styles if not s.lines)


# Names

# "get_user", "max_len2"; not "getUser", "user".
_SNAKE = re.compile(r"[a-z][a-z\d]*(?:_[a-z][a-z\d]*)+")
# "getUser"; not "get_user", "URL".
_CAMEL = re.compile(r"[a-z][a-z\d]*(?:[A-Z][a-z\d]+)+")


def other_spelling(name: str) -> str | None:
    """Return a snake_case name in camelCase and the reverse; None for other names."""
    if _SNAKE.fullmatch(name):
        head, *rest = name.split("_")
        return head + "".join(map(str.capitalize, rest))
    if _CAMEL.fullmatch(name):
        return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)
    return None


def _tool_names(block: Node) -> Iterator[str]:
    """Yield the names of tools and of their parameters."""
    for _, node in nodes(block):
        if isinstance(node, Object):
            name, properties = node.get("name"), node.get("properties")
            if is_tool(node) and isinstance(name, Leaf):
                yield name.text.strip('"')
            if isinstance(properties, Object):
                yield from (name.strip('"') for name, _ in properties.pairs)


def _renames(prompt: Prompt, blocks: Sequence[_Block]) -> Mapping[str, str]:
    """Return the other spelling of each name.

    Empty if a spelling is in use, or if options or locked sections contain one of the names. Empty,
    too, if the prompt has a schema or a program.
    """
    names = dict.fromkeys(name for block in blocks for name in _tool_names(block.node))
    pairs = {name: new for name in names if (new := other_spelling(name)) is not None}
    every = "\n".join((*(s.text for s in prompt.sections), *_demonstration_texts(prompt)))
    taken = set(re.findall(r"\w+", every))
    fresh = len(set(pairs.values())) == len(pairs) and taken.isdisjoint(pairs.values())
    if not fresh or prompt.schema is not None or prompt.program is not None:
        return {}
    held = [s for s in prompt.sections if s.protected or s.edits]
    kept = "\n".join((*prompt.choices, *(s.text for s in held)))
    return {} if pairs.keys() & set(re.findall(r"\w+", kept)) else pairs


def _demonstration_texts(prompt: Prompt) -> Iterator[str]:
    """Yield the texts and answers of the examples, and the target."""
    for demonstration in prompt.demonstrations:
        yield from (section.text for section in demonstration.sections)
        yield demonstration.answer
    if isinstance(prompt.target, str):
        yield prompt.target


def _renamed_prompt(prompt: Prompt, pairs: Mapping[str, str]) -> Prompt:
    """Return the prompt, its demonstrations and its target with new names."""
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, pairs))})\b")

    def in_section(section: Section) -> Section:
        found = pattern.finditer(section.text)
        return replace_spans(section, [(*match.span(), pairs[match[0]]) for match in found])

    def in_text(text: str) -> str:
        return pattern.sub(lambda match: pairs[match[0]], text)

    shown = tuple(
        Demonstration(sections=tuple(map(in_section, d.sections)), answer=in_text(d.answer))
        for d in prompt.demonstrations
    )
    target = in_text(prompt.target) if isinstance(prompt.target, str) else prompt.target
    sections = tuple(map(in_section, prompt.sections))
    return replace(prompt, sections=sections, demonstrations=shown, target=target)


# All changes together


def _can_write_anew(prompt: Prompt, way: str) -> bool:
    blocks = _tool_blocks(prompt)
    offered = [b for b in blocks if prompt.sections[b.section].kind == "tool"]
    if offered and way in ("draw", "layout") and len(offered) == len(blocks):
        return way == "draw" and (_can_reorder(prompt, blocks) or _other_stop(blocks) is not None)
    if not blocks or way in ("draw", "layout"):
        return bool(blocks)
    if way == "descriptions":
        return _other_stop(blocks) is not None
    return _can_reorder(prompt, blocks) if way == "order" else bool(_renames(prompt, blocks))


@prompt_perturbation("tool_schema", eligible=_can_write_anew)
def tool_schema(prompt: Prompt, rng: Rng, way: str) -> Prompt:
    """Writes the tools that a prompt describes as JSON in another order and layout.

    The order of tools and of what they take, the white space of the JSON and the full stops of
    descriptions mean nothing; where a text counts tools, they stay in their order. `names` has to
    be asked for: it spells names in another way, in the whole prompt and in its answer.
    """
    blocks = _tool_blocks(prompt)
    if way == "names":
        return _renamed_prompt(prompt, _renames(prompt, blocks))
    reorders = way in ("draw", "order") and _can_reorder(prompt, blocks)
    stop = _other_stop(blocks) if way in ("draw", "descriptions") else None
    only = all(prompt.sections[block.section].kind == "tool" for block in blocks)
    if way == "draw" and rng.below(2) and (reorders or not only):
        stop = None
    changes: dict[int, list[tuple[int, int, str]]] = {}
    for run in _adjacent_blocks(prompt, blocks):
        offered = prompt.sections[run[0].section].kind == "tool"
        must = not reorders and stop is None
        style = SPACED if offered else _style(prompt, run, way, rng, must=must)
        nodes = [block.node for block in run]
        if reorders:
            nodes = [_reordered(node, rng) for node in _shuffled(nodes, rng)]
        if stop is not None:
            nodes = [_with_full_stops(node, stop) for node in nodes]
        for block, node in zip(run, nodes, strict=True):
            changes.setdefault(block.section, []).append((*block.span, written(node, style)))
    changed = _with_changes(prompt, changes)
    return _with_reordered_tools(changed, rng) if reorders else changed


def _with_reordered_tools(prompt: Prompt, rng: Rng) -> Prompt:
    """Return the prompt with the tools that its conversation offers in another order."""
    at = [n for n, s in enumerate(prompt.sections) if s.kind == "tool" and s.text]
    names = [prompt.sections[n].name for n in at]
    if len(set(names)) < 2 or any(prompt.sections[n].protected for n in at):
        return prompt
    order = another_order(names, rng)
    sections = list(prompt.sections)
    for place, now in zip(at, order, strict=True):
        sections[place] = prompt.sections[at[now]]
    return prompt.with_sections(tuple(sections))


def _style(prompt: Prompt, run: Sequence[_Block], way: str, rng: Rng, *, must: bool) -> Style:
    """Return the JSON layout for a run of blocks.

    - `way="layout"`: a different layout.
    - `way="draw"`: a random layout, different from the current one if `must`.
    - otherwise: the current layout.
    """
    own = style_of(_block_text(prompt, run[0]), run[0].node)
    if way not in ("draw", "layout"):
        return own
    styles = _fitting_styles(prompt, run)
    others = [style for style in styles if style != own]
    return rng.choice(others if must or way == "layout" else styles)


def _with_changes(prompt: Prompt, changes: Mapping[int, Sequence[tuple[int, int, str]]]) -> Prompt:
    """Return the prompt with blocks written anew.

    A demonstration that shows one of the blocks shows the new text.
    """
    sections = list(prompt.sections)
    swaps: dict[str, str] = {}
    for at, some in changes.items():
        text = sections[at].text
        swaps |= {text[start:end]: new for start, end, new in some}
        real = [change for change in some if text[change[0] : change[1]] != change[2]]
        sections[at] = replace_spans(sections[at], real)
    shown = tuple(
        replace(d, sections=tuple(_with_texts_swapped(section, swaps) for section in d.sections))
        for d in prompt.demonstrations
    )
    return replace(prompt, sections=tuple(sections), demonstrations=shown)


def _with_texts_swapped(section: Section, swaps: Mapping[str, str]) -> Section:
    spans = [span for span, _ in tool_blocks(section.text)]
    found = [(a, b, swaps[section.text[a:b]]) for a, b in spans if section.text[a:b] in swaps]
    return replace_spans(section, [one for one in found if section.text[one[0] : one[1]] != one[2]])
