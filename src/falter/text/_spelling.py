"""How one spelling leads to another: the letters replaced, added, left out and swapped."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["LetterEdit", "LetterEditKind", "edit_distance", "letter_edits"]

LetterEditKind = Literal["replace", "add", "drop", "swap"]


class LetterEdit(NamedTuple):
    """One edit of a word: its place in the right spelling, the letters there and those instead.

    An added letter stands before its place; its `old` is empty.
    """

    kind: LetterEditKind
    at: int
    old: str
    new: str


def edit_distance(first: str, second: str) -> int:
    """The least number of letters replaced, added, left out, or swapped with their neighbour."""
    return _costs(first, second)[-1][-1]


def letter_edits(right: str, wrong: str) -> list[LetterEdit]:
    """One shortest way from the right spelling to the wrong one, in the order of the letters.

    Of two equal letters the second is the one that is left out or added.
    """
    costs = _costs(right, wrong)
    i, j = len(right), len(wrong)
    edits: list[LetterEdit] = []
    while i or j:
        here = costs[i][j]
        swaps = i > 1 and j > 1 and right[i - 1] == wrong[j - 2] and right[i - 2] == wrong[j - 1]
        if i and j and right[i - 1] == wrong[j - 1] and costs[i - 1][j - 1] == here:
            i, j = i - 1, j - 1
        elif swaps and costs[i - 2][j - 2] + 1 == here and right[i - 1] != right[i - 2]:
            edits.append(LetterEdit("swap", i - 2, right[i - 2 : i], wrong[j - 2 : j]))
            i, j = i - 2, j - 2
        elif i and j and costs[i - 1][j - 1] + 1 == here:
            edits.append(LetterEdit("replace", i - 1, right[i - 1], wrong[j - 1]))
            i, j = i - 1, j - 1
        elif i and costs[i - 1][j] + 1 == here:
            edits.append(LetterEdit("drop", i - 1, right[i - 1], ""))
            i -= 1
        else:
            edits.append(LetterEdit("add", i, "", wrong[j - 1]))
            j -= 1
    return edits[::-1]


def _costs(first: str, second: str) -> list[list[int]]:
    """Distances between all beginnings of the two words (optimal string alignment)."""
    rows = [list(range(len(second) + 1))]
    for i, a in enumerate(first, start=1):
        above, row = rows[-1], [i]
        for j, b in enumerate(second, start=1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows
