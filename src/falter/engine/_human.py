"""Sheets on which people rate the summaries of a stored run. Calls no model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from falter.engine.findings import part_results
from falter.measures import HumanEvaluation
from falter.protocols import PartResult
from falter.protocols.relevance import human_sheet, read_human_sheets
from falter.records.errors import UsageError
from falter.store import Store, find_study

__all__ = ["summary_ratings", "summary_sheet"]


def summary_sheet(
    store: Path | str, name: str | None = None, *, articles: int = 30, seed: int = 0
) -> str:
    """The sheet for the newest study, or the one of that name, as CSV: see `human_sheet`.

    It says nothing about which summary is whose.
    """
    with _first_part(Path(store), name) as result:
        return human_sheet(result, articles=articles, seed=seed)


def summary_ratings(
    store: Path | str,
    sheets: Sequence[Path | str],
    name: str | None = None,
    *,
    articles: int = 30,
    seed: int = 0,
) -> dict[tuple[str, str], HumanEvaluation]:
    """What raters wrote into copies of the sheet, by model and data set."""
    texts = {str(path): _text(Path(path)) for path in sheets}
    with _first_part(Path(store), name) as result:
        return read_human_sheets(result, texts, articles=articles, seed=seed)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not in UTF-8", hint="save it as CSV in UTF-8") from error


@contextmanager
def _first_part(path: Path, name: str | None) -> Iterator[PartResult]:
    if not path.exists():
        raise UsageError(f"The store {path} does not exist", hint="start a run, or name another")
    with Store(path, writes=False) as opened:
        yield part_results(opened, find_study(opened, name))[0]
