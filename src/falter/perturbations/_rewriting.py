"""Perturbations that a model makes beforehand: what to ask it, and how its answer is used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from falter.core.errors import UsageError
from falter.core.ids import digest
from falter.core.interfaces import Parameter, RewriteBank
from falter.core.records import Prompt, Rewrite, SectionKind
from falter.core.rng import Rng
from falter.perturbations._base import Described, perturbations, summary_of
from falter.perturbations._parameters import PROTECT, checked_parameters, scope_parameter
from falter.perturbations._rewrite_request import lost, rewrite_prompt, shortened

__all__ = [
    "Ledger",
    "NoRewrite",
    "RewritePerturbation",
    "Rewritten",
    "Wanted",
    "rewrite_key",
    "rewriting",
]

Rewritten = Callable[..., str]
Ask = Callable[..., str]
Problem = Callable[[str, str], str | None]


class NoRewrite(Exception):
    """A text was given to a model, and nothing usable came back."""


def rewrite_key(name: str, version: int, asked: Mapping[str, Any], text: str, draw: int) -> str:
    """What identifies a rewrite: everything that was asked, and which draw it is."""
    return digest("rewrite", name, version, dict(asked), text, draw)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A text that needs a rewrite: for which perturbation, what is asked of it, which draw."""

    perturbation: RewritePerturbation
    text: str
    asked: Mapping[str, Any]
    draw: int

    @cached_property
    def key(self) -> str:
        made = self.perturbation
        return rewrite_key(made.bank, made.wording, self.asked, self.text, self.draw)


class Ledger:
    """A bank that answers from another one, and takes down what it is asked for.

    Until it is closed it gives a stand-in where the other has nothing usable, so that everything
    a prompt needs is seen at once. Texts in `left_out` have no rewrite and will get none.
    """

    def __init__(self, bank: RewriteBank | None) -> None:
        self._bank = bank
        self.wanted: dict[str, Wanted] = {}
        self.found: dict[str, Rewrite] = {}
        self.left_out: dict[str, Rewrite] = {}
        self.open = True

    def find(self, key: str, text: str) -> Rewrite | None:
        return None if self._bank is None else self._bank.find(key, text)

    def take(self, wanted: Wanted) -> Rewrite | None:
        """The rewrite, noted; a stand-in while the ledger is open."""
        if wanted.key in self.left_out and not self.open:
            return self.left_out[wanted.key]
        found = self.find(wanted.key, wanted.text)
        if not self.open:
            return found
        self.wanted[wanted.key] = wanted
        if found is not None:
            self.found[wanted.key] = found
        return found if found is not None and found.status == "ok" else _stand_in(wanted)

    def leave_out(self, wanted: Wanted, author: str, reason: str) -> None:
        """Settle that a text has no rewrite: its variant is then `no_rewrite`."""
        self.left_out[wanted.key] = Rewrite(
            key=wanted.key, perturbation=wanted.perturbation.bank,
            version=wanted.perturbation.wording, params=wanted.asked, source=wanted.text,
            draw=wanted.draw, author=author, status="empty", reason=reason,
        )  # fmt: skip

    def close(self) -> None:
        """From now on only answer."""
        self.open = False


def _stand_in(wanted: Wanted) -> Rewrite:
    """Another text than the source, so that later steps find it edited."""
    return Rewrite(
        key=wanted.key, perturbation=wanted.perturbation.bank, version=wanted.perturbation.wording,
        params=wanted.asked, source=wanted.text, draw=wanted.draw, author="nobody", status="ok",
        text=wanted.text + "…",
    )  # fmt: skip


class RewritePerturbation(Described):
    """Puts texts in place that a model, or a person, made beforehand.

    `change(prompt, rewritten, rng, **parameters)` builds the prompt and calls `rewritten(text)`
    for every text it wants made anew: run once with a recorder, it tells what to prepare.
    `ask(**asked)` is the instruction for the model; `asked` are the parameters that matter to it,
    which `rewritten(text, to="es")` may give another value. `problem(source, new)` says why a
    rewrite cannot be used. Perturbations with the same `bank` share their rewrites, as long as
    their `wording`, the version of what is asked, is the same.
    """

    def __init__(
        self,
        name: str,
        change: Callable[..., Prompt],
        *,
        ask: Ask,
        asked: tuple[str, ...],
        bank: str | None,
        wording: int,
        keeps: bool,
        problem: Problem | None,
        may_repeat: Callable[[str], bool] | None,
        eligible: Callable[..., bool] | None,
        **described: Any,
    ) -> None:
        super().__init__(name, **described)
        self.needs_model = True
        self.bank = bank or name
        self.wording = wording
        self.keeps = keeps
        self._change, self._ask, self._asked = change, ask, asked
        self._problem, self._may_repeat, self._eligible = problem, may_repeat, eligible
        self._bank: RewriteBank | None = None
        self._draw = 0

    def asked(self, **params: Any) -> dict[str, Any]:
        """The parameters that a rewrite depends on; patterns to protect only when there are any."""
        full = checked_parameters(self, params)
        patterns = {"protect": list(full["protect"])} if full.get("protect") else {}
        return {name: full[name] for name in self._asked} | patterns

    def wanted(self, text: str, draw: int, **params: Any) -> Wanted:
        """What is needed for a text."""
        return Wanted(perturbation=self, text=text, asked=self.asked(**params), draw=draw)

    def key(self, text: str, draw: int, **params: Any) -> str:
        """Under which the rewrite of a text is kept."""
        return self.wanted(text, draw, **params).key

    def request(self, text: str, asked: Mapping[str, Any]) -> Prompt:
        """The prompt that asks a model for a rewrite of the text."""
        own = {name: value for name, value in asked.items() if name != "protect"}
        patterns = asked.get("protect", ())
        return rewrite_prompt(self._ask(**own), text, patterns if self.keeps else None)

    def problem(self, text: str, new: str, asked: Mapping[str, Any]) -> str | None:
        """Why a rewrite of the text cannot be used, or None."""
        if self._problem is not None:
            reason = self._problem(text, new)
            if reason is not None:
                return reason
        gone = lost(text, new, asked.get("protect", ())) if self.keeps else None
        return None if gone is None else f"{shortened(gone)!r} is lost"

    def may_repeat(self, text: str) -> bool:
        """Whether the very same text is a good rewrite, as with names that are translated."""
        return self._may_repeat is not None and self._may_repeat(text)

    def texts(self, prompt: Prompt, rng: Rng, **params: Any) -> tuple[str, ...]:
        """The texts of the prompt that need a rewrite, each once, in order."""
        ledger = Ledger(None)
        self.bind(ledger, 0)(prompt, rng, **params)
        return tuple(dict.fromkeys(wanted.text for wanted in ledger.wanted.values()))

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Whether the prompt has a text to rewrite."""
        if self._eligible is not None:
            return self._eligible(prompt, **checked_parameters(self, params))
        return bool(self.texts(prompt, Rng(0), **params))

    def bind(self, bank: RewriteBank, draw: int) -> Self:
        """The same with its rewrites at hand: a pure function of prompt and rng."""
        bound = copy(self)
        bound._bank, bound._draw = bank, draw
        return bound

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        if self._eligible is not None and not self._eligible(prompt, **full):
            return prompt
        usual = self.asked(**params)

        def rewritten(text: str, **asked: Any) -> str:
            wanted = Wanted(perturbation=self, text=text, asked=usual | asked, draw=self._draw)
            return self._found(wanted)

        return self._change(prompt, rewritten, rng, **full)

    def _found(self, wanted: Wanted) -> str:
        bank = self._bank
        if isinstance(bank, Ledger):
            found = bank.take(wanted)
        else:
            found = None if bank is None else bank.find(wanted.key, wanted.text)
        if found is None:
            raise UsageError(
                f"'{self.name}' needs rewrites that a model made beforehand, and one is missing",
                hint=f"falter rewrites prepare -r {self.name} --rewriter MODEL …, then falter run",
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
    wording: int = 1,
    keeps: bool = True,
    problem: Problem | None = None,
    may_repeat: Callable[[str], bool] | None = None,
    eligible: Callable[..., bool] | None = None,
    family: str = "custom",
    group: str = "custom",
    version: int = 1,
    scope: tuple[SectionKind, ...] = ("input",),
    parameters: tuple[Parameter, ...] = (),
    invariants: Iterable[str] = (),
    reply_tokens: int = 0,
) -> Callable[[Callable[..., Prompt]], RewritePerturbation]:
    """Register `(prompt, rewritten, rng, **parameters) -> prompt` as a model-made perturbation.

    `keeps` says that a rewrite has to keep numbers and protected text as they are; such a
    perturbation takes `protect`. `wording` is the version of what the model is asked: another
    one makes the rewrites anew. Without a `scope` it takes none.
    """
    shared = ((scope_parameter(scope),) if scope else ()) + ((PROTECT,) if keeps else ())

    def register(change: Callable[..., Prompt]) -> RewritePerturbation:
        made = RewritePerturbation(
            name,
            change,
            ask=ask,
            asked=asked,
            bank=bank,
            wording=wording,
            keeps=keeps,
            problem=problem,
            may_repeat=may_repeat,
            eligible=eligible,
            family=family,
            group=group,
            version=version,
            summary=summary_of(change),
            scope=scope,
            parameters=(*shared, *parameters),
            invariants=invariants,
            languages=None,
            reply_tokens=reply_tokens,
        )
        perturbations.register(name, made)
        return made

    return register
