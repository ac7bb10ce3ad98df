"""YAML from strangers: no key twice, nothing that grows or nests without end, no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from falter.core.errors import UsageError, printable

__all__ = ["read_yaml"]

MOST_BYTES = 8 * 2**20
MOST_NODES = 200_000
DEEPEST = 100


def read_yaml(path: Path) -> Any:
    """The value in a YAML file; `FileNotFoundError` if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise UsageError(f"The experiment file {path} cannot be read: {error}") from error
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"The experiment file {path} has more than {MOST_BYTES:,} bytes",
            hint="items belong in a data file, which 'data:' names",
        )
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        hint = "check the indentation"
        raise UsageError(f"{path} is not YAML: {printable(str(error))}", hint=hint) from error
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply", hint="falter's are five deep") from error


class _Loader(yaml.SafeLoader):
    """YAML's own types, and no key twice: the second would silently take the first one's place."""

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        if node is not None:
            _count(node, {}, 0)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key, _ in node.value:
            name = self.construct_object(key) if isinstance(key, yaml.ScalarNode) else key
            if name in seen and key.tag != "tag:yaml.org,2002:merge":
                raise UsageError(
                    f"'{printable(str(name))}' is there twice, again in line "
                    f"{key.start_mark.line + 1}",
                    hint="keep one of the two",
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


def _count(node: Any, known: dict[int, int], depth: int) -> int:
    """How many values a node is once its aliases are written out; each node is visited once."""
    if id(node) in known:
        return known[id(node)]
    if depth > DEEPEST:
        raise UsageError(
            f"line {node.start_mark.line + 1} is nested more than {DEEPEST} deep",
            hint="an experiment file is five deep",
        )
    known[id(node)] = MOST_NODES  # what contains itself never ends
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    else:
        inner = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.ScalarNode) and not _whole(node.value):
        raise UsageError(
            f"line {node.start_mark.line + 1} holds half a character or a control character",
            hint="write the text itself, without \\u and \\x",
        )
    count = 1 + sum(_count(part, known, depth + 1) for part in inner)
    if count >= MOST_NODES:
        raise UsageError(
            f"line {node.start_mark.line + 1} stands for more than {MOST_NODES:,} values",
            hint="write it without aliases (*)",
        )
    known[id(node)] = count
    return count


def _whole(text: str) -> bool:
    """No lone surrogate, and no control character but those of lines and tabs."""
    return text.isprintable() or not any(
        0xD800 <= ord(c) <= 0xDFFF or (ord(c) < 32 and c not in "\t\n\r") or 0x7F <= ord(c) < 0xA0
        for c in text
    )
