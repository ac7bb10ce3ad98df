"""Answer extraction by a model, for replies whose answer a scorer inferred or could not parse.

The model, the extractor, never sees the target. Its replies are stored responses, found again by
their requests. So nothing is requested twice, and a report needs no client.
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
"""Number of stated replies that the extractor reads too, to compare it with the scorer."""
MAX_SHOWN_CHARACTERS = 6_000  # characters of a question or a reply that are shown
MAX_EXTRACTION_CHARACTERS = 20_000  # characters
MAX_BRACES = 50
"""Number of braces tried as the start of an extraction; a thinking model writes others first."""

ExtractionOutcome = Literal["read", "none", "rejected", "unreadable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One reply that an extractor has to read.

    `options` are the possible answers, each by the text that the scorer reads as that answer; empty
    if any text may be the answer. `stated` is the scorer's answer if the reply states it.
    """

    request: Request
    case: Case
    scorer: TextScorer
    options: Mapping[str, str]
    stated: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extractions:
    """The answers that an extractor found in the replies of a run, with counts.

    `asked` is the number of inferred and unparsed replies, and `found` counts them by outcome. Of
    `compared` stated replies, the extractor read `agreeing` ones as the scorer did.
    """

    reader: str
    readings: Mapping[str, ReadElsewhere]
    asked: int
    found: Mapping[ExtractionOutcome, int]
    compared: int
    agreeing: int

    def line(self, level: float) -> str:
        """Return the counts in a sentence for a report."""
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
    """Return the questions about a run's stored replies, by the key of the reply.

    There is one for each reply whose answer is inferred or unparsed. A sample of stated replies,
    drawn with the run's seed, is added.
    """
    target = Target(
        **{name: getattr(from_json(Way, reader["way"]), name) for name in ("asking", "sampling")},
        model=from_json(Model, reader["model"]),
    )
    unsure_questions: dict[str, Question] = {}
    stated: dict[bytes, tuple[str, Question]] = {}  # the smallest hashes: a random sample
    for cell, score in scored_cells(store, run, scorers, sections=True):
        scorer = scorers[run.panels[cell.panel].scorer]
        if score is None or not reads_prose(scorer) or not _has_written_answer(cell):
            continue
        if score.outcome == "unparsed" or score.tier == "inferred":
            unsure_questions[cell.key] = _question(cell, scorer, target, None)
        elif score.tier == "stated":
            rank = blake2b(f"{run.seed} {cell.key}".encode(), digest_size=16).digest()
            if len(stated) < MAX_STATED or rank < max(stated):
                stated[rank] = cell.key, _question(cell, scorer, target, score.extracted)
            if len(stated) > MAX_STATED:
                del stated[max(stated)]
    return {**dict(stated.values()), **unsure_questions}


def calls_at_most(resolved: Resolved) -> int:
    """Return the maximum number of an extractor's calls: one for each reply that it can read."""
    run = resolved.run
    panels = [p for p in resolved.panels if reads_prose(resolved.scorers[p.panel.scorer])]
    return sum(p.cells(run.draws, run.repeats) for p in panels)


def reads_prose(scorer: Scorer) -> bool:
    """Return True if a model may extract the answer from a reply in the scorer's place."""
    able = isinstance(scorer, TextScorer) and not scorer.needs_baseline
    return able and not constrains(scorer) and scorer.answer_kind != "code"


def _has_written_answer(cell: StoredCell) -> bool:
    """Return True if a cell has a written reply, and no answer with several fields."""
    text = None if cell.response is None else cell.response.text
    return bool(text and text.strip()) and cell.variant.prompt.schema is None


def _question(cell: StoredCell, scorer: Scorer, target: Target, stated: str | None) -> Question:
    """Return the question about a cell's reply, with its request."""
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
    """Return the answers of a closed set as a scorer reads them, each with its line in the list.

    Empty if any text may be the answer.
    """
    prompt, labels = case.variant.prompt, getattr(scorer, "labels", {})
    if prompt.choices and scorer.answer_kind == "option" and "{label}" in prompt.choice_format:
        pairs = zip(prompt.labels, prompt.choices, strict=True)
        return {label: f"{label}. {choice}" for label, choice in pairs}
    closed = prompt.choices or labels.get(case.variant.item.task, ())
    return {option: option for option in closed}


@cache
def _instructions() -> str:
    """Return the instructions to the extractor."""
    file = resources.files("falter.engine").joinpath("data", "extraction.txt")
    return file.read_text("utf-8").strip() + "\n\n"


def _prompt(case: Case, options: Mapping[str, str]) -> Prompt:
    """Return the extractor's prompt: question, options and reply, quoted; never the target."""
    own = case.variant.prompt.sections
    left_out = ("system", "choices") if options else ("system",)  # options have their own list
    question = "".join(section.text for section in own if section.kind not in left_out)
    shown = [f"The question:\n{quoted(question, MAX_SHOWN_CHARACTERS)}"]
    if options:
        shown.append(
            f"The possible answers:\n{quoted(chr(10).join(options.values()), MAX_SHOWN_CHARACTERS)}"
        )
    shown.append(f"The reply:\n{quoted(case.response.text or '', MAX_SHOWN_CHARACTERS)}")
    answer = "one of the possible answers" if options else "the answer alone, as it is quoted"
    ask = (
        'Return one JSON object and nothing else: {"quote": "...", "answer": "..."}. The quote is '
        "the words of the reply that give its answer, copied exactly and without |, as few as "
        f'possible. The answer is {answer}. If there is none: {{"quote": "", "answer": null}}.'
    )
    return Prompt(
        sections=(
            Section(name="task", kind="instruction", text=_instructions()),
            Section(name="material", kind="input", text="\n\n".join(shown) + "\n\n"),
            Section(name="form", kind="output_format", text=ask),
            Section(name="cue", kind="cue", text="\n\nThe JSON object:"),
        )
    )


# Extracted answers


def read_extraction(
    text: str, reply: str, options: Mapping[str, str]
) -> tuple[ExtractionOutcome, str]:
    """Return the outcome of an extractor's reply, and the answer as text for the scorer.

    The words that it quotes have to be in the reply, apart from white space. The answer is one of
    the options or, if any text may be the answer, part of the quote. If that fails, backslashes in
    the JSON count as plain characters, because models copy LaTeX without doubling them.
    """
    first = _read_json(text, reply, options)
    if first[0] not in ("rejected", "unreadable") or "\\" not in text:
        return first
    # "\frac" becomes "\\frac", and an escaped quotation mark (\") stays.
    doubled = re.sub(r'\\(?!")', r"\\\\", text[:MAX_EXTRACTION_CHARACTERS])
    second = _read_json(doubled, reply, options)
    return second if second[0] == "read" else first


def _read_json(text: str, reply: str, options: Mapping[str, str]) -> tuple[ExtractionOutcome, str]:
    """Return the outcome and answer of the first JSON object that has a quote and an answer."""
    for brace in islice(re.finditer(r"\{", text[:MAX_EXTRACTION_CHARACTERS]), MAX_BRACES):
        try:
            data, _ = json.JSONDecoder().raw_decode(text[:MAX_EXTRACTION_CHARACTERS], brace.start())
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
        # The answer as a whole word or number: 5 in "it is 5.", not in "15", "-5", "2.5", "5.2".
        found = re.search(rf"(?<![\w.,−-]){re.escape(_plain(answer))}(?!\w|[.,]\d)", _plain(words))
        return ("read", answer) if found else ("rejected", "")
    for option, line in options.items():
        if answer.casefold() in (_folded(option).casefold(), _folded(line).casefold()):
            return "read", option
    return "rejected", ""


def _folded(text: str) -> str:
    """Return the text with each run of white space as one space."""
    return " ".join(text.split())


def _plain(text: str) -> str:
    """Return the text in lower case, without commas between thousands: `1,234` becomes `1234`."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", text).casefold()


def extractions(
    store: Store, run: Run, scorers: Mapping[str, Scorer], reader: Mapping[str, Any]
) -> Extractions:
    """Return the answers that an extractor found in a run's replies, from its stored replies."""
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
    """Return True if the scorer reads the extracted answer as its own stated answer."""
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
    """Return the scorers of a stored run, with the answers of its reader, if it has one."""
    extracted = extracted or stored_extractions(store, run)
    readings = {} if extracted is None else extracted.readings
    return {name: with_readings(s, readings) for name, s in run_scorers(run).items()}


# Marks by people


def read_marks(
    path: Path, store: Store, run: Run, places: Collection[int]
) -> dict[str, ReadElsewhere]:
    """Return the answers in a file of marks, as the viewer exports it, by the key of the reply.

    A line is an object with a `key` and a `reading`: a text, null for no answer, or an empty text
    that takes back an earlier line. The last line about a reply counts. Each reply has to be in one
    of the panels `places`; otherwise, and for a damaged line, `UsageError` is raised.
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
