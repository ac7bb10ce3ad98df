"""Writes the answers into tests/data/mistakes.yaml: run it, read the difference, keep what is good.

python tests/support/make_mistakes.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from mistakes import TABLE, commit, load

if __name__ == "__main__":
    entries = load()
    for entry in entries:
        with tempfile.TemporaryDirectory() as folder:
            entry["exit"], entry["stderr"] = commit(entry["command"], Path(folder))
    TABLE.write_text(
        yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=100), "utf-8"
    )
