"""Scores that were made before: found again by what they are of, and by nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.analysis import cache as cache_module
from falter.analysis import drop_parts
from falter.analysis.cache import SCORES_FILE, CachedEncoder, ScoreCache, scorer_signature
from falter.analysis.table import run_tables, scored_cells
from falter.clients import clients
from falter.engine.scoring import run_scorers
from falter.records.interfaces import Case
from falter.records.types import Run, Score
from falter.scorers import TextScorer, scorers
from falter.scorers.answers import Numeric
from falter.store.store import Store
from falter.testing import Scripted


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / SCORES_FILE


@pytest.fixture
def store(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    steps = "First all of them are put together, one after the other, as the question asks."
    client = Scripted(lambda r: f"{steps} It is {r.variant.prompt.target}.", name="own")
    monkeypatch.setitem(clients._objects, "own", lambda _: client)
    path = tmp_path / "s.db"
    falter.run(
        models=["own"], task="sums", recipes=["pad_newlines"], limit=4, scorer="numeric", store=path
    )
    cache.unlink()
    with Store(path) as opened:
        yield opened


class Counting:
    """Counts the replies that a scorer is shown."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        score = Numeric.score

        def counted(scorer: Numeric, case: Case) -> Score:
            self.count += 1
            return score(scorer, case)

        monkeypatch.setattr(Numeric, "score", counted)


def scores(store: Store, run: Run) -> list[Score | None]:
    return [score for _, score in scored_cells(store, run, run_scorers(run))]


def test_a_reply_is_scored_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second look gives the same scores and tables, and asks no scorer."""
    run, counting = store.find_run().run, Counting(monkeypatch)
    first, (table,) = scores(store, run), run_tables(store, run, run_scorers(run))
    assert counting.count == len(first) == 8
    assert scores(store, run) == first
    (again,) = run_tables(store, run, run_scorers(run))
    assert (again.value == table.value).all()
    assert again.output is not None and (again.output == table.output).all()
    assert counting.count == 8


def test_a_short_reply_is_read_sooner_than_looked_up(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read in no time is not kept."""
    monkeypatch.setattr(cache_module, "MIN_CACHED_CHARACTERS", 1_000)
    run = store.find_run().run
    assert scores(store, run) == scores(store, run)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("change", "scored"),
    [
        ("UPDATE responses SET body = replace(body, 'It is', 'It was') WHERE rowid = 1", 1),
        ("UPDATE variants SET prompt = replace(prompt, '\"target\":', '\"target\": ')", 8),
    ],
    ids=["reply", "prompt"],
)
def test_whatever_is_stored_differently_is_scored_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch, change: str, scored: int
) -> None:
    """A byte of a reply or a prompt that is another one makes it another cell."""
    run, counting = store.find_run().run, Counting(monkeypatch)
    scores(store, run)
    store.db.execute(change)
    scores(store, run)
    assert counting.count == 8 + scored


def test_another_scorer_is_another_signature() -> None:
    """By its name, class and settings; one of the user's own, or one that prepares, has none."""

    class Own(TextScorer):
        name = "own"
        summary = "always right"

        def read(self, text: str, case: Case) -> Score:
            return self.scored(1.0, text)

    label = scorers.get("label")
    among: Any = label
    signatures = [
        scorer_signature(scorer)
        for scorer in (
            scorers.get("numeric"), scorers.get("exact"), scorers.get("rouge1"),
            scorers.get("rouge2"), label, among.among({"t": ("a", "b")}),
            among.among({"t": ("a", "c")}),
        )
    ]  # fmt: skip
    assert None not in signatures
    assert len(set(signatures)) == len(signatures)
    assert scorer_signature(Own()) is None


def test_a_baseline_that_a_scorer_is_shown_is_part_of_the_key(store: Store) -> None:
    """And the recipe, whatever the store says of it."""
    run = store.find_run().run
    cell = next(store.cells(run))
    known = ScoreCache([scorers.get("numeric")])
    keys = {known.key(cell, None), known.key(cell, b"1" * 16), known.key(cell, b"2" * 16)}
    reasons = replace(cell.variant.recipe, output_format="json")
    keys.add(known.key(replace(cell, variant=replace(cell.variant, recipe=reasons)), None))
    assert len(keys) == 4
    assert known.key(replace(cell, content=b""), None) is None


def test_trouble_with_the_file_is_none_with_the_scores(
    store: Store, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Damaged, full of nonsense, or in a place that is no folder: the scores are made again."""
    run = store.find_run().run
    right = scores(store, run)
    with sqlite3.connect(cache) as db:
        for nonsense in (b"no json", b"[1]", b'["numeric","scored",null,null,null]'):
            db.execute("UPDATE scores SET body = ?", (nonsense,))
            db.commit()
            assert scores(store, run) == right
    cache.write_bytes(b"this is no database at all, and long enough to be taken for one" * 99)
    assert scores(store, run) == right
    assert scores(store, run) == right
    assert cache.read_bytes().startswith(b"SQLite format 3")
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("FALTER_CACHE", str(file))
    assert scores(store, run) == right


class Lengths:
    """A cosine made up from two texts, and how often it was asked for."""

    name = "lengths"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]:
        self.asked += zip(first, second, strict=True)
        return [1 / (1 + len(b)) if a and b else None for a, b in zip(first, second, strict=True)]


def test_a_pair_of_texts_is_compared_once(tmp_path: Path) -> None:
    """The encoder is not even loaded for what is known; another version of it knows nothing."""
    encoder, loaded = Lengths(), []

    def load() -> Lengths:
        loaded.append(1)
        return encoder

    def cosines(version: str = "1") -> CachedEncoder:
        return CachedEncoder("lengths", version, load, tmp_path / "cosines.db")

    pairs = ["a", "b", "", "\udc80"], ["x", "xyz", "x", "x"]
    first = cosines().cosine(*pairs)
    assert first == [1 / 2, 1 / 4, None, 1 / 2]
    assert cosines().cosine(*pairs) == first
    assert len(encoder.asked) == 4
    assert cosines().cosine(["b", "a"], ["x", "x"]) == [1 / 2, 1 / 2]
    assert encoder.asked[4:] == [("b", "x")]
    assert len(loaded) == 2
    assert cosines("2").cosine(*pairs) == first
    assert len(encoder.asked) == 9
    (tmp_path / "cosines.db").write_bytes(b"no data base")
    assert cosines().cosine(*pairs) == first


def test_what_was_checked_is_not_checked_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of a drop are the same from known checks, and another prompt is checked anew."""
    checked: list[int] = []
    check = drop_parts.loses_meaning

    def counted(*prompts: Any) -> bool:
        checked.append(1)
        return check(*prompts)

    monkeypatch.setattr(drop_parts, "loses_meaning", counted)
    settings: Any = {"models": ["simulated"], "task": "sums", "limit": 12, "store": tmp_path / "s"}
    first = falter.run(recipes=["typos"], **settings)
    count = len(checked)
    assert count
    again = falter.open(tmp_path / "s")[first.run.id]
    assert again.table("parts") == first.table("parts")
    assert len(checked) == count
    falter.run(recipes=["typos:rate=0.9"], **settings)
    assert len(checked) > count
