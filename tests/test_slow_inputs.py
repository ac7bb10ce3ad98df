"""Long and odd inputs: the work grows as the input does. Counted in work, not in seconds."""

from __future__ import annotations

import pytest

from falter.core.records import Section
from falter.perturbations._rearranging import units
from falter.tasks import read_rows


@pytest.mark.parametrize("blank", ["\t", " ", "\r", "\u2003", "\x0b"])
def test_perturbations_are_linear_in_what_made_one_stall(blank: str) -> None:
    """A line of a million blanks has no units, and is passed over once: this stalled for hours."""
    text = f"First.\n{blank * 1_000_000}\nSecond.\n{blank * 1_000_000}"
    (unit,) = units((Section(name="q", kind="input", text=text),))
    assert text[unit.start : unit.end].startswith("First.")
    assert text[: unit.end].endswith("Second.")


def test_ten_megabytes_of_data_are_read(tmp_path: object) -> None:
    """Rows, one long cell and many columns."""
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "long.csv").write_text("q,a\n" + "x" * 100_000 + ",1\n")
    assert len(read_rows(folder / "long.csv")[0]["q"]) == 100_000
    (folder / "many.jsonl").write_text('{"q": "a b c", "a": 1}\n' * 400_000)
    assert len(read_rows(folder / "many.jsonl")) == 400_000
