"""Reviews of rewrites: sheets with some rows damaged on purpose, out and in, and what they say."""

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
    find_samples,
    put_reviews,
    put_sheet,
    scan_reviews,
    scan_rewrites,
    scan_samples,
)
from falter.store.store import Store
from falter.text.meaning import meaning_flags

FLAWS = ("negation", "number", "other text", "truncated")

# Damage: what a careful reader should catch

_NOT = re.compile(r"n['’]t\b|\s(?:not|never)\b", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|can|could|will|would|should|must|may|might|does|do|did|has|have)\b"
    r"(?!['’])",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?![\w]|[.,]\d)")


def flawed(rewrite: Rewrite, others: Sequence[Rewrite], rng: Rng) -> tuple[str, str] | None:
    """A kind of flaw and the damaged text; None if the text is too short for any.

    The kinds are tried in a seeded order. `others` are rewrites of other texts for the same
    perturbation. A negation is removed where there is a *not*, and else added to an English verb.
    """
    text = rewrite.text or ""
    makers: dict[str, Callable[[], str | None]] = {
        "negation": lambda: _negated(text, rng),
        "number": lambda: _renumbered(text, rng),
        "other text": lambda: _swapped(rewrite, others, rng),
        "truncated": lambda: _truncated(text),
    }
    for n in rng.order(len(FLAWS)):
        damaged = makers[FLAWS[n]]()
        if damaged and damaged.split() not in (text.split(), rewrite.source.split()):
            return FLAWS[n], damaged
    return None


def _negated(text: str, rng: Rng) -> str | None:
    negation = _NOT.search(text)
    if negation is not None:
        return text[: negation.start()] + text[negation.end() :]
    verbs = list(_VERB.finditer(text))
    if not verbs:
        return None
    at = rng.choice(verbs).end()
    return f"{text[:at]} not{text[at:]}"


def _renumbered(text: str, rng: Rng) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    number = rng.choice(numbers)
    return text[: number.start()] + str(int(number[0]) + 1 + rng.below(8)) + text[number.end() :]


def _swapped(rewrite: Rewrite, others: Sequence[Rewrite], rng: Rng) -> str | None:
    fitting = [other for other in others if other.source != rewrite.source and other.text]
    return rng.choice(fitting).text if fitting else None


def _truncated(text: str) -> str | None:
    """The first half: of the words, or of the characters in a script without spaces."""
    words = text.split(" ")
    if len(words) >= 4:
        return " ".join(words[: len(words) // 2]).rstrip(" ,;:")
    return text[: len(text) // 2] if len(words) == 1 and len(text) >= 10 else None


# The sheet

COLUMNS = (
    "row", "perturbation", "source", "rewrite", "decision", "edited", "rating", "comment", "rater",
)  # fmt: skip
DECISIONS: tuple[Decision, ...] = ("accept", "edit", "reject")
NEEDED = ("row", "decision", "rating")


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
    """Return losses and additions that a check without a model finds; translations are skipped."""
    if "to" in sample.params or not sample.shown:
        return []
    return [f"{f.check}: {f.lost}" for f in meaning_flags(sample.source, sample.shown, language)]


def sheet_csv(rows: Mapping[str, Sample], *, language: str | None = None) -> str:
    """The sheet as CSV for spreadsheets; with a language, with flags."""
    columns = COLUMNS if language is None else (*COLUMNS, "flags")
    return sheet_text(columns, (_cells(row, sample, language) for row, sample in rows.items()))


def _cells(row: str, sample: Sample, language: str | None) -> list[str]:
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
    """The stored rewrites of an author or some perturbations; with `failed`, unusable ones too."""
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
    """A review sheet of these rewrites; the store remembers which rewrite each row shows."""
    sheet, rows = make_sheet(rewrites, calibration=calibration, seed=seed)
    put_sheet(store, sheet, rows)
    return sheet, rows


# What people filled in


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The contents of a file of reviews: the rater, the decisions, and edits to check again."""

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
    """The reviews in a filled-in sheet; empty rows are left out.

    The column `rater`, if it is filled in, names the rater. Every row is checked and all that are
    wrong are named, so that a sheet is taken in full or not at all.
    """
    reviews: dict[str, Review] = {}
    faults = Faults(where)
    for place, cells in sheet_rows(text, where, NEEDED):
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
    """The names of the rows in a sheet."""
    return [cells["row"].strip() for _, cells in sheet_rows(text, where, NEEDED)]


def _review(cells: Mapping[str, str], sample: Sample, rater: str) -> Review | None:
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
    """Store filled-in sheets, one rater each. All of them are checked before any is stored."""
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
    """Raise if two files rate the same row in the name of the same rater."""
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
    """Edits that lose what a rewrite should keep. They are stored all the same."""
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
    """Agreement between raters and with judges, and how each rated the damaged samples."""
    reviews, samples = scan_reviews(store), scan_samples(store)
    return Opinions(
        agreement=agreement(reviews, samples), calibration=tuple(calibrations(reviews, samples))
    )


# The review sheet as a page: one file without network access, its only script allowed by hash.


def sheet_page(sheet: str, rows: Mapping[str, Sample], *, language: str | None = None) -> str:
    """A page to review a sheet in a browser. Texts are data, never markup.

    Drafts stay in the browser's own storage; a button saves the same CSV as a spreadsheet would.
    """
    script, style = _part("review.js"), _part("review.css")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'"
    )
    data = {
        "sheet": sheet,
        "rows": [_row(row, sample, language) for row, sample in rows.items()],
    }
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>Review of {len(rows):,} rewrites</title><style>{style}</style></head>"
        f'<body>{_part("review.html")}<script type="application/json" id="data">{_data(data)}'
        f"</script><script>{script}</script></body></html>\n"
    )


def _row(row: str, sample: Sample, language: str | None) -> dict[str, object]:
    flags = {} if language is None else {"flags": flags_of(sample, language)}
    return {**dict(zip(COLUMNS, _sheet_cells(row, sample), strict=False)), **flags}


def _data(value: object) -> str:
    """JSON that no tag can end: every < is written as an escape."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _part(name: str) -> str:
    return files("falter.rewrites").joinpath("data", name).read_text("utf-8")


def _hash(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
