"""The viewer's page as a folder for any static host, and as one file, with data in gzip pieces."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from falter.records.errors import UsageError
from falter.viewer.page import index_page, page_files, single_page
from falter.viewer.server import panels_record
from falter.viewer.source import Source

ITEMS_PER_PIECE = 256  # items
MAX_ONE_FILE_CELLS = 20_000  # cells
ONE_FILE = "view.html"


def write_bundle(source: Source, folder: Path) -> tuple[Path, ...]:
    """Write the page to a new or empty folder, and return the paths of the pages.

    `index.html` needs a web server. Up to 20,000 cells are also written as one file that a browser
    opens from disk. Raise UsageError if the folder is not empty.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"The folder {folder} is not empty", hint="name an empty or a new folder")
    (folder / "data").mkdir(parents=True)
    for name, content in page_files().items():
        (folder / name).write_text(content, "utf-8")
    (folder / "index.html").write_text(index_page("files"), "utf-8")
    reports = _write_reports(source, folder)
    small = sum(source.codes(n).size for n in range(len(source.panels()))) <= MAX_ONE_FILE_CELLS
    one_file_data: dict[str, str] = {}
    for name, body in _data_files(source, reports):
        (folder / "data" / f"{name}.bin").write_bytes(body)
        if small:
            one_file_data[name] = base64.b64encode(body).decode()
    if not small:
        return (folder / "index.html",)
    (folder / ONE_FILE).write_text(single_page(one_file_data), "utf-8")
    return (folder / "index.html", folder / ONE_FILE)


def _write_reports(source: Source, folder: Path) -> list[dict[str, Any]]:
    """Write the report of each study, and return its drops and file name for the page."""
    reports: list[dict[str, Any]] = []
    for study in sorted({panel.study for panel in source.panels()}):
        found, name = source.findings(study), f"report-{study}.html"
        if found.page:
            (folder / name).write_text(found.page, "utf-8")
        reports.append({"drops": found.drops, "page": found.page and name})
    return reports


def _data_files(source: Source, reports: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the data files: panels, cell bytes, texts of 256 items each.

    The same data give the same bytes.
    """
    record = {**panels_record(source), "findings": reports}
    yield "panels", _compressed(orjson.dumps(record, default=str))
    for panel, view in enumerate(source.panels()):
        yield f"cells-{panel}", _compressed(source.codes(panel).tobytes())
        for number, start in enumerate(range(0, len(view.items), ITEMS_PER_PIECE)):
            rows = range(start, min(start + ITEMS_PER_PIECE, len(view.items)))
            texts = [source.item(panel, row) for row in rows]
            yield f"texts-{panel}-{number:04d}", _compressed(orjson.dumps(texts, default=str))


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)
