"""Reader of promptfoo's results, as `promptfoo eval -o results.json` writes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from falter.readers.cells import FAILED, MISSING, SCORED, finite
from falter.readers.results import Log, LogChoice, LogReader, LogsAndNotes, is_chosen, nested
from falter.readers.tables import ROLES, kind_of, open_bounded, read_json, usual_column
from falter.records.errors import TaskError, UnknownName, refusal
from falter.records.ids import digest, short

HEAD_BYTES = 4096
# '{"evalId": …', '{"results": {"version": …'; not '{"results": ['.
_HEAD = re.compile(rb'\s*\{\s*(?:"evalId"|"results"\s*:\s*\{\s*"version")')
# promptfoo's ResultFailureReason.ERROR: the provider or an assertion raised; not a wrong answer.
ERROR_REASON = 2
MAX_LABEL_CHARACTERS = 60
"""Maximum characters of a label; promptfoo labels an unlabelled prompt by its whole text."""
PASS, SCORE = "pass", "score"
"""promptfoo's verdict on a test, which its totals count, and the mean score of its assertions."""
Result = Mapping[str, Any]


def _is_promptfoo(path: Path) -> bool:
    if kind_of(path) != "json":
        return False
    with open_bounded(path) as file:
        return _HEAD.match(file.read(HEAD_BYTES)) is not None


def read_promptfoo(paths: Sequence[Path], choice: LogChoice) -> LogsAndNotes:
    """Return one log for each provider and prompt; a test is an item, a prompt a condition.

    A test is named by the variable with a usual name for an id, if that differs between all tests.
    Otherwise its name is a hash of all its variables. A test that promptfoo repeated is another
    run.
    """
    return [log for path in paths for log in _read_logs(path, choice)], []


def _read_logs(path: Path, choice: LogChoice) -> list[Log]:
    whole = read_json(path)
    body = nested(whole, "results")
    body = body if isinstance(body, dict) else {}
    results = body.get("results")
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise refusal(TaskError, "integrations.no_results", path=path)
    if not any(_submapping(result, "gradingResult").get("componentResults") for result in results):
        raise refusal(TaskError, "integrations.no_assertion", path=path)
    task = nested(whole, "config", "description")
    metric = _metric(results, choice.metric, path)
    name, several = _item_namer(results), len({_prompt_index(result) for result in results}) > 1
    logs: dict[tuple[str, int], Log] = {}
    seen: Counter[tuple[int, str]] = Counter()
    for place, result in enumerate(results, start=1):
        model = _text(result, "provider", "label") or _text(result, "provider", "id") or "unknown"
        prompt = _prompt_index(result)
        log = logs.setdefault(
            (model, prompt),
            Log(
                path=path,
                task=task if isinstance(task, str) and task else path.name.partition(".")[0],
                model=model,
                stamp=str(body.get("timestamp", "")),
                scorer=metric,
                condition=_label(result, prompt) if several else "",
            ),
        )
        item = name(result)
        value, outcome = _score_and_outcome(result, metric, f"{path}, result {place}")
        output = _text(result, "response", "output") if outcome == SCORED else None
        epoch = seen[id(log), item]
        log.add(item, value, outcome, output or None, line=f"result {place}", epoch=epoch)
        seen[id(log), item] += 1
    return [log for log in logs.values() if is_chosen(log, choice)] or list(logs.values())


def _submapping(result: Result, name: str) -> Result:
    part = result.get(name)
    return part if isinstance(part, dict) else {}


def _text(result: Result, *path: str) -> str:
    value = nested(result, *path)
    return value if isinstance(value, str) else ""


def _prompt_index(result: Result) -> int:
    place = result.get("promptIdx")
    return place if isinstance(place, int) else 0


def _label(result: Result, prompt: int) -> str:
    label = _text(result, "prompt", "label").strip()
    short_enough = 0 < len(label) <= MAX_LABEL_CHARACTERS and "\n" not in label
    return label if short_enough else f"prompt {prompt + 1}"


def _variables(result: Result) -> Mapping[str, Any]:
    own = nested(result, "testCase", "vars")
    found = own if isinstance(own, dict) and own else result.get("vars")
    return found if isinstance(found, dict) else {}


def _item_namer(results: Sequence[Result]) -> Callable[[Result], str]:
    """Return a function from a result to the name of its item."""
    tests = {repr(result.get("testIdx")): _variables(result) for result in results}
    column = usual_column(ROLES["item"], list(next(iter(tests.values()), {})))
    keys = [str(own.get(column or "", "")) for own in tests.values()]
    contents = {digest("promptfoo", {k: str(v) for k, v in own.items()}) for own in tests.values()}
    if column is not None and "" not in keys and len(set(keys)) == len(contents):
        return lambda result: str(_variables(result)[column])
    return lambda result: short(
        digest("promptfoo", {k: str(v) for k, v in _variables(result).items()})
    )


def _metric(results: Sequence[Result], chosen: str | None, path: Path) -> str:
    named = {str(name): None for r in results for name in _submapping(r, "namedScores")}
    if chosen is not None and chosen not in (PASS, SCORE, *named):
        raise UnknownName(f"score of {path.name}", chosen, [PASS, SCORE, *named])
    return chosen or PASS


def _score_and_outcome(result: Result, metric: str, where: str) -> tuple[float | None, int]:
    if result.get("failureReason") == ERROR_REASON or (
        result.get("error") and not _submapping(result, "gradingResult")
    ):
        return None, FAILED
    scores = {
        **_submapping(result, "namedScores"),
        PASS: result.get("success"),
        SCORE: result.get("score"),
    }
    value = scores.get(metric)
    if value is None:
        return None, MISSING
    number = finite(value)
    if number is None or number != number:
        raise TaskError(f"{where} has {str(value)[:40]!r} as {metric}; expected a number")
    return number, SCORED


logs = LogReader(title="promptfoo", order=3, takes=_is_promptfoo, read=read_promptfoo)
