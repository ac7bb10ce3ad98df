"""What an experiment needs from a rewriter: every text, and what is known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from falter.core.errors import PreflightError
from falter.core.ids import digest
from falter.core.interfaces import RewriteBank
from falter.core.records import Item, Recipe, Rewrite
from falter.perturbations import Ledger, Wanted, perturbations
from falter.plan import Condition
from falter.rewrites import HAND_WRITTEN

__all__ = ["Needs", "Stretch", "ledger_for", "model_made", "needs_from", "rewrite_label"]


Stretch = tuple[Sequence[Item], Sequence[Condition], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The texts that recipes want rewritten, with those rewrites that there are."""

    ledger: Ledger

    @property
    def wanted(self) -> list[Wanted]:
        return list(self.ledger.wanted.values())

    @property
    def missing(self) -> list[Wanted]:
        """Those that nobody made yet. What is left out is settled, and not among them."""
        known = self.ledger.found.keys() | self.ledger.left_out.keys()
        return [w for key, w in self.ledger.wanted.items() if key not in known]

    @property
    def left_out(self) -> list[Wanted]:
        """Texts without a bundled rewrite, where the bundled ones are all there is."""
        return [w for key, w in self.ledger.wanted.items() if key in self.ledger.left_out]

    @property
    def fingerprint(self) -> str:
        """A hash of all rewrites: with another text, or another review, it is another run."""
        found = self.ledger.found
        rows = [
            [key, None if key not in found else [found[key].status, found[key].text]]
            for key in sorted(self.ledger.wanted)
        ]
        return digest("rewrites", rows)

    def shortfall(self) -> list[str]:
        """`123 of 200 rewrites for paraphrase_lexical are missing`, one line each."""
        total = Counter(rewrite_label(w) for w in self.wanted)
        gone = Counter(rewrite_label(w) for w in self.missing)
        return [f"{n:,} of {total[name]:,} rewrites for {name}" for name, n in gone.items()]

    def bundled(self) -> list[str]:
        """`paraphrase_free: 60 of 264 texts have a bundled rewrite`, for what leaves texts out."""
        total = Counter(rewrite_label(w) for w in self.wanted)
        found = self.ledger.found
        usable = Counter(
            rewrite_label(w) for w in self.wanted
            if w.key in found and found[w.key].status == "ok"
        )  # fmt: skip
        return [
            f"{name}: {usable[name]:,} of {total[name]:,} texts have a bundled rewrite"
            for name in dict.fromkeys(map(rewrite_label, self.left_out))
        ]

    def require(self) -> None:
        """Raise when a rewrite is missing; nothing has been sent."""
        lines = self.shortfall()
        if lines:
            raise PreflightError(
                f"{' and '.join(lines)} are missing",
                hint="falter rewrites prepare EXPERIMENT.yaml --rewriter MODEL, with the same "
                "options and store, makes them",
            )


def rewrite_label(one: Wanted | Rewrite) -> str:
    """What was asked of a text, for people: `tone(angry)`."""
    if isinstance(one, Wanted):
        name, asked = one.perturbation.bank, one.asked
    else:
        name, asked = one.perturbation, one.params
    shown = [str(value) for key, value in asked.items() if key != "protect"]
    return f"{name}({','.join(shown)})" if shown else name


def model_made(recipe: Recipe) -> bool:
    """Whether a step of the recipe needs rewrites."""
    return any(perturbations.get(step.name).needs_model for step in recipe.steps)


def needs_from(ledger: Ledger, stretches: Iterable[Stretch]) -> Needs:
    """Make every variant of the recipes that need rewrites once, and see what they ask for.

    The ledger is closed when nothing is missing; else it goes on giving stand-ins, with which a
    plan can be counted but not run. A stretch is a task that is asked in one way.
    """
    for stretch in stretches:
        _leave_out(ledger, _texts(ledger, stretch))
    needs = Needs(ledger=ledger)
    if not needs.missing:
        ledger.close()
    return needs


def _texts(ledger: Ledger, stretch: Stretch) -> list[Wanted]:
    """What one stretch asks for."""
    items, conditions, draws = stretch
    others, ledger.wanted = ledger.wanted, {}
    for condition in conditions:
        if model_made(condition.recipe):
            for item in items:
                for draw in range(draws):
                    condition.make(item, draw)
    asked = list(ledger.wanted.values())
    ledger.wanted = others | ledger.wanted
    return asked


def _leave_out(ledger: Ledger, asked: Iterable[Wanted]) -> None:
    """Settle what has no rewrite where all that there are were written by hand.

    People wrote some and are not asked for more. With none for what is asked in a draw, or with
    one that a model made, the others are missing: somebody has to make them.
    """
    groups: dict[tuple[str, int], list[Wanted]] = {}
    for wanted in asked:
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
