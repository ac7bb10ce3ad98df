"""Reviews: sheets out and in, damaged rows, agreement of raters, and a judge."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falter.cli.app import invoke
from falter.clients import clients
from falter.engine.config import ModelSpec
from falter.engine.rewriting import judge_rewrites, rating_in_reply
from falter.perturbations.rewriting import rewrite_key
from falter.records.errors import DuplicateName, InvalidValue, TaskError, UsageError
from falter.records.reviews import Review, Sample
from falter.records.rng import Rng
from falter.records.types import Rewrite
from falter.rewrites.agreement import agreement, calibrations
from falter.rewrites.reviews import (
    FLAWS,
    export_sheet,
    flawed,
    import_reviews,
    make_sheet,
    opinions,
    pick_rewrites,
    read_reviews,
    sheet_csv,
)
from falter.rewrites.sheet import guarded, read_rating, unguarded
from falter.store.rewrites import all_reviews, put_rewrites
from falter.store.store import Store
from rewrite_samples import Wordsmith

DATA = Path(__file__).parents[1] / "data"
Capture = pytest.CaptureFixture[str]


def rewrite(n: int, text: str | None = None, source: str | None = None) -> Rewrite:
    source = source or f"Question {n}: is the small house number {n} not far from here?"
    text = text or f"Case {n}: is house number {n}, the small one, not near to this place?"
    return Rewrite(
        key=rewrite_key("paraphrase_free", 1, {}, source, 0), perturbation="paraphrase_free",
        version=1, params={}, source=source, draw=0, author="a model", status="ok", text=text,
    )  # fmt: skip


REWRITES = [rewrite(n) for n in range(40)]


def rows_in(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def filled(text: str, fill: Callable[[dict[str, str]], dict[str, str]]) -> str:
    """The sheet as a spreadsheet gives it back, with cells filled in."""
    rows = [row | fill(row) for row in rows_in(text)]
    out = io.StringIO()
    table = csv.DictWriter(out, list(rows[0]))
    table.writeheader()
    table.writerows(rows)
    return out.getvalue()


# --- sheets ----------------------------------------------------------------------------------


def test_a_share_of_the_rows_is_damaged_and_nothing_gives_it_away() -> None:
    """As many rows as rewrites, each source once, opaque names, an order of its own."""
    sheet, rows = make_sheet(REWRITES, calibration=0.1, seed=3)
    assert (sheet, rows) == make_sheet(list(REWRITES), calibration=0.1, seed=3)
    assert sum(s.flaw is not None for s in rows.values()) == 4
    assert sorted(s.source for s in rows.values()) == sorted(r.source for r in REWRITES)
    table = rows_in(sheet_csv(rows))
    assert list(table[0]) == ["row", "perturbation", "source", "rewrite", "decision", "edited",
                              "rating", "comment", "rater"]  # fmt: skip
    assert all(len(row["row"]) == 12 for row in table)
    assert not any(word in json.dumps(table) for word in ("negation", "other text", "truncated"))
    assert [s.source for s in rows.values()] != [r.source for r in REWRITES]
    others = [make_sheet(REWRITES, calibration=0.1, seed=n)[1] for n in range(30)]
    places = {n for o in others for n, s in enumerate(o.values()) if s.flaw is not None}
    assert len(places) > 30
    assert {s.flaw for o in others for s in o.values() if s.flaw} == set(FLAWS)


@pytest.mark.parametrize(("share", "damaged"), [(0, 0), (0.001, 1), (0.1, 4), (0.5, 20)])
def test_the_share_is_kept(share: float, damaged: int) -> None:
    _, rows = make_sheet(REWRITES, calibration=share)
    assert sum(s.flaw is not None for s in rows.values()) == damaged


def test_shares_out_of_range_and_short_texts() -> None:
    with pytest.raises(InvalidValue, match=r"calibration is 0\.9"):
        make_sheet(REWRITES, calibration=0.9)
    _, rows = make_sheet([rewrite(0, "Ja.", "Yes.")], calibration=0.5)
    assert [s.flaw for s in rows.values()] == [None]
    assert make_sheet([])[1] == {}


def test_damage_is_real_and_of_every_kind() -> None:
    """Each flaw changes the text, and does what it says."""
    found: dict[str, set[str]] = {flaw: set() for flaw in FLAWS}
    for n in range(60):
        for r in REWRITES[:5]:
            made = flawed(r, REWRITES, Rng(n))
            assert made is not None and made[1] not in (r.text, r.source)
            found[made[0]].add(made[1])
    assert all(" not " not in text for text in found["negation"])
    assert all("Case" in text for text in found["number"])
    assert found["other text"] <= {r.text for r in REWRITES}
    first = REWRITES[0].text or ""
    assert any(first.startswith(text) for text in found["truncated"])
    made_in = {flawed(rewrite(1, "It is so.", "So it is."), [], Rng(n)) for n in range(20)}
    assert ("negation", "It is not so.") in made_in


@given(st.text(st.sampled_from("'=+-@\t\r\nＡ＝ab"), max_size=8))
@settings(max_examples=200, deadline=None, database=None)
def test_no_cell_is_a_formula_and_every_text_comes_back(text: str) -> None:
    shown = guarded(text)
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "＝"))
    assert unguarded(shown) == text


def test_a_hostile_text_stays_a_text_in_the_table() -> None:
    attack = '=HYPERLINK("http://x.example";"a")'
    _, rows = make_sheet([rewrite(0, "+1+cmd|' /C calc'!A0\n,\"x\"", attack)], calibration=0)
    (row,) = rows_in(sheet_csv(rows))
    assert row["source"] == "'" + attack
    assert row["rewrite"].startswith("'+1")


# --- reading sheets --------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "falter.db"
    with Store(path) as opened:
        put_rewrites(opened, REWRITES)
    return path


def test_a_filled_in_sheet_is_taken_in(store: Path, tmp_path: Path) -> None:
    """Decisions, edits, ratings and comments; empty rows are none; the file names the rater."""
    with Store(store) as opened:
        _, rows = export_sheet(opened, REWRITES, calibration=0, seed=0)
        names = list(rows)
        cells = {
            names[0]: {"decision": " Accept ", "rating": "5"},
            names[1]: {"edited": "House 1, is it near?", "comment": "clearer"},
            names[2]: {"rating": "2.0"},
            names[3]: {"decision": "reject", "rating": "1"},
        }
        path = tmp_path / "ann.csv"
        text = filled(sheet_csv(rows), lambda row: cells.get(row["row"], {}))
        path.write_text(text, "utf-8-sig")
        (one,) = import_reviews(opened, [path])
        assert (one.rater, one.reviews) == ("ann", 4)
        assert one.decisions == {"accept": 1, "edit": 1, "reject": 1}
        number = rows[names[1]].source.split()[1].rstrip(":")
        assert len(one.warnings) == (0 if number == "1" else 1)
        found = {r.sample: r for r in all_reviews(opened)}
        assert found[rows[names[0]].id] == Review(
            sample=rows[names[0]].id, rater="ann", decision="accept", rating=5
        )
        assert found[rows[names[1]].id].text == "House 1, is it near?"
        assert found[rows[names[2]].id].rating == 2
        statuses = {r.key: r.status for r in pick_rewrites(opened, failed=True)}
    assert statuses[rows[names[3]].key] == "rejected"


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        ({"decision": "maybe"}, "decision is 'maybe'; expected one of: accept, edit, reject"),
        ({"decision": "edit"}, "edited is ''"),
        ({"rating": "6"}, "rating is '6'"),
        ({"rating": "2.5"}, "rating is '2.5'"),
        ({"row": "nobody"}, "row is 'nobody'"),
    ],
)
def test_a_sheet_is_taken_whole_or_not_at_all(
    store: Path, tmp_path: Path, fill: dict[str, str], message: str
) -> None:
    """A cell that does not fit is named with its line, and nothing is stored."""
    with Store(store) as opened:
        _, rows = export_sheet(opened, REWRITES, calibration=0, seed=0)
        last = list(rows)[-1]
        path = tmp_path / "ann.csv"
        text = filled(
            sheet_csv(rows),
            lambda row: {"rating": "4"} | (fill if row["row"] == last else {}),
        )
        path.write_text(text, "utf-8")
        with pytest.raises(TaskError, match="line 41") as caught:
            import_reviews(opened, [path])
        assert message in str(caught.value)
        assert all_reviews(opened) == []


def test_all_that_is_wrong_is_told_at_once() -> None:
    """Two rows with a fault, one that is right, and the hint of the first."""
    sample = Sample(key="k", author="a", perturbation="p", source="s", shown="t")
    text = "row,decision,rating\nr1,maybe,4\nr1,accept,5\nr9,accept,4\n"
    with pytest.raises(TaskError, match="x has 2 faults") as caught:
        read_reviews(text, "x", {"r1": sample}, rater="ann")
    assert "- line 2: decision is 'maybe'" in str(caught.value)
    assert "- line 4: row is 'r9'" in str(caught.value)
    assert "--store" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("written", "rating"),
    [("4", 4), (" 4 ", 4), ("4.0", 4), ("4,00", 4), ("04", 4), (4, 4), (4.0, 4), ("", None),
     (None, None)],
)  # fmt: skip
def test_a_rating_is_a_whole_number_of_its_scale(written: object, rating: int | None) -> None:
    """As people and spreadsheets write it; an empty cell is none."""
    assert read_rating("r", written, 1, 5) == rating


@pytest.mark.parametrize("written", ["0", "6", "4.5", "four", "4 5", "-1", "9" * 5000, True, "٤"])
def test_what_is_no_rating_is_refused(written: object) -> None:
    with pytest.raises(InvalidValue, match="expected a whole number from 1 to 5, or nothing"):
        read_rating("r", written, 1, 5)


def test_other_tables_and_files_are_refused(store: Path, tmp_path: Path) -> None:
    bad = {"a.csv": b"x,y\n1,2\n", "b.csv": b"", "c.csv": b"\xff\xfe\x00", "d.csv": None}
    with Store(store) as opened:
        for name, content in bad.items():
            path = tmp_path / name
            if content is not None:
                path.write_bytes(content)
            with pytest.raises(UsageError, match=r"no column 'row'|cannot be read"):
                import_reviews(opened, [path])


def test_semicolons_and_a_column_with_the_rater() -> None:
    """A spreadsheet's own dialect is read; two raters in one file are an error."""
    sample = Sample(key="k", author="a", perturbation="p", source="s", shown="t")
    text = "row;decision;rating;rater\r\nr1;accept;4;Ann\r\n"
    (review,) = read_reviews(text, "x", {"r1": sample}, rater="file")
    assert (review.rater, review.rating) == ("Ann", 4)
    two = Sample(key="k", author="a", perturbation="p", source="s", shown="u")
    with pytest.raises(UsageError, match="2 raters: Ann, Bob"):
        read_reviews(text + "r2;accept;4;Bob\r\n", "x", {"r1": sample, "r2": two}, rater="f")


def test_two_files_of_one_name_are_told(store: Path, tmp_path: Path) -> None:
    with Store(store) as opened:
        _, rows = export_sheet(opened, REWRITES, calibration=0, seed=0)
        paths = []
        for folder in "ab":
            path = tmp_path / folder / "sheet.csv"
            path.parent.mkdir()
            path.write_text(filled(sheet_csv(rows), lambda _: {"rating": "4"}), "utf-8")
            paths.append(path)
        with pytest.raises(DuplicateName, match="both from the rater 'sheet'"):
            import_reviews(opened, paths)


# --- agreement -------------------------------------------------------------------------------


def rated(table: dict[str, list[int | None]], flaws: dict[int, str] | None = None):  # type: ignore[no-untyped-def]
    """Reviews and samples from ratings, a list a rater."""
    samples = {}
    reviews = []
    for n in range(max(map(len, table.values()))):
        flaw = (flaws or {}).get(n)
        sample = Sample(key=f"k{n}", author="a", perturbation="p", source="s", shown=f"t{n}",
                        flaw=flaw)  # fmt: skip
        samples[sample.id] = sample
        for rater, ratings in table.items():
            if n < len(ratings) and ratings[n] is not None:
                reviews.append(Review(sample=sample.id, rater=rater, rating=ratings[n]))
    return reviews, samples


def test_agreement_by_hand() -> None:
    """Two raters, four rewrites: quadratic kappa 1 − 2/5, exact 3/4, mean difference 1/4."""
    found = agreement(*rated({"ann": [1, 2, 4, 5], "bob": [1, 2, 4, 4]}))
    (pair,) = found.pairs
    assert pair.exact.value == 0.75
    assert pair.difference.value == 0.25
    # o = 1/16·1 over 4 pairs; e from the margins: Σ(a−b)²/16 over 16 pairs
    margin = sum((a - b) ** 2 for a in (1, 2, 4, 5) for b in (1, 2, 4, 4)) / 16
    assert pair.kappa.value == pytest.approx(1 - (1 / 4) / margin)
    assert found.kappa.value == pair.kappa.value
    assert (found.rated_twice, found.samples, found.raters) == (4, 4, ("ann", "bob"))
    assert pair.spearman.value == pytest.approx(0.9486833)


def test_a_judge_is_held_against_peoples_mean_rounded_half_up() -> None:
    found = agreement(*rated({"ann": [2, 4, 1], "bob": [3, 5, 1], "judge:m": [3, 5, 1]}))
    (judge,) = found.judges
    assert (judge.first, judge.second, judge.items) == ("people", "judge:m", 3)
    assert judge.exact.value == 1.0
    assert judge.difference.value == 0.0
    assert judge.spearman.value == pytest.approx(1.0)
    assert [pair.first for pair in found.pairs] == ["ann"]


def test_what_is_not_defined_has_a_status_and_no_number() -> None:
    alone = agreement(*rated({"ann": [1, 2, 3]}))
    assert (alone.kappa.value, alone.kappa.status) == (None, "insufficient_data")
    assert alone.pairs == ()
    same = agreement(*rated({"ann": [4, 4, 4], "bob": [4, 4, 4]}))
    assert (same.kappa.value, same.kappa.status) == (None, "undefined_zero_variance")
    assert (same.alpha.value, same.alpha.status) == (None, "undefined_zero_variance")
    assert same.exact.value == 1.0
    (pair,) = same.pairs
    assert (pair.spearman.value, pair.spearman.status) == (None, "undefined_zero_variance")
    apart = agreement(*rated({"ann": [4, None], "bob": [None, 4]}))
    assert (apart.rated_twice, apart.kappa.value, apart.pairs[0].items) == (0, None, 0)
    assert agreement([], {}).raters == ()


def test_damaged_rows_are_reported_and_not_agreed_about() -> None:
    """Means apart, the share caught, and agreement over the others only."""
    ratings = {"ann": [5, 4, 1, 2], "bob": [5, 5, 4, 3]}
    reviews, samples = rated(ratings, {2: "number", 3: "truncated"})
    assert agreement(reviews, samples).samples == 2
    ann, bob = calibrations(reviews, samples)
    assert (ann.mean, ann.damaged_mean, ann.damaged, ann.share_caught) == (4.5, 1.5, 2, 1.0)
    assert (bob.mean, bob.damaged_mean, bob.caught, bob.share_caught) == (5.0, 3.5, 0, 0.0)


def test_agreement_on_real_ratings() -> None:
    """Three annotators of PandaLM: each coefficient by another program or from its definition."""
    from sklearn.metrics import cohen_kappa_score

    with gzip.open(DATA / "pandalm_200.json.gz", "rt") as file:
        rows = json.load(file)
    table = {f"r{k}": [row[k - 1] + 1 for row in rows] for k in (1, 2, 3)}
    found = agreement(*rated(table))
    assert found.samples == found.rated_twice == 200
    for pair in found.pairs:
        one, other = table[pair.first], table[pair.second]
        expected = cohen_kappa_score(one, other, weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert pair.kappa.value == pytest.approx(expected, abs=1e-12)
        same = sum(a == b for a, b in zip(one, other, strict=True))
        assert pair.exact.value == pytest.approx(same / 200)
    assert found.alpha.value == pytest.approx(ordinal_alpha(rows))
    assert found.alpha.low is not None and found.alpha.low < (found.alpha.value or 0)


def ordinal_alpha(rows: list[list[int]]) -> float:
    """Krippendorff's alpha from its definition, pair by pair; every unit has three ratings."""
    counts = [sum(row.count(v) for row in rows) for v in range(3)]

    def gap(a: int, b: int) -> float:
        low, high = sorted((a, b))
        return (sum(counts[low : high + 1]) - (counts[a] + counts[b]) / 2) ** 2 if a != b else 0.0

    total = sum(counts)
    seen = sum(gap(a, b) for row in rows for a in row for b in row) / 2 / total
    chance = sum(counts[a] * counts[b] * gap(a, b) for a in range(3) for b in range(3))
    return 1 - seen / (chance / (total * (total - 1)))


# --- a judge ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "rating"),
    [
        ("Rating: 4", 4), ("rating: **3**", 3), ("5", 5), (" 2/5.", 2), ("Rating: 4/5", 4),
        ("First I thought Rating: 2.\nRating: 3", 3), ("Rating: 7", None), ("Rating: 45", None),
        ("Rating: 4.5", None), ("four", None), ("It keeps 5 of 6 facts.", None), (None, None),
    ],
)  # fmt: skip
def test_a_judges_answer_is_read_strictly(said: str | None, rating: int | None) -> None:
    assert rating_in_reply(said) == rating


def test_a_judge_rates_through_the_same_store(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damaged rows are rated too; unreadable answers are counted; nothing is asked twice."""
    clients.names()
    smith = Wordsmith()
    monkeypatch.setitem(clients._objects, "wordsmith", smith)
    right = {r.text for r in REWRITES}
    odd: set[str | None] = set()
    smith.answers = lambda text: (
        "Hm." if text in odd else "Rating: 5" if text in right else "Rating: 1"
    )
    judge = ModelSpec(name="wordsmith")
    with Store(store) as opened:
        _, rows = export_sheet(opened, REWRITES, calibration=0.1, seed=1)
        shown = [s.shown for s in rows.values() if s.flaw]
        damaged = [text for text in shown if text not in right]
        odd.add(next(r.text for r in REWRITES if r.text not in shown))
        done = judge_rewrites(opened, judge, REWRITES)
        assert (done.samples, done.failed) == (44, 0)
        assert (done.rated, done.unparsed) == (43, 1)
        assert len(smith.requests) == 44
        judge_rewrites(opened, judge, REWRITES)
        assert len(smith.requests) == 44
        (found,) = opinions(opened).calibration
        assert pick_rewrites(opened) == REWRITES
    assert (found.rater, found.mean, found.damaged) == ("judge:wordsmith", 5.0, 4)
    assert found.caught == len(damaged)


def test_the_commands_of_a_review(
    store: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Export, two raters, import: agreement and calibration are printed, and as JSON."""
    monkeypatch.chdir(tmp_path)

    def cli(*arguments: str) -> tuple[int, str, str]:
        code = invoke(("rewrites", *arguments))
        return code, *capsys.readouterr()

    code, _, err = cli("export", "-o", "sheet.csv")
    assert code == 0 and "40 rows, 4 of them damaged" in err
    text = Path("sheet.csv").read_text("utf-8")
    right = {r.text for r in REWRITES}
    rules: dict[str, Callable[[dict[str, str]], str]] = {
        "ann": lambda row: "5" if unguarded(row["rewrite"]) in right else "1",
        "bob": lambda row: "54"[row["source"].endswith("here?") and "1" in row["source"]],
    }
    for name, rule in rules.items():
        Path(f"{name}.csv").write_text(filled(text, lambda row: {"rating": rule(row)}), "utf-8")  # noqa: B023
    code, out, err = cli("import", "ann.csv", "bob.csv")
    assert code == 0, err
    assert "36 rewrites rated by 2: ann, bob; 36 by two people or more" in out
    assert "Krippendorff's alpha" in out and "Spearman" in out
    line = next(line for line in out.splitlines() if line.startswith("ann ") and "(" in line)
    assert line.split()[1] == "5.000"
    code, out, _ = cli("import", "ann.csv", "--json")
    assert json.loads(out)["calibration"][0]["damaged"] == 4
    code, out, err = cli("export", "--format", "jsonl")
    assert len(out.splitlines()) == 40
    code, out, err = cli("export", "-o", "x.txt")
    assert code == 2 and "expected one of: csv, html, jsonl" in err
    code, out, err = cli("export", "-p", "paraphrase_fre")
    assert code == 2 and "the store has: paraphrase_free" in err
    code, _, err = cli("export", "--flags", "--calibration", "0", "-o", "f.csv")
    assert "flags" in Path("f.csv").read_text("utf-8").splitlines()[0]
    assert cli("status", "--store", "no.db")[0] == 2
