"""Fixtures and settings of all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from falter.clients import llama_engine
from once import once, run_readme

# Two workers on two cores: each computes on one, and so do the programs that a test starts. NumPy
# reads this when it is imported, which is later.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Where Python is told to keep nothing compiled, as images for containers do, each worker and each
# program that a test starts would compile all of falter and of the tests anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples on every machine, so that a release never depends on luck. To search further:
#     FALTER_EXPLORE=1 python -m pytest tests/text/test_text_relevance.py
# How long an example takes is the machine's business: neither a deadline nor the health check that
# is about time. Those about too much data and too many rejected examples stay.
timeless = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
settings.register_profile("fixed", timeless, derandomize=True, max_examples=50)
settings.register_profile("explore", timeless, max_examples=1_000)

if os.environ.get("FALTER_EXPLORE"):
    settings.load_profile("explore")
else:
    settings.load_profile("fixed")
    # Hypothesis also tries the numbers and words that it reads in the modules imported so far: with
    # two workers these differ from run to run, and from one checkout's path to another's.
    # tests/documents/test_examples.py holds that none of them is used.
    providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish(session: pytest.Session) -> None:
    """Freeze what thousands of collected tests hold: the garbage collector skips it.

    A run of falter freezes and unfreezes: the collector would walk all of this after each.
    The processes that tests/engine/test_engine.py starts really freeze.
    """
    gc.collect()
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None


@pytest.fixture(scope="session")
def readme_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's Python has run, with the embedded model's answers."""
    return once(tmp_path_factory, "readme", run_readme)


@pytest.fixture(scope="session", autouse=True)
def _weights_once() -> Iterator[None]:
    """Engines of a process share weights, as forks do: loading takes as long as three questions."""
    load, kept = llama_engine._load, {}

    def loaded(llama: Any, path: Path, params: Any) -> Any:
        key = path.resolve(), path.exists() and path.stat().st_mtime_ns
        if key not in kept:
            kept[key] = load(llama, path, params)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_engine, "_load", loaded)
        yield
