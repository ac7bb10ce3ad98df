"""How the work grows with the cells of a run. One command, one table:

    python bench/growth.py [--cells 10000 100000] [--minutes 10]
    python bench/growth.py --cells 10000 100000 1000000 --minutes 60

A simulated model is asked ten conditions of made-up questions; each command is a process of its
own. Shown are microseconds of processor time for a cell, which say the same on a busy machine, and
memory at its highest; `bytes` is the size of the store for a cell. Linear is what stays the same
from one row of a command to the next. A command that would go on past the minutes is ended, and
those that follow are left out, which is said.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from _process import FALTER, Taken, measured

RECIPES = (
    "pad_quotes", "pad_spaces", "pad_newlines", "emotion", "pad_quotes:count=2",
    "pad_spaces:count=2", "pad_newlines:count=2", "typos", "identity",
)  # fmt: skip
WAYS = len(RECIPES) + 1


def write_data(folder: Path, cells: int) -> None:
    with (folder / "items.jsonl").open("w") as out:
        for n in range(cells // WAYS):
            row = {"id": f"item-{n}", "question": f"What comes after the number {n} in order?"}
            out.write(json.dumps({**row, "answer": str(n + 1)}) + "\n")
    (folder / "prompt.txt").write_text("Answer with a number.\n\n{question}\nAnswer:")


def experiment(folder: Path) -> list[str]:
    options = [
        "--data", str(folder / "items.jsonl"), "--template", str(folder / "prompt.txt"),
        "--target", "answer", "--key", "id", "--model", "simulated",
        "--store", str(folder / "falter.db"),
    ]  # fmt: skip
    return options + [part for recipe in RECIPES for part in ("--recipe", recipe)]


def steps(folder: Path) -> list[tuple[str, list[str]]]:
    options, store = experiment(folder), ["--store", str(folder / "falter.db")]
    return [
        ("plan", ["plan", *options]),
        ("run", ["run", *options]),
        ("run, all stored", ["run", *options]),
        ("report --json", ["report", "--json", *store]),
        ("report --html", ["report", "--html", str(folder / "report.html"), *store]),
        ("store verify", ["store", "verify", *store]),
    ]


def row(name: str, cells: int, taken: Taken, start: float, extra: str = "") -> None:
    each = 1e6 * max(0.0, taken.cpu - start) / cells
    print(
        f"{name:<18}{cells:>12,}{taken.seconds:>10.1f}{taken.cpu:>10.1f}{each:>10.0f}"
        f"{taken.peak_mb:>10.0f}  {extra}".rstrip(),
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cells", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--minutes", type=float, default=10, help="how long it may take at most")
    parser.add_argument("--only", default="", help="the beginning of a command's name")
    args = parser.parse_args()
    until = time.monotonic() + 60 * args.minutes
    with tempfile.TemporaryDirectory() as name:
        start = measured([*FALTER, "list", "clients"], Path(name))
    print(f"a command that only prints: {start.seconds:.2f} s, {start.cpu:.2f} s of processor time")
    print(f"{'':<18}{'cells':>12}{'seconds':>10}{'cpu s':>10}{'µs a cell':>10}{'MB':>10}")
    for cells in args.cells:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_data(folder, cells)
            for what, command in steps(folder):
                if not what.startswith(args.only):
                    continue
                try:
                    taken = measured([*FALTER, *command], folder, until - time.monotonic())
                except TimeoutError:
                    raise SystemExit(
                        f"{what}, {cells:,} cells: not done within the {args.minutes:g} minutes; "
                        "it and what follows is left out"
                    ) from None
                size = (folder / "falter.db").stat().st_size if what == "run" else 0
                extra = f"{size / cells:,.0f} bytes a cell" if size else ""
                row(what, cells // WAYS * WAYS, taken, start.cpu, extra)


if __name__ == "__main__":
    main()
