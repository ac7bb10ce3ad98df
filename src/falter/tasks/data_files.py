"""Readers of data sets in special file formats, and of the data sets bundled with falter."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from falter.records.errors import TaskError, refusal
from falter.tasks.rows import Row, read_text

Located = tuple[Row, str]
"""A row, and its place in a file for error messages."""
CORE = "core"
BLOCK = ("the right answer's letter", "the passage", "the question", *(f"{c}.…" for c in "ABCD"))


def mmlu_tables(argument: str | None) -> Iterator[Located] | None:
    """Return the rows of one of MMLU's CSV files, or of a folder of them; None for other paths.

    A line holds question, four options and a letter; there is no header.
    """
    path = Path(argument or "")
    is_csv = path.name.removesuffix(".gz").lower().endswith(".csv")
    return _mmlu_rows(path) if argument and (is_csv or path.is_dir()) else None


def _mmlu_rows(path: Path) -> Iterator[Located]:
    """Yield the rows of the published files, whose names contain the subject."""
    files = sorted([*path.glob("*.csv"), *path.glob("*.csv.gz")]) if path.is_dir() else [path]
    if not files:
        raise TaskError(f"The folder {path} holds no .csv file", hint="give MMLU's CSV files")
    for file in files:
        subject = re.sub(r"(_(test|dev|val))?\.csv(\.gz)?$", "", file.name, flags=re.IGNORECASE)
        for cells, where in _csv_cells(file):
            if len(cells) != 6 or cells[5] not in ("A", "B", "C", "D"):
                raise TaskError(f"{where} does not have a question, four options and a letter")
            question, *choices, answer = cells
            row = {"subject": subject, "question": question, "choices": choices, "answer": answer}
            yield row, where


def _csv_cells(file: Path) -> Iterator[tuple[list[str], str]]:
    if not file.exists():
        raise TaskError(f"The data file {file} does not exist", hint="give MMLU's CSV files")
    reader = csv.reader(io.StringIO(read_text(file), newline=""))
    try:
        for row in reader:
            yield row, f"{file}, line {reader.line_num}"
    except csv.Error as error:
        raise TaskError(f"{file}, line {reader.line_num}: {error}") from error


def logiqa_blocks(argument: str | None) -> Iterator[Located] | None:
    """Return the rows of one of LogiQA's text files; None for other paths.

    An item is a block of seven lines, and an empty line separates blocks.
    """
    if not argument or not argument.endswith((".txt", ".TXT")):
        return None
    return _block_rows(Path(argument))


def _block_rows(path: Path) -> Iterator[Located]:
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(TaskError, "tasks.unreadable_logiqa", path=path, error=error) from error
    block: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        where = f"{path}, line {number}"
        if line.strip():
            block.append(line.strip())
            _check_line(block, where)
        elif block:
            if len(block) < len(BLOCK):
                raise TaskError(
                    f"{where}: the block ends early; expected {BLOCK[len(block)]}",
                    hint=f"a block is {len(BLOCK)} lines: {', '.join(BLOCK)}",
                )
            letter, passage, question, *options = block
            texts = [option[2:].strip() for option in options]
            row = {"context": passage, "question": question, "options": texts, "label": letter}
            yield row, where
            block = []


def _check_line(block: Sequence[str], where: str) -> None:
    place = len(block) - 1
    line = block[-1]
    if place == 0:
        good = line.lower() in ("a", "b", "c", "d")
    elif place >= 3:
        good = place < len(BLOCK) and re.match(rf"{BLOCK[place][0]}\. *\S", line) is not None
    else:
        good = True
    if not good:
        expected = BLOCK[place] if place < len(BLOCK) else "an empty line before the next block"
        raise TaskError(f"{where} is {line!r:.80}; expected {expected}")


# Bundled


def bundled_mmlu(argument: str | None) -> Iterable[Located]:
    """Return the rows of the four bundled files of MMLU."""
    with resources.as_file(bundled("classification", "mmlu_four")) as folder:
        return list(_mmlu_rows(folder))


def bundled_reviews(argument: str | None) -> Iterable[Located]:
    """Return the rows of the bundled IMDB reviews and their counterparts."""
    text = bundled("classification", "imdb_pairs.tsv").read_text("utf-8")
    return _numbered_rows("imdb_pairs.tsv", csv.DictReader(io.StringIO(text), delimiter="\t"))


def bundled_pairs(argument: str | None) -> Iterable[Located]:
    """Return the rows of LLMBar's natural pairs."""
    text = bundled("classification", "llmbar_natural.json").read_text("utf-8")
    return _numbered_rows("llmbar_natural.json", json.loads(text))


def bundled_abstracts(argument: str | None) -> Iterable[Located] | None:
    """Return the 30 bundled abstracts of SciTLDR, or the 12 of `core`; None for other arguments."""
    if argument not in (None, CORE):
        return None
    lines = bundled("summaries", "scitldr.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    if argument == CORE:
        core = set(bundled("summaries", "scitldr_core.txt").read_text("utf-8").split("\n"))
        rows = [row for row in rows if row["paper_id"] in core]
    return _numbered_rows("scitldr", rows)


def bundled(*names: str) -> Traversable:
    """Return a file or folder of the bundled data."""
    return resources.files("falter.tasks").joinpath("data", *names)


def _numbered_rows(name: str, rows: Iterable[Row]) -> Iterator[Located]:
    return ((row, f"{name}, row {n}") for n, row in enumerate(rows, 1))
