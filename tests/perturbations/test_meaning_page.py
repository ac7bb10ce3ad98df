"""docs/meaning.md holds the table that the program makes."""

from __future__ import annotations

from meaning_page import PAGE, found, meaning_rows, printed


def test_the_pages_table_is_what_the_program_finds() -> None:
    """Mend with: python tests/support/meaning_page.py"""
    ours = [row[:-2] for row in meaning_rows(found(cosines=False))]
    assert printed(PAGE.read_text("utf-8")) == ours
