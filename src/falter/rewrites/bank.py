"""Banks of rewrites, in memory and as files, and the texts that an experiment wants rewritten."""

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
    """Rewrites in memory, of one author if one is named."""

    def __init__(self, rewrites: Iterable[Rewrite], author: str | None = None) -> None:
        self._by_key: dict[str, list[Rewrite]] = {}
        for rewrite in rewrites:
            if author is None or rewrite.author == author:
                self._by_key.setdefault(rewrite.key, []).append(rewrite)

    def find(self, key: str, text: str) -> Rewrite | None:
        return only_one(self._by_key.get(key, ()))


class Banks:
    """Several banks in order: the first that has a rewrite of a text answers."""

    def __init__(self, *banks: RewriteBank) -> None:
        self._banks = banks

    def find(self, key: str, text: str) -> Rewrite | None:
        rewrites = (bank.find(key, text) for bank in self._banks)
        return next((rewrite for rewrite in rewrites if rewrite is not None), None)


def hand_written(wanted: Wanted, text: str, author: str) -> Rewrite:
    """A rewrite that somebody wrote by hand."""
    return wanted.rewrite(author, text)


# Files


def bank_lines(rewrites: Iterable[Rewrite]) -> Iterator[str]:
    """Rewrites as lines of JSON."""
    for rewrite in rewrites:
        yield json.dumps(to_json(rewrite), ensure_ascii=False, separators=(",", ":"))


def read_bank(path: Path | str) -> list[Rewrite]:
    """The rewrites in a file; a damaged line, or one with the wrong key, is an error."""
    try:
        lines = Path(path).read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise refusal(UsageError, "rewrites.unreadable_bank", path=path, error=error) from error
    numbered = enumerate(lines, 1)
    return [_rewrite_in(line, f"{path}, line {n}") for n, line in numbered if line.strip()]


def _rewrite_in(line: str, where: str) -> Rewrite:
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
    """Every rewrite that comes with falter: written by hand, for some items of bundled tasks.

    The files hold texts and no keys: the key is made for the first draw, with the perturbation's
    default parameters. So a different version of the request, source text, parameter or draw
    finds nothing here.
    """
    folder = resources.files("falter.rewrites").joinpath("data")
    lines = (
        line for name in FILES for line in folder.joinpath(name).read_text("utf-8").split("\n")
    )
    return tuple(_bundled(json.loads(line)) for line in lines if line)


def _bundled(row: Mapping[str, str]) -> Rewrite:
    perturbation = perturbations.get(row["perturbation"])
    if not isinstance(perturbation, RewritePerturbation):
        raise refusal(PluginError, "rewrites.unused_bundle", perturbation=perturbation.name)
    return hand_written(perturbation.wanted(row["source"], 0), row["text"], row["author"])


def bundled_bank() -> MemoryBank:
    """The bundled rewrites as a bank."""
    return MemoryBank(bundled_rewrites())


# What an experiment needs

Stretch = tuple[Sequence[Item], Sequence[Condition], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The texts that recipes want rewritten, with the rewrites that exist; each text's task."""

    ledger: Ledger
    tasks: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted(self) -> list[Wanted]:
        return list(self.ledger.wanted.values())

    @property
    def missing(self) -> list[Wanted]:
        """Texts without a rewrite, except those that are left out."""
        settled = self.ledger.found.keys() | self.ledger.left_out.keys()
        return [w for key, w in self.ledger.wanted.items() if key not in settled]

    @property
    def left_out(self) -> list[Wanted]:
        """Texts without a bundled rewrite, where the bundled ones are all there is."""
        return [w for key, w in self.ledger.wanted.items() if key in self.ledger.left_out]

    @property
    def fingerprint(self) -> str:
        """A hash of all rewrites: a run with a different text, or review, has a different id."""
        rewrites = self.ledger.found
        rows = [
            [key, None if key not in rewrites else [rewrites[key].status, rewrites[key].text]]
            for key in sorted(self.ledger.wanted)
        ]
        return digest("rewrites", rows)

    def shortfall(self) -> list[str]:
        """`123 of 200 rewrites for paraphrase_lexical`: how many are missing, one line each."""
        total = Counter(rewrite_label(w) for w in self.wanted)
        missing = Counter(rewrite_label(w) for w in self.missing)
        return [f"{n:,} of {total[name]:,} rewrites for {name}" for name, n in missing.items()]

    def bundled(self) -> list[str]:
        """`paraphrase_free: 60 of 264 texts have a bundled rewrite`, where texts are left out."""
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
        """Raise if a rewrite is missing, before anything is sent."""
        lines = self.shortfall()
        if lines:
            raise refusal(PreflightError, "rewrites.missing_rewrites", names=" and ".join(lines))


def rewrite_label(rewrite: Wanted | Rewrite) -> str:
    """The kind of a rewrite, for people to read: `tone(angry)`."""
    if isinstance(rewrite, Wanted):
        return kind_label(rewrite.perturbation.bank, rewrite.asked)
    return kind_label(rewrite.perturbation, rewrite.params)


def kind_label(perturbation: str, params: Mapping[str, Any]) -> str:
    """The perturbation with its parameters: `tone(angry)`."""
    values = [str(value) for key, value in params.items() if key != "protect"]
    return f"{perturbation}({','.join(values)})" if values else perturbation


def model_made(recipe: Recipe) -> bool:
    """Return True if a step of the recipe needs rewrites."""
    return any(perturbations.get(step.name).needs_model for step in recipe.steps)


def ledger_for(recipes: Sequence[Recipe], bank: RewriteBank | None) -> Ledger | None:
    """A ledger over the bank when some recipe needs rewrites."""
    return Ledger(bank) if any(map(model_made, recipes)) else None


def needs_from(ledger: Ledger, stretches: Iterable[Stretch], *, asks: bool = False) -> Needs:
    """Make every variant of the recipes that need rewrites once, and note what they ask for.

    The ledger is closed if nothing is missing; else it goes on giving stand-ins, with which a
    plan can be counted but not run. A stretch is a task that is asked in one way. Where a rewriter
    is named (`asks`), no text is left out: what nobody rewrote is missing.
    """
    tasks: dict[str, str] = {}
    for stretch in stretches:
        texts = _texts(ledger, stretch)
        tasks.update((text.key, item.task) for item in stretch[0][:1] for text in texts)
        if not asks:
            _leave_out(ledger, texts)
    needs = Needs(ledger=ledger, tasks=tasks)
    if not needs.missing:
        ledger.close()
    return needs


def _texts(ledger: Ledger, stretch: Stretch) -> list[Wanted]:
    """The texts that one stretch wants rewritten."""
    items, conditions, draws = stretch
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
    """Leave out texts without a rewrite where all the others' rewrites are written by hand.

    The bundled rewrites cover only some texts, and nobody is asked for more. Where there is none
    at all for a perturbation and draw, or one that a model made, the others count as missing.
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
