"""Floor 6: every answer of a run in a browser: a local server, and the same page as files."""

from __future__ import annotations

from falter.viewer.bundle import write_bundle
from falter.viewer.panels import CODES, Notes, ViewColumn, ViewPanel
from falter.viewer.server import TOKEN_HEADER, Viewer, served
from falter.viewer.source import Arrivals, Source, StoredSource

__all__ = [
    "CODES",
    "TOKEN_HEADER",
    "Arrivals",
    "Notes",
    "Source",
    "StoredSource",
    "ViewColumn",
    "ViewPanel",
    "Viewer",
    "served",
    "write_bundle",
]
