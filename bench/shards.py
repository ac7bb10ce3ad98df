"""Do shards, merged, report what one process reports? One command:

    python bench/shards.py [--shards 8] [--items 200] [--recipes typos casing persona identity]

Runs an experiment whole, then in shards, each a process with a store of its own, merges these, and
compares the two reports in every form, line by line, without the lines that say when the run began
and by which command (shards have commands of their own, so their merged run names none). Each other
line that differs is printed. Exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path

from _process import FALTER, measured

MOMENT = re.compile(
    r"\d{4}(?:-|\{-\})\d\d(?:-|\{-\})\d\d[T ]\d\d:\d\d|created_at|\"command\"|\"cells\"|falter run"
)
BARE = re.compile(r"</?\w+>")
FORMS = ("--json", "--csv", "--md", "--latex")


def reports(store: Path, folder: Path) -> dict[str, list[str]]:
    """The report of a store in every form, by lines."""
    found = {}
    for form in FORMS:
        taken = measured([*FALTER, "report", form, "--store", str(store)], folder)
        found[form] = taken.output.splitlines()
    page = folder / "report.html"
    measured([*FALTER, "report", "--html", str(page), "--store", str(store)], folder)
    found["--html"] = page.read_text("utf-8").replace("><", ">\n<").splitlines()
    return found


def differences(ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
    """The lines that differ, but for those of the moment and the command, empty ones and tags."""
    kept = [
        [text for line in lines if (text := line.strip()) and not _aside(text)]
        for lines in (ours, theirs)
    ]
    return [(a, b) for a, b in zip_longest(*kept, fillvalue="") if a != b]


def _aside(line: str) -> bool:
    return bool(MOMENT.search(line) or BARE.fullmatch(line))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--model", default="simulated")
    parser.add_argument("--recipes", nargs="+", default=["typos", "casing", "persona", "identity"])
    args = parser.parse_args()
    options = ["--task", "basics", "--limit", str(args.items), "--model", args.model]
    options += [part for recipe in args.recipes for part in ("--recipe", recipe)]
    strange = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole, merged = folder / "whole.db", folder / "merged.db"
        measured([*FALTER, "run", *options, "--store", str(whole)], folder)
        parts = [folder / f"{n}.db" for n in range(1, args.shards + 1)]
        for n, part in enumerate(parts, 1):
            share = ["--shard", f"{n}/{args.shards}", "--store", str(part)]
            measured([*FALTER, "run", *options, *share], folder)
        measured([*FALTER, "store", "merge", *map(str, parts), "--store", str(merged)], folder)
        measured([*FALTER, "store", "verify", "--store", str(merged)], folder)
        ours, theirs = reports(whole, folder), reports(merged, folder)
        for form, lines in ours.items():
            found = differences(lines, theirs[form])
            strange += len(found)
            print(f"{form:<12}{len(lines):>8,} lines, {len(found)} differ that may not")
            for a, b in found:
                print(f"    whole:  {a[:110]}\n    merged: {b[:110]}")
    print(f"{args.shards} shards, merged: {'the same report' if not strange else 'NOT the same'}")
    sys.exit(bool(strange))


if __name__ == "__main__":
    main()
