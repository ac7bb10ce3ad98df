"""What a page is: header, contents, sections, guide, and how all of it looks."""

from __future__ import annotations

from falter.report.page._page import frame, html

__all__ = ["frame", "html"]
