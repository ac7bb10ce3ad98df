"""Perturbations whose texts a model writes beforehand: the request, and the use of a rewrite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, Self, Unpack

from falter.perturbations.base import (
    PROTECT,
    Described,
    Description,
    checked_parameters,
    last_turn_of,
    scope_parameter,
    with_last_turn,
)
from falter.records.errors import UsageError
from falter.records.ids import digest
from falter.records.interfaces import RewriteBank
from falter.records.rng import Rng
from falter.records.types import Prompt, Rewrite, RewriteStatus, Section, SectionKind, Span
from falter.text.protection import blocked, protect
from falter.text.spans import Replacement, replace_spans

# The request for a rewrite, and the text that a rewrite has to keep

# Limits of the pieces that a request lists as text to keep: their number, and characters of each
_MAX_LISTED, _MAX_LISTED_CHARACTERS = 40, 120

# A rewrite has to keep every number as it is written, those of dates and times included. "3.5",
# "10:30", "1/2"; not "3.", "x".
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_QUESTION_MARKS = ("?", "？", "؟")
_SPACE = re.compile(r"\s+")


def _request_prompt(asking: str, text: str, patterns: Sequence[str] | None) -> Prompt:
    """Return one user turn with the instruction, and the text between tags.

    There is no system message, because not all servers accept one. With `patterns`, even an empty
    list, the request lists the pieces that must stay.
    """
    tag = "text"
    while f"</{tag}>" in text:
        tag += "_"
    listed = () if patterns is None else tuple(_listed_pieces(text, patterns))
    keep = f"\n- These have to be in it, character by character: {' '.join(listed)}"
    asking = asking.replace("<text>", f"<{tag}>").replace("</text>", f"</{tag}>")
    instruction = asking + (keep if listed else "")
    return Prompt(
        sections=(
            Section(name="task", kind="instruction", text=f"{instruction}\n\n<{tag}>\n"),
            Section(name="text", kind="input", text=text),
            Section(name="end", kind="instruction", text=f"\n</{tag}>"),
        )
    )


def _lost_piece(text: str, new: str, patterns: Sequence[str] = ()) -> str | None:
    """Return the first protected piece or number of a text that its rewrite lacks, or None.

    White space does not count, nor does the number of occurrences: a second mention may well become
    a pronoun. A lost question mark counts, because the question has then usually been answered.
    """
    if text.rstrip().endswith(_QUESTION_MARKS) and not any(map(new.__contains__, _QUESTION_MARKS)):
        return text.rstrip()[-1]
    after = _SPACE.sub("", new)
    for piece in _pieces(text, patterns):
        if _SPACE.sub("", piece) not in after:
            return piece
    numbers = set(_NUMBER.findall(new))
    return next((n for n in _NUMBER.findall(text) if n not in numbers), None)


def _pieces(text: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yield the protected pieces of a text without surrounding punctuation."""
    for start, end in protect(text, tuple(patterns)):
        piece = text[start:end].strip(" \t\n.,;:!?")
        if piece:
            yield piece


def _listed_pieces(text: str, patterns: Sequence[str]) -> Iterator[str]:
    """Yield the pieces that the request lists as text to keep."""
    short = (
        p for p in _pieces(text, patterns) if len(p) <= _MAX_LISTED_CHARACTERS and "\n" not in p
    )
    for piece in list(dict.fromkeys(short))[:_MAX_LISTED]:
        yield f"`{piece}`" if "`" not in piece else piece


def _shortened(text: str) -> str:
    """Return a text, cut to 60 characters for a message."""
    return text if len(text) <= 60 else text[:59] + "…"


Rewritten = Callable[..., str]
Ask = Callable[..., str]
Problem = Callable[[str, str], str | None]


class NoRewrite(Exception):
    """Raised if a model was asked to rewrite a text and gave nothing usable."""


def rewrite_key(name: str, version: int, asked: Mapping[str, Any], text: str, draw: int) -> str:
    """Return the key of a rewrite: a hash of everything in the request, and of the draw."""
    return digest("rewrite", name, version, dict(asked), text, draw)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A text that needs a rewrite, with its perturbation, the request's parameters and the draw.

    `answers` are the correct answer and the options of the item: a rewrite that introduces one of
    them has answered the question. They are not part of the key, so that equal texts share their
    rewrite.
    """

    perturbation: RewritePerturbation
    text: str
    asked: Mapping[str, Any]
    draw: int
    answers: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        """The key under which the rewrite is stored."""
        bank, wording = self.perturbation.bank, self.perturbation.wording
        return rewrite_key(bank, wording, self.asked, self.text, self.draw)

    def rewrite(
        self, author: str, text: str | None = None, status: RewriteStatus = "ok",
        reason: str | None = None,
    ) -> Rewrite:  # fmt: skip
        """Return the record of an author's rewrite, or of the reason why there is none."""
        return Rewrite(
            key=self.key, perturbation=self.perturbation.bank, version=self.perturbation.wording,
            params=self.asked, source=self.text, draw=self.draw, author=author, status=status,
            text=text, reason=reason,
        )  # fmt: skip


class Ledger:
    """A recorder of rewrite requests that answers from another rewrite store.

    Until it is closed, it returns a stand-in if the other store has nothing usable. One pass
    therefore records everything that a prompt needs. Texts in `left_out` have no rewrite and will
    get none.
    """

    def __init__(self, bank: RewriteBank | None) -> None:
        self._bank = bank
        self.wanted: dict[str, Wanted] = {}
        self.found: dict[str, Rewrite] = {}
        self.left_out: dict[str, Rewrite] = {}
        self.open = True

    def find(self, key: str, text: str) -> Rewrite | None:
        """Return a rewrite from the other store, without recording the request."""
        return None if self._bank is None else self._bank.find(key, text)

    def take(self, wanted: Wanted) -> Rewrite | None:
        """Return the rewrite, and record the request if the ledger is open.

        If there is no usable rewrite, an open ledger returns a stand-in.
        """
        if wanted.key in self.left_out and not self.open:
            return self.left_out[wanted.key]
        rewrite = self.find(wanted.key, wanted.text)
        if not self.open:
            return rewrite
        self.wanted[wanted.key] = wanted
        if rewrite is not None:
            self.found[wanted.key] = rewrite
        if rewrite is not None and rewrite.status == "ok":
            return rewrite
        # It differs from the source, so that later steps see the text as edited.
        return wanted.rewrite("nobody", f"{wanted.text}…")

    def leave_out(self, wanted: Wanted, author: str) -> None:
        """Give up on a text: its variant gets the status `no_rewrite`."""
        reason = "no rewrite of it is bundled"
        self.left_out[wanted.key] = wanted.rewrite(author, status="empty", reason=reason)

    def close(self) -> None:
        """Stop recording and answer only."""
        self.open = False


class RewritePerturbation(Described):
    """A perturbation that inserts texts that a model, or a person, wrote beforehand.

    - `change(prompt, rewritten, rng, **parameters)` returns the changed prompt. It calls
      `rewritten(text)` for every text to be rewritten, so that a first pass with a recorder finds
      all of them.
    - `ask(**asked)` returns the instruction for the model. `asked` are the parameters that it
      depends on; `rewritten(text, to="es")` may override them.
    - `problem(source, new)` returns the reason why a rewrite cannot be used, or None.
    - `bank`: perturbations with the same name here share their rewrites, if `wording` is equal.
    - `wording`: the version of the instruction.
    - `keeps`: a rewrite must keep protected text and numbers.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        change: Callable[..., Prompt],
        *,
        ask: Ask,
        asked: tuple[str, ...] = (),
        bank: str | None = None,
        wording: int = 1,
        keeps: bool = True,
        problem: Problem | None = None,
        may_repeat: Callable[[str], bool] | None = None,
        eligible: Callable[..., bool] | None = None,
        **described: Unpack[Description],
    ) -> None:
        scope = described.setdefault("scope", ("input",))
        shared = ((scope_parameter(scope),) if scope else ()) + ((PROTECT,) if keeps else ())
        described["parameters"] = (*shared, *described.get("parameters", ()))
        super().__init__(name, summary, **described)
        self.needs_model = True
        self.bank, self.wording, self.keeps = bank or name, wording, keeps
        self._change, self._ask, self._asked = change, ask, asked
        self._problem, self._may_repeat, self._eligible = problem, may_repeat, eligible
        self._bank: RewriteBank | None = None
        self._draw = 0

    def asked(self, **params: Any) -> dict[str, Any]:
        """Return the parameters that a rewrite depends on; `protect` only if it has patterns."""
        full = checked_parameters(self, params)
        patterns = {"protect": list(full["protect"])} if full.get("protect") else {}
        return {name: full[name] for name in self._asked} | patterns

    def wanted(self, text: str, draw: int, **params: Any) -> Wanted:
        """Return the rewrite that a text needs."""
        return Wanted(perturbation=self, text=text, asked=self.asked(**params), draw=draw)

    def key(self, text: str, draw: int, **params: Any) -> str:
        """Return the key under which the rewrite of a text is stored."""
        return self.wanted(text, draw, **params).key

    def request(self, text: str, asked: Mapping[str, Any]) -> Prompt:
        """Return the prompt that asks a model for a rewrite of the text."""
        own = {name: value for name, value in asked.items() if name != "protect"}
        patterns = asked.get("protect", ())
        return _request_prompt(self._ask(**own), text, patterns if self.keeps else None)

    def problem(self, text: str, new: str, asked: Mapping[str, Any]) -> str | None:
        """Return the reason why a rewrite of the text cannot be used, or None."""
        if self._problem is not None:
            reason = self._problem(text, new)
            if reason is not None:
                return reason
        lost_part = _lost_piece(text, new, asked.get("protect", ())) if self.keeps else None
        return None if lost_part is None else f"{_shortened(lost_part)!r} is lost"

    def may_repeat(self, text: str) -> bool:
        """Return True if the same text is an acceptable rewrite, like a name in translation."""
        return self._may_repeat is not None and self._may_repeat(text)

    def texts(self, prompt: Prompt, rng: Rng, **params: Any) -> tuple[str, ...]:
        """Return the texts of the prompt that need a rewrite, each once, in order."""
        ledger = Ledger(None)
        self.bind(ledger, 0)(prompt, rng, **params)
        return tuple(dict.fromkeys(wanted.text for wanted in ledger.wanted.values()))

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Return True if the prompt has a text to rewrite."""
        if self._eligible is not None:
            return self._eligible(last_turn_of(prompt), **checked_parameters(self, params))
        return bool(self.texts(prompt, Rng(0), **params))

    def bind(self, bank: RewriteBank, draw: int) -> Self:
        """Return a copy that takes its rewrites from the bank.

        The copy is a pure function of prompt and rng.
        """
        bound = copy(self)
        bound._bank, bound._draw = bank, draw
        return bound

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full, conversation = checked_parameters(self, params), prompt
        prompt = last_turn_of(conversation)
        if self._eligible is not None and not self._eligible(prompt, **full):
            return conversation
        usual = self.asked(**params)
        answers: tuple[str, ...] = ()
        # A translation may well contain an answer, and a template asks no question.
        if self.keeps and not {"input", "document"}.isdisjoint(full.get("scope", ())):
            free_text = () if prompt.target is None else (str(prompt.target),)
            answers = prompt.choices or free_text

        def rewritten(text: str, **overrides: Any) -> str:
            asked = usual | overrides
            return self._rewrite_text(
                Wanted(perturbation=self, text=text, asked=asked, draw=self._draw, answers=answers)
            )

        after = self._change(prompt, rewritten, rng, **full)
        return with_last_turn(conversation, prompt, after)

    def _rewrite_text(self, wanted: Wanted) -> str:
        """Return the text of a rewrite.

        Raise `UsageError` if no rewrite was prepared, and `NoRewrite` if it is unusable.
        """
        bank = self._bank
        if isinstance(bank, Ledger):
            rewrite = bank.take(wanted)
        else:
            rewrite = None if bank is None else bank.find(wanted.key, wanted.text)
        if rewrite is None:
            raise UsageError(
                f"'{self.name}' needs rewrites that a model has prepared, and one is missing",
                hint="run 'falter rewrites prepare' with the same options and --rewriter MODEL, "
                "then 'falter run'",
            )
        if rewrite.status != "ok" or rewrite.text is None:
            raise NoRewrite(rewrite.reason or rewrite.status)
        return rewrite.text


# Insertion of rewrites: the text of a section that may be rewritten, and the changed section


def has_letters(text: str, spans: Sequence[Span]) -> bool:
    """Return True if a text has a letter outside the sorted spans."""
    at = 0
    for start, end in (*spans, (len(text), len(text))):
        if any(map(str.isalpha, text[at:start])):
            return True
        at = max(at, end)
    return False


def open_core(section: Section, patterns: Sequence[str] = ()) -> Span | None:
    """Return the span of the section's text without surrounding white space, or None.

    None if an earlier step of the chain edited the section, or if all its letters are protected.
    """
    text = section.text
    start = len(text) - len(text.lstrip())
    if section.edits or start == len(text) or not has_letters(text, blocked(section, patterns)):
        return None
    return start, len(text.rstrip())


def put_sections(
    prompt: Prompt, rewritten: Rewritten, scope: Sequence[SectionKind], patterns: Sequence[str]
) -> Prompt:
    """Return the prompt with the sections in scope rewritten, each separately."""
    sections = list(prompt.sections)
    for at, section in enumerate(sections):
        span = open_core(section, patterns) if section.kind in scope else None
        if span is not None:
            sections[at] = put(section, [(*span, rewritten(section.text[span[0] : span[1]]))])
    return prompt.with_sections(tuple(sections))


def put(section: Section, rewrites: Sequence[Replacement], *, whole: bool = False) -> Section:
    """Return the section with rewrites of some of its spans.

    Words that old and new text share stay open to later steps, unless each rewrite is one edit
    (`whole`). Raise `NoRewrite` if protected text is lost.
    """
    text = section.text
    changes: list[Replacement] = []
    for start, end, new in rewrites:
        old = text[start:end]
        if whole:
            changes += [(start, end, new)] if new != old else []
        else:
            changes += [(start + a, start + b, words) for a, b, words in _word_changes(old, new)]
    after = replace_spans(section, changes)
    for start, end in section.protected:
        if text[start:end] not in after.text:
            raise NoRewrite(f"the rewrite lost the protected text {text[start:end]!r}")
    return after


# Words with the white space before them; scripts without spaces are split into characters.
_WORD_PIECE = re.compile(r"\s*(?:[A-Za-z0-9\u00c0-\u024f\u0370-\u052f'’-]+|\S)|\s+")


def _word_changes(old: str, new: str) -> Iterator[Replacement]:
    """Yield the differences between two texts, word by word."""
    before, after = _WORD_PIECE.findall(old), _WORD_PIECE.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    starts = [0]
    for piece in before:
        starts.append(starts[-1] + len(piece))
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            yield starts[a], starts[b], "".join(after[c:d])
