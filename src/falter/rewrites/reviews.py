"""Reviews of rewrites: sheets with some rows damaged on purpose, their import and results."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import floor
from pathlib import Path

from falter.perturbations import perturbations
from falter.perturbations.rewriting import RewritePerturbation
from falter.records.errors import DuplicateName, InvalidValue, UsageError, refusal
from falter.records.ids import digest, short, step_seed
from falter.records.reviews import Decision, Review, Sample
from falter.records.rng import Rng
from falter.records.types import Rewrite
from falter.rewrites.agreement import Agreement, Calibration, agreement, calibrations
from falter.rewrites.bank import kind_label, rewrite_label
from falter.rewrites.sheet import Faults, read_rating, sheet_in, sheet_rows, sheet_text
from falter.store.rewrites import (
    all_reviews,
    all_samples,
    find_samples,
    put_reviews,
    put_sheet,
    scan_rewrites,
)
from falter.store.store import Store
from falter.text.meaning import meaning_flags

FLAWS = ("negation", "number", "other text", "truncated")

# Damage that a careful reader should notice

_NEGATION = re.compile(r"n['’]t\b|\s(?:not|never)\b", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|does|do|did|has|have)\b"
    r"(?!['’])",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w]|[.,]\d)")


def flawed(rewrite: Rewrite, others: Sequence[Rewrite], rng: Rng) -> tuple[str, str] | None:
    """Return a kind of flaw and the damaged text; None if the text is too short for any flaw.

    The kinds are tried in a seeded order. `others` are rewrites of other texts for the same
    perturbation. For a negation, a *not* or *never* is removed; if there is none, *not* is added to
    an English verb.
    """
    text = rewrite.text or ""
    damage_by_flaw: dict[str, Callable[[], str | None]] = {
        "negation": lambda: _negated(text, rng),
        "number": lambda: _renumbered(text, rng),
        "other text": lambda: _other_text(rewrite, others, rng),
        "truncated": lambda: _truncated(text),
    }
    for n in rng.order(len(FLAWS)):
        damaged = damage_by_flaw[FLAWS[n]]()
        if damaged and damaged.split() not in (text.split(), rewrite.source.split()):
            return FLAWS[n], damaged
    return None


def _negated(text: str, rng: Rng) -> str | None:
    """Return the text without its first negation, or with *not* after a verb; None without both."""
    negation = _NEGATION.search(text)
    if negation is not None:
        return text[: negation.start()] + text[negation.end() :]
    verbs = list(_VERB.finditer(text))
    if not verbs:
        return None
    at = rng.choice(verbs).end()
    return f"{text[:at]} not{text[at:]}"


def _renumbered(text: str, rng: Rng) -> str | None:
    """Return the text with one drawn number increased by 1 to 8; None without a number."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    number = rng.choice(numbers)
    return text[: number.start()] + str(int(number[0]) + 1 + rng.below(8)) + text[number.end() :]


def _other_text(rewrite: Rewrite, others: Sequence[Rewrite], rng: Rng) -> str | None:
    """Return a drawn rewrite of another text, or None if there is none."""
    fitting = [other for other in others if other.source != rewrite.source and other.text]
    return rng.choice(fitting).text if fitting else None


def _truncated(text: str) -> str | None:
    """Return the first half of the words, or of the characters in a script without spaces.

    None if the text is too short.
    """
    words = text.split(" ")
    if len(words) >= 4:
        return " ".join(words[: len(words) // 2]).rstrip(" ,;:")
    return text[: len(text) // 2] if len(words) == 1 and len(text) >= 10 else None


# The sheet

COLUMNS = (
    "row", "perturbation", "source", "rewrite", "decision", "edited", "rating", "comment", "rater",
)  # fmt: skip
DECISIONS: tuple[Decision, ...] = ("accept", "edit", "reject")
REQUIRED_COLUMNS = ("row", "decision", "rating")


def sample_of(rewrite: Rewrite) -> Sample:
    """Return a rewrite as a sample for review.

    Without a text, the sample asks the reviewer to write one.
    """
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
    """Return a sheet's name, and its rows in order: the sample that each row shows, by row name.

    A share `calibration` of the usable rewrites, at least one unless it is 0, is damaged on
    purpose. A damaged rewrite replaces the original, because the same source twice would reveal the
    damage. Names and order of rows reveal nothing, either. The same rewrites and seed give the same
    sheet.

    Raise `InvalidValue` if `calibration` is not from 0 to 0.5.
    """
    if not 0 <= calibration <= 0.5:
        raise InvalidValue("calibration", calibration, "a share from 0 to 0.5")
    samples = [sample_of(rewrite) for rewrite in rewrites]
    usable = [n for n, rewrite in enumerate(rewrites) if rewrite.status == "ok"]
    wanted = floor(calibration * len(usable) + 0.5) if calibration else 0
    wanted = max(wanted, 1) if calibration and usable else 0
    pools: dict[str, list[Rewrite]] = {}
    for n in usable:
        pools.setdefault(_flaw_pool(rewrites[n]), []).append(rewrites[n])
    for place in Rng(step_seed(seed, "calibration", 1, 0, "", 0)).order(len(usable)):
        if not wanted:
            break
        rewrite = rewrites[usable[place]]
        rng = Rng(step_seed(seed, "calibration", 1, 1, rewrite.key, rewrite.draw))
        damage = flawed(rewrite, pools[_flaw_pool(rewrite)], rng)
        if damage is not None:
            flaw, text = damage
            samples[usable[place]] = replace(samples[usable[place]], shown=text, flaw=flaw)
            wanted -= 1
    sheet = digest("sheet", seed, sorted(sample.id for sample in samples))
    order = Rng(step_seed(seed, "sheet", 1, 0, sheet, 0)).order(len(samples))
    names = (short(digest("row", sheet, n), 12) for n in range(len(samples)))
    return short(sheet), {name: samples[n] for name, n in zip(names, order, strict=True)}


def _flaw_pool(rewrite: Rewrite) -> str:
    return digest("pool", rewrite.perturbation, dict(rewrite.params))


def flags_of(sample: Sample, language: str = "en") -> list[str]:
    """Return losses and additions of meaning that a check without a model finds.

    Translations, and samples without a text, have none.
    """
    if "to" in sample.params or not sample.shown:
        return []
    return [f"{f.check}: {f.lost}" for f in meaning_flags(sample.source, sample.shown, language)]


def sheet_csv(rows: Mapping[str, Sample], *, language: str | None = None) -> str:
    """Return the sheet as CSV for spreadsheets; with a language, it has a column of flags."""
    columns = COLUMNS if language is None else (*COLUMNS, "flags")
    return sheet_text(columns, (_csv_cells(row, sample, language) for row, sample in rows.items()))


def _csv_cells(row: str, sample: Sample, language: str | None) -> list[str]:
    flags = [] if language is None else ["; ".join(flags_of(sample, language))]
    return [*_sheet_cells(row, sample), *[""] * 5, *flags]


def _sheet_cells(row: str, sample: Sample) -> tuple[str, str, str, str]:
    return row, kind_label(sample.perturbation, sample.params), sample.source, sample.shown


def pick_rewrites(
    store: Store,
    *,
    names: Sequence[str] = (),
    author: str | None = None,
    failed: bool = False,
) -> list[Rewrite]:
    """Return the stored rewrites, selected by author and by perturbation.

    With `failed`, unusable rewrites are included. Raise `UsageError` for a name without a stored
    rewrite, and if no rewrite is left.
    """
    rewrites = list(scan_rewrites(store, author=author))
    labels = {label for r in rewrites for label in (r.perturbation, rewrite_label(r))}
    for name in names:
        if name not in labels:
            raise UsageError(
                f"No rewrite for '{name}' is stored",
                hint=f"the store has: {', '.join(sorted(labels))}" if labels
                else "prepare some with: falter rewrites prepare EXPERIMENT.yaml --rewriter MODEL",
            )  # fmt: skip
    chosen = [
        rewrite
        for rewrite in rewrites
        if (not names or rewrite.perturbation in names or rewrite_label(rewrite) in names)
        and (failed or rewrite.status == "ok")
    ]
    if not chosen:
        raise refusal(UsageError, "rewrites.nothing_to_export", path=store.path)
    return chosen


def export_sheet(
    store: Store, rewrites: Sequence[Rewrite], *, calibration: float, seed: int
) -> tuple[str, dict[str, Sample]]:
    """Return a review sheet of these rewrites: its name and its rows.

    The store remembers the rewrite that each row shows.
    """
    sheet, rows = make_sheet(rewrites, calibration=calibration, seed=seed)
    put_sheet(store, sheet, rows)
    return sheet, rows


# Filled-in sheets


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The summary of an imported file of reviews.

    It has the rater, the number of reviews and decisions, and warnings about edits.
    """

    file: str
    rater: str
    reviews: int
    decisions: dict[str, int]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinions:
    """The agreement of the raters of rewrites, and their ratings of the damaged samples."""

    agreement: Agreement
    calibration: tuple[Calibration, ...]


def read_reviews(
    text: str, where: str, samples: Mapping[str, Sample], *, rater: str
) -> list[Review]:
    """Return the reviews in a filled-in sheet, without empty rows.

    The column `rater` names the rater; if it is empty, the argument `rater` does. Every row is
    checked, and one error names all faulty rows, so that a sheet is imported in full or not at all.
    A sheet with several raters also raises `UsageError`.
    """
    reviews: dict[str, Review] = {}
    faults = Faults(where)
    for place, cells in sheet_rows(text, where, REQUIRED_COLUMNS):
        with faults.at(place):
            row = cells["row"].strip()
            if row not in samples:
                raise InvalidValue(
                    "row", row, "a row of a sheet that this store exported",
                    hint="import into the store that the sheet was exported from: --store",
                )  # fmt: skip
            review = _review(cells, samples[row], rater)
            if review is not None and reviews.setdefault(row, review) != review:
                raise InvalidValue("row", row, "each row once")
    faults.refuse()
    raters = sorted({review.rater for review in reviews.values()})
    if len(raters) > 1:
        raise UsageError(
            f"{where} has {len(raters)} raters: {', '.join(raters)}",
            hint="write one file for each rater",
        )
    return list(reviews.values())


def rows_of(text: str, where: str) -> list[str]:
    """Return the names of the rows in a sheet."""
    return [cells["row"].strip() for _, cells in sheet_rows(text, where, REQUIRED_COLUMNS)]


def _review(cells: Mapping[str, str], sample: Sample, rater: str) -> Review | None:
    """Return the review in a row, or None if the row is not filled in.

    Raise `InvalidValue` for an unknown decision, an edit without a text, or an accepted empty text.
    """
    filled = {name: cells.get(name, "").strip() for name in COLUMNS}
    edited, comment = filled["edited"], filled["comment"]
    said = filled["decision"].lower() or ("edit" if edited else "")
    decision = next((known for known in DECISIONS if known == said), None)
    if said and decision is None:
        raise InvalidValue("decision", said, f"one of: {', '.join(DECISIONS)}")
    if decision == "edit" and not edited:
        raise InvalidValue("edited", edited, "a better text, because the decision is 'edit'")
    if decision == "accept" and not sample.shown:
        raise InvalidValue("decision", said, "edit or reject, because there is no text yet")
    rating = read_rating("rating", filled["rating"], 1, 5)
    if decision is None and rating is None and not comment:
        return None
    return Review(
        sample=sample.id,
        rater=filled["rater"] or rater,
        decision=decision,
        text=edited if decision == "edit" else None,
        rating=rating,
        comment=comment or None,
    )


def import_reviews(store: Store, paths: Sequence[Path]) -> list[Imported]:
    """Store filled-in sheets, one rater each, and return a summary of each sheet.

    All sheets are checked before any is stored.
    """
    sheets = [(path, *_read_sheet(store, path)) for path in paths]
    _require_distinct_raters([(path, reviews) for path, reviews, _ in sheets])
    imported = []
    for path, reviews, samples in sheets:
        put_reviews(store, reviews)
        decisions = Counter(review.decision for review in reviews if review.decision)
        imported.append(
            Imported(
                file=str(path),
                rater=reviews[0].rater if reviews else path.stem,
                reviews=len(reviews),
                decisions=dict(sorted(decisions.items())),
                warnings=tuple(_warnings(reviews, samples)),
            )
        )
    return imported


def _require_distinct_raters(sheets: Sequence[tuple[Path, list[Review]]]) -> None:
    """Raise `DuplicateName` if two files rate the same row in the name of the same rater."""
    rated_in: dict[tuple[str, str], Path] = {}
    for path, reviews in sheets:
        for review in reviews:
            other = rated_in.setdefault((review.sample, review.rater), path)
            if other != path:
                raise refusal(
                    DuplicateName, "rewrites.same_rater", other=other, path=path, rater=review.rater
                )


def _read_sheet(store: Store, path: Path) -> tuple[list[Review], dict[str, Sample]]:
    text = sheet_in(path)
    known = find_samples(store, rows_of(text, str(path)))
    reviews = read_reviews(text, str(path), known, rater=path.stem)
    return reviews, {sample.id: sample for sample in known.values()}


def _warnings(reviews: Sequence[Review], samples: dict[str, Sample]) -> Iterator[str]:
    """Yield a warning for each edit that loses a part that a rewrite must keep.

    Such edits are stored nevertheless.
    """
    makers = {p.bank: p for p in perturbations if isinstance(p, RewritePerturbation)}
    for review in reviews:
        sample = samples[review.sample]
        maker = makers.get(sample.perturbation)
        if review.text is None or maker is None or sample.flaw is not None:
            continue
        problem = maker.problem(sample.source, review.text, sample.params)
        if problem is not None:
            yield f"{review.text[:60]!r}: {problem}"


def opinions(store: Store) -> Opinions:
    """Return the agreement of raters and judges, and their ratings of the damaged samples."""
    reviews, samples = all_reviews(store), all_samples(store)
    return Opinions(
        agreement=agreement(reviews, samples), calibration=tuple(calibrations(reviews, samples))
    )


# The review sheet as a page: one file without network access, its only script allowed by hash.


def sheet_page(sheet: str, rows: Mapping[str, Sample], *, language: str | None = None) -> str:
    """Return a page to review a sheet in a browser. Texts are data, never markup.

    Drafts stay in the browser's own storage. A button saves the same CSV as a spreadsheet would.
    """
    script, style = _page_asset("review.js"), _page_asset("review.css")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{_csp_hash(script)}'; style-src 'sha256-{_csp_hash(style)}'"
    )
    data = {
        "sheet": sheet,
        "rows": [_page_row(row, sample, language) for row, sample in rows.items()],
    }
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>Review of {len(rows):,} rewrites</title><style>{style}</style></head>"
        f'<body>{_page_asset("review.html")}<script type="application/json" id="data">'
        f"{_inert_json(data)}</script><script>{script}</script></body></html>\n"
    )


def _page_row(row: str, sample: Sample, language: str | None) -> dict[str, object]:
    flags = {} if language is None else {"flags": flags_of(sample, language)}
    return {**dict(zip(COLUMNS, _sheet_cells(row, sample), strict=False)), **flags}


def _inert_json(value: object) -> str:
    """Return JSON that no tag can end: every <, > and & is written as an escape."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _page_asset(name: str) -> str:
    return files("falter.rewrites").joinpath("data", name).read_text("utf-8")


def _csp_hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
