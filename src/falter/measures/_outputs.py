"""Outputs as numbers: equal numbers for outputs that are the same, below 0 for no output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from falter.core.errors import InvalidValue

__all__ = ["Codes", "code_outputs", "group_sizes"]

Codes = NDArray[np.int32]


def code_outputs(outputs: Sequence[Sequence[str | None]] | ArrayLike) -> Codes:
    """Items x configurations of text, stripped and lower-cased, None for no output; or of codes.

    Whole numbers are taken as codes that are equal where the outputs are, below 0 for none.
    """
    table = outputs if isinstance(outputs, np.ndarray) else _table(outputs)
    if table.ndim != 2 or table.shape[1] == 0:
        raise InvalidValue("outputs", table.shape, "items x configurations")
    if table.dtype.kind in "iu":
        return np.asarray(np.maximum(table, -1), dtype=np.int32)
    # Texts are normalised once for each spelling, which is rarer than a cell.
    code_of_output: dict[Any, int] = {None: -1}
    code_of_text: dict[str, int] = {}
    codes = np.empty(table.size, dtype=np.int32)
    for place, output in enumerate(table.ravel().tolist()):
        code = code_of_output.get(output)
        if code is None:
            if not isinstance(output, str):
                raise InvalidValue("outputs", output, "text, None for no output, or whole numbers")
            code = code_of_text.setdefault(output.strip().lower(), len(code_of_text))
            code_of_output[output] = code
        codes[place] = code
    return codes.reshape(table.shape)


def group_sizes(codes: Codes) -> NDArray[np.int16]:
    """For every cell how many of its item's outputs equal it, itself included; 0 for no output."""
    # Column by column, so that what is compared and counted lies together in memory.
    columns = np.ascontiguousarray(codes.T)
    sizes = np.zeros(columns.shape, dtype=np.int16)
    for column in columns:
        sizes += columns == column
    sizes[columns < 0] = 0
    return np.ascontiguousarray(sizes.T)


def _table(outputs: Sequence[Sequence[str | None]] | ArrayLike) -> NDArray[Any]:
    """Rows of texts as objects, or of whole numbers."""
    rows = [list(row) for row in outputs]  # type: ignore[union-attr, arg-type]
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise InvalidValue("outputs", f"rows of {widths}", "as many configurations for every item")
    if all(isinstance(x, int) for row in rows for x in row):
        return np.array(rows, dtype=np.int64).reshape(len(rows), widths[0] if widths else 0)
    table = np.empty((len(rows), widths[0] if widths else 0), dtype=object)
    for place, row in enumerate(rows):
        table[place] = row
    return table
