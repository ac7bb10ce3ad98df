"""Data sets on the Hugging Face hub, read with `datasets`."""

from __future__ import annotations

from falter.records.errors import MissingExtra, TaskError
from falter.tasks.rows import Row


def read_hub(name: str, split: str) -> list[Row]:
    """Return the rows of a hub data set, named `owner/name` or `owner/name/config`."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("Reading the hub", "hub", "datasets") from error
    owner, _, rest = name.partition("/")
    base, _, config = rest.partition("/")
    try:
        loaded = datasets.load_dataset(
            f"{owner}/{base}" if base else owner, config or None, split=split
        )
    except Exception as error:
        raise TaskError(
            f"The hub data set '{name}' (split '{split}') could not be loaded: {error}",
            hint="check the name, the split and the network; a local copy works with --data",
        ) from error
    return [dict(row) for row in loaded]
