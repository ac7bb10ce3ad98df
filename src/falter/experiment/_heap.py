"""The garbage collector while many objects are made that are not circular."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["settled_heap"]

RARELY = 50_000
"""Objects between two looks of the garbage collector."""


@contextlib.contextmanager
def settled_heap() -> Iterator[None]:
    """Keep the garbage collector from walking all items again and again."""
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(RARELY, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()
