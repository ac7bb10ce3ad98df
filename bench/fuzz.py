"""Does anything but an error of ours come out, or anything take above two seconds? One command:

    python bench/fuzz.py [--minutes 60] [--seed 0] [--only yaml,data,stores]

Mutates small seeds: experiment files, data files, results and logs of other tools, stores, replies
of models, texts to perturb.
Every finding is printed once, with the seed that repeats it; at the end a table of calls, refusals
and the slowest call of each kind. Exit code 1 if there were findings.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from falter.engine.config import read_experiment  # noqa: E402
from falter.engine.experiment_file import read_settings  # noqa: E402
from falter.perturbations import perturbations  # noqa: E402
from falter.readers.results import read_results  # noqa: E402
from falter.records.errors import FalterError  # noqa: E402
from falter.records.interfaces import Case  # noqa: E402
from falter.records.rng import Rng  # noqa: E402
from falter.records.types import BASELINE, Prompt, Response, Section, Variant  # noqa: E402
from falter.scorers import scorers  # noqa: E402
from falter.store.maintenance import repair, verify  # noqa: E402
from falter.store.store import Store  # noqa: E402
from falter.tasks.rows import read_rows  # noqa: E402
from samples import RUN, answer, item, requests  # noqa: E402

SLOW = 2.0  # seconds of processor time
MOST_SLOW = 20  # slow calls that are named, of each kind
PIECES = (
    "\t", " ", "\n", "\r\n", "\0", "\x1b[2J", "\ud800", "\ufeff", "\u202e", "e\u0301", "💥", "ß",
    "[", "{", "(", "<", '"', "'", "`", "```", "$", "$$", "\\", "|", "- a\n", "1. b\n", "a: b\n",
    "A) ", "Answer: ", "**", "__", "NaN", "1e999", "-0", "9" * 30, "null", "<answer>", "&a ", "*a",
    "!!python/name:os.system", "http://a.b/", "def f():\n", "Document 1: x\n", ": ", "? ", "…",
)  # fmt: skip
EXPERIMENT = "task: basics\nmodels: simulated\nrecipes: [typos, {typos: {count: 2}}]\nlimit: 3\n"
ROWS = [{"question": "1 + 1?", "options": ["2", "3"], "answer": "2"}] * 3
REPLIES = (
    "B", "The answer is (C).", '{"answer": "A"}', "```python\nreturn 1\n```", "42.5",
    "I would say **yes**, not no. Wait, actually no.", "Step 1: 1,234.56 / 2 = 617.28, so 617.",
    "<think>Perhaps B.</think>\n\\boxed{yes}", "key: yes\nother:\n  - 3\n", "<a><b>yes</b></a>",
)  # fmt: skip
LOGS = ROOT / "tests" / "data" / "logs"
TABLE = "item,condition,model,score\n" + "".join(
    f"q{n},{condition},m,{n % 2}\n" for n in range(6) for condition in ("baseline", "typos")
)
DOVE = [
    {
        "evaluation_id": f"e{n}", "instance": {"sample_identifier": {"hf_index": n}},
        "model": {"model_info": {"name": "m"}}, "evaluation": {"score": n % 2},
    }
    for n in range(3)
]  # fmt: skip
HELM = [
    {"instance_id": f"id{n}", "stats": [{"name": {"name": "exact_match"}, "mean": n % 2}]}
    for n in range(3)
]
# Of these a score needs nothing but the reply: no model, no encoder, no process.
TEXT_SCORERS = tuple(
    name
    for name in scorers.names()
    if not name.endswith(("likelihood", "likelihood_norm", "similarity", "bertscore"))
    and name != "unit_tests"
)


@dataclass(slots=True)
class Tally:
    """The outcomes of one kind of input."""

    calls: int = 0
    refused: int = 0
    slowest: float = 0.0
    findings: dict[str, str] = field(default_factory=dict)


def mangled(text: str, rng: random.Random) -> str:
    """The text after a few insertions, deletions, repetitions and swaps."""
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        at, length = rng.randint(0, len(text)), rng.randint(0, 30)
        piece = rng.choice(PIECES) * rng.choice((1, 1, 1, 2, 50, 3000))
        how = rng.randrange(4)
        if how == 0:
            text = text[:at] + piece + text[at:]
        elif how == 1:
            text = text[:at] + text[at + length :]
        elif how == 2:
            text = text[:at] + text[at : at + length] * rng.randint(2, 9) + text[at + length :]
        else:
            text = piece + text + piece
    return text[:200_000]


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def yaml_file(folder: Path, rng: random.Random) -> None:
    path = folder / "e.yaml"
    path.write_bytes(as_bytes(mangled(EXPERIMENT, rng)))
    read_experiment(read_settings(path), folder=folder)


def data_file(folder: Path, rng: random.Random) -> None:
    kind = rng.choice(("jsonl", "json", "csv", "tsv", "jsonl.gz", "parquet"))
    text = {
        "json": json.dumps(ROWS),
        "csv": "question,answer\n1 + 1?,2\n",
        "tsv": "question\tanswer\n1 + 1?\t2\n",
    }.get(kind, "\n".join(map(json.dumps, ROWS)))
    data = bytearray(as_bytes(mangled(text, rng)))
    if kind.endswith(".gz"):
        data = bytearray(gzip.compress(data))
        for _ in range(rng.randint(0, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    path = folder / f"a.{kind}"
    path.write_bytes(data)
    read_rows(path)


def results(folder: Path, rng: random.Random) -> None:
    """A table of scores, or a log of another tool, mangled: as text, and as bytes of an archive."""
    kind = rng.choice(("table", "lm-eval", "inspect", "inspect.eval", "dove", "helm"))
    if kind == "inspect.eval":
        data = bytearray(rng.choice(sorted(LOGS.glob("inspect/*.eval"))).read_bytes())
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = folder / "a.eval"
        path.write_bytes(data)
    else:
        path, text = _log(folder, kind, rng)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(as_bytes(mangled(text, rng)))
    read_results([path.parent if kind == "helm" else path])


def _log(folder: Path, kind: str, rng: random.Random) -> tuple[Path, str]:
    """Return the path of such a log, and the contents of a sound one."""
    if kind == "lm-eval":
        original = rng.choice(sorted(LOGS.glob("lm_eval/**/samples_*.jsonl")))
        return folder / original.name, original.read_text("utf-8")
    if kind == "inspect":
        return folder / "log.json", (LOGS / "toy_other.json").read_text("utf-8")
    if kind == "dove":
        return folder / "dove.jsonl", "\n".join(map(json.dumps, DOVE))
    if kind == "helm":
        spec = {"name": "boolq:model=m", "adapter_spec": {"model": "m"}}
        (folder / "boolq").mkdir(exist_ok=True)
        (folder / "boolq" / "run_spec.json").write_text(json.dumps(spec), "utf-8")
        return folder / "boolq" / "per_instance_stats.json", json.dumps(HELM)
    return folder / "table.csv", TABLE


def stored(folder: Path, rng: random.Random) -> None:
    """A store with bytes overwritten: opened, verified, reported, repaired."""
    whole, path, new = folder / "whole.db", folder / "a.db", folder / "new.db"
    if not whole.exists():
        planned = list(requests(3))
        with Store(whole) as store:
            store.begin_run(RUN)
            store.put_responses([(r, answer(r)) for r in planned])
            store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for old in folder.glob("*a.db*"):
        old.unlink()
    for old in folder.glob("new.db*"):
        old.unlink()
    data = bytearray(whole.read_bytes())
    for _ in range(rng.choice((1, 5, 50, 500))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    with contextlib.suppress(FalterError), Store(path) as store:
        verify(store)
        for run in store.runs():
            for _ in store.cells(run.run):
                pass
    repair(path, new)


def reply(_: Path, rng: random.Random) -> None:
    text = mangled(rng.choice(REPLIES), rng)
    prompt = Prompt(
        sections=(Section(name="q", kind="input", text="?"),),
        target=rng.choice((0, 1)),
        choices=("yes", "no"),
        labels=("A", "B"),
    )
    variant = Variant(item=item(0), recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    case = Case(variant=variant, response=Response(key="k", text=text))
    for name in TEXT_SCORERS:
        with contextlib.suppress(FalterError):
            scorers.get(name).score(case)


def perturbed(_: Path, rng: random.Random) -> None:
    known = [p for p in map(perturbations.get, perturbations.names()) if not p.needs_model]
    chosen = rng.choice(known)
    texts = [mangled(text, rng) for text in ("Answer with one letter.\n", "Who is it?", "A: ")]
    kinds = [k for k in ("input", "document") if k in chosen.scope] or ["input"]
    prompt = Prompt(
        sections=(
            Section(name="i", kind="instruction", text=texts[0]),
            Section(name="q", kind=kinds[0], text=texts[1]),
            Section(name="c", kind="cue", text=texts[2]),
        ),
        target="x",
    )
    if chosen.applies(prompt):
        chosen(prompt, Rng(rng.randrange(2**32)))


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "yaml": yaml_file,
    "data": data_file,
    "results": results,
    "stores": stored,
    "replies": reply,
    "perturbations": perturbed,
}


def once(kind: str, seed: int, folder: Path, tally: Tally) -> None:
    """One call, counted; what is no error of ours, or slow, is a finding."""
    before = time.process_time()
    try:
        KINDS[kind](folder, random.Random(f"{kind} {seed}"))
    except FalterError:
        tally.refused += 1
    except Exception as error:
        place, trace = "", error.__traceback__
        while trace is not None:
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        name = f"{type(error).__name__} at {Path(place).name}"
        if name not in tally.findings:
            tally.findings[name] = f"{kind} {seed}: {name}: {str(error)[:100]!r}"
            print(tally.findings[name], flush=True)
    taken = time.process_time() - before
    tally.calls += 1
    tally.slowest = max(tally.slowest, taken)
    slow = f"slow {seed}"
    if taken > SLOW and sum(name.startswith("slow ") for name in tally.findings) < MOST_SLOW:
        tally.findings[slow] = f"{kind} {seed}: took {taken:.1f} s"
        print(tally.findings[slow], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(KINDS))
    arguments = parser.parse_args()
    kinds = arguments.only.split(",")
    tallies = {kind: Tally() for kind in kinds}
    end, seed = time.monotonic() + 60 * arguments.minutes, arguments.seed
    with tempfile.TemporaryDirectory() as name:
        while time.monotonic() < end:
            for kind in kinds:
                once(kind, seed, Path(name), tallies[kind])
            seed += 1
    print(f"{'':15}{'calls':>10}{'refused':>10}{'slowest':>10}{'findings':>10}")
    for kind, tally in tallies.items():
        counts = f"{tally.calls:10,}{tally.refused:10,}{tally.slowest:9.2f}s"
        print(f"{kind:15}{counts}{len(tally.findings):10}")
    sys.exit(any(tally.findings for tally in tallies.values()))


if __name__ == "__main__":
    main()
