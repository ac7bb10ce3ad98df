"""Rewrite stores, in memory and as files, and the rewrites that an experiment needs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from falter.perturbations import perturbations
from falter.perturbations.rewriting import Ledger, RewritePerturbation, Wanted, rewrite_key
from falter.records.codec import from_json, to_json
from falter.records.errors import InvalidValue, PluginError, PreflightError, UsageError, refusal
from falter.records.ids import digest
from falter.records.interfaces import RewriteBank
from falter.records.planning import Condition
from falter.records.reviews import only_one
from falter.records.types import Item, Recipe, Rewrite, RewriteStatus

STATUSES: tuple[str, ...] = get_args(RewriteStatus)
HAND_WRITTEN = "hand-written"
FILES = ("basics_paraphrases.jsonl", "scitldr_paraphrases.jsonl")


class MemoryBank:
    """A rewrite store in memory, of one author if `author` is given.

    `find` raises `UsageError` if several authors have rewritten a text.
    """

    def __init__(self, rewrites: Iterable[Rewrite], author: str | None = None) -> None:
        self._by_key: dict[str, list[Rewrite]] = {}
        for rewrite in rewrites:
            if author is None or rewrite.author == author:
                self._by_key.setdefault(rewrite.key, []).append(rewrite)

    def find(self, key: str, text: str) -> Rewrite | None:
        return only_one(self._by_key.get(key, ()))


class Banks:
    """Several rewrite stores in order: the first that has a rewrite of a text answers."""

    def __init__(self, *banks: RewriteBank) -> None:
        self._banks = banks

    def find(self, key: str, text: str) -> Rewrite | None:
        rewrites = (bank.find(key, text) for bank in self._banks)
        return next((rewrite for rewrite in rewrites if rewrite is not None), None)


def hand_written(wanted: Wanted, text: str, author: str) -> Rewrite:
    """Return the record of a rewrite that `author` wrote by hand."""
    return wanted.rewrite(author, text)


# Files


def bank_lines(rewrites: Iterable[Rewrite]) -> Iterator[str]:
    """Yield rewrites as lines of JSON."""
    for rewrite in rewrites:
        yield json.dumps(to_json(rewrite), ensure_ascii=False, separators=(",", ":"))


def read_bank(path: Path | str) -> list[Rewrite]:
    """Return the rewrites in a file.

    Raise `UsageError` if the file is unreadable, or if a line is damaged or has the wrong key.
    """
    try:
        lines = Path(path).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(UsageError, "rewrites.unreadable_bank", path=path, error=error) from error
    numbered = enumerate(lines, 1)
    return [_rewrite_in(line, f"{path}, line {n}") for n, line in numbered if line.strip()]


def _rewrite_in(line: str, where: str) -> Rewrite:
    """Return the rewrite in a line of a file.

    Raise `UsageError` if the line is damaged, has the wrong key, or has a status that does not fit
    its text.
    """
    try:
        rewrite = from_json(Rewrite, json.loads(line))
        texts = (rewrite.perturbation, rewrite.source, rewrite.author, rewrite.key)
        fits = all(isinstance(text, str) for text in texts) and rewrite.author
        key = rewrite_key(
            rewrite.perturbation, rewrite.version, rewrite.params, rewrite.source, rewrite.draw
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{where} is not a rewrite: {error}") from error
    if not fits or rewrite.status not in STATUSES:
        raise InvalidValue(f"{where}: status", rewrite.status, f"one of: {', '.join(STATUSES)}")
    if key != rewrite.key:
        raise refusal(UsageError, "rewrites.other_text", where=where)
    if (rewrite.status == "ok") != isinstance(rewrite.text, str):
        raise refusal(UsageError, "rewrites.status_without_text", where=where)
    return rewrite


@cache
def bundled_rewrites() -> tuple[Rewrite, ...]:
    """Return all rewrites that come with falter: written by hand, for some items of bundled tasks.

    The files contain texts and no keys. The key is computed for the first draw, with the
    perturbation's default parameters. So a different version of the request, source text, parameter
    or draw finds nothing here.
    """
    folder = resources.files("falter.rewrites").joinpath("data")
    lines = (
        line for name in FILES for line in folder.joinpath(name).read_text("utf-8").split("\n")
    )
    return tuple(_bundled_rewrite(json.loads(line)) for line in lines if line)


def _bundled_rewrite(row: Mapping[str, str]) -> Rewrite:
    perturbation = perturbations.get(row["perturbation"])
    if not isinstance(perturbation, RewritePerturbation):
        raise refusal(PluginError, "rewrites.unused_bundle", perturbation=perturbation.name)
    return hand_written(perturbation.wanted(row["source"], 0), row["text"], row["author"])


def bundled_bank() -> MemoryBank:
    """Return the bundled rewrites as a rewrite store."""
    return MemoryBank(bundled_rewrites())


# Rewrites that an experiment needs

PlannedItems = tuple[Sequence[Item], Sequence[Condition], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The texts that recipes need rewritten, with the rewrites that exist.

    `tasks` is the task of each text, by the key of its rewrite.
    """

    ledger: Ledger
    tasks: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> list[Wanted]:
        """All texts that need a rewrite."""
        return list(self.ledger.wanted.values())

    @property
    def missing(self) -> list[Wanted]:
        """Texts without a rewrite, except those that are left out."""
        settled = self.ledger.found.keys() | self.ledger.left_out.keys()
        return [w for key, w in self.ledger.wanted.items() if key not in settled]

    @property
    def left_out(self) -> list[Wanted]:
        """Texts without a bundled rewrite, if only bundled rewrites are used."""
        return [w for key, w in self.ledger.wanted.items() if key in self.ledger.left_out]

    @property
    def fingerprint(self) -> str:
        """A hash of all rewrites: a different text or review gives a run a different id."""
        rewrites = self.ledger.found
        rows = [
            [key, None if key not in rewrites else [rewrites[key].status, rewrites[key].text]]
            for key in sorted(self.ledger.wanted)
        ]
        return digest("rewrites", rows)

    def shortfall(self) -> list[str]:
        """Return the number of missing rewrites, a line for each kind.

        For example `123 of 200 rewrites for paraphrase_lexical`.
        """
        total = Counter(rewrite_label(w) for w in self.wanted)
        missing = Counter(rewrite_label(w) for w in self.missing)
        return [f"{n:,} of {total[name]:,} rewrites for {name}" for name, n in missing.items()]

    def bundled(self) -> list[str]:
        """Return the number of bundled rewrites, a line for each kind with texts that are left out.

        For example `paraphrase_free: 60 of 264 texts have a bundled rewrite`.
        """
        total = Counter(rewrite_label(w) for w in self.wanted)
        rewrites = self.ledger.found
        usable = Counter(
            rewrite_label(w) for w in self.wanted
            if w.key in rewrites and rewrites[w.key].status == "ok"
        )  # fmt: skip
        return [
            f"{name}: {usable[name]:,} of {total[name]:,} texts have a bundled rewrite"
            for name in dict.fromkeys(map(rewrite_label, self.left_out))
        ]

    def require(self) -> None:
        """Raise `PreflightError` if a rewrite is missing, before anything is sent."""
        lines = self.shortfall()
        if lines:
            raise refusal(PreflightError, "rewrites.missing_rewrites", names=" and ".join(lines))


def rewrite_label(rewrite: Wanted | Rewrite) -> str:
    """Return the kind of a rewrite, for people to read: `tone(angry)`."""
    if isinstance(rewrite, Wanted):
        return kind_label(rewrite.perturbation.bank, rewrite.asked)
    return kind_label(rewrite.perturbation, rewrite.params)


def kind_label(perturbation: str, params: Mapping[str, Any]) -> str:
    """Return the perturbation with its parameters except `protect`: `tone(angry)`."""
    values = [str(value) for key, value in params.items() if key != "protect"]
    return f"{perturbation}({','.join(values)})" if values else perturbation


def model_made(recipe: Recipe) -> bool:
    """Return True if a step of the recipe needs rewrites."""
    return any(perturbations.get(step.name).needs_model for step in recipe.steps)


def ledger_for(recipes: Sequence[Recipe], bank: RewriteBank | None) -> Ledger | None:
    """Return a recorder of rewrite requests that answers from the bank.

    None if no recipe needs rewrites.
    """
    return Ledger(bank) if any(map(model_made, recipes)) else None


def needs_from(ledger: Ledger, planned: Iterable[PlannedItems], *, asks: bool = False) -> Needs:
    """Generate every variant of the recipes that need rewrites once, and return their needs.

    Each entry of `planned` is the items of a task, the conditions with one way of prompting, and
    the number of draws. If nothing is missing, the ledger is closed. Otherwise it keeps returning
    stand-ins, with which a plan can be counted but not run.

    With `asks`, a rewriter is named and no text is left out: a text without a rewrite is missing.
    """
    tasks: dict[str, str] = {}
    for items in planned:
        texts = _new_texts(ledger, items)
        tasks.update((text.key, item.task) for item in items[0][:1] for text in texts)
        if not asks:
            _leave_out(ledger, texts)
    needs = Needs(ledger=ledger, tasks=tasks)
    if not needs.missing:
        ledger.close()
    return needs


def _new_texts(ledger: Ledger, planned: PlannedItems) -> list[Wanted]:
    """Return the texts that these items need rewritten."""
    items, conditions, draws = planned
    others, ledger.wanted = ledger.wanted, {}
    for condition in conditions:
        if model_made(condition.recipe):
            for item in items:
                for draw in range(draws):
                    condition.make(item, draw)
    texts = list(ledger.wanted.values())
    ledger.wanted = others | ledger.wanted
    return texts


def _leave_out(ledger: Ledger, texts: Iterable[Wanted]) -> None:
    """Leave out texts without a rewrite if all rewrites of their kind and draw are hand-written.

    The bundled rewrites cover only some texts, and nobody is asked for more. If a kind and draw has
    no rewrite at all, or a rewrite by a model, its texts without a rewrite count as missing.
    """
    groups: dict[tuple[str, int], list[Wanted]] = {}
    for wanted in texts:
        groups.setdefault((rewrite_label(wanted), wanted.draw), []).append(wanted)
    for group in groups.values():
        authors = {ledger.found[w.key].author for w in group if w.key in ledger.found}
        if authors == {HAND_WRITTEN}:
            for wanted in group:
                if wanted.key not in ledger.found:
                    ledger.leave_out(wanted, HAND_WRITTEN)
