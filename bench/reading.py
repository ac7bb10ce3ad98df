"""How well and how fast are replies read, beside what others do? One command:

    python bench/reading.py [SETS.jsonl ...] [--shared DATA] [--bundled] [--failures FILE]

Each row of a set: kind (letters, labels, numbers, yes_no, answers, fields), stratum (plain, chatty,
hard, real, own), question, options or labels, reply, gold (null where a careful person takes no
answer), and cut where it ended at the limit of tokens. `--shared` adds the real replies of a folder
with `replies/real_*.jsonl.gz`, whose gold is the answer that the reply itself marks; `--bundled`
adds the sets of tests/data/replies. Prints precision and recall of what is stated and of what is
read at all, with 95 % Wilson intervals, by kind and stratum; then the same for stand-ins of other
projects in the same pass: each is a few lines after its published filters, and named so. Then lines
of the readers and milliseconds a reply.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from falter.scorers.reading.answers import read_answer
from falter.scorers.reading.fields import read_fields
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number
from falter.scorers.reading.reading import Reading

HOUSE = Path(__file__).parents[1]
READERS = "src/falter/scorers/reading"
BEFORE = "e51cc52"
"""The last revision with the earlier readers."""
KINDS = {
    "letter": "letters", "label": "labels", "number": "numbers", "yesno": "yes_no",
    "yes or no": "yes_no", "answer": "answers", "short answers": "answers", "short": "answers",
    "json": "fields", "JSON": "fields",
}  # fmt: skip
LENGTHS = (10, 300, 1_500)
Row = Mapping[str, Any]


@dataclass(slots=True)
class Counts:
    """Replies, answers among them, and how many were read and read rightly, of them stated."""

    replies: int = 0
    answers: int = 0
    read: int = 0
    right: int = 0
    stated: int = 0
    stated_right: int = 0


# What is read


def options_of(row: Row) -> tuple[list[str], list[str]]:
    """Return the letters and the texts of a row's options."""
    options = row["options"]
    if isinstance(options, dict):
        return list(options), list(options.values())
    return [chr(ord("A") + n) for n in range(len(options))], list(options)


def read(row: Row) -> Reading[Any]:
    """Return what falter reads."""
    reply, question, cut = row["reply"], row.get("question") or "", bool(row.get("cut"))
    match row["kind"]:
        case "letters":
            letters, texts = options_of(row)
            found = read_letter(reply, letters, texts, question, cut=cut)
            index = found.answer
            return Reading(answer=None if index is None else letters[index], tier=found.tier)
        case "labels":
            return read_label(reply, row["labels"], question, cut=cut)
        case "numbers":
            return read_number(reply, question, cut=cut)
        case "yes_no":
            return read_yes_no(reply, question, cut=cut)
        case "fields":
            return read_fields(reply)
    return read_answer(reply, question, cut=cut)


def is_right(kind: str, found: Any, gold: Any) -> bool:
    """Return True if an answer is the gold one; texts are compared as question answering does."""
    if found is None or gold is None:
        return False
    if kind == "numbers":
        try:
            wanted = Decimal(str(gold).replace(",", ""))
            return bool(abs(Decimal(str(found)) - wanted) <= abs(wanted) * Decimal("1e-6"))
        except InvalidOperation:
            return False
    if kind == "fields":
        wanted_fields = json.loads(gold) if isinstance(gold, str) else gold
        return bool(plain_fields(found) == plain_fields(wanted_fields))
    if kind == "answers":
        return any(folded(str(found)) == folded(str(one)) for one in listed(gold))
    return str(found).casefold() == str(gold).casefold()


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def plain_fields(value: Any) -> Any:
    """Return an object with numbers and texts compared by what they say."""
    if isinstance(value, dict):
        return {str(k): plain_fields(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain_fields(v) for v in value]
    if isinstance(value, bool) or value is None:
        return value
    return float(value) if isinstance(value, (int, float)) else str(value)


def folded(text: str) -> str:
    """Return a text without case, accents, articles and punctuation."""
    apart = unicodedata.normalize("NFD", text.casefold())
    words = re.findall(r"[^\W_]+", "".join(c for c in apart if not unicodedata.combining(c)))
    return " ".join(w for w in words if w not in ("a", "an", "the"))


# Stand-ins for other projects


def inspect(row: Row) -> Any:
    """Inspect's `choice` ("ANSWER: X" on a line), `match(location="end")` and `pattern`."""
    reply = row["reply"]
    if row["kind"] == "letters":
        line = r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)"
        found = re.search(line, reply) or re.search(
            r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)", reply
        )
        return found and found[1].strip().upper()[:1]
    if row["kind"] == "numbers":
        words = [w.strip(".,:;!?$€£%*()") for w in reply.split()]
        numbers = [w.replace(",", "") for w in words if re.fullmatch(r"-?[\d,]*\.?\d+", w)]
        return numbers[-1] if numbers else None
    end = folded(reply)
    if row["kind"] in ("labels", "yes_no"):
        known = [x for x in names(row) if end.endswith(folded(x))]
        return max(known, key=len) if known else None
    found = re.search(r"(?i)ANSWER\s*:\s*([^\n]+)", reply)
    return found[1].strip() if found and row["kind"] == "answers" else None


def harness(row: Row) -> Any:
    """lm-evaluation-harness: `flexible-extract` and `strict-match` of its task files."""
    reply = row["reply"]
    if row["kind"] == "numbers":
        strict = re.findall(r"#### (\-?[0-9\.\,]+)", reply)
        loose = [a or b for a, b in re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", reply)]
        found = strict[:1] or loose[-1:]
        return found[0].replace(",", "").replace("$", "").rstrip(".") if found else None
    if row["kind"] == "letters":
        found = re.findall(r"answer is \(?([A-J])\)?", reply) or re.findall(r"\(([A-Z])\)", reply)
        if found:
            return found[-1]
        letters, texts = options_of(row)
        hits = [n for n, text in enumerate(texts) if text.lower() in reply.lower()]
        behind = re.findall(r":[\s]*([A-J])", reply)
        return letters[hits[0]] if hits else (behind[0] if behind else None)
    if row["kind"] in ("labels", "yes_no"):
        found = re.findall("|".join(re.escape(x) for x in names(row)), reply, re.I)
        return found[-1] if found else None
    found = re.findall(r"(?<=answer is )(.*)(?=.)", reply)
    return found[0].strip().rstrip(".") if found and row["kind"] == "answers" else None


def promptfoo(row: Row) -> Any:
    """promptfoo's `icontains` and `contains-json`: an answer is accepted wherever it stands."""
    reply = row["reply"].lower()
    if row["kind"] == "fields":
        start, end = row["reply"].find("{"), row["reply"].rfind("}")
        try:
            return json.loads(row["reply"][start : end + 1])
        except ValueError:
            return None
    gold = row["gold"]
    if row["kind"] in ("labels", "yes_no", "letters"):
        held = [x for x in names(row) if x.lower() in reply]
        return gold if gold is not None and str(gold) in held else (held[0] if held else None)
    held = [x for x in listed(gold) if x is not None and str(x).lower() in reply]
    return held[0] if held else None


def names(row: Row) -> Sequence[str]:
    if row["kind"] == "yes_no":
        return ("yes", "no")
    return options_of(row)[0] if row["kind"] == "letters" else list(row["labels"])


STAND_INS: dict[str, Callable[[Row], Any]] = {
    "after Inspect": inspect, "after lm-eval": harness, "after promptfoo": promptfoo,
}  # fmt: skip


# Sets


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    for line in text.split("\n"):
        if line.strip():
            row = json.loads(line)
            yield {**row, "kind": KINDS.get(row["kind"], row["kind"])}


def shared(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the real replies that mark their answer themselves."""
    for path in sorted((folder / "replies").glob("real_*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        for row in rows:
            if row["marked"] is None:
                continue
            row |= {"stratum": "real", "gold": row["marked"]}
            if "choices" in row:
                yield {**row, "kind": "letters", "options": row["choices"]}
            else:
                labels = row["labels"]
                if isinstance(labels, str):
                    labels = json.loads(labels.replace("'", '"'))
                yield {**row, "kind": "labels", "labels": labels}


def bundled() -> Iterator[dict[str, Any]]:
    """Yield the replies of the tests, which were read while the readers were written."""
    for path in sorted((HOUSE / "tests/data/replies").rglob("*.jsonl")):
        kind = {"yesno": "yes_no"}.get(path.stem, path.stem)
        if kind != "json":
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                yield {**row, "kind": kind, "stratum": "bundled", "gold": row["read"]}


# Tables


def wilson(hits: int, of: int) -> str:
    """Return a share with its 95 % interval, in per cent."""
    if not of:
        return "–"
    z, share = 1.959964, hits / of
    centre = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return f"{100 * share:.1f} ({100 * (centre - half):.1f}–{100 * min(1, centre + half):.1f})"


def count(counts: Counts, kind: str, found: Any, tier: str | None, gold: Any) -> None:
    right = is_right(kind, found, gold)
    counts.replies += 1
    counts.answers += gold is not None
    counts.read += found is not None
    counts.right += right
    counts.stated += tier == "stated"
    counts.stated_right += right and tier == "stated"


def table(rows: Sequence[Row], failures: Path | None) -> None:
    ours: dict[tuple[str, str], Counts] = defaultdict(Counts)
    theirs: dict[tuple[str, str, str], Counts] = defaultdict(Counts)
    wrong = []
    for row in rows:
        kind, stratum, gold = row["kind"], row.get("stratum", "–"), row["gold"]
        found = read(row)
        for keys in ((kind, stratum), ("all", stratum)):
            count(ours[keys], kind, found.answer, found.tier, gold)
        if (found.answer is None) != (gold is None) or not (
            gold is None or is_right(kind, found.answer, gold)
        ):
            wrong.append({**row, "read": str(found.answer), "tier": found.tier})
        for name, stand_in in STAND_INS.items():
            for keys in ((kind, stratum), ("all", stratum)):
                count(theirs[(*keys, name)], kind, stand_in(row), None, gold)
    print(f"{'kind':9}{'stratum':9}{'n':>5}  {'stated':20}{'':3}{'of stated and inferred':38}")
    print(f"{'':23}{'% of n':>6}  {'precision':20}{'precision':20}{'recall':20}")
    for (kind, stratum), c in sorted(ours.items()):
        share = f"{100 * c.stated / c.replies:.0f}"
        print(
            f"{kind:9}{stratum:9}{c.replies:>5}{share:>6}  {wilson(c.stated_right, c.stated):20}"
            f"{wilson(c.right, c.read):20}{wilson(c.right, c.answers):20}"
        )
        for name in STAND_INS:
            peer = theirs[kind, stratum, name]
            shares = wilson(peer.right, peer.read), wilson(peer.right, peer.answers)
            print(f"  {name:26}{'':23}{shares[0]:20}{shares[1]:20}")
    if failures is not None:
        lines = [json.dumps(w, ensure_ascii=False, default=str) for w in wrong]
        failures.write_text("\n".join(lines))


def lines_of(revision: str | None) -> int:
    """Return the lines of the readers, blank ones and docstrings too, at a revision or now."""
    if revision is None:
        return sum(len(p.read_text("utf-8").splitlines()) for p in (HOUSE / READERS).glob("*.py"))
    command = ["git", "ls-tree", "--name-only", f"{revision}:{READERS}"]
    listed_files = subprocess.run(command, cwd=HOUSE, capture_output=True, text=True, check=True)
    total = 0
    for name in listed_files.stdout.split():
        shown = ["git", "show", f"{revision}:{READERS}/{name}"]
        if name.endswith(".py"):
            file = subprocess.run(shown, cwd=HOUSE, capture_output=True, text=True, check=True)
            total += len(file.stdout.splitlines())
    return total


SENTENCE = (
    "The president can veto a bill, but Congress may override the veto with two thirds of both "
    "houses. "
)
OPTIONS = ["veto", "court", "senate", "press"]
QUEUES = ("billing", "login", "shipping")
SPEED: dict[str, tuple[str, Callable[[str], Reading[Any]]]] = {
    "letters": ("B", lambda r: read_letter(r, "ABCD", OPTIONS, "Who may veto?")),
    "labels": ("billing", lambda r: read_label(r, QUEUES, "Which queue?")),
    "numbers": ("42", lambda r: read_number(r, "How many bills were there?")),
    "yes_no": ("yes", lambda r: read_yes_no(r, "Is it so?")),
    "answers": ("Paris", lambda r: read_answer(r, "Which city is meant?")),
    "fields": ('{"a": 42}', read_fields),
}  # fmt: skip


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the processor time of a call."""
    before = time.process_time()
    for _ in range(rounds):
        work()
    return (time.process_time() - before) / rounds


def speed() -> None:
    """Print processor milliseconds a reply, with an answer at the end, by length."""
    print(f"\n{'ms a reply':12}" + "".join(f"{n:>8}" for n in LENGTHS) + "   characters")
    for kind, (answer, reader) in SPEED.items():
        taken = []
        for length in LENGTHS:
            end = answer if length < 20 or kind == "fields" else f"The answer is {answer}."
            body = (SENTENCE * 20)[: max(0, length - len(end))]
            text = f"{body}\n{end}" if body.strip() and length > 20 else answer
            reader(text)
            taken.append(min(seconds(lambda: reader(text), 40) for _ in range(5)) * 1_000)  # noqa: B023
        print(f"{kind:12}" + "".join(f"{ms:8.2f}" for ms in taken))
    loop = min(seconds(lambda: sum(map(abs, range(100_000))), 3) for _ in range(5))
    print(f"a hundred thousand calls of abs: {loop * 1_000:.1f} ms, to compare machines and loads")


def main(given: Iterable[str] | None = None) -> None:
    form = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("--bundled", action="store_true")
    parser.add_argument("--failures", type=Path, help="a file for replies that are read otherwise")
    options = parser.parse_args(list(given) if given is not None else None)
    rows = [row for path in options.sets for row in rows_of(path)]
    rows += shared(options.shared) if options.shared else []
    rows += bundled() if options.bundled else []
    if rows:
        table(rows, options.failures)
    try:
        print(f"\nlines of the readers: {lines_of(BEFORE):,} before, {lines_of(None):,} now")
    except (OSError, subprocess.CalledProcessError):
        print(f"\nlines of the readers: {lines_of(None):,}", file=sys.stdout)
    speed()


if __name__ == "__main__":
    main()
