"""Does a real server hold a model to a label, and to a number? One line a way of asking.

    python bench/constrained.py --python VENV/bin/python [--model FILE.gguf]    # xllamacpp in VENV

llama.cpp's server is asked by `openai:`, and the same file in the process by `gguf:`: 20 tickets by
`label_constrained`, 20 sums by `numeric_constrained`, each twice. No reply may be unread.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path
from typing import Any

import falter
from servers import LLAMA, WAYS, free_port, listening, running

CODER = Path.home() / ".cache/falter/models/Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf"
ASKED: dict[str, dict[str, Any]] = {
    "20 tickets": WAYS["labels"] | {"scorer": "label_constrained"},
    "20 sums": {"task": "sums", "scorer": "numeric_constrained"},
}


def unread(model: dict[str, Any], folder: Path) -> None:
    """Ask both, and print how many of the 40 replies hold no answer."""
    for name, asked in ASKED.items():
        settings = {**asked, "models": [model], "recipes": ["pad_newlines"], "limit": 20}
        counts = falter.run(settings, store=folder / "falter.db").analysis.panels[0].counts
        print(f"{model['name'].partition(':')[0]:8}{name:12}{counts.scored} read, "
              f"{counts.unread} unread, {counts.failed} failed")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", required=True, help="of an environment with xllamacpp")
    parser.add_argument("--model", type=Path, default=CODER)
    given, port = parser.parse_args(), free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        running([given.python, "-c", LLAMA, str(given.model), str(port)]) as process,
    ):
        asyncio.run(listening(port, process))
        base = {"base_url": f"http://127.0.0.1:{port}/v1", "concurrency": 2, "timeout": 300}
        unread({"name": "openai:m", **base}, Path(folder))
        unread({"name": f"gguf:{given.model}"}, Path(folder))


if __name__ == "__main__":
    main()
