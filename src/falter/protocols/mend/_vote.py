"""A vote: one item asked in several ways, and the answer that most of them give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from falter.analysis import OUTCOMES, UNREADABLE, Table
from falter.core.errors import DuplicateName, InvalidValue
from falter.core.records import Score
from falter.protocols._protocol import PartResult

__all__ = ["VOTE", "Ballot", "ballots_of", "voted", "voted_matrix", "voters_of"]

VOTE = "vote"
USUAL = ("delimiters", "restate")
"""Besides the prompt as it comes: two other wordings, so that three answers are asked for."""

Place = tuple[str, str, int, int]
Ballot = Mapping[Place, Score]
"""The scores of one panel by item, recipe, draw and repeat."""


def voters_of(name: str) -> tuple[str, ...] | None:
    """The remedies whose answers vote beside that to the prompt as it comes; None for no vote.

    `vote` has its usual voters, `vote:a+b` these.
    """
    kind, mark, named = name.partition(":")
    if kind != VOTE or "{" in name:
        return None
    voters = tuple(named.split("+")) if mark else USUAL
    if not all(voters) or VOTE in voters:
        raise InvalidValue("remedy", name, "a vote of remedies, as in vote:restate+delimiters")
    if len(set(voters)) < len(voters):
        raise DuplicateName(f"A voter of '{name}' is named twice", hint="each has one vote")
    return voters


def ballots_of(result: PartResult) -> Mapping[tuple[str, ...], Ballot]:
    """The scores of a part, panel by panel."""
    ballots: dict[tuple[str, ...], dict[Place, Score]] = {}
    for scored in result.cells():
        if scored.score is not None:
            panel, cell = scored.panel, scored.cell
            variant = cell.variant
            place = (variant.item.id, variant.recipe.id, variant.draw, cell.repeat)
            of_panel = ballots.setdefault((panel.task, panel.model.id, panel.scorer), {})
            of_panel[place] = scored.score
    return ballots


def voted(scores: Sequence[Score]) -> Score:
    """The score of the answer that most voters give; unread answers do not vote.

    Of answers with equally many votes it is the one of the earliest voter. Without any readable
    answer it is the first voter's score.
    """
    read = [score for score in scores if score.outcome == "scored"]
    if not read:
        return scores[0]
    votes = Counter(map(_answer, read))
    most = max(votes.values())
    return next(score for score in read if votes[_answer(score)] == most)


def _answer(score: Score) -> str:
    return " ".join((score.extracted or "").casefold().split())


def voted_matrix(table: Table, ballots: Sequence[Ballot], *, strict: bool) -> NDArray[np.float64]:
    """Items x recipes of the table: the mean score of the votes over draws and repeats.

    Where an answer of the first voter, to the prompt as it comes, did not arrive, none is counted.
    """
    rows = {item: n for n, item in enumerate(table.item_ids)}
    columns = {recipe.id: n for n, recipe in enumerate(table.recipes)}
    total = np.zeros((len(rows), len(columns)))
    count = np.zeros_like(total)
    for place in ballots[0]:
        score = voted([ballot[place] for ballot in ballots if place in ballot])
        value = score.value
        if value is None and strict and OUTCOMES.index(score.outcome) in UNREADABLE:
            value = 0.0
        at = rows.get(place[0]), columns.get(place[1])
        if value is not None and None not in at:
            total[at] += value
            count[at] += 1
    matrix: NDArray[np.float64] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return matrix
