"""Floor 1: one SQLite file with items, variants, responses and runs; it is also the cache."""

from __future__ import annotations

from falter.store.batches import Batches, planned_keys, put_answers
from falter.store.cells import CellRange
from falter.store.changes import (
    cell_ranges,
    changes,
    newest_replies,
    replies_after,
    stored_items,
    unanswered,
)
from falter.store.maintenance import PruneReport, RepairReport, VerifyReport, prune, repair, verify
from falter.store.merge import MergeReport, merge
from falter.store.rewrites import (
    StoreBank,
    authors,
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
from falter.store.store import (
    PlannedCell,
    PromptSize,
    Store,
    StoredCell,
    StoredRun,
)
from falter.store.studies import (
    StoredPart,
    StoredStudy,
    find_study,
    put_study,
    single_run,
    studies,
)

__all__ = [
    "Batches",
    "CellRange",
    "MergeReport",
    "PlannedCell",
    "PromptSize",
    "PruneReport",
    "RepairReport",
    "Store",
    "StoreBank",
    "StoredCell",
    "StoredPart",
    "StoredRun",
    "StoredStudy",
    "VerifyReport",
    "authors",
    "cell_ranges",
    "changes",
    "find_responses",
    "find_samples",
    "find_study",
    "merge",
    "newest_replies",
    "planned_keys",
    "prune",
    "put_answers",
    "put_reviews",
    "put_rewrites",
    "put_samples",
    "put_sheet",
    "put_study",
    "repair",
    "replies_after",
    "scan_reviews",
    "scan_rewrites",
    "scan_samples",
    "single_run",
    "stored_items",
    "studies",
    "unanswered",
    "verify",
]
