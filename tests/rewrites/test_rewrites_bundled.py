"""The rewrites that come with falter: what they hold, when they are used, and what is left out."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import falter
from falter.cli.app import invoke
from falter.engine.config import Experiment, read_experiment
from falter.engine.resolving import resolve
from falter.engine.results import open_result
from falter.engine.rewriting import bank_for, rewrite_status, rewrites_of
from falter.perturbations import perturbations
from falter.perturbations.rewriting import RewritePerturbation
from falter.records.errors import PreflightError
from falter.records.reviews import Review
from falter.records.rng import Rng
from falter.records.types import Response, Rewrite
from falter.report.page import html
from falter.rewrites.bank import (
    HAND_WRITTEN,
    bank_lines,
    bundled_bank,
    bundled_rewrites,
    hand_written,
    read_bank,
)
from falter.rewrites.reply_reading import read_reply
from falter.rewrites.reviews import sample_of
from falter.store.rewrites import put_reviews, put_rewrites, put_samples
from falter.store.store import Store
from falter.tasks import tasks
from rewrite_samples import resolved_in, write_data

Capture = pytest.CaptureFixture[str]
THREE = ("paraphrase_free", "paraphrase_lexical", "paraphrase_syntactic")
ITEMS, BUNDLED = 264, 60
ENTERPRISE = ("enterprise_case", "enterprise_chat", "enterprise_questions", "enterprise_slots")
SENTENCE = "sentence"
"""The bank that the perturbations of single sentences share."""


def of_questions() -> tuple[Rewrite, ...]:
    """The rewrites of questions; those of sentences of articles are the rest."""
    return tuple(r for r in bundled_rewrites() if r.perturbation != SENTENCE)


def of_enterprise() -> list[Rewrite]:
    """The paraphrases and tones of the enterprise items."""
    loaded = [tasks.get(name)(domain) for name in ENTERPRISE for domain in ("it", "hr")]
    texts = [pair for task in loaded for pair in rewrites_of(replace(task, translations=None))]
    return [hand_written(wanted, new, HAND_WRITTEN) for wanted, new in texts]


def made_by(name: str) -> RewritePerturbation:
    found = perturbations.get("paraphrase_relevant" if name == SENTENCE else name)
    assert isinstance(found, RewritePerturbation)
    return found


def basics(*recipes: str, **settings: object) -> Experiment:
    return read_experiment(
        {"task": "basics", "models": ["simulated"], "recipes": list(recipes), **settings}
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "falter.db"


# What is bundled


def test_sixty_items_have_each_paraphrase_once() -> None:
    """Five items a subject; each of the three is there for all of them, by one author."""
    rewrites = of_questions()
    assert Counter(r.perturbation for r in rewrites) == dict.fromkeys(THREE, BUNDLED)
    assert {r.author for r in rewrites} == {HAND_WRITTEN}
    sources = {r.source for r in rewrites}
    by_text = {item.fields["question"]: item for item in tasks.get("basics")(None).items}
    subjects = Counter(by_text[text].tags[0] for text in sources)
    assert (len(subjects), set(subjects.values())) == (12, {5})
    assert len({(r.perturbation, r.source) for r in rewrites}) == len(rewrites)


def test_every_text_passes_what_a_models_must() -> None:
    """Nothing protected is lost, it is no copy, and reading it as a reply leaves it as it is."""
    for rewrite in (*bundled_rewrites(), *of_enterprise()):
        made, text = made_by(rewrite.perturbation), rewrite.text
        wanted = made.wanted(rewrite.source, 0)
        assert wanted.key == rewrite.key, text
        assert text is not None, rewrite.source
        assert made.problem(rewrite.source, text, rewrite.params) is None, text
        assert read_reply(wanted, Response(key="", text=text)) == ("ok", text, None)


def test_paraphrase_and_tone_of_all_items_are_bundled(store: Path) -> None:
    """All four tasks of all 115 items; the prompts asked hold them, with times and speakers."""
    counted = Counter(r.perturbation for r in of_enterprise())
    assert counted["paraphrase_free"] == counted["tone"] >= 4 * 115
    settings = {"tasks": [f"{name}:it,translated" for name in ENTERPRISE], "limit": 2}
    recipes = ["paraphrase_free", "tone"]
    result = falter.run(read_experiment(settings | {"models": ["simulated"], "recipes": recipes}),
                        store=store)  # fmt: skip
    texts = {(r.perturbation, r.source): r.text for r in of_enterprise()}
    with Store(store) as opened:
        for cell in opened.cells(result.run):
            (asked,) = [s for s in cell.variant.prompt.sections if s.kind == "input"]
            fields, label = cell.variant.item.fields, cell.variant.recipe.label
            if label in recipes:
                assert asked.text in {texts.get((label, text.strip())) for text in fields.values()}


def test_the_three_of_an_item_differ() -> None:
    """Two perturbations of an item never give the same prompt."""
    texts: dict[str, set[str | None]] = {}
    for rewrite in of_questions():
        texts.setdefault(rewrite.source, set()).add(rewrite.text)
    assert {len(found) for found in texts.values()} == {3}


def test_it_answers_for_the_first_draw_and_default_parameters_only() -> None:
    """Another draw, text to protect or another version of what is asked finds nothing."""
    bank, one = bundled_bank(), bundled_rewrites()[0]
    made = made_by(one.perturbation)
    assert bank.find(made.key(one.source, 0), one.source) == one
    assert bank.find(made.key(one.source, 0, scope=("input", "document")), one.source) == one
    assert bank.find(made.key(one.source, 1), one.source) is None
    assert bank.find(made.key(one.source, 0, protect=("x+",)), one.source) is None
    other = replace(made.wanted(one.source, 0), text=one.source + " ")
    assert bank.find(other.key, other.text) is None


def test_a_bundled_bank_can_be_published(tmp_path: Path) -> None:
    """Its records are whole ones: they go through a file and come back."""
    path = tmp_path / "bank.jsonl"
    path.write_text("".join(f"{line}\n" for line in bank_lines(bundled_rewrites())), "utf-8")
    assert tuple(read_bank(path)) == bundled_rewrites()


# What a run does with it


def test_a_run_needs_neither_key_nor_rewriter(store: Path) -> None:
    """Sixty items are compared, the others are left out of both arms and counted, and the prompt
    that was asked holds the bundled text."""
    result = falter.run(basics(*THREE), store=store)
    (panel,) = result.analysis.panels
    for recipe in panel.recipes:
        assert (recipe.counts.changed, recipe.counts.no_rewrite) == (BUNDLED, ITEMS - BUNDLED)
        assert recipe.drop.items == recipe.accuracy.items == BUNDLED
    texts = {(r.perturbation, r.source): r.text for r in bundled_rewrites()}
    with Store(store) as opened:
        for cell in opened.cells(result.run):
            variant = cell.variant
            asked = next(s.text for s in variant.prompt.sections if s.kind == "input")
            source = variant.item.fields["question"]
            expected = texts.get((variant.recipe.label, source), source)
            assert asked == expected
            if variant.recipe.steps:
                assert variant.status == ("changed" if asked != source else "no_rewrite")
    assert "612 without a rewrite" in " ".join(result.summary().replace("\xa0", " ").split())
    assert "no rewrite" in html(result.study)


def test_basics_core_lacks_nothing(store: Path) -> None:
    """It is the sixty items, so nothing is left out."""
    experiment = read_experiment(
        {"task": "basics:core", "models": ["simulated"], "recipes": list(THREE)}
    )
    (panel,) = falter.run(experiment, store=store).analysis.panels
    for recipe in panel.recipes:
        assert (recipe.counts.changed, recipe.counts.no_rewrite) == (BUNDLED, 0)


def test_a_real_model_runs_with_it(tmp_path: Path, capsys: Capture) -> None:
    """The command of the documents, on ten items of which one has a rewrite."""
    code = invoke([
        "run", "--task", "basics", "--model", "smollm2", "-r", "paraphrase_free", "--limit", "10",
        "--store", str(tmp_path / "falter.db"),
    ])  # fmt: skip
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "paraphrase_free" in said.out
    counts = open_result(tmp_path / "falter.db").analysis.panels[0].recipes[0].counts
    assert (counts.changed, counts.no_rewrite) == (1, 9)


def test_the_letters_template_finds_it_too(store: Path) -> None:
    """The question is the same text however the item is asked."""
    with resolved_in(basics("paraphrase_free", scorer="choice_letter"), store) as resolved:
        assert resolved.rewrites is not None
        assert len(resolved.rewrites.left_out) == ITEMS - BUNDLED


def test_a_chain_goes_on_from_the_bundled_text(store: Path) -> None:
    """A later step changes a rewritten item; an item without a rewrite leaves the whole chain."""
    result = falter.run(basics("paraphrase_free+pad_quotes"), store=store)
    (recipe,) = result.analysis.panels[0].recipes
    assert (recipe.counts.changed, recipe.counts.no_rewrite) == (BUNDLED, ITEMS - BUNDLED)


def test_nothing_bundled_for_a_task_is_still_an_error(tmp_path: Path, store: Path) -> None:
    """Another task's texts, another perturbation's, and a second draw's are missing."""
    own = read_experiment({
        "data": {"path": str(write_data(tmp_path)), "choices": "options", "target": "answer"},
        "template": "{question}\nAnswer:", "models": ["simulated"],
        "recipes": ["paraphrase_free"],
    })  # fmt: skip
    for experiment, lacking in (
        (own, "8 of 8 rewrites for paraphrase_free are missing"),
        (basics("tone"), "264 of 264 rewrites for tone"),
        (basics("paraphrase_free", "tone"), "264 of 264 rewrites for tone"),
        (basics("paraphrase_free", draws=2), "264 of 528 rewrites for paraphrase_free are missing"),
        (basics("paraphrase_free", protect=["x+"]), "264 of 264 rewrites for paraphrase_free"),
    ):
        with pytest.raises(PreflightError, match=lacking) as caught:
            falter.run(experiment, store=store)
        assert "falter rewrites prepare" in str(caught.value)
    with Store(store) as opened:
        assert opened.runs() == []


def test_two_tasks_are_settled_apart(tmp_path: Path, store: Path) -> None:
    """Texts of a task without any are missing, though another task has some."""
    rows = [["How many legs has a spider?", "six", "eight", "ten", "four", "B"]]
    (tmp_path / "spiders_test.csv").write_text(
        "".join(",".join(row) + "\n" for row in rows), "utf-8"
    )
    experiment = read_experiment({
        "tasks": ["basics", f"mmlu:{tmp_path / 'spiders_test.csv'}"],
        "models": ["simulated"], "recipes": ["paraphrase_free"],
    })  # fmt: skip
    with pytest.raises(PreflightError, match="1 of 265 rewrites for paraphrase_free are missing"):
        falter.run(experiment, store=store)


def test_a_named_rewriter_is_asked_for_what_is_not_bundled(store: Path) -> None:
    """The bundled rewrites go first and none is asked for again; nothing is left out."""
    with pytest.raises(PreflightError, match=f"{ITEMS - BUNDLED} of {ITEMS}"):
        falter.run(basics("paraphrase_free", rewriter="simulated"), store=store)


def test_the_order_is_file_bundled_store(tmp_path: Path, store: Path) -> None:
    """For one text that all three know, and for texts that only a later one knows."""
    made = made_by("paraphrase_free")
    first, second = [r for r in bundled_rewrites() if r.perturbation == made.name][:2]
    third = made.wanted("Who is it?", 0)
    own = [
        hand_written(made.wanted(r.source, 0), f"From the file: {r.text}", "ann") for r in [first]
    ]
    stored = [
        hand_written(wanted, f"Stored: {wanted.text}", "ann")
        for wanted in (*(made.wanted(r.source, 0) for r in (first, second)), third)
    ]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(f"{line}\n" for line in bank_lines(own)), "utf-8")
    with Store(store) as opened:
        put_rewrites(opened, stored)
        bank = bank_for(basics("paraphrase_free", rewrites=str(path)), opened)
        texts = ((first.key, first.source), (second.key, second.source), (third.key, third.text))
        found = [bank.find(key, text) for key, text in texts]
    assert found == [own[0], second, stored[2]]


def test_a_models_unfinished_rewrites_are_not_filled_in_silently(store: Path) -> None:
    """Where a model has made some, the rest is missing: it is to be asked for them."""
    made = made_by("paraphrase_free")
    sources = {r.source for r in bundled_rewrites()}
    other = next(
        item.fields["question"] for item in tasks.get("basics")(None).items
        if item.fields["question"] not in sources
    )  # fmt: skip
    with Store(store) as opened:
        put_rewrites(opened, [hand_written(made.wanted(other, 0), f"So: {other}", "openai:x")])
        needs = resolve(basics("paraphrase_free"), bank_for(basics("typos"), opened)).rewrites
    assert needs is not None
    assert (len(needs.missing), needs.left_out) == (ITEMS - BUNDLED - 1, [])


def test_a_review_counts_and_makes_another_run(store: Path) -> None:
    """Taken into the store, a rejected text leaves both arms; the others stay as they are."""
    before = falter.run(basics("paraphrase_free"), store=store)
    assert invoke(["rewrites", "import", "--bundled", "--store", str(store)]) == 0
    assert falter.run(basics("paraphrase_free"), store=store).run.id == before.run.id
    with Store(store) as opened:
        sample = sample_of(bundled_rewrites()[0])
        put_samples(opened, [sample])
        put_reviews(opened, [Review(sample=sample.id, rater="ann", decision="reject")])
    after = falter.run(basics("paraphrase_free"), store=store)
    assert after.run.id != before.run.id
    (recipe,) = after.analysis.panels[0].recipes
    assert (recipe.counts.changed, recipe.counts.no_rewrite) == (BUNDLED - 1, ITEMS - BUNDLED + 1)


# What the commands say


def test_plan_counts_what_is_left_out(tmp_path: Path, capsys: Capture) -> None:
    """In words and as JSON; recipes with all their rewrites, or with none, say nothing here."""
    arguments = ["plan", "--task", "basics", "--model", "simulated", "-r", "paraphrase_free",
                 "-r", "typos", "--store", str(tmp_path / "none.db")]  # fmt: skip
    assert invoke(arguments) == 0
    out = capsys.readouterr().out
    assert "paraphrase_free: 60 of 264 texts have a bundled rewrite" in out
    assert "missing" not in out
    assert invoke([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["missing_rewrites"], found["texts_left_out"]) == (0, ITEMS - BUNDLED)
    assert invoke([*arguments, "--rewriter", "simulated"]) == 0
    out = capsys.readouterr().out
    assert "bundled" not in out and f"missing: {ITEMS - BUNDLED} of {ITEMS}" in out


def test_status_counts_the_bundled_author(store: Path) -> None:
    """With an experiment that may use them; a named rewriter lacks what is not among them."""
    with Store(store) as opened:
        (row,) = rewrite_status(basics("paraphrase_free"), opened)
        assert (row.author, row.wanted, row.statuses, row.missing) == (
            HAND_WRITTEN, ITEMS, {"ok": BUNDLED}, ITEMS - BUNDLED,
        )  # fmt: skip
        ours, row = rewrite_status(basics("paraphrase_free", rewriter="simulated"), opened)
        assert (ours.author, ours.wanted, ours.missing) == (HAND_WRITTEN, BUNDLED, 0)
        assert (row.author, row.statuses, row.missing) == ("simulated", {}, ITEMS - BUNDLED)
        (row,) = rewrite_status(basics("tone"), opened)
        assert (row.author, row.missing) == ("", ITEMS)
        assert rewrite_status(None, opened) == []


def test_a_manifest_is_made_and_verified_with_it(tmp_path: Path, capsys: Capture) -> None:
    """The same on any machine; what nothing is bundled for is an error before a line is written."""
    path = tmp_path / "manifest.jsonl"
    base = ["--task", "basics", "--store", str(tmp_path / "none.db")]
    assert invoke(["variants", "export", *base, "-r", THREE[0], "-o", str(path), "--prompts"]) == 0
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()[1:-1]]
    assert Counter(row["status"] for row in rows) == {
        "baseline": ITEMS, "changed": BUNDLED, "no_rewrite": ITEMS - BUNDLED,
    }  # fmt: skip
    assert invoke(["variants", "verify", str(path), *base, "-r", THREE[0]]) == 0
    assert invoke(["variants", "verify", str(path), *base, "-r", THREE[1]]) == 1
    other = tmp_path / "other.jsonl"
    capsys.readouterr()
    assert invoke(["variants", "export", *base, "-r", "tone", "-o", str(other)]) == 2
    assert "264 of 264 rewrites for tone(formal) are missing" in capsys.readouterr().err
    assert not other.exists()


def test_the_bank_can_be_bound_by_itself() -> None:
    """From Python: a perturbation with the bundled rewrites at hand is a plain function."""
    task, one = tasks.get("basics")(None), bundled_rewrites()[0]
    item = next(i for i in task.items if i.fields["question"] == one.source)
    prompt = task.templates["cloze"].build(item)
    after = made_by(one.perturbation).bind(bundled_bank(), 0)(prompt, Rng(0))
    assert [s.text for s in after.sections if s.kind == "input"] == [one.text]
