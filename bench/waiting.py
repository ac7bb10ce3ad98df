"""Time until each command is done, as data grow. One command, one table:

    python bench/waiting.py [--rows 1000 20000] [--minutes 20] [--before FALTER] [--only report]

A simulated model is asked multiple-choice questions of 30 words under the default recipes; each
command is a process of its own. `plan` and `--limit 20` are also timed on `--large` rows. Then
questions of 200 words, and replies of about 1,500 characters, which a function gives. `view` is
timed until it prints its address. Shown are processor time, which says the same on a busy machine,
microseconds of it for a cell, and memory at its highest. `--before` names the falter program of
another version (its environment's `bin/falter`), which is measured in turn; the ratio is its
processor time to that of this checkout. Commands that would go on past the minutes are left out,
which is said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _process import FALTER, Taken, environment, measured

TEXT = """the quick report shows that many people in the town buy fresh bread every morning before
work because it is cheaper than later and they queue outside for a while when rain falls on hills"""
WORDS = TEXT.split()
CONDITIONS = 13
LONG_REPLIES = '''
FILLER = "We look at what the question asks and at each of the options in turn. "

def reply(prompt):
    """A reply of about 1,500 characters whose answer is its last sentence."""
    return FILLER * 20 + "Option C does not fit. So the answer is " + "ABCD"[len(prompt) % 4] + "."
'''


def write_data(folder: Path, rows: int, words: int = 30) -> None:
    """Rows of a question, four options and the right one's index; and the template."""
    rng = random.Random(rows)
    with (folder / "items.jsonl").open("w") as out:
        for n in range(rows):
            question = " ".join(rng.choice(WORDS) for _ in range(words)).capitalize()
            options = [f"{rng.choice(WORDS)} {place} {rng.choice(WORDS)}" for place in range(4)]
            row = {"id": f"q{n}", "question": f"{question}, number {n}?", "options": options}
            out.write(json.dumps({**row, "answer": rng.randrange(4)}) + "\n")
    (folder / "prompt.txt").write_text("{question}\n{choices}\nAnswer with one letter.")
    (folder / "long.py").write_text(LONG_REPLIES)


def experiment(folder: Path, model: str) -> list[str]:
    return [
        "--data", str(folder / "items.jsonl"), "--template", str(folder / "prompt.txt"),
        "--target", "answer", "--choices", "options", "--key", "id", "--model", model,
        "--store", str(folder / "falter.db"),
    ]  # fmt: skip


def steps(folder: Path, model: str = "simulated") -> list[tuple[str, list[str]]]:
    """Return the commands that a user gives for one set of data, in order."""
    options, store = experiment(folder, model), ["--store", str(folder / "falter.db")]
    page, scores = str(folder / "report.html"), str(folder / "scores.csv")
    return [
        ("plan", ["plan", *options]),
        ("plan --exact", ["plan", "--exact", *options]),
        ("run --limit 20", ["run", *options, "--limit", "20"]),
        ("run", ["run", *options]),
        ("run, all stored", ["run", *options]),
        ("report", ["report", *store]),
        ("report --html", ["report", "--html", page, *store]),
        ("answers --lost", ["answers", "--lost", *store]),
        ("view", ["view", "--no-open", *store]),
        ("report --scores", ["report", "--scores", scores, *store]),
        ("analyze", ["analyze", scores]),
    ]


def until_address(command: Sequence[str], folder: Path, own: bool) -> Taken:
    """Time `view` until it prints its address, then end it."""
    started = time.perf_counter()
    with (folder / "view.err").open("wb") as told:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=told, env=environment(own=own)
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - started
        process.terminate()
        process.wait(60)
    if b"http://" not in line:
        raise SystemExit(f"view printed no address: {(folder / 'view.err').read_text()[-500:]}")
    return Taken(seconds, seconds, 0.0, line.decode())


class Table:
    """Measures each step with this version and, where given, the one before, and prints a line."""

    def __init__(self, before: str | None, until: float, only: str) -> None:
        self.programs = [FALTER, *([(str(Path(before).resolve()),)] if before else [])]
        self.until, self.only = until, only
        print(f"{'':<34}{'cells':>10}{'seconds':>9}{'cpu s':>8}{'µs a cell':>11}{'MB':>7}"
              + (f"{'before: cpu s':>15}{'ratio':>7}" if before else ""))  # fmt: skip

    def steps(
        self, label: str, folder: Path, cells: int, todo: list[tuple[str, list[str]]]
    ) -> None:
        """Run the steps of one set of data; the version before works on a copy of the folder."""
        folders = [folder]
        if len(self.programs) > 1:
            folders.append(Path(shutil.copytree(folder, f"{folder}-before")))
        for name, command in todo:
            # What reports need is run, though only some steps are shown.
            needed = name.startswith("run") and not self.only.startswith("plan")
            if not (needed or name.startswith(self.only)) or time.monotonic() > self.until:
                print(f"{label + ', ' + name:<34} left out", flush=True)
                continue
            taken = []
            for program, place in zip(self.programs, folders, strict=True):
                words = [word.replace(str(folder), str(place)) for word in command]
                own = program is FALTER
                with contextlib.chdir(place):  # where `function:` looks for its module
                    if name == "view":
                        taken.append(until_address([*program, *words], place, own))
                    else:
                        taken.append(measured([*program, *words], place, own=own))
            self._line(f"{label}, {name}", cells, taken)
        for place in folders:
            shutil.rmtree(place)

    def _line(self, name: str, cells: int, taken: Sequence[Taken]) -> None:
        now = taken[0]
        line = (f"{name:<34}{cells:>10,}{now.seconds:>9.1f}{now.cpu:>8.1f}"
                f"{1e6 * now.cpu / cells:>11.0f}{now.peak_mb:>7.0f}")  # fmt: skip
        if len(taken) > 1:
            line += f"{taken[1].cpu:>15.1f}{taken[1].cpu / now.cpu:>7.1f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 20_000])
    parser.add_argument("--large", type=int, default=300_000, help="rows for plan and --limit 20")
    parser.add_argument("--minutes", type=float, default=20, help="when no step is begun any more")
    parser.add_argument("--only", default="", help="the beginning of a step's name")
    parser.add_argument("--before", help="the falter program of another version")
    args = parser.parse_args()
    table = Table(args.before, time.monotonic() + 60 * args.minutes, args.only)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        smallest = ["run", "--task", "basics:core", "--model", "simulated", "--limit", "1"]
        (base / "small").mkdir()
        store = ["--recipe", "typos", "--store", str(base / "small" / "falter.db")]
        table.steps("smallest", base / "small", 2, [("run", [*smallest, *store])])
        for rows in args.rows:
            folder = base / f"rows-{rows}"
            folder.mkdir()
            write_data(folder, rows)
            table.steps(f"{rows:,} rows", folder, rows * CONDITIONS, steps(folder))
        large = base / "large"
        large.mkdir()
        write_data(large, args.large)
        table.steps(
            f"{args.large:,} rows", large, args.large * CONDITIONS,
            [step for step in steps(large) if step[0] in ("plan", "run --limit 20")],
        )  # fmt: skip
        for label, rows, words, model in (
            ("200 words", 1_000, 200, "simulated"),
            ("long replies", 770, 30, "function:long:reply"),
        ):
            folder = base / model.partition(":")[0]
            folder.mkdir()
            write_data(folder, rows, words)
            table.steps(label, folder, rows * CONDITIONS, steps(folder, model)[:8])


if __name__ == "__main__":
    main()
