"""Runs as files of other tools, each form registered under its name; nothing is estimated."""

from __future__ import annotations

from falter.report.exports import _hub, _inspect, _otel
from falter.report.exports._records import (
    ExportedCell,
    ExportedPart,
    ExportedResult,
    export_forms,
    write_export,
)

__all__ = ["ExportedCell", "ExportedPart", "ExportedResult", "export_forms", "write_export"]

# Importing a form registers it.
assert {_hub.__name__, _inspect.__name__, _otel.__name__}
