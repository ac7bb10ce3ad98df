"""Tensors of a GGUF file, read by hand: the second witness of a quantisation."""

from __future__ import annotations

import math
import struct
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["tensor_types"]

TYPES = {
    0: "F32", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K",
}  # fmt: skip
NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
TEXT, ARRAY = 8, 9


def tensor_types(path: Path) -> tuple[str, Counter[str]]:
    """The type of the token embedding, and how many numbers of the layers are of which type."""
    with path.open("rb") as file:
        assert file.read(4) == b"GGUF"
        _, tensors, entries = _number(file, "I"), _number(file, "Q"), _number(file, "Q")
        for _ in range(entries):
            _text(file)
            _value(file, _number(file, "I"))
        embedding, layers = "", Counter[str]()
        for _ in range(tensors):
            name = _text(file)
            size = math.prod(_number(file, "Q") for _ in range(_number(file, "I")))
            kind = TYPES[_number(file, "I")]
            _number(file, "Q")
            if name == "token_embd.weight":
                embedding = kind
            elif kind != "F32":  # the norms, 35 thousand numbers
                layers[kind] += size
    return embedding, layers


def _number(file: BinaryIO, code: str) -> Any:
    return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]


def _text(file: BinaryIO) -> str:
    return file.read(_number(file, "Q")).decode()


def _value(file: BinaryIO, kind: int) -> None:
    if kind == TEXT:
        _text(file)
    elif kind == ARRAY:
        inner = _number(file, "I")
        for _ in range(_number(file, "Q")):
            _value(file, inner)
    else:
        _number(file, NUMBERS[kind])
