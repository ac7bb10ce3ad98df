"""An extractor: a model that takes answers out of replies that a scorer inferred or could not read.

It never sees the target. Its own replies are stored responses, found again by what they were asked
with: nothing is asked twice, and a report needs no client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from falter.analysis.table import scored_cells
from falter.engine.resolving import Resolved
from falter.engine.scoring import constrains, run_scorers
from falter.protocols.judging import quoted
from falter.records import numbers as n
from falter.records.codec import from_json
from falter.records.errors import UsageError, printable, refusal
from falter.records.ids import short
from falter.records.interfaces import Case, Scorer
from falter.records.planning import Target, request
from falter.records.types import Item, Model, Prompt, Recipe, Request, Run, Section, Variant, Way
from falter.scorers.base import ReadElsewhere, TextScorer, with_readings
from falter.stats.intervals import wilson_interval
from falter.store.rewrites import find_responses
from falter.store.store import Store, StoredCell

MAX_STATED = 50
"""Stated replies that are read once more, to compare."""
LONGEST = 6_000  # characters of a question or a reply that are shown
LONGEST_EXTRACTION = 20_000  # characters
MAX_BRACES = 50
"""Braces that are tried as the start of an extraction: a model that thinks writes others before."""

ExtractionOutcome = Literal["read", "none", "rejected", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One reply that an extractor is asked about; `stated` is what the scorer read if it is sure.

    `options` are the answers that may be given, by the text that a scorer reads as each; empty
    where the answer is any text.
    """

    request: Request
    case: Case
    scorer: TextScorer
    options: Mapping[str, str]
    stated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extractions:
    """The answers that an extractor took out of the replies of a run, and its account.

    Of `compared` stated replies it read `agreeing` as the scorer did.
    """

    reader: str
    readings: Mapping[str, ReadElsewhere]
    asked: int
    found: Mapping[ExtractionOutcome, int]
    compared: int
    agreeing: int

    def line(self, level: float) -> str:
        """The account of it, for a report."""
        read, none, rejected, unreadable = (n.whole(count) for count in self.found.values())
        text = (
            f"{self.reader} read {read} of the {n.whole(self.asked)} replies that were inferred or "
            f"unparsed (no answer in {none}, quotes rejected {rejected}, no usable reply "
            f"{unreadable})"
        )
        if not self.compared:
            return f"{text}; there is no stated reply to compare."
        interval = wilson_interval(self.agreeing, self.compared, level=level)
        return (
            f"{text}, and {n.whole(self.agreeing)} of {n.whole(self.compared)} stated replies as "
            f"the scorer did ({n.percent(self.agreeing / self.compared)} %, {n.level(level)} CI "
            f"{n.percent(interval.low)} to {n.percent(interval.high)})."
        )


# Questions


def questions(
    store: Store, run: Run, scorers: Mapping[str, Scorer], reader: Mapping[str, Any]
) -> dict[str, Question]:
    """The questions about a run's replies by the key of the reply, as far as replies are there.

    They are about each reply that a scorer inferred or could not read, and about a sample of the
    stated ones, drawn with the run's seed.
    """
    target = Target(
        **{name: getattr(from_json(Way, reader["way"]), name) for name in ("asking", "sampling")},
        model=from_json(Model, reader["model"]),
    )
    unsure: dict[str, Question] = {}
    stated: dict[bytes, tuple[str, Question]] = {}  # the smallest hashes, in whatever order
    for cell, score in scored_cells(store, run, scorers, sections=True):
        scorer = scorers[run.panels[cell.panel].scorer]
        if score is None or not reads_prose(scorer) or not _has_words(cell):
            continue
        if score.outcome == "unparsed" or score.tier == "inferred":
            unsure[cell.key] = _question(cell, scorer, target, None)
        elif score.tier == "stated":
            rank = blake2b(f"{run.seed} {cell.key}".encode(), digest_size=16).digest()
            if len(stated) < MAX_STATED or rank < max(stated):
                stated[rank] = cell.key, _question(cell, scorer, target, score.extracted)
            if len(stated) > MAX_STATED:
                del stated[max(stated)]
    return {**dict(stated.values()), **unsure}


def calls_at_most(resolved: Resolved) -> int:
    """The most calls that a reader can take: one for each reply that could be read by it."""
    run = resolved.run
    panels = [p for p in resolved.panels if reads_prose(resolved.scorers[p.panel.scorer])]
    return sum(p.cells(run.draws, run.repeats) for p in panels)


def reads_prose(scorer: Scorer) -> bool:
    """Return True if a model may take the answer out of a reply in the scorer's place."""
    able = isinstance(scorer, TextScorer) and not scorer.needs_baseline
    return able and not constrains(scorer) and scorer.answer_kind != "code"


def _has_words(cell: StoredCell) -> bool:
    text = None if cell.response is None else cell.response.text
    return bool(text and text.strip()) and cell.variant.prompt.schema is None


def _question(cell: StoredCell, scorer: Scorer, target: Target, stated: str | None) -> Question:
    assert isinstance(scorer, TextScorer) and cell.response is not None
    case = Case(variant=cell.variant, response=cell.response)
    options = possible_answers(scorer, case)
    variant = Variant(
        item=Item(task="extraction", key=cell.key, fields={}),
        recipe=Recipe(label="extraction"),
        draw=0,
        prompt=_prompt(case, options),
        status="changed",
    )
    return Question(
        request=request(variant, target, 0), case=case, scorer=scorer, options=options,
        stated=stated,
    )  # fmt: skip


def possible_answers(scorer: Scorer, case: Case) -> dict[str, str]:
    """The answers of a closed set as a scorer reads them, each with the line that shows it.

    Empty where any text may be the answer.
    """
    prompt, labels = case.variant.prompt, getattr(scorer, "labels", {})
    if prompt.choices and scorer.answer_kind == "option" and "{label}" in prompt.choice_format:
        pairs = zip(prompt.labels, prompt.choices, strict=True)
        return {label: f"{label}. {choice}" for label, choice in pairs}
    closed = prompt.choices or labels.get(case.variant.item.task, ())
    return {option: option for option in closed}


@cache
def _task() -> str:
    file = resources.files("falter.engine").joinpath("data", "extraction.txt")
    return file.read_text("utf-8").strip() + "\n\n"


def _prompt(case: Case, options: Mapping[str, str]) -> Prompt:
    """Our own words, with question, options and reply as quoted lines; never with the target."""
    own = case.variant.prompt.sections
    left_out = ("system", "choices") if options else ("system",)  # options are listed by themselves
    question = "".join(section.text for section in own if section.kind not in left_out)
    shown = [f"The question:\n{quoted(question, LONGEST)}"]
    if options:
        shown.append(f"The possible answers:\n{quoted(chr(10).join(options.values()), LONGEST)}")
    shown.append(f"The reply:\n{quoted(case.response.text or '', LONGEST)}")
    answer = "one of the possible answers" if options else "the answer alone, as it is quoted"
    ask = (
        'Return one JSON object and nothing else: {"quote": "...", "answer": "..."}. The quote is '
        "the words of the reply that give its answer, copied exactly and without |, as few as "
        f'possible. The answer is {answer}. If there is none: {{"quote": "", "answer": null}}.'
    )
    return Prompt(
        sections=(
            Section(name="task", kind="instruction", text=_task()),
            Section(name="material", kind="input", text="\n\n".join(shown) + "\n\n"),
            Section(name="form", kind="output_format", text=ask),
            Section(name="cue", kind="cue", text="\n\nThe JSON object:"),
        )
    )


# Readings


def read_extraction(
    text: str, reply: str, options: Mapping[str, str]
) -> tuple[ExtractionOutcome, str]:
    """The answer in an extractor's own reply, as text that a scorer reads; how it was found.

    The words it quotes have to stand in the reply, white space aside. The answer is one of the
    options or, where any text may be one, stands in the quote. If backslashes as JSON has them lead
    nowhere, they count as they are: models copy LaTeX without doubling them.
    """
    first = _read_json(text, reply, options)
    if first[0] not in ("rejected", "unreadable") or "\\" not in text:
        return first
    doubled = re.sub(r'\\(?!")', r"\\\\", text[:LONGEST_EXTRACTION])
    second = _read_json(doubled, reply, options)
    return second if second[0] == "read" else first


def _read_json(text: str, reply: str, options: Mapping[str, str]) -> tuple[ExtractionOutcome, str]:
    for brace in islice(re.finditer(r"\{", text[:LONGEST_EXTRACTION]), MAX_BRACES):
        try:
            data, _ = json.JSONDecoder().raw_decode(text[:LONGEST_EXTRACTION], brace.start())
            quote, answer = data["quote"], data["answer"]
            break
        except (ValueError, KeyError, RecursionError):
            continue
    else:
        return "unreadable", ""
    if answer is None or answer == "":
        return "none", ""
    if not isinstance(quote, str) or not isinstance(answer, (str, int, float)):
        return "unreadable", ""
    words, answer = _folded(quote), _folded(str(answer))
    if not words or words not in _folded(reply):
        return "rejected", ""
    if not options:
        found = re.search(rf"(?<![\w.,−-]){re.escape(_plain(answer))}(?!\w|[.,]\d)", _plain(words))
        return ("read", answer) if found else ("rejected", "")
    for option, line in options.items():
        if answer.casefold() in (_folded(option).casefold(), _folded(line).casefold()):
            return "read", option
    return "rejected", ""


def _folded(text: str) -> str:
    return " ".join(text.split())


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text).casefold()


def extractions(
    store: Store, run: Run, scorers: Mapping[str, Scorer], reader: Mapping[str, Any]
) -> Extractions:
    """Return what an extractor read in the replies of a run, from its stored replies alone."""
    asked = questions(store, run, scorers, reader)
    label = from_json(Model, reader["model"]).label
    stored = find_responses(store, list({q.request.key for q in asked.values()}))
    found: dict[ExtractionOutcome, int] = {"read": 0, "none": 0, "rejected": 0, "unreadable": 0}
    readings: dict[str, ReadElsewhere] = {}
    compared = agreeing = 0
    for key, question in asked.items():
        response = stored.get(question.request.key)
        text = "" if response is None else response.text or ""
        how, answer = read_extraction(text, question.case.response.text or "", question.options)
        if question.stated is not None:
            compared += response is not None
            agreeing += how == "read" and _same_answer(question, answer)
            continue
        found[how] += 1
        if how == "read":
            readings[key] = ReadElsewhere(answer=answer, by=label)
    return Extractions(
        reader=label, readings=readings, asked=sum(found.values()), found=found,
        compared=compared, agreeing=agreeing,
    )  # fmt: skip


def _same_answer(question: Question, answer: str) -> bool:
    read = question.scorer.read(answer, question.case).extracted
    return read is not None and read.casefold() == (question.stated or "").casefold()


def stored_extractions(store: Store, run: Run) -> Extractions | None:
    """Return the extractions of a stored run's reader; None if it has no reader."""
    reader = run.experiment.get("reader")
    if reader is not None and not isinstance(reader, Mapping):
        raise refusal(
            UsageError,
            "engine.unreleased_reader",
            run=short(run.id),
            reader=printable(repr(reader))[:80],
        )
    return extractions(store, run, run_scorers(run), reader) if reader else None


def stored_scorers(
    store: Store, run: Run, extracted: Extractions | None = None
) -> dict[str, Scorer]:
    """The scorers of a stored run, with the readings of its reader, if it has one."""
    extracted = extracted or stored_extractions(store, run)
    readings = {} if extracted is None else extracted.readings
    return {name: with_readings(s, readings) for name, s in run_scorers(run).items()}


# Marks of people


def read_marks(
    path: Path, store: Store, run: Run, places: Collection[int]
) -> dict[str, ReadElsewhere]:
    """The readings in a file of marks, as the viewer exports it, by the key of the reply.

    A line is an object with a `key` and a `reading`: a text, null for no answer, or an empty text
    that takes back a line before. Of several lines about a reply the last one counts. Each reply
    has to be in one of the panels.
    """
    marked: dict[str, ReadElsewhere] = {}
    number = 0
    try:
        for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):  # noqa: B007
            if line.strip():
                row = json.loads(line)
                key, reading = row["key"], row["reading"]
                if not isinstance(key, str) or not isinstance(reading, str | None):
                    raise TypeError
                marked[key] = ReadElsewhere(answer=reading, by="a person")
                if reading == "":
                    del marked[key]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise refusal(UsageError, "engine.no_mark", number=number, path=path) from error
    known = {cell.key for cell in store.cells(run) if cell.panel in places}
    if unknown := [key for key in marked if key not in known]:
        more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
        raise UsageError(
            f"{path} marks replies that the run {short(run.id)} does not have: "
            f"{', '.join(map(printable, unknown[:5]))}{more}",
            hint="name the run of the marks: falter rescore RUN --marks FILE",
        )
    return marked
