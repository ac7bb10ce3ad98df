"""LaTeX that is compiled as a user would compile it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["compiled", "left_out", "needs_tex"]

left_out = bool(os.environ.get("FALTER_NO_TEX"))
needs_tex = pytest.mark.skipif(left_out, reason="FALTER_NO_TEX is set")


def compiled(text: str, folder: Path) -> None:
    """Compile with pdflatex, which stops at the first error and has no shell."""
    assert shutil.which("pdflatex"), "no pdflatex on PATH; FALTER_NO_TEX=1 leaves these tests out"
    (folder / "study.tex").write_text(text, "ascii")
    command = ("pdflatex", "-halt-on-error", "-no-shell-escape", "-interaction=nonstopmode",
               "study.tex")  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120)
    log = done.stdout.decode("latin-1")
    assert done.returncode == 0, log[-1_500:]
    assert (folder / "study.pdf").stat().st_size > 5_000
    assert not (folder / "pwned").exists()
