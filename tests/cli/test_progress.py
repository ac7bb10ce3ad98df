"""The progress bar says how far, how fast, what it costs and how long."""

from __future__ import annotations

import io
import re
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

import falter
from falter.analysis.analyses import drops_so_far
from falter.cli.progress import LiveDrops, Meter, clock, describe, drops_line, scoring_progress
from falter.engine.results import open_result
from falter.engine.scoring import run_scorers
from falter.engine.sending import Progress
from falter.records.planning import Price
from falter.store.store import Store


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


def test_drops_so_far_stand_below_the_bar(tmp_path: Path) -> None:
    """The largest first, with intervals, while the run goes on; hostile names stay text."""
    path = tmp_path / "s.db"
    result = falter.run(
        models=["simulated"], task="sums", recipes=["pad_newlines", "typos", "casing", "persona"],
        limit=40, store=path,
    )  # fmt: skip
    assert result.study.models == ("simulated",)
    with Store(path) as store:
        run = store.find_run().run
        (panel,) = drops_so_far(store, run, run_scorers(run))
    line = drops_line(panel)
    sizes = [abs(float(n.replace("−", "-"))) for n in re.findall(r"([+−]?[\d.]+) \[", line)]
    assert len(sizes) == 3 and sizes == sorted(sizes, reverse=True)
    assert line.endswith("and 1 more")
    out = io.StringIO()
    with LiveDrops(path, lambda: run, first=0.01) as drops:
        until = time.monotonic() + 60
        while not drops.shown() and time.monotonic() < until:
            time.sleep(0.01)
        with Meter(Console(file=out, force_terminal=True, width=300), {}) as meter:
            meter.lines = lambda: (*drops.shown(), "[red]\x1b[2J")
            meter([Progress(label="m", total=2, landed=1)])
    assert line in out.getvalue()
    assert "[red]" in out.getvalue() and "\x1b[2J" not in out.getvalue()


def test_a_look_that_fails_shows_nothing(tmp_path: Path) -> None:
    """A store that is not there, a run that it does not hold: the run goes on without the line."""
    with LiveDrops(tmp_path / "none" / "s.db", lambda: None, first=0.01) as drops:
        time.sleep(0.05)
        assert drops.shown() == ()


def test_an_unforeseen_error_in_a_look_is_silent_and_the_next_look_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    said: list[object] = []
    monkeypatch.setattr(threading, "excepthook", said.append)

    def odd() -> None:
        looks.append(1)
        raise KeyError("odd")

    with LiveDrops(tmp_path / "s.db", odd, first=0.01) as drops:
        until = time.monotonic() + 60
        while len(looks) < 2 and not said and time.monotonic() < until:
            time.sleep(0.01)
    assert len(looks) >= 2 and not said
    assert drops.shown() == ()


def test_how_many_replies_have_been_read_is_shown_meanwhile(tmp_path: Path) -> None:
    """A report of long replies takes a while, in which nothing was printed."""
    store = tmp_path / "s.db"
    falter.run(task="basics", models=["simulated"], recipes=["typos"], limit=150, store=store)
    out = io.StringIO()
    with scoring_progress(Console(file=out), every=0.0):
        open_result(store)
    assert out.getvalue() == "256 of 300 replies read\n"
    open_result(store)
    assert out.getvalue().count("\n") == 1
