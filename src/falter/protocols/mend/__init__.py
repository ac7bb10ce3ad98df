"""The protocol `mend`: compare remedies on the same variants, pick one, confirm its effect."""

from __future__ import annotations

from collections.abc import Sequence

from falter.protocols.mend.remedies import (
    VOTE,
    PanelRemedies,
    mend_figures,
    panels_of_remedies,
    parts_of,
    voters_of,
)
from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.records.figures import Figure
from falter.rewrites.agreement import Agreement

__all__ = ["MEND", "VOTE", "confirmed", "voters_of"]


class MendProtocol(Protocol):
    """The user's recipes as they are and after each remedy; which remedy helps, if one does."""

    name = "mend"
    summary = "which remedy helps against these perturbations, confirmed on other items"
    presets = ("usual",)
    headline = ("remedies-answer", "remedies")
    takes_recipes = True

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return parts_of(settings)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        return mend_figures(panels_of_remedies(results))


def confirmed(results: Sequence[PartResult]) -> tuple[PanelRemedies, ...]:
    """Return the remedy results of a study that has run, one for each model and task."""
    return panels_of_remedies(results)


MEND = MendProtocol()
protocols.register(MEND.name, MEND)
