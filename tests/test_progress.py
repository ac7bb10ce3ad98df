"""The progress bar says how far, how fast, what it costs and how long."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from falter.cli._progress import Meter, clock, describe
from falter.plan import Price
from falter.runner import Progress


def lane(**counts: int) -> Progress:
    return Progress(label="m", total=1000, started_at=time.monotonic() - 10, **counts)


def test_a_lane_in_words() -> None:
    text = describe(
        lane(stored=100, landed=390, failed=10, prompt_tokens=2_000_000, completion_tokens=500_000),
        Price(input=0.5, output=2.0),
    )
    assert text.startswith("500/1,000  100 from the store  10 failed  40.0/s  2.0000 USD  ")
    assert text.endswith(" s left")


def test_a_lane_that_is_through() -> None:
    assert describe(lane(stored=1000), None) == "1,000/1,000  1,000 from the store  in 10 s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (125, "2:05"), (3725, "1:02:05")]
)
def test_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize("terminal", [True, False])
def test_a_meter_draws_hostile_labels_as_text(terminal: bool) -> None:
    """A live bar on a terminal, plain lines elsewhere; markup in a name stays text."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100)
    progress = Progress(label="[red]m[/red]", total=2, landed=2)
    with Meter(console, {}) as meter:
        meter([progress])
    assert "[red]m[/red]" in out.getvalue()
    assert "2/2" in out.getvalue()
