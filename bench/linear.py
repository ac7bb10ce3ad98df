"""Does the work grow as the input does, up to ten megabytes? One command:

    python bench/linear.py [--megabytes 10] [--only typos] [--limit-s 60]

Every perturbation that needs no model changes one text, and every reader reads one file, of a
quarter of a megabyte and then of twice the size each time. Texts: sentences; and, where the
sentences went through, names and numbers on one line, one word, one line of blanks, and brackets
that never close. The exponent is the slope of processor time over size, in logarithms, from the
last two sizes that took 50 ms or more: 1 is linear, 2 quadratic. Passes below 1.35; `fast` never
took 50 ms. A text that has taken longer than `--limit-s` is not doubled again, and the table says
how far it came.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from falter.perturbations import perturbations  # noqa: E402
from falter.readers.results import read_results  # noqa: E402
from falter.records.errors import FalterError  # noqa: E402
from falter.records.rng import Rng  # noqa: E402
from falter.records.types import Prompt, Section  # noqa: E402
from falter.tasks.rows import read_rows  # noqa: E402

MEGABYTE = 2**20
MEASURABLE = 0.05  # seconds of processor time
STEEPEST = 1.35
SENTENCE = "The parcel that Anna sent on Monday weighs 12 kg, and it is not here yet. "
NUMBERED = "(3) 2. Is Apollo 11 or Boeing 747 more than 1/2 of Plan 9, or 3 + 4? "
TEXTS: dict[str, Callable[[int], str]] = {
    "sentences": lambda size: SENTENCE * (size // len(SENTENCE)),
    "names and numbers": lambda size: NUMBERED * (size // len(NUMBERED)),
    "one word": lambda size: "a" * size,
    "blanks": lambda size: "a" + " " * size + "b",
    "brackets": lambda size: "([{<" * (size // 4),
}


def prompt_of(text: str, scope: frozenset[str]) -> Prompt:
    """A question whose text is in the kind of section that the perturbation changes."""
    kind = "input" if not scope or "input" in scope else sorted(scope)[0]
    return Prompt(
        sections=(
            Section(name="i", kind="instruction", text="Answer with one letter."),
            Section(name="q", kind=kind, text=text),  # type: ignore[arg-type]
        ),
        target=0,
        choices=("yes", "no"),
        labels=("A", "B"),
    )


def perturbation_work(name: str, text: str) -> Callable[[int], Callable[[], object]]:
    perturbation = perturbations.get(name)

    def work(size: int) -> Callable[[], object]:
        prompt = prompt_of(TEXTS[text](size), frozenset(perturbation.scope))
        return lambda: perturbation.applies(prompt) and perturbation(prompt, Rng(0))

    return work


def reader_work(kind: str, folder: Path) -> Callable[[int], Callable[[], object]]:
    def work(size: int) -> Callable[[], object]:
        path = folder / kind
        if kind == "scores.csv":
            head, row = "item,condition,model,score\n", "q{n},{c},m,{s}\n"
            rows = (row.format(n=n // 2, c=("a", "b")[n % 2], s=n % 2) for n in range(size // 12))
            path.write_text(head + "".join(rows), "utf-8")
            return lambda: read_results([path])
        rows = (json.dumps({"q": SENTENCE, "a": str(n)}) for n in range(size // 100))
        if kind == "rows.csv":
            path.write_text("q,a\n" + "".join(f'"{SENTENCE}",{n}\n' for n in range(size // 80)))
        elif kind == "rows.json":
            path.write_text(f"[{','.join(rows)}]", "utf-8")
        elif kind == "cell.jsonl":
            path.write_text(
                json.dumps({"q": SENTENCE * (size // len(SENTENCE)), "a": "1"}), "utf-8"
            )
        else:
            path.write_text("\n".join(rows), "utf-8")
        return lambda: read_rows(path)

    return work


def subjects(folder: Path) -> Iterator[tuple[str, Callable[[int], Callable[[], object]]]]:
    for kind in ("rows.jsonl", "rows.json", "rows.csv", "cell.jsonl", "scores.csv"):
        yield f"read {kind}", reader_work(kind, folder)
    for name in perturbations.names():
        if not perturbations.get(name).needs_model:
            for text in TEXTS:
                yield f"{name}: {text}", perturbation_work(name, text)


def growth(
    work: Callable[[int], Callable[[], object]], most: int, limit: float
) -> tuple[list[tuple[int, float]], str]:
    """Sizes with their times, and what else is to be said."""
    times: list[tuple[int, float]] = []
    size, remark = MEGABYTE // 4, ""
    while size <= most:
        call = work(size)
        before = time.process_time()
        try:
            call()
        except FalterError as error:
            return times, f"refused: {str(error)[:40]}"
        times.append((size, time.process_time() - before))
        if times[-1][1] > limit:
            return times, f"stopped at {size / MEGABYTE:g} MB"
        size *= 2
    return times, remark


def exponent(times: list[tuple[int, float]]) -> float | None:
    """The slope over the last two sizes that can be measured."""
    measured = [pair for pair in times if pair[1] >= MEASURABLE]
    if len(measured) < 2:
        return None
    (small, first), (large, last) = measured[-2:]
    return math.log(last / first) / math.log(large / small)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--limit-s", type=float, default=60)
    parser.add_argument("--only", default="", help="a part of a row's name")
    arguments = parser.parse_args()
    most, steep = int(arguments.megabytes * MEGABYTE), 0
    print(f"{'':42}{'largest':>10}{'seconds':>10}{'exponent':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name, work in subjects(Path(folder)):
            if arguments.only not in name:
                continue
            times, remark = growth(work, most, arguments.limit_s)
            slope = exponent(times)
            steep += slope is not None and slope >= STEEPEST
            size, taken = times[-1] if times else (0, 0.0)
            shown = "fast" if slope is None else f"{slope:.2f}"
            mark = "  STEEP" if slope is not None and slope >= STEEPEST else ""
            row = f"{name:42}{size / MEGABYTE:7.2f} MB{taken:10.2f}{shown:>10}{mark}  {remark}"
            print(row.rstrip(), flush=True)
    print(f"{steep} of the rows above grow faster than their input")
    sys.exit(bool(steep))


if __name__ == "__main__":
    main()
