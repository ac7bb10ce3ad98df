"""Requests written to files, and responses from elsewhere read from files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from falter.clients import request_files as forms
from falter.clients.answers import read_json
from falter.engine.execution import record_run, recorded_plan
from falter.engine.study import ResolvedStudy
from falter.records.errors import UsageError, printable, refusal
from falter.records.ids import short
from falter.records.interfaces import Client
from falter.records.types import Request, Response, Run
from falter.store.batches import Batches, planned_keys
from falter.store.store import Store

# The place of a number in a file's name: "%d" or "%03d". Not "%s", "%5.2f" or "100%": the `%`
# operator would interpret these, but a user's file name may contain them.
NUMBER_PLACEHOLDER = re.compile(r"%0?[0-9]{0,2}d")
# Bytes: twice the limit of one response over HTTP. A file without line breaks cannot fill the
# memory.
MAX_LINE_BYTES = 64 * 2**20
COMMIT_RESPONSES = 500  # responses in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """The files that were written, their number of requests, and the runs that they are for.

    `held` is the number of requests that were left out, because a batch without results has them.
    """

    requests: int
    files: tuple[Path, ...]
    runs: tuple[Run, ...]
    held: int


@dataclass(slots=True, kw_only=True)
class ImportedResults:
    """The numbers of lines of results, by their use.

    - `stored` and `failed` lines are now in the store; `already` ones were there before.
    - `unanswered` lines have no response. `unknown` ones belong to no request of the run.
    - `unreadable` lines are not results.
    - `twice` lines repeat a request. `differing` ones also give it another response.
    - `models` counts the lines that report another model, by its name.
    """

    stored: int = 0
    failed: int = 0
    already: int = 0
    unanswered: int = 0
    unknown: int = 0
    unreadable: int = 0
    twice: int = 0
    differing: int = 0
    models: dict[str, int] = field(default_factory=dict)


def export_requests(
    study: ResolvedStudy,
    store: Store,
    output: str,
    form: str | None = None,
    per_file: int = 50_000,
    command: str = "",
) -> Exported:
    """Record the plan of a study, and write its missing requests to files. Sends nothing.

    If `output` contains a number, as in `part-%03d.jsonl`, then each file has at most `per_file`
    requests of a single model. Raises if a file exists, or if rewrites are missing.
    """
    for _, resolved in study.parts:
        if resolved.rewrites is not None:
            resolved.rewrites.require()
    files = _Files(output, per_file)
    batch_log, seen, batch_requests = Batches(store), set[str](), 0
    known = {stored.run.id for stored in store.runs()}
    with files:
        for _, resolved in study.parts:
            if resolved.run.id not in known:
                record_run(resolved, store, command)
            for client, chunk in recorded_plan(resolved, store):
                missing = store.missing(list({request.key for request in chunk} - seen))
                waiting = batch_log.held(missing)
                batch_requests += len(waiting - seen)
                seen |= missing
                for request in chunk:
                    if request.key in missing and request.key not in waiting:
                        missing.discard(request.key)
                        files.write(request, client, form or forms.usual_form(client))
    return Exported(
        requests=files.written,
        files=tuple(files.paths),
        runs=tuple(resolved.run for _, resolved in study.parts),
        held=batch_requests,
    )


class _Files:
    """Output files that are created when they are needed; an existing file is never changed."""

    def __init__(self, output: str, per_file: int) -> None:
        self._output, self._per_file = output, per_file
        places = len(NUMBER_PLACEHOLDER.findall(output))
        if places > 1:
            raise refusal(UsageError, "engine.several_places", output=output)
        self._numbered = places == 1
        if not self._numbered:
            self._path(0)
        self._file: BinaryIO | None = None
        self._model, self._in_file = "", 0
        self.written, self.paths = 0, list[Path]()

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, request: Request, client: Client, form: str) -> None:
        """Append a request as a line; begin a new file for another model or after a full file."""
        try:
            line = forms.request_line(request, client, form)
        except orjson.JSONEncodeError as error:
            raise UsageError(
                f"The item '{request.variant.item.key}' cannot be written as JSON: {error}",
                hint="correct the item, or leave it out",
            ) from error
        full = self._numbered and self._in_file >= self._per_file
        other = bool(self._model) and self._model != client.model.id
        if self._file is None or full or other:
            self._begin(client)
        assert self._file is not None
        self._file.write(line + b"\n")
        self._in_file += 1
        self.written += 1

    def _begin(self, client: Client) -> None:
        """Create the next file; raise if a second file is needed but the output has no number."""
        if self._file is not None:
            self._file.close()
            if not self._numbered:
                raise refusal(UsageError, "engine.several_models", output=self._output)
        path = self._path(len(self.paths) + 1)
        try:
            # "x" and not "w": never overwrite a file that another process has created since the
            # check.
            self._file = path.open("xb")
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written: {error}", hint="name another file with -o"
            ) from error
        self.paths.append(path)
        self._model, self._in_file = client.model.id, 0

    def _path(self, number: int) -> Path:
        """Return the path of a file by its number; raise if that file exists."""
        path = Path(NUMBER_PLACEHOLDER.sub(lambda place: place[0] % number, self._output))
        if path.exists():
            raise refusal(UsageError, "engine.file_exists", path=path)
        return path


def import_results(
    store: Store, run: Run, paths: Sequence[Path], *, any_model: bool = False
) -> ImportedResults:
    """Store the responses in files as a run's own. All lines are checked before any is stored.

    Raises `UsageError` if no line belongs to the run, or if a line reports another model. With
    `any_model`, other models are accepted. Lines that are unreadable, foreign, repeated or without
    a response are counted and left out.
    """
    panels = planned_keys(store, run)
    report = _check_lines(run, panels, paths, any_model)
    answered: set[str] = set()
    waiting: dict[int, list[Response]] = {}
    for _, _, result in _result_lines(paths):
        if result is None or result.line.key not in panels or result.line.key in answered:
            continue
        response = result.line.response
        if response is None:
            continue
        if response.failure is None:
            answered.add(response.key)
        waiting.setdefault(panels[response.key], []).append(response)
        if sum(map(len, waiting.values())) >= COMMIT_RESPONSES:
            _store(store, run, waiting, report)
            waiting = {}
    _store(store, run, waiting, report)
    planned, known = store.counts(run)
    if planned == known:
        store.finish_run(run)
    return report


def _check_lines(
    run: Run, panels: dict[str, int], paths: Sequence[Path], any_model: bool
) -> ImportedResults:
    """Count the lines by their use, without storing any, and raise for a wrong model or run.

    `panels` maps each planned request's key to its panel.
    """
    report, texts = ImportedResults(), dict[str, int]()
    for path, number, result in _result_lines(paths):
        if result is None:
            report.unreadable += 1
            continue
        key, response = result.line.key, result.line.response
        if key not in panels:
            report.unknown += 1
            continue
        asked = run.panels[panels[key]].model.name
        if result.model is not None and not forms.is_named(asked, result.model):
            report.models[result.model] = report.models.get(result.model, 0) + 1
            if not any_model:
                raise UsageError(
                    f"{path}, line {number}: the response is of '{printable(result.model)}', but "
                    f"run {short(run.id)} uses '{asked}'; nothing was stored",
                    hint="if these are two names of one model, add --any-model",
                )
        if response is None:
            report.unanswered += 1
        elif response.failure is None:
            # A hash in place of the text, so that a large file does not fill the memory.
            mark = hash((response.text, response.scores))
            report.twice += key in texts
            report.differing += key in texts and texts[key] != mark
            texts.setdefault(key, mark)
    if report.unknown and not texts and not report.unanswered:
        raise refusal(
            UsageError, "engine.foreign_results", unknown=report.unknown, run=short(run.id)
        )
    return report


def _store(
    store: Store, run: Run, waiting: dict[int, list[Response]], report: ImportedResults
) -> None:
    """Store the responses of each panel that the store lacks, and count them in the report."""
    for panel, responses in waiting.items():
        missing = store.missing([response.key for response in responses])
        fresh = [response for response in responses if response.key in missing]
        model = run.panels[panel].model
        store.put_answers((model, response) for response in fresh)
        report.already += len(responses) - len(fresh)
        report.stored += sum(response.failure is None for response in fresh)
        report.failed += sum(response.failure is not None for response in fresh)


def _result_lines(paths: Sequence[Path]) -> Iterator[tuple[Path, int, forms.ResultLine | None]]:
    """Yield every line of every file with its number, and None for a line that is no result."""
    for path in paths:
        try:
            with path.open("rb") as file:
                number = 0
                while line := file.readline(MAX_LINE_BYTES):
                    number += 1
                    rest = line
                    while rest and not rest.endswith(b"\n"):  # the line is too long, or the last
                        rest = file.readline(MAX_LINE_BYTES)
                    if line.strip():
                        yield path, number, forms.read_result(_parsed_line(line))
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read: {error}", hint="name a readable file"
            ) from error


def _parsed_line(line: bytes) -> Any:
    """Return the JSON value of a line, or None if it is not JSON."""
    try:
        return read_json(line)
    except ValueError:
        return None
