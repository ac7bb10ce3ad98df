"""The showcase: does a larger model falter less? One command, which goes on where it stopped:

    python bench/showcase.py [--store FILE] [--to FOLDER] [--limit N]

Three models (SmolLM2 135M, Qwen2.5-Coder 0.5B and 1.5B) answer 400 questions with four options by
likelihood and 150 of them by reply. Each is sent clean, once more unchanged, and under the eleven
default perturbations. That takes eight processor hours on fast cores and 13 on slow ones, less the
share of the answers that docs/showcase/answers.db.xz holds. Writes there the questions, and after
each way of answering its page, the picture and the numbers; the answers also when interrupted or
terminated. `bench/real_models.py` brings the two Qwen files.

Fixed before the first answer: the question is decided by the average drop over the perturbations,
by likelihood, of the 1.5B less that of the 0.5B model, which are of one family. The
answer is yes where the 95 % interval of the difference is below zero, no where it is above, and
else not decided. SmolLM2, of another family, the replies, and the share of answers that flip
between right and wrong are told beside it and decide nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import lzma
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import falter  # noqa: E402
from falter.engine.results import Result  # noqa: E402
from falter.records.errors import RunStopped  # noqa: E402
from falter.records.figures import Forest, ForestRow, Grid  # noqa: E402
from falter.records.numbers import shown  # noqa: E402
from falter.records.types import Estimate  # noqa: E402
from falter.report.drawing.pictures import picture  # noqa: E402
from falter.tasks import tasks  # noqa: E402

MODELS = {
    "SmolLM2 135M": "smollm2",
    "Qwen 0.5B": "gguf:Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
    "Qwen 1.5B": "gguf:Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
}
SMALL, LARGE = "Qwen 0.5B", "Qwen 1.5B"
QUESTIONS = 400
DECIDES = "by likelihood"
WAYS = ((DECIDES, "choice_likelihood", QUESTIONS), ("by reply", "choice_letter", 150))
PAIRS = ((SMALL, LARGE), ("SmolLM2 135M", LARGE))
DROP = "Average drop, points"
BESIDE = (("Baseline, %", "correct with the clean prompt"), ("Flip rate, %", "flips"))
ARCHIVE = "answers.db.xz"
TEMPLATE = {
    "instruction": "Choose the right answer to this question.",
    "input": "\nQuestion: {question}",
    "choices": "{choices}",
    "output_format": "\nReply with the letter of your choice and nothing else.",
    "cue": "Answer:",
}


def questions() -> list[dict[str, Any]]:
    """All 264 questions of `basics` and 136 of MMLU's, drawn and shuffled with a seed."""
    draw = random.Random(2026)
    own = list(tasks.get("basics")(None).items)
    others = [item for item in tasks.get("mmlu_four")(None).items if len(item.choices) == 4]
    chosen = [*own, *draw.sample(others, QUESTIONS - len(own))]
    draw.shuffle(chosen)
    return [
        {
            "key": f"{item.task}-{item.key}",
            "subject": item.tags[0],
            "question": item.fields["question"],
            "options": list(item.choices),
            "answer": item.target,
        }
        for item in chosen
    ]


def settings(data: Path, scorer: str, limit: int) -> dict[str, Any]:
    """The experiment in which each model answers the first `limit` questions."""
    return {
        "data": {
            "path": str(data),
            "target": "answer",
            "target_as": "index",
            "choices": "options",
            "key": "key",
        },
        "template": TEMPLATE,
        "scorer": scorer,
        "limit": limit,
        "sampling": {"max_tokens": 24},
        "models": [
            {"name": name, "concurrency": 2 if row == LARGE else 1} for row, name in MODELS.items()
        ],
    }


def column_of(result: Result, name: str) -> dict[str, Estimate]:
    """A number of each model, by the name of its row."""
    grid, names = _grid(result, "overview"), {_model(name): row for row, name in MODELS.items()}
    number, model = _column(grid, name), _column(grid, "Model")
    return {names[_model(str(row[model]))]: _estimate(row[number]) for row in grid.rows}


def difference(result: Result, small: str, large: str, name: str = DROP) -> Estimate:
    """A number of the larger model less that of the smaller one, turned from the report's table."""
    grid, pair = _grid(result, "models-compared"), (_model(MODELS[small]), _model(MODELS[large]))
    (row,) = [row for row in grid.rows if (_model(str(row[1])), _model(str(row[2]))) == pair]
    found = _estimate(row[_column(grid, name)])
    value, low, high = (None if x is None else -x for x in (found.value, found.high, found.low))
    return replace(found, value=value, low=low, high=high)


def answered(found: Estimate) -> str:
    """The answer to the question by the rule that was fixed before."""
    if found.low is None or found.high is None:
        return "not decided: the difference has no interval"
    if found.high < 0.0:
        return "yes: the larger model loses fewer points"
    return "no: the larger model loses more points" if found.low > 0.0 else "not decided"


def _model(name: str) -> str:
    return name.removesuffix(" (simulated)").removeprefix("gguf:").removesuffix(".gguf")


def _grid(result: Result, name: str) -> Grid:
    figure = result.figure(name)
    assert isinstance(figure, Grid)
    return figure


def _column(grid: Grid, name: str) -> int:
    return [column.name for column in grid.columns].index(name)


def _estimate(value: object) -> Estimate:
    assert isinstance(value, Estimate)
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", type=Path, default=Path("showcase.db"))
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "showcase")
    parser.add_argument("--limit", type=int, default=QUESTIONS, help="fewer questions, to try it")
    options = parser.parse_args(arguments)
    options.to.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, interrupted)
    kept = options.to / ARCHIVE
    if kept.exists() and not options.store.exists():
        with lzma.open(kept) as packed, options.store.open("wb") as store:
            shutil.copyfileobj(packed, store)
    try:
        answer = asked(options)
    except (KeyboardInterrupt, RunStopped):
        answer = "not all is asked yet; the same command goes on"
    pack(options.store, kept)
    print(f"Does a larger model falter less? {answer}")
    return 0


def interrupted(number: int, frame: object) -> None:
    """End the asking as Ctrl-C does, once: a second signal would cut the packing short."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def pack(store: Path, kept: Path) -> None:
    """Write the answers of the store, which may be open elsewhere, as one compressed file.

    Prompts and runs are left out: they are planned again and would double it.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy.db")
        with contextlib.closing(sqlite3.connect(store)) as live:
            live.execute("VACUUM INTO ?", (str(copy),))
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as answers:
            tables = answers.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                if table not in ("responses", "models"):
                    answers.execute(f"DELETE FROM {table}")
            answers.execute("VACUUM")
        with lzma.open(kept, "wb", preset=9) as packed, copy.open("rb") as file:
            shutil.copyfileobj(file, packed)


def asked(options: argparse.Namespace) -> str:
    """Ask what is missing, write the pages, the picture and the numbers; return the answer."""
    data = options.to / "questions.jsonl"
    rows = (json.dumps(row, ensure_ascii=False) for row in questions())
    data.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    drawn: list[ForestRow] = []
    facts: dict[str, Any] = {"question": "Does a larger model falter less?", "numbers": {}}
    for way, scorer, most in WAYS:
        result = falter.run(settings(data, scorer, min(most, options.limit)), store=options.store)
        result.report(options.to / f"{way.replace(' ', '-')}.html")
        print(result.summary("overview", "models-compared", width=120))
        named = {f"{model}, {way}": drop for model, drop in column_of(result, DROP).items()}
        named |= {f"{b} less {a}, {way}": difference(result, a, b) for a, b in PAIRS}
        drawn.append(ForestRow(label=way, kind="group"))
        drawn += [
            ForestRow(
                label=label.removesuffix(f", {way}").replace(f"{LARGE} less", "1.5B −"),
                kind="member",
                estimate=estimate,
            )
            for label, estimate in named.items()
        ]
        facts["numbers"] |= {label: shown(e, "points").text for label, e in named.items()}
        for column, words in BESIDE:
            for model, share in column_of(result, column).items():
                facts["numbers"][f"{model}, {way}: {words}"] = shown(share, "percent").text
        flips = difference(result, SMALL, LARGE, "Flip rate, points")
        facts["numbers"][f"{LARGE} less {SMALL}, {way}: flips"] = shown(flips, "points").text
        facts[f"run {way}"] = result.study.id
        if way == DECIDES:
            facts["answer"] = answered(named[f"{LARGE} less {SMALL}, {way}"])
        write_numbers(options.to, drawn, facts)
    return str(facts["answer"])


def write_numbers(folder: Path, drawn: Sequence[ForestRow], facts: dict[str, Any]) -> None:
    """Write the picture and the numbers of the ways of answering that are finished."""
    figure = Forest(
        name="larger",
        title="Points lost on average under eleven perturbations, and differences of two models",
        measured="Lost (right: more)",
        of="model",
        rows=tuple(drawn),
        unit="points",
    )
    (folder / "larger.svg").write_text(f"{picture(figure)}\n", "utf-8")
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    (folder / "larger.json").write_text(f"{text}\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
