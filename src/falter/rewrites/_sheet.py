"""The review sheet: rewrites in a seeded order, some of them damaged on purpose."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor

from falter.records.errors import InvalidValue, UsageError
from falter.records.ids import digest, short, step_seed
from falter.records.reviews import Decision, Review, Sample
from falter.records.rng import Rng
from falter.records.types import Rewrite
from falter.rewrites._flaws import flawed
from falter.text import meaning_flags

__all__ = ["COLUMNS", "flags_of", "guarded", "make_sheet", "read_reviews", "sample_of", "sheet_csv"]

COLUMNS = (
    "row", "perturbation", "source", "rewrite", "decision", "edited", "rating", "comment", "rater",
)  # fmt: skip
DECISIONS: tuple[Decision, ...] = ("accept", "edit", "reject")
FLAGS = "flags"


def sample_of(rewrite: Rewrite) -> Sample:
    """A rewrite as a row shows it; one without a text is for somebody to write."""
    return Sample(
        key=rewrite.key,
        author=rewrite.author,
        perturbation=rewrite.perturbation,
        source=rewrite.source,
        shown=rewrite.text or "",
        params=rewrite.params,
    )


def make_sheet(
    rewrites: Sequence[Rewrite], *, calibration: float = 0.1, seed: int = 0
) -> tuple[str, dict[str, Sample]]:
    """A sheet's name, and its rows in order with what each shows.

    A share of the rewrites, at least one, is damaged on purpose. A damaged one replaces the rewrite
    it was made from, since the same source twice would give it away. The names and order of rows
    reveal nothing about it. The same rewrites and seed give the same sheet.
    """
    if not 0 <= calibration <= 0.5:
        raise InvalidValue("calibration", calibration, "a share from 0 to 0.5")
    samples = [sample_of(rewrite) for rewrite in rewrites]
    usable = [n for n, rewrite in enumerate(rewrites) if rewrite.status == "ok"]
    wanted = floor(calibration * len(usable) + 0.5) if calibration else 0
    wanted = max(wanted, 1) if calibration and usable else 0
    pools: dict[str, list[Rewrite]] = {}
    for n in usable:
        pools.setdefault(_pool(rewrites[n]), []).append(rewrites[n])
    for place in Rng(step_seed(seed, "calibration", 1, 0, "", 0)).order(len(usable)):
        if not wanted:
            break
        rewrite = rewrites[usable[place]]
        rng = Rng(step_seed(seed, "calibration", 1, 1, rewrite.key, rewrite.draw))
        damage = flawed(rewrite, pools[_pool(rewrite)], rng)
        if damage is not None:
            flaw, text = damage
            samples[usable[place]] = replace(samples[usable[place]], shown=text, flaw=flaw)
            wanted -= 1
    sheet = digest("sheet", seed, sorted(sample.id for sample in samples))
    order = Rng(step_seed(seed, "sheet", 1, 0, sheet, 0)).order(len(samples))
    names = (short(digest("row", sheet, n), 12) for n in range(len(samples)))
    return short(sheet), {name: samples[n] for name, n in zip(names, order, strict=True)}


def _pool(rewrite: Rewrite) -> str:
    return digest("pool", rewrite.perturbation, dict(rewrite.params))


def flags_of(sample: Sample, language: str = "en") -> list[str]:
    """What a check without a model notices as missing or added; translations are not checked."""
    if "to" in sample.params or not sample.shown:
        return []
    return [f"{f.check}: {f.lost}" for f in meaning_flags(sample.source, sample.shown, language)]


# The table. Spreadsheets run a cell that begins like a formula, so an apostrophe goes before it.

_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The text as it was before `guarded`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text


def sheet_csv(rows: Mapping[str, Sample], *, language: str | None = None) -> str:
    """The sheet as CSV with a byte order mark, for spreadsheets; with a language, with flags."""
    sheet = io.StringIO()
    sheet.write("\ufeff")
    table = csv.writer(sheet)
    extra = () if language is None else (FLAGS,)
    table.writerow((*COLUMNS, *extra))
    for row, sample in rows.items():
        cells = [row, described(sample), sample.source, sample.shown, *[""] * 5]
        if language is not None:
            cells.append("; ".join(flags_of(sample, language)))
        table.writerow([guarded(cell) for cell in cells])
    return sheet.getvalue()


def described(sample: Sample) -> str:
    """The perturbation with its parameters: `tone(angry)`."""
    values = [str(value) for key, value in sample.params.items() if key != "protect"]
    return f"{sample.perturbation}({','.join(values)})" if values else sample.perturbation


def read_reviews(
    text: str, where: str, samples: Mapping[str, Sample], *, rater: str
) -> list[Review]:
    """The reviews in a filled-in sheet; empty rows are left out.

    The column `rater`, if it is filled in, names the rater. Every row is checked and the first
    wrong one raises, so that a sheet is taken in full or not at all.
    """
    reviews: dict[str, Review] = {}
    for number, cells in _table(text, where):
        place = f"{where}, line {number}"
        row = cells.get("row", "").strip()
        if row not in samples:
            raise InvalidValue(
                f"{place}: row", row, "a row of a sheet that this store exported",
                hint="import into the store that the sheet was exported from: --store",
            )  # fmt: skip
        review = _review(cells, place, samples[row], rater)
        if review is None:
            continue
        if reviews.get(row, review) != review:
            raise InvalidValue(f"{place}: row", row, "each row once")
        reviews[row] = review
    raters = sorted({review.rater for review in reviews.values()})
    if len(raters) > 1:
        raise UsageError(
            f"{where} has {len(raters)} raters: {', '.join(raters)}",
            hint="make one file for each rater",
        )
    return list(reviews.values())


def rows_of(text: str, where: str) -> list[str]:
    """The names of the rows in a sheet."""
    return [cells.get("row", "").strip() for _, cells in _table(text, where)]


def _table(text: str, where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row's number and cells by column. Some spreadsheets write semicolons, or tabs."""
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    table: Iterable[list[str]] = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        lines = list(table)
    except csv.Error as error:
        raise UsageError(f"{where} is not a review sheet: {error}") from error
    names = [name.strip().lower() for name in lines[0]] if lines else []
    for name in ("row", "decision", "rating"):
        if name not in names:
            raise UsageError(
                f"{where} has no column '{name}'",
                hint="use the sheet that 'falter rewrites export' wrote, and keep its columns",
            )
    for number, line in enumerate(lines[1:], start=2):
        if any(cell.strip() for cell in line):
            yield number, {n: unguarded(c) for n, c in zip(names, line, strict=False)}


def _review(cells: Mapping[str, str], place: str, sample: Sample, rater: str) -> Review | None:
    decision = cells.get("decision", "").strip().lower()
    edited, rating = cells.get("edited", "").strip(), cells.get("rating", "").strip()
    comment = cells.get("comment", "").strip()
    if edited and not decision:
        decision = "edit"
    if decision and decision not in DECISIONS:
        raise InvalidValue(f"{place}: decision", decision, f"one of: {', '.join(DECISIONS)}")
    valid_decision = next((known for known in DECISIONS if known == decision), None)
    if decision == "edit" and not edited:
        raise InvalidValue(f"{place}: edited", edited, "the better text, as the decision is 'edit'")
    if decision == "accept" and not sample.shown:
        raise InvalidValue(f"{place}: decision", decision, "edit or reject: there is no text yet")
    if rating and not re.fullmatch(r"[1-5](?:[.,]0+)?", rating):
        raise InvalidValue(f"{place}: rating", rating, "a whole number from 1 to 5")
    if not (decision or rating or comment):
        return None
    return Review(
        sample=sample.id,
        rater=cells.get("rater", "").strip() or rater,
        decision=valid_decision,
        text=edited if decision == "edit" else None,
        rating=int(rating[0]) if rating else None,
        comment=comment or None,
    )
