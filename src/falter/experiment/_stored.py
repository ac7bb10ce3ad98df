"""A store opened in Python: its runs and studies by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from falter.core.errors import UsageError
from falter.core.ids import short
from falter.experiment._api import Result, open_result
from falter.experiment._shown import given_path
from falter.store import Store, studies

__all__ = ["StoredResults", "open_store"]


class StoredResults(Mapping[str, Result]):
    """The results in a store, the newest first; calls no model.

    >>> results = falter.open("falter.db")
    >>> results.newest.table("drops")
    >>> results["937e30"].report("report.html")

    Names are the first digits of an id. A run that was not finished is there and is refused when it
    is opened; `open_result(path, name, incomplete=True)` opens it as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def newest(self) -> Result:
        """The result of the newest run or study."""
        return open_result(self.path)

    def __getitem__(self, name: str) -> Result:
        return open_result(self.path, name)

    def __iter__(self) -> Iterator[str]:
        with Store(self.path) as store:
            whole = studies(store)
            of_studies = {part.run for study in whole for part in study.parts}
            dated = [(study.created_at, study.id) for study in whole]
            dated += [(r.created_at, r.run.id) for r in store.runs() if r.run.id not in of_studies]
        return iter([short(name) for _, name in sorted(dated, reverse=True)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} stored results in {self.path}>"


def open_store(path: Path | str = "falter.db") -> StoredResults:
    """The results in a store that exists."""
    path = given_path("path", path)
    if not path.exists():
        raise UsageError(f"The store {path} does not exist", hint="start a run, or name another")
    return StoredResults(path)
