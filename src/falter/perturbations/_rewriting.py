"""Perturbations that a model makes beforehand: what to ask it, and how its answer is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from difflib import SequenceMatcher
from typing import Any, Self

from falter.core.errors import UsageError
from falter.core.ids import digest
from falter.core.interfaces import Parameter, RewriteBank
from falter.core.records import Prompt, Section, SectionKind
from falter.core.rng import Rng
from falter.perturbations._base import Described, perturbations, summary_of
from falter.perturbations._parameters import checked_parameters, scope_parameter
from falter.text import Replacement, replace_spans

__all__ = [
    "NoRewrite",
    "RewritePerturbation",
    "Rewritten",
    "rewrite_key",
    "rewriting",
    "rewritten_section",
]

Rewritten = Callable[[str], str]
Ask = Callable[..., str]


class NoRewrite(Exception):
    """A text was given to a model, and nothing usable came back."""


def rewrite_key(name: str, version: int, asked: Mapping[str, Any], text: str, draw: int) -> str:
    """What identifies a rewrite: everything that was asked, and which draw it is."""
    return digest("rewrite", name, version, dict(asked), text, draw)


class RewritePerturbation(Described):
    """Puts texts in place that a model, or a person, made beforehand.

    `change(prompt, rewritten, rng, **parameters)` builds the prompt and calls `rewritten(text)`
    for every text it wants made anew: run once with a recorder, it tells what to prepare.
    `ask(**asked)` is the instruction for the model; `asked` are the parameters that matter to it.
    Perturbations with the same `bank` share their rewrites.
    """

    def __init__(
        self,
        name: str,
        change: Callable[..., Prompt],
        *,
        ask: Ask,
        asked: tuple[str, ...],
        bank: str | None,
        keeps: bool,
        **described: Any,
    ) -> None:
        super().__init__(name, **described)
        self.needs_model = True
        self.bank = bank or name
        self.keeps = keeps
        self._change, self._ask, self._asked = change, ask, asked
        self._bank: RewriteBank | None = None
        self._draw = 0

    def asked(self, **params: Any) -> dict[str, Any]:
        """The parameters that a rewrite depends on."""
        full = checked_parameters(self, params)
        return {name: full[name] for name in self._asked}

    def key(self, text: str, draw: int, **params: Any) -> str:
        """Under which the rewrite of a text is kept."""
        return rewrite_key(self.bank, self.version, self.asked(**params), text, draw)

    def request(self, text: str, **params: Any) -> Prompt:
        """The prompt that asks a model for a rewrite of the text."""
        asking = self._ask(**self.asked(**params))
        return Prompt(
            sections=(
                Section(name="task", kind="system", text=asking),
                Section(name="text", kind="input", text=text),
            )
        )

    def texts(self, prompt: Prompt, rng: Rng, **params: Any) -> tuple[str, ...]:
        """The texts of the prompt that need a rewrite, each once, in order."""
        found: dict[str, None] = {}

        def record(text: str) -> str:
            found[text] = None
            return text

        self._change(prompt, record, rng, **checked_parameters(self, params))
        return tuple(found)

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Whether the prompt has a text to rewrite."""
        return bool(self.texts(prompt, Rng(0), **params))

    def bind(self, bank: RewriteBank, draw: int) -> Self:
        """The same with its rewrites at hand: a pure function of prompt and rng."""
        bound = copy(self)
        bound._bank, bound._draw = bank, draw
        return bound

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        return self._change(prompt, lambda text: self._found(text, params), rng, **full)

    def _found(self, text: str, params: Mapping[str, Any]) -> str:
        key = self.key(text, self._draw, **params)
        found = None if self._bank is None else self._bank.find(key, text)
        if found is None:
            raise UsageError(
                f"'{self.name}' needs rewrites that were made beforehand, and one is missing",
                hint=f"make them with: falter rewrites prepare -r {self.name} --rewriter MODEL …",
            )
        if found.status != "ok" or found.text is None:
            raise NoRewrite(found.reason or found.status)
        return found.text


def rewriting(
    name: str,
    *,
    ask: Ask,
    asked: tuple[str, ...] = (),
    bank: str | None = None,
    keeps: bool = True,
    family: str = "custom",
    group: str = "custom",
    version: int = 1,
    scope: tuple[SectionKind, ...] = ("input",),
    parameters: tuple[Parameter, ...] = (),
    invariants: Iterable[str] = (),
    reply_tokens: int = 0,
) -> Callable[[Callable[..., Prompt]], RewritePerturbation]:
    """Register `(prompt, rewritten, rng, **parameters) -> prompt` as a model-made perturbation.

    `keeps` says that a rewrite has to keep numbers and protected text as they are.
    """

    def register(change: Callable[..., Prompt]) -> RewritePerturbation:
        made = RewritePerturbation(
            name,
            change,
            ask=ask,
            asked=asked,
            bank=bank,
            keeps=keeps,
            family=family,
            group=group,
            version=version,
            summary=summary_of(change),
            scope=scope,
            parameters=(*((scope_parameter(scope),) if scope else ()), *parameters),
            invariants=invariants,
            languages=None,
            reply_tokens=reply_tokens,
        )
        perturbations.register(name, made)
        return made

    return register


def rewritten_section(section: Section, new: str) -> Section:
    """The section with another text; what both texts share stays open to later steps."""
    return replace_spans(section, list(_changes(section.text, new)))


# Words with the white space before them; scripts without spaces character by character.
_PIECE = re.compile(r"\s*(?:[A-Za-z0-9\u00c0-\u024f\u0370-\u052f'’-]+|\S)|\s+")


def _changes(old: str, new: str) -> Iterable[Replacement]:
    """Where two texts differ, word by word."""
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    starts = [0]
    for piece in before:
        starts.append(starts[-1] + len(piece))
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            yield starts[a], starts[b], "".join(after[c:d])
