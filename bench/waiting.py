"""Time until each command is done, as data grow. One command, one table:

    python bench/waiting.py [--rows 1000 20000] [--minutes 20] [--before FALTER] [--only report]

A simulated model is asked multiple-choice questions of 30 words under the default recipes; each
command is a process of its own. `plan` and `--limit 20` are also timed on `--large` rows. Then
questions of 200 words, replies of about 1,500 characters, which a function gives, and the embedded
model on the demo's questions. `view` is timed until it prints its address. "report, first" has
nothing in falter's cache. Shown are processor time, which says the same on a busy machine,
microseconds of it for a cell, and memory at its highest. `--before` names the falter program of
another version (its environment's `bin/falter`), which is measured in turn; the ratio is its
processor time to that of this checkout. A step that it does not know, or that takes it more than
`--patience` processor seconds, is shown so, and the steps that need what it made are left out.
Commands that would begin past the minutes are left out, which is said.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from _process import FALTER, Taken, environment, measured
from falter.weights.downloads import cache_dir

TEXT = """the quick report shows that many people in the town buy fresh bread every morning before
work because it is cheaper than later and they queue outside for a while when rain falls on hills"""
WORDS = TEXT.split()
CONDITIONS = 13
FIRST = "report, first"
SOME = ("run --limit 20", "run", FIRST, "answers --lost")
WEIGHTS = cache_dir()
LONG_REPLIES = '''
FILLER = "We look at what the question asks and at each of the options in turn. "

def reply(prompt):
    """A reply of about 1,500 characters whose answer is its last sentence."""
    return FILLER * 20 + "Option C does not fit. So the answer is " + letter(prompt) + "."

def letter(prompt):
    return "ABCD"[len(prompt) % 4]
'''
SHORT_REPLIES = "function:long:letter"


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
    other = str(folder / "other.db")
    return [
        ("plan", ["plan", *options]),
        ("run --limit 20", ["run", *options, "--limit", "20"]),
        ("run", ["run", *options]),
        ("run, all stored", ["run", *options]),
        (FIRST, ["report", *store]),
        ("report --html", ["report", "--html", page, *store]),
        ("run, two models", ["run", *options[:-1], other, "--limit", "300", "-m", SHORT_REPLIES]),
        ("compare", ["compare", "--store", other]),
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

    def __init__(self, before: str | None, until: float, only: str, patience: int) -> None:
        self.programs = [FALTER, *([(str(Path(before).absolute()),)] if before else [])]
        self.until, self.only, self.patience = until, only, patience
        print(f"{'':<34}{'cells':>10}{'seconds':>9}{'cpu s':>8}{'µs a cell':>11}{'MB':>7}"
              + (f"{'before: cpu s':>15}{'ratio':>7}{'MB':>7}" if before else ""))  # fmt: skip

    def steps(
        self, label: str, folder: Path, cells: int, todo: list[tuple[str, list[str]]]
    ) -> None:
        """Run the steps of one set of data; the version before works on a copy of the folder."""
        folders = [folder]
        if len(self.programs) > 1:
            folders.append(Path(shutil.copytree(folder, f"{folder}-before")))
        lacking: set[Path] = set()
        for name, command in todo:
            # What reports need is run, though only some steps are shown.
            needed = name.startswith("run") and not self.only.startswith("plan")
            if not (needed or name.startswith(self.only)) or time.monotonic() > self.until:
                print(f"{label + ', ' + name:<34} left out", flush=True)
                continue
            taken: list[Taken | str] = []
            for program, place in zip(self.programs, folders, strict=True):
                words = [word.replace(str(folder), str(place)) for word in command]
                with contextlib.chdir(place):  # where `function:` looks for its module
                    found = "–" if place in lacking else self._taken(name, program, words, place)
                if isinstance(found, str) and name == "run":
                    lacking.add(place)
                taken.append(found)
            self._line(f"{label}, {name}", cells, taken)
        for place in folders:
            shutil.rmtree(place)

    def _taken(
        self, name: str, program: Sequence[str], words: Sequence[str], place: Path
    ) -> Taken | str:
        """Measure a command; of the version before, say if it does not end in time or fails."""
        own = program is FALTER
        os.environ["FALTER_CACHE"] = str(cache := place / "cache")
        if not cache.exists() or name == FIRST:
            shutil.rmtree(cache, ignore_errors=True)
            cache.mkdir()
            for part in ("weights", "models"):
                (cache / part).symlink_to(WEIGHTS / part)
        if name == "view":
            return until_address([*program, *words], place, own)
        most = () if own else ("sh", "-c", f'ulimit -t {self.patience}; exec "$@"', "sh")
        try:
            return measured([*most, *program, *words], place, own=own)
        except SystemExit as error:
            if own:
                raise
            return f"> {self.patience}" if "ended with -" in str(error) else "–"

    def _line(self, name: str, cells: int, taken: Sequence[Taken | str]) -> None:
        now = taken[0]
        assert isinstance(now, Taken)
        line = (f"{name:<34}{cells:>10,}{now.seconds:>9.1f}{now.cpu:>8.1f}"
                f"{1e6 * now.cpu / cells:>11.0f}{now.peak_mb:>7.0f}")  # fmt: skip
        for before in taken[1:]:
            if isinstance(before, str):
                line += f"{before:>15}"
            else:
                line += f"{before.cpu:>15.1f}{before.cpu / now.cpu:>7.1f}{before.peak_mb:>7.0f}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 20_000])
    parser.add_argument("--large", type=int, default=300_000, help="rows for plan and --limit 20")
    parser.add_argument("--long", type=int, default=770, help="rows with long replies")
    parser.add_argument("--minutes", type=float, default=20, help="when no step is begun any more")
    parser.add_argument("--only", default="", help="the beginning of a step's name")
    parser.add_argument("--before", help="the falter program of another version")
    parser.add_argument(
        "--patience", type=int, default=90, help="processor seconds for a step of it"
    )
    args = parser.parse_args()
    until = time.monotonic() + 60 * args.minutes
    table = Table(args.before, until, args.only, args.patience)
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
            ("long replies", args.long, 30, "function:long:reply"),
        ):
            folder = base / model.partition(":")[0]
            folder.mkdir()
            write_data(folder, rows, words)
            few = [step for step in steps(folder, model) if step[0] in SOME]
            table.steps(label, folder, rows * CONDITIONS, few)
        demo = base / "demo"
        demo.mkdir()
        command = ["demo", "--store", str(demo / "falter.db"), "--html", str(demo / "demo.html")]
        table.steps("embedded model", demo, 480, [("demo", command)])


if __name__ == "__main__":
    main()
