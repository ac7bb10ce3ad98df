"""Floor 3: what models and people made of texts: read, put on sheets, compared."""

from __future__ import annotations

from falter.rewrites._agreement import (
    Agreement,
    Calibration,
    Coefficient,
    Pair,
    agreement,
    calibrations,
)
from falter.rewrites._bank import Banks, MemoryBank, bank_lines, hand_written, read_bank
from falter.rewrites._bundled import HAND_WRITTEN, bundled_bank, bundled_rewrites
from falter.rewrites._judging import JUDGE_TOKENS, judge_prompt, read_rating
from falter.rewrites._page import sheet_page
from falter.rewrites._reading import Reading, read_reply, read_rewrite
from falter.rewrites._sheet import (
    flags_of,
    guarded,
    make_sheet,
    read_reviews,
    rows_of,
    sample_of,
    sheet_csv,
)

__all__ = [
    "HAND_WRITTEN",
    "JUDGE_TOKENS",
    "Agreement",
    "Banks",
    "Calibration",
    "Coefficient",
    "MemoryBank",
    "Pair",
    "Reading",
    "agreement",
    "bank_lines",
    "bundled_bank",
    "bundled_rewrites",
    "calibrations",
    "flags_of",
    "guarded",
    "hand_written",
    "judge_prompt",
    "make_sheet",
    "read_bank",
    "read_rating",
    "read_reply",
    "read_reviews",
    "read_rewrite",
    "rows_of",
    "sample_of",
    "sheet_csv",
    "sheet_page",
]
