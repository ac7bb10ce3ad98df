"""The page as files for any static host, and as one file: bytes and texts in gzip pieces."""

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

CHUNK = 256  # items
MOST_IN_ONE_FILE = 20_000  # cells
ONE_FILE = "view.html"


def write_bundle(source: Source, folder: Path) -> tuple[Path, ...]:
    """Write the page to a new or an empty folder; the pages that can be opened.

    Besides `index.html`, which a web server has to give out, up to 20,000 cells are also written as
    one file that a browser opens from the disk.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"The folder {folder} is not empty", hint="name an empty or a new folder")
    (folder / "data").mkdir(parents=True)
    for name, content in page_files().items():
        (folder / name).write_text(content, "utf-8")
    (folder / "index.html").write_text(index_page("files"), "utf-8")
    reports = _reports(source, folder)
    few = sum(source.codes(n).size for n in range(len(source.panels()))) <= MOST_IN_ONE_FILE
    kept: dict[str, str] = {}
    for name, body in _pieces(source, reports):
        (folder / "data" / f"{name}.bin").write_bytes(body)
        if few:
            kept[name] = base64.b64encode(body).decode()
    if not few:
        return (folder / "index.html",)
    (folder / ONE_FILE).write_text(single_page(kept), "utf-8")
    return (folder / "index.html", folder / ONE_FILE)


def _reports(source: Source, folder: Path) -> list[dict[str, Any]]:
    """Write the report of each study beside the page; its drops, and the name of its file."""
    reports: list[dict[str, Any]] = []
    for study in sorted({panel.study for panel in source.panels()}):
        found, name = source.findings(study), f"report-{study}.html"
        if found.page:
            (folder / name).write_text(found.page, "utf-8")
        reports.append({"drops": found.drops, "page": found.page and name})
    return reports


def _pieces(source: Source, reports: list[dict[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Panels, their bytes, and their texts, 256 items a piece; the same bytes every time."""
    record = {**panels_record(source), "findings": reports}
    yield "panels", _packed(orjson.dumps(record, default=str))
    for panel, view in enumerate(source.panels()):
        yield f"cells-{panel}", _packed(source.codes(panel).tobytes())
        for number, start in enumerate(range(0, len(view.items), CHUNK)):
            rows = range(start, min(start + CHUNK, len(view.items)))
            texts = [source.item(panel, row) for row in rows]
            yield f"texts-{panel}-{number:04d}", _packed(orjson.dumps(texts, default=str))


def _packed(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=6, mtime=0)
