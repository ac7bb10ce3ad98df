"""Rewrites from the rewriter to the report: prepared, counted, used, left out of both arms."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import falter
from falter.cli.app import invoke
from falter.clients import clients
from falter.engine.config import ModelSpec
from falter.engine.resolving import resolve
from falter.engine.results import open_result
from falter.engine.rewriting import bank_for, prepare, rewrite_status
from falter.perturbations import perturbations
from falter.perturbations.rewriting import Ledger
from falter.records.errors import InvalidValue, PreflightError, RunStopped, UsageError
from falter.records.reviews import Review
from falter.records.types import Rewrite
from falter.rewrites.bank import MemoryBank, bank_lines, read_bank
from falter.rewrites.reviews import sample_of
from falter.store.maintenance import verify
from falter.store.migrations import APPLICATION_ID, MIGRATIONS
from falter.store.rewrites import StoreBank, put_reviews, put_rewrites, put_samples, scan_rewrites
from falter.store.store import Store
from rewrite_samples import REWRITER, Wordsmith, asked_text, experiment_of, resolved_in, write_data

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def smith(monkeypatch: pytest.MonkeyPatch) -> Wordsmith:
    clients.names()
    made = Wordsmith()
    monkeypatch.setitem(clients._objects, "wordsmith", made)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "falter.db"


def statuses(path: Path) -> dict[str, str]:
    with Store(path) as store:
        return {r.source: r.status for r in scan_rewrites(store)}


def test_every_outcome_is_on_record_and_counted(smith: Wordsmith, data: Path, store: Path) -> None:
    """Good, refused, empty, identical, broken and cut rewrites are told apart, and the report
    counts what has none and compares only what has one, in both arms."""
    experiment = experiment_of(data, "paraphrase_free")
    with Store(store) as opened:
        done = prepare([experiment], REWRITER, opened)
        assert (done.wanted, done.missing) == (8, 0)
        assert done.made == {
            "ok": 3, "refused": 1, "empty": 1, "identical": 1, "broken": 1, "cut": 1,
        }  # fmt: skip
        (row,) = rewrite_status(experiment, opened)
        assert (row.perturbation, row.author, row.wanted, row.missing) == (
            "paraphrase_free", "wordsmith", 8, 0,
        )  # fmt: skip
        kept = {r.source: r for r in scan_rewrites(opened)}
        assert verify(opened).problems == ()
    assert kept["Which animal says moo?"].text == "What creature says moo?"
    assert kept["Which animal runs 100 km in 1 hour?"].reason == "'100 km' is lost"
    result = falter.run(experiment, store=store)
    (panel,) = result.analysis.panels
    (recipe,) = panel.recipes
    assert (recipe.counts.changed, recipe.counts.no_rewrite) == (3, 5)
    assert recipe.drop.items == 3
    assert recipe.accuracy.items == 3


def test_what_is_stored_is_not_asked_again(smith: Wordsmith, data: Path, store: Path) -> None:
    experiment = experiment_of(data, "paraphrase_free", "paraphrase_lexical")
    with Store(store) as opened:
        prepare([experiment], REWRITER, opened)
        assert len(smith.requests) == 16
        assert prepare([experiment], REWRITER, opened).made == {}
        prepare([experiment_of(data, "paraphrase_free", draws=2)], REWRITER, opened)
    assert len(smith.requests) == 24
    assert {r.sampling.temperature for r in smith.requests[:16]} == {0.0}
    assert {r.sampling.temperature for r in smith.requests[16:]} == {0.7}


def test_the_rewriter_sees_the_instruction_and_the_text(
    smith: Wordsmith, data: Path, store: Path
) -> None:
    """The whole instruction and the bare text, in one user turn."""
    with Store(store) as opened:
        prepare([experiment_of(data, "tone:tone=angry")], REWRITER, opened)
    (turn,) = smith.requests[0].messages
    assert turn[0] == "user"
    assert "angry" in turn[1] and "Do not answer it" in turn[1]
    assert sorted(map(asked_text, smith.requests)) == sorted(smith.texts)
    (number,) = [t for r in smith.requests for _, t in r.messages if "runs 100 km" in t]
    assert "`100 km`" in number


def test_failures_stay_missing_and_are_asked_again(
    smith: Wordsmith, data: Path, store: Path
) -> None:
    experiment = experiment_of(data, "paraphrase_free")
    smith.failing = {"Which animal says moo?", "Which animal says meow?"}
    with Store(store) as opened:
        assert prepare([experiment], REWRITER, opened).missing == 2
        with pytest.raises(PreflightError, match="2 of 8 rewrites for paraphrase_free are missing"):
            falter.run(experiment, store=store)
        asked = len(smith.requests)
        smith.failing = set()
        assert prepare([experiment], REWRITER, opened).made == {"ok": 2}
    assert len(smith.requests) == asked + 2


def test_an_interrupted_preparation_loses_nothing(
    smith: Wordsmith, data: Path, store: Path
) -> None:
    """What had landed when it was stopped is read and stored, and is not asked again."""
    experiment = experiment_of(data, "paraphrase_free")
    calls = 0
    rule = smith.answers

    def stopping(text: str) -> object:
        nonlocal calls
        calls += 1
        if calls > 3:
            raise RunStopped("stop")
        return rule(text)

    smith.answers = stopping
    spec = replace(REWRITER, concurrency=1)
    with Store(store) as opened:
        with pytest.raises(RunStopped):
            prepare([experiment], spec, opened)
        assert len(list(scan_rewrites(opened))) == 3
        smith.answers = rule
        assert sum(prepare([experiment], spec, opened).made.values()) == 5


def test_nothing_runs_while_a_rewrite_is_missing(smith: Wordsmith, data: Path, store: Path) -> None:
    """The message counts what is missing for each perturbation, and no store is begun."""
    experiment = experiment_of(data, "paraphrase_free", "tone", "typos")
    with resolved_in(experiment, store) as resolved:
        assert resolved.rewrites is not None
        assert resolved.rewrites.shortfall() == [
            "8 of 8 rewrites for paraphrase_free", "8 of 8 rewrites for tone(formal)",
        ]  # fmt: skip
    with pytest.raises(PreflightError) as caught:
        falter.run(experiment, store=store)
    assert "8 of 8 rewrites for paraphrase_free and 8 of 8 rewrites for tone(formal)" in str(
        caught.value
    )
    assert "falter rewrites prepare" in str(caught.value)
    assert smith.requests == []


def test_another_review_is_another_run(smith: Wordsmith, data: Path, store: Path) -> None:
    """A rejected rewrite leaves both arms, an edited one is asked with the new text."""
    experiment = experiment_of(data, "paraphrase_free")
    with Store(store) as opened:
        prepare([experiment], REWRITER, opened)
        first = falter.run(experiment, store=store)
        samples = {r.source: sample_of(r) for r in scan_rewrites(opened)}
        moo, meow = samples["Which animal says moo?"], samples["Which animal says meow?"]
        put_samples(opened, [moo, meow])
        put_reviews(opened, [
            Review(sample=moo.id, rater="ann", decision="reject", comment="dull"),
            Review(sample=meow.id, rater="ann", decision="edit", text="Who says meow?"),
        ])  # fmt: skip
        kept = {r.source: r for r in scan_rewrites(opened)}
    assert kept[moo.source].status == "rejected"
    assert kept[moo.source].reason == "rejected by ann: dull"
    assert (kept[meow.source].text, kept[meow.source].reason) == ("Who says meow?", "edited by ann")
    second = falter.run(experiment, store=store)
    assert second.run.id != first.run.id
    (recipe,) = second.analysis.panels[0].recipes
    assert (recipe.counts.changed, recipe.counts.no_rewrite) == (2, 6)
    with Store(store) as opened:
        shown = [
            s.text for c in opened.cells(second.run) for s in c.variant.prompt.sections
            if c.variant.recipe.steps
        ]  # fmt: skip
    assert "Who says meow?" in shown and "What creature says meow?" not in shown


@pytest.mark.parametrize(
    ("decisions", "status"),
    [
        ((), "ok"),
        (("accept",), "ok"),
        (("reject",), "rejected"),
        (("accept", "reject"), "rejected"),
        (("accept", "accept", "reject"), "ok"),
        (("edit", "accept", "reject"), "ok"),
    ],
)
def test_a_majority_keeps_a_rewrite(
    smith: Wordsmith, data: Path, store: Path, decisions: tuple[str, ...], status: str
) -> None:
    with Store(store) as opened:
        prepare([experiment_of(data, "paraphrase_free")], REWRITER, opened)
        first = next(r for r in scan_rewrites(opened) if r.status == "ok")
        sample = sample_of(first)
        put_samples(opened, [sample])
        put_reviews(opened, [
            Review(sample=sample.id, rater=f"r{n}", decision=d,  # type: ignore[arg-type]
                   text="By hand?" if d == "edit" else None)
            for n, d in enumerate(decisions)
        ])  # fmt: skip
        found = StoreBank(opened).find(first.key, first.source)
    assert found is not None
    assert found.status == status
    assert (found.text == "By hand?") == ("edit" in decisions)


def test_two_authors_need_a_name(smith: Wordsmith, data: Path, store: Path) -> None:
    """Without a rewriter named, texts by two authors are an error that names both."""
    experiment = experiment_of(data, "paraphrase_free")
    with Store(store) as opened:
        prepare([experiment], REWRITER, opened)
        prepare([experiment], ModelSpec(name="wordsmith:other"), opened)
        with pytest.raises(UsageError, match="were rewritten by 2: wordsmith, wordsmith:other"):
            resolve(experiment, bank_for(experiment, opened))
        rows = rewrite_status(experiment, opened)
    assert [(r.author, r.statuses["ok"]) for r in rows] == [
        ("wordsmith", 3),
        ("wordsmith:other", 3),
    ]
    named = experiment_of(data, "paraphrase_free", rewriter="wordsmith:other")
    assert falter.run(named, store=store).analysis.panels


def test_a_rewriter_has_to_write(smith: Wordsmith, data: Path, store: Path) -> None:
    smith.generates = False
    told = "'wordsmith' does not generate text"
    with Store(store) as opened, pytest.raises(UsageError, match=told):
        prepare([experiment_of(data, "paraphrase_free")], REWRITER, opened)
    assert smith.requests == []


def test_an_experiment_without_model_made_recipes_says_so(data: Path, store: Path) -> None:
    with Store(store) as opened, pytest.raises(UsageError, match="needs a rewriter"):
        prepare([experiment_of(data, "typos")], REWRITER, opened)


def test_a_bank_file_goes_round(smith: Wordsmith, data: Path, store: Path, tmp_path: Path) -> None:
    """A published bank gives the same run elsewhere, without the store that it was made in."""
    experiment = experiment_of(data, "paraphrase_free")
    with Store(store) as opened:
        prepare([experiment], REWRITER, opened)
        made = list(scan_rewrites(opened))
    bank = tmp_path / "bank.jsonl"
    bank.write_text("".join(line + "\n" for line in bank_lines(made)), "utf-8")
    assert read_bank(bank) == made
    here = falter.run(experiment, store=store)
    other = experiment_of(data, "paraphrase_free", rewrites=str(bank))
    there = falter.run(other, store=tmp_path / "other.db")
    assert here.run.id == there.run.id
    with Store(tmp_path / "third.db") as third:
        assert put_rewrites(third, made) == 8
        assert put_rewrites(third, made) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row | {"source": "Which animal?"}, "the key does not match this text"),
        (lambda row: row | {"status": "fine"}, "status is 'fine'"),
        (lambda row: row | {"text": None}, "if its status is 'ok'"),
        (lambda row: row | {"nonsense": 1}, "is not a rewrite"),
        (lambda row: [row], "is not a rewrite"),
    ],
)
def test_a_damaged_bank_is_refused(
    smith: Wordsmith, data: Path, store: Path, tmp_path: Path,
    change: Callable[[dict[str, object]], object], message: str,
) -> None:  # fmt: skip
    with Store(store) as opened:
        prepare([experiment_of(data, "paraphrase_free")], REWRITER, opened)
        good = next(r for r in scan_rewrites(opened) if r.status == "ok")
    row = json.loads(next(bank_lines([good])))
    path = tmp_path / "bank.jsonl"
    path.write_text(json.dumps(change(row)) + "\n", "utf-8")
    with pytest.raises(UsageError, match=message):
        read_bank(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_bank(tmp_path / "no.jsonl")


def test_a_chain_of_two_rewrites_is_prepared_in_turn(
    smith: Wordsmith, data: Path, store: Path
) -> None:
    """The template is reworded after the question; both are asked for, and both are used."""
    rule = smith.answers
    smith.answers = lambda text: (
        text.replace("Say which one.", "Name the right one.") if "{" in text else rule(text)
    )
    experiment = experiment_of(data, "paraphrase_free+template_paraphrase")
    with Store(store) as opened:
        done = prepare([experiment], REWRITER, opened)
    assert done.missing == 0
    assert "Say which one.\n\nQuestion: {question}\nAnswer:" in smith.texts
    result = falter.run(experiment, store=store)
    assert result.analysis.panels[0].recipes[0].counts.changed == 3


def test_a_ledger_sees_everything_at_once() -> None:
    """Texts after one that was refused are wanted too; once closed it only answers."""
    from falter.records.rng import Rng
    from falter.records.types import Prompt, Section

    tone = perturbations.get("tone")
    sections = tuple(Section(name=n, kind="input", text=f"Is it {n}?") for n in "abc")
    refused = Rewrite(
        key=tone.key("Is it a?", 0), perturbation="tone", version=1,  # type: ignore[attr-defined]
        params={"tone": "formal"}, source="Is it a?", draw=0, author="x", status="refused",
    )  # fmt: skip
    ledger = Ledger(MemoryBank([refused]))
    tone.bind(ledger, 0)(Prompt(sections=sections), Rng(0))  # type: ignore[attr-defined]
    assert [w.text for w in ledger.wanted.values()] == ["Is it a?", "Is it b?", "Is it c?"]
    assert list(ledger.found.values()) == [refused]
    ledger.close()
    assert ledger.take(ledger.wanted[tone.key("Is it b?", 0)]) is None  # type: ignore[attr-defined]


def test_the_commands_from_preparing_to_the_report(
    smith: Wordsmith, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """plan and run say what is missing, prepare makes it, status counts it, run uses it."""
    monkeypatch.chdir(tmp_path)
    Path("e.yaml").write_text(
        f"data: {{path: {data.name}, choices: options, target: answer}}\n"
        'template: "Question: {question}\\nAnswer:"\nmodels: [simulated]\n'
        "recipes: [paraphrase_free]\n"
    )

    def cli(*arguments: str) -> tuple[int, str, str]:
        code = invoke(arguments)
        return code, *capsys.readouterr()

    code, out, err = cli("plan", "e.yaml", "--json")
    assert (code, json.loads(out)["missing_rewrites"]) == (0, 8), err
    code, out, err = cli("run", "e.yaml")
    assert code == 2 and "8 of 8 rewrites for paraphrase_free are missing" in err
    code, _, err = cli("rewrites", "prepare", "e.yaml")
    assert code == 2 and "No rewriter is named" in err
    smith.failing = {"Which animal says moo?"}
    code, out, err = cli("rewrites", "prepare", "e.yaml", "--rewriter", "wordsmith")
    assert code == 1 and "1 requests failed" in err
    smith.failing = set()
    code, out, err = cli("rewrites", "prepare", "e.yaml", "--rewriter", "wordsmith", "--json")
    assert (code, json.loads(out)["made"]) == (0, {"ok": 1})
    code, out, _ = cli("rewrites", "status", "e.yaml", "--json")
    assert json.loads(out)[0]["statuses"]["ok"] == 3
    code, out, _ = cli("rewrites", "status")
    assert out.splitlines()[1].split() == [
        "paraphrase_free", "wordsmith", "–", "3", "1", "1", "1", "1", "1", "0", "–",
    ]  # fmt: skip
    code, out, err = cli("run", "e.yaml", "--rewriter", "wordsmith")
    assert code == 0 and "paraphrase_free" in out, err
    counts = open_result("falter.db").analysis.panels[0].recipes[0].counts
    assert (counts.changed, counts.no_rewrite) == (3, 5)
    code, out, err = cli("perturb", "-p", "paraphrase_free", "Which animal says moo?")
    assert code == 2 and "falter rewrites prepare" in err


def test_a_store_of_the_first_version_is_brought_up_to_date(store: Path) -> None:
    """Migration 2 adds its tables and keeps what is there."""
    db = sqlite3.connect(store)
    db.executescript(
        MIGRATIONS[0] + f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;"
        "INSERT INTO failures VALUES (x'00', 1.0, 'kept');"
    )
    db.close()
    with Store(store) as opened:
        assert list(scan_rewrites(opened)) == []
        assert opened.db.execute("SELECT reason FROM failures").fetchall() == [("kept",)]


def test_the_second_migration_stays_as_it_is() -> None:
    """Stores in the field have it; it must not change."""
    import hashlib

    assert hashlib.sha256(MIGRATIONS[1].encode()).hexdigest()[:10] == "660d1ef073"


def test_a_damaged_rewrite_is_found(smith: Wordsmith, data: Path, store: Path) -> None:
    with Store(store) as opened:
        prepare([experiment_of(data, "paraphrase_free")], REWRITER, opened)
        opened.db.execute(
            "UPDATE rewrites SET body = CAST(replace(CAST(body AS TEXT), 'moo', 'moa') AS BLOB)"
        )
        assert any("rewrites:" in problem for problem in verify(opened).problems)


def test_a_rewriter_that_completes_is_led(data: Path, store: Path) -> None:
    """A model without turns gets a cue at the end; one with turns does not."""
    from falter.clients.simulated import Simulated
    from falter.engine.rewriting import rewriting_request, writing_target
    from falter.records.interfaces import Capabilities

    tone = perturbations.get("tone")
    wanted = tone.wanted("Is it so?", 0)  # type: ignore[attr-defined]
    for chats, end in ((False, "The new text:"), (True, "</text>")):
        client = Simulated(falter.clients.ClientSettings(name=""))
        client.capabilities = Capabilities(generates=True, scores=True, chats=chats)
        sent = rewriting_request(wanted, writing_target(client, REWRITER))
        assert (sent.context or sent.messages[-1][1]).endswith(end)


def test_the_embedded_model_rewrites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real model, real store, real runner: every text gets a status, and the run counts them."""
    monkeypatch.setattr(
        "falter.engine.rewriting.DEFAULT_REPLY_TOKENS", 16
    )  # replies of at most 32 tokens
    experiment = experiment_of(
        write_data(tmp_path, {"Which animal says moo?": "the cow"}),
        "tone:tone=polite",
    )
    path = tmp_path / "falter.db"
    with Store(path) as opened:
        done = prepare([experiment], ModelSpec(name="smollm2"), opened)
        made = list(scan_rewrites(opened))
    assert (done.wanted, done.missing, sum(done.made.values())) == (1, 0, 1)
    assert {rewrite.author for rewrite in made} == {"smollm2"}
    assert all((r.status == "ok") == (r.text is not None) for r in made)
    assert all(r.text or r.reason for r in made)
    counts = falter.run(experiment, store=path).analysis.panels[0].recipes[0].counts
    good = sum(rewrite.status == "ok" for rewrite in made)
    assert (counts.changed + counts.unchanged, counts.no_rewrite) == (good, 1 - good)


def test_bad_parameters_are_refused_before_anything_is_asked(data: Path) -> None:
    with pytest.raises(InvalidValue, match="did you mean 'pt-BR'"):
        resolve(experiment_of(data, "translate:to=pt-br"))
