"""Floor 4: whole experiments, one room a paper: the parts they are made of, and their figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.protocols.judging import AGAIN, OUTPUT, PREFERENCE, SIMILARITY, quoted
    from falter.protocols.mend import MEND, VOTE, confirmed, voters_of
    from falter.protocols.protocol import (
        SINGLE_RUN,
        Need,
        Part,
        PartResult,
        Protocol,
        ScoredCell,
        TaskKind,
        Unavailable,
        UserSettings,
        placed_parts,
        protocols,
    )
    from falter.protocols.tables import (
        WayOfAsking,
        average,
        counts_grid,
        drops_grid,
        group_grids,
        models_of,
        panels_of,
        recipes_grid,
        tasks_grid,
    )

__all__ = [
    "AGAIN",
    "MEND",
    "OUTPUT",
    "PREFERENCE",
    "SIMILARITY",
    "SINGLE_RUN",
    "VOTE",
    "Need",
    "Part",
    "PartResult",
    "Protocol",
    "ScoredCell",
    "TaskKind",
    "Unavailable",
    "UserSettings",
    "WayOfAsking",
    "average",
    "confirmed",
    "counts_grid",
    "drops_grid",
    "group_grids",
    "models_of",
    "panels_of",
    "placed_parts",
    "protocols",
    "quoted",
    "recipes_grid",
    "tasks_grid",
    "voters_of",
]

__getattr__ = door(__name__)
