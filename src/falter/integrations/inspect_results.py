"""Reader of Inspect's logs: `.eval` archives, also with Zstandard, and `.json` files."""

from __future__ import annotations

import importlib
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, product
from pathlib import Path
from typing import Any

import orjson

from falter.readers.cells import FAILED, MISSING, SCORED, UNPARSED, finite
from falter.readers.results import Log, LogChoice, LogReader, LogsAndNotes, is_chosen, nested
from falter.readers.tables import kind_of, read_json
from falter.records.errors import MissingExtra, TaskError, UnknownName, printable, refusal

MAX_MEMBERS = 2_000_000
MAX_EPOCHS = 100_000
MAX_MEMBER_BYTES = 512 * 2**20
MAX_TOTAL_BYTES = 8 * 2**30
ZSTANDARD_METHOD = 93
_READ_ERRORS = (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError)


class Archive:
    """The members of a zip file by name.

    Reading raises `TaskError` if a member or all members together unpack to more than the limits.
    """

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path, self._file = path, file
        self._members = {member.filename: member for member in file.infolist()}
        if len(self._members) > MAX_MEMBERS:
            raise TaskError(f"{path} holds more than {MAX_MEMBERS:,} files")
        self._bytes_left = MAX_TOTAL_BYTES

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def names(self, start: str) -> list[str]:
        """Return the JSON members whose names begin with `start`, sorted."""
        return sorted(n for n in self._members if n.startswith(start) and n.endswith(".json"))

    def read(self, name: str) -> bytes:
        """Return the content of one member."""
        member = self._members[name]
        where = f"{self.path}, {name}"
        limit = min(MAX_MEMBER_BYTES, self._bytes_left)
        if member.file_size > limit:
            raise TaskError(f"{where} unpacks to more than {limit:,} bytes")
        try:
            with self._open(member) as stream:
                data: bytes = stream.read(limit + 1)
        except _READ_ERRORS as error:
            raise TaskError(
                f"{where} cannot be read: {error}",
                hint="the file may be incomplete; fetch it again",
            ) from error
        if len(data) > limit:
            raise TaskError(f"{where} unpacks to more than {limit:,} bytes")
        self._bytes_left -= len(data)
        return data

    def _open(self, member: zipfile.ZipInfo) -> Any:
        if member.compress_type != ZSTANDARD_METHOD:
            return self._file.open(member)
        return _zstandard(io.BytesIO(self._packed_bytes(member)))

    def _packed_bytes(self, member: zipfile.ZipInfo) -> bytes:
        """Return the compressed bytes of a member.

        They follow a local header of 30 bytes, the name and the extra field. Their lengths are in
        the header.
        """
        file = self._file.fp
        if file is None or member.compress_size > MAX_MEMBER_BYTES:
            raise zipfile.BadZipFile("the member's size is out of bounds")
        file.seek(member.header_offset)
        head = file.read(30)
        if len(head) < 30 or head[:4] != b"PK\x03\x04":
            raise zipfile.BadZipFile("the member's header is missing")
        name, extra = struct.unpack("<HH", head[26:30])
        file.seek(name + extra, 1)
        return file.read(member.compress_size)


@contextmanager
def archive(path: Path) -> Iterator[Archive]:
    """Open a zip file for reading."""
    try:
        file = zipfile.ZipFile(path)
    except _READ_ERRORS as error:
        raise TaskError(
            f"{path} is not an Inspect log: {error}",
            hint="the file may be incomplete; fetch it again",
        ) from error
    with file:
        yield Archive(path, file)


def _zstandard(packed: io.BytesIO) -> Any:
    """Return a stream that unpacks Zstandard, by Python 3.14's module or by a package."""
    for module in ("compression.zstd", "backports.zstd"):
        with suppress(ImportError):
            return importlib.import_module(module).ZstdFile(packed)
    try:
        import pyarrow as pa
    except ImportError as error:
        feature = "Reading an Inspect log that is packed with Zstandard"
        raise MissingExtra(feature, "parquet", "pyarrow") from error
    return pa.input_stream(packed, compression="zstd")


# Correct, partial, incorrect. N means that the scorer found no answer.
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0}
NO_ANSWER = "N"
Sample = Mapping[str, Any]


def _is_log(value: Any) -> bool:
    """Return True if a JSON value is an Inspect log."""
    header = value.get("eval") if isinstance(value, dict) else None
    return isinstance(header, dict) and "task" in header


def read_inspect(paths: Sequence[Path], choice: LogChoice) -> LogsAndNotes:
    """Return the logs and notes; a sample's id is the item, its epoch the run."""
    notes: list[str] = []
    return [_read_log(path, choice, notes) for path in paths], notes


def _read_log(path: Path, choice: LogChoice, notes: list[str]) -> Log:
    if path.suffix.lower() != ".eval":
        whole = read_json(path)
        if not _is_log(whole):
            raise refusal(TaskError, "integrations.no_inspect_log", path=path)
        samples = whole.get("samples")
        return _as_log(path, whole, _require_samples(samples, path), choice, notes)
    with archive(path) as opened:
        head = _header(opened)
        return _as_log(path, head, list(_samples(opened)), choice, notes)


def _as_log(
    path: Path, head: Sample, samples: Sequence[Sample], choice: LogChoice, notes: list[str]
) -> Log:
    about = head["eval"]
    args = about.get("task_args")
    log = Log(
        path=path,
        task=str(about.get("task", path.stem)),
        model=str(about.get("model", "unknown")),
        stamp=str(about.get("created", "")),
        scorer="",
        args={str(k): _argument_text(v) for k, v in args.items()} if isinstance(args, dict) else {},
    )
    if not is_chosen(log, choice):
        return log
    status = head.get("status", "started")
    if status != "success" and not any(_scores(sample) for sample in samples):
        raise TaskError(
            f"{path} {_why_incomplete(head, status)}; no sample has a score",
            hint=f"run it again: inspect eval-retry {path}",
        )
    if not samples:
        raise refusal(TaskError, "integrations.no_samples", path=path)
    log.scorer = _score_name(samples, choice.metric, path)
    for place, sample in enumerate(samples, start=1):
        _add(log, sample, log.scorer, place)
    if status != "success":
        lost = _add_missing_samples(log, about)
        notes.append(
            f"{path.name} {_why_incomplete(head, status)}; {lost:,} of its samples are missing."
        )
    return log


def _why_incomplete(head: Sample, status: str) -> str:
    """Return the reason why a log is incomplete: Inspect's error message or the log's status."""
    message = nested(head, "error", "message")
    if message is None and status != "error":
        return f"did not finish (its status is '{printable(str(status))[:40]}')"
    return f"failed: {printable(str(message or 'no reason given')).strip()[:200]}"


def _add_missing_samples(log: Log, about: Sample) -> int:
    """Add the data set's samples that the log lacks, as failed. Return their number.

    A sample of every epoch counts, as in Inspect.
    """
    ids, epochs = nested(about, "dataset", "sample_ids"), nested(about, "config", "epochs")
    known = map(str, ids if isinstance(ids, list) else ())
    present = set(zip(log.items, log.epochs, strict=True))
    runs = range(epochs if isinstance(epochs, int) and 1 <= epochs <= MAX_EPOCHS else 1)
    places = islice(product(known, runs), MAX_MEMBERS)  # the numbers of a file may be anything
    lost = [each for each in places if each not in present]
    for item, epoch in lost:
        log.add(item, None, FAILED, None, line=f"sample {item}", epoch=epoch)
    return len(lost)


def _argument_text(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    return text[:80]


def _header(opened: Archive) -> Sample:
    """Return the header of a log, or the start record of an unfinished log."""
    for name in ("header.json", "_journal/start.json"):
        if name in opened:
            head = _read_member(opened, name)
            if _is_log(head):
                return dict(head)
    raise TaskError(f"{opened.path} has no header", hint="give a log that Inspect wrote")


def _samples(opened: Archive) -> Iterator[Sample]:
    """Yield the summaries, which have the scores.

    Without summaries, yield the summaries of the journal, or else the samples.
    """
    if "summaries.json" in opened:
        yield from _require_samples(_read_member(opened, "summaries.json"), opened.path)
        return
    journal = opened.names("_journal/summaries/")
    for name in journal:
        yield from _require_samples(_read_member(opened, name), opened.path)
    if not journal:
        for name in opened.names("samples/"):
            yield from _require_samples([_read_member(opened, name)], opened.path)


def _read_member(opened: Archive, name: str) -> Any:
    data = opened.read(name)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{opened.path}, {name} is not JSON: {error}") from error


def _require_samples(value: Any, path: Path) -> list[Sample]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(sample, dict) for sample in value):
        raise refusal(TaskError, "integrations.no_sample_list", path=path)
    return value


def _scores(sample: Sample) -> list[tuple[str, Any, Any]]:
    """Return (name, value, answer) for each score; each value of a composite is a score."""
    scores = sample.get("scores")
    found: list[tuple[str, Any, Any]] = []
    for name, score in scores.items() if isinstance(scores, dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        answer = score.get("answer") if isinstance(score, dict) else None
        if isinstance(value, dict):
            found += [(f"{name}.{key}", part, answer) for key, part in value.items()]
        else:
            found.append((str(name), value, answer))
    return found


def _score_name(samples: Sequence[Sample], metric: str | None, path: Path) -> str:
    """Return the name of the score to use: `metric`, or else the first."""
    names = list(dict.fromkeys(name for s in samples for name, _, _ in _scores(s)))
    if metric is not None and metric not in names:
        raise UnknownName(f"score of {path.name}", metric, names)
    if not names:
        raise refusal(TaskError, "integrations.no_score", path=path)
    return names[0] if metric is None else metric


def _add(log: Log, sample: Sample, scorer: str, place: int) -> None:
    where = f"sample {place}"
    if "id" not in sample:
        raise TaskError(f"{log.path}, {where} has no id")
    epoch = sample.get("epoch", 1)
    if not isinstance(epoch, int) or not 1 <= epoch <= MAX_EPOCHS:
        raise TaskError(f"{log.path}, {where} has the epoch {str(epoch)[:20]!r}")
    score = next((s for s in _scores(sample) if s[0] == scorer), None)
    value, outcome, output = _value_outcome_answer(sample, score, f"{log.path}, {where}")
    log.add(str(sample["id"]), value, outcome, output, line=where, epoch=epoch - 1)


def _value_outcome_answer(
    sample: Sample, score: tuple[str, Any, Any] | None, where: str
) -> tuple[float | None, int, str | None]:
    """Return value, outcome and answer of a sample.

    An error is failed, and a response without an answer is unparsed; neither is wrong.
    """
    if score is None or score[1] is None:
        return None, FAILED if sample.get("error") else MISSING, None
    name, value, answer = score
    if value == NO_ANSWER:
        return None, UNPARSED, None
    number = GRADES.get(value) if isinstance(value, str) else value
    if isinstance(value, str) and number is None:
        number = _number_or_none(value)
    known = finite(number)
    if known is None:
        raise refusal(
            TaskError, "integrations.odd_score", where=where, value=str(value)[:40], name=name
        )
    if math.isnan(known):
        return None, MISSING, None
    return known, SCORED, answer if isinstance(answer, str) and answer else None


def _number_or_none(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_named_like_a_log(path: Path) -> bool:
    """Return True if a file has the name of an Inspect log.

    The results of lm-eval end in .json too, and so does Inspect's list of logs.
    """
    ending = kind_of(path)
    return ending == "eval" or (ending == "json" and not path.name.startswith("results"))


logs = LogReader(
    title="Inspect",
    order=4,
    takes=lambda path: _is_named_like_a_log(path) and path.name != "logs.json",
    may_take=_is_named_like_a_log,
    read=read_inspect,
)
