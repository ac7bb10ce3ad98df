"""Work that several tests of a session look at, done by the first worker that needs it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

__all__ = ["README_STDOUT", "once", "run_readme"]

ROOT = Path(__file__).parents[2]
README_STDOUT = "stdout.txt"


def once(factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]) -> Path:
    """A folder of the session, filled by whoever comes first; the others wait for it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, filled = shared / name, shared / f"{name}.filled"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not filled.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill(folder)
            filled.touch()
    return folder


def run_readme(folder: Path) -> None:
    """Run the README's Python in an empty folder, with 8 items for 20; keep what it prints."""
    text = (ROOT / "README.md").read_text("utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "limit=20" in snippet
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", snippet.replace("limit=20", "limit=8")],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / README_STDOUT).write_text(done.stdout, "utf-8")
