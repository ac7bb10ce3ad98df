"""`bench/gpu.sh` from its first line to its last, on a llama of two layers in place of vLLM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from test_hf_client import save

SCRIPT = Path(__file__).parents[2] / "bench" / "gpu.sh"


def test_the_whole_script_goes_through_without_a_gpu(tmp_path: Path) -> None:
    model = save(tmp_path / "llama", "llama")
    environment = os.environ | {
        "PYTHON": sys.executable, "ENGINE": "hf", "REFERENCE": "hf", "BACKEND": "hf",
        "HARNESS_ARGS": f"pretrained={model},device=cpu,dtype=float32,batch_size=4",
        "ITEMS": "2", "CELLS": "500",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", str(SCRIPT), str(model), str(tmp_path / "out")],
        capture_output=True, text=True, check=False, env=environment, timeout=900,
    )  # fmt: skip
    summary = (tmp_path / "out" / "summary.txt").read_text("utf-8")
    assert done.returncode == 0, f"{summary}\n{done.stderr}"
    assert "0 parts failed" in done.stdout
    assert summary.count("the likeliest option is the same in 24") == 4
    assert "lm-eval --model hf" in summary and "plan" in summary
