"""The texts that an experiment needs rewritten, and which of them have a rewrite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from falter.engine.planning import Condition
from falter.perturbations import Ledger, Wanted, perturbations
from falter.records.errors import PreflightError
from falter.records.ids import digest
from falter.records.interfaces import RewriteBank
from falter.records.types import Item, Recipe, Rewrite
from falter.rewrites import HAND_WRITTEN

__all__ = ["Needs", "Stretch", "ledger_for", "model_made", "needs_from", "rewrite_label"]


Stretch = tuple[Sequence[Item], Sequence[Condition], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The texts that recipes want rewritten, with the rewrites that exist."""

    ledger: Ledger

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
            raise PreflightError(
                f"{' and '.join(lines)} are missing",
                hint="make them with: falter rewrites prepare EXPERIMENT.yaml --rewriter MODEL, "
                "with the same options and store",
            )


def rewrite_label(rewrite: Wanted | Rewrite) -> str:
    """The kind of a rewrite, for people to read: `tone(angry)`."""
    if isinstance(rewrite, Wanted):
        name, params = rewrite.perturbation.bank, rewrite.asked
    else:
        name, params = rewrite.perturbation, rewrite.params
    shown = [str(value) for key, value in params.items() if key != "protect"]
    return f"{name}({','.join(shown)})" if shown else name


def model_made(recipe: Recipe) -> bool:
    """Whether a step of the recipe needs rewrites."""
    return any(perturbations.get(step.name).needs_model for step in recipe.steps)


def needs_from(ledger: Ledger, stretches: Iterable[Stretch]) -> Needs:
    """Make every variant of the recipes that need rewrites once, and note what they ask for.

    The ledger is closed if nothing is missing; else it goes on giving stand-ins, with which a
    plan can be counted but not run. A stretch is a task that is asked in one way.
    """
    for stretch in stretches:
        _leave_out(ledger, _texts(ledger, stretch))
    needs = Needs(ledger=ledger)
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
                    ledger.leave_out(wanted, HAND_WRITTEN, "no rewrite of it is bundled")


def ledger_for(recipes: Sequence[Recipe], bank: RewriteBank | None) -> Ledger | None:
    """A ledger over the bank when some recipe needs rewrites."""
    return Ledger(bank) if any(map(model_made, recipes)) else None
