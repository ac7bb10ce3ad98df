"""What a person reads out of a reply, below all scorers."""

from __future__ import annotations

from falter.scorers.reading._keys import read_key
from falter.scorers.reading._labels import read_label
from falter.scorers.reading._letters import read_letter
from falter.scorers.reading._numbers import read_number
from falter.scorers.reading._refusals import REFUSALS, declines
from falter.scorers.reading._yes_no import read_yes_no

__all__ = [
    "REFUSALS",
    "declines",
    "read_key",
    "read_label",
    "read_letter",
    "read_number",
    "read_yes_no",
]
