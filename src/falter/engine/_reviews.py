"""Reviews of rewrites: writing and reading sheets, asking a judge, and how far all agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from falter.engine._needs import rewrite_label
from falter.engine._rewrites import ask_all, writing_target
from falter.engine.config import ModelSpec
from falter.engine.connections import connect
from falter.engine.execution import Watch
from falter.engine.planning import Target, request
from falter.perturbations import RewritePerturbation, perturbations
from falter.records.errors import DuplicateName, UsageError
from falter.records.reviews import Review, Sample
from falter.records.types import Item, Recipe, Request, Rewrite, Variant
from falter.rewrites import (
    JUDGE_TOKENS,
    Agreement,
    Calibration,
    agreement,
    bundled_rewrites,
    calibrations,
    judge_prompt,
    make_sheet,
    read_bank,
    read_rating,
    read_reviews,
    rows_of,
    sample_of,
)
from falter.store import (
    Store,
    find_responses,
    find_samples,
    put_reviews,
    put_rewrites,
    put_samples,
    put_sheet,
    scan_reviews,
    scan_rewrites,
    scan_samples,
)

__all__ = [
    "Imported",
    "Judged",
    "Opinions",
    "export_sheet",
    "import_bank",
    "import_bundled",
    "import_reviews",
    "judge_rewrites",
    "opinions",
    "pick_rewrites",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a file of reviews held: the rater, the decisions, and edits to check again."""

    file: str
    rater: str
    reviews: int
    decisions: dict[str, int]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How a judge answered: samples asked about, ratings, unreadable answers, failed requests."""

    judge: str
    samples: int
    rated: int
    unparsed: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinions:
    """How far the raters of rewrites agree, and how they did on the damaged samples."""

    agreement: Agreement
    calibration: tuple[Calibration, ...]


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
                else "make some first with: falter rewrites prepare",
            )  # fmt: skip
    chosen = [
        rewrite
        for rewrite in rewrites
        if (not names or rewrite.perturbation in names or rewrite_label(rewrite) in names)
        and (failed or rewrite.status == "ok")
    ]
    if not chosen:
        raise UsageError(
            f"{store.path} has no rewrite to export",
            hint="make some with: falter rewrites prepare EXPERIMENT.yaml --rewriter MODEL",
        )
    return chosen


def export_sheet(
    store: Store, rewrites: Sequence[Rewrite], *, calibration: float, seed: int
) -> tuple[str, dict[str, Sample]]:
    """A review sheet of these rewrites; the store remembers which rewrite each row shows."""
    sheet, rows = make_sheet(rewrites, calibration=calibration, seed=seed)
    put_sheet(store, sheet, rows)
    return sheet, rows


def import_bank(store: Store, path: Path) -> tuple[int, int]:
    """Store the rewrites of a file; how many it has, and how many of them are new."""
    rewrites = read_bank(path)
    return len(rewrites), put_rewrites(store, rewrites)


def import_bundled(store: Store) -> tuple[int, int]:
    """Store the bundled rewrites, to have them reviewed; how many, and how many are new."""
    rewrites = bundled_rewrites()
    return len(rewrites), put_rewrites(store, rewrites)


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
                raise DuplicateName(
                    f"{other} and {path} are both from the rater '{review.rater}'",
                    hint="name each file after its rater, or fill in the column 'rater'",
                )


def _read_sheet(store: Store, path: Path) -> tuple[list[Review], dict[str, Sample]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The review sheet {path} cannot be read: {error}",
            hint="save it as CSV in UTF-8",
        ) from error
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


def judge_rewrites(
    store: Store, judge: ModelSpec, rewrites: Sequence[Rewrite], watch: Watch | None = None
) -> Judged:
    """Ask a judge to rate rewrites, and all damaged samples of sheets, from 1 to 5.

    Answers are stored like any other, and not asked for again. The judge's ratings are kept under
    `judge:NAME`; whether a rewrite is used does not depend on them.
    """
    samples = {sample.id: sample for sample in map(sample_of, rewrites) if sample.shown}
    samples |= {key: s for key, s in scan_samples(store).items() if s.flaw is not None}
    client = connect(judge)
    target = writing_target(client, judge)
    requests = {r.key: r for r in (_rating_request(s, target) for s in samples.values())}
    try:
        label = f"{judge.name}, judging"
        ask_all(list(requests.values()), client, judge, store, label, watch)
    finally:
        rated, unparsed = _store_ratings(store, judge, requests, samples)
    return Judged(
        judge=judge.name,
        samples=len(samples),
        rated=rated,
        unparsed=unparsed,
        failed=len(samples) - rated - unparsed,
    )


def _rating_request(sample: Sample, target: Target) -> Request:
    variant = Variant(
        item=Item(task="ratings", key=sample.id, fields={"text": sample.shown}),
        recipe=Recipe(label="rating", sampling={"max_tokens": JUDGE_TOKENS}),
        draw=0,
        prompt=judge_prompt(sample),
        status="changed",
    )
    return request(variant, target, 0)


def _store_ratings(
    store: Store, judge: ModelSpec, requests: dict[str, Request], samples: dict[str, Sample]
) -> tuple[int, int]:
    """Store the ratings that arrived; how many there were, and how many answers without one."""
    answers = find_responses(store, list(requests))
    reviews, unparsed = [], 0
    for key, response in answers.items():
        sample, rating = samples[requests[key].variant.item.key], read_rating(response.text)
        if rating is None:
            unparsed += 1
            continue
        reviews.append(Review(sample=sample.id, rater=f"judge:{judge.name}", rating=rating))
    put_samples(store, samples.values())
    put_reviews(store, reviews)
    return len(reviews), unparsed
