"""The bench that runs long: its server's faults, and what it counts."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import falter

BENCH = Path(__file__).parents[2] / "bench"
NO_SERVER = sys.platform != "linux" or not any(map(shutil.which, ("cc", "gcc", "clang")))


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    import soak

    return soak


def test_what_came_again_and_how_memory_grows(soak: Any) -> None:
    hashes = np.array([3, 5, 8, 13], dtype=np.uint64)
    stored, came = hashes[[0, 2]], np.array([1, 2], dtype=np.uint32)
    assert soak.came_again(stored, came, hashes, np.array([1, 7, 2, 1])) == 0
    assert soak.came_again(stored, came, hashes, np.array([1, 7, 3, 1])) == 1
    assert soak.came_again(stored[:0], came[:0], hashes, hashes) == 0
    samples = [(1000.0 * n, 200.0 if n < 10 else 300.0 + n / 100) for n in range(101)]
    step = soak.Step(what="kill", code=-9, seconds=1, sent=9, bad=1, answered=8, stored=5,
                     doubled=0, peak_mb=400, samples=samples)  # fmt: skip
    middle, slope = step.memory
    assert step.lost == 3 and middle == pytest.approx(300.6) and slope == pytest.approx(1.0)
    assert "| kill | -9 |" in list(soak.table([step]))[2]


@pytest.mark.skipif(NO_SERVER, reason="the server needs Linux and a C compiler")
def test_all_is_answered_rightly_through_faults(
    soak: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request of five is answered badly; what is stored is what the server said to it."""
    monkeypatch.setenv("FALTER_CACHE", "/dev/null")
    soak.write_data(tmp_path, 400)
    faults = {"p429": 0.05, "p500": 0.05, "resets": 0.05, "torn": 0.05, "retry_ms": 1}
    with soak.mock_server(max_seconds=120, **faults) as url:
        falter.run(
            data={"path": str(tmp_path / "items.jsonl"), "target": "answer", "key": "id"},
            template=(tmp_path / "prompt.txt").read_text(),
            models=[{"name": "openai:mock", "base_url": url, "concurrency": 64}],
            recipes=list(soak.RECIPES),
            sampling={"max_tokens": soak.MAX_TOKENS},
            store=tmp_path / "falter.db",
        )
        counts, rows = soak.stats(url), soak.bodies(url)
    bad = [counts[name] for name in ("s429", "s500", "resets", "torn")]
    assert min(bad) > 0
    assert len(rows) == counts["answered"] == 400 and (rows["answered"] == 1).all()
    assert rows["came"].sum() <= 400 + sum(bad)
    assert (soak.stored_hashes(tmp_path / "falter.db") == rows["hash"]).all()
    assert soak.wrong_answers(tmp_path / "falter.db") == (400, 0, 0)
