"""Labels of a closed set: chosen by themselves, named, stored with the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.engine.config import read_experiment
from falter.engine.execution import PanelCost
from falter.engine.plans import panel_row, panel_text
from falter.engine.resolving import resolve
from falter.engine.scoring import run_scorers
from falter.records.errors import UnknownName, UsageError
from falter.records.planning import Cost
from falter.scorers.choosing import are_labels, usual_reason, usual_scorer
from falter.scorers.reading.labels import read_label
from falter.scorers.reading.phrases import declines

COST = Cost(
    cells=1, calls=1, stored=0, prompt_tokens=1, completion_tokens=1, amount=None, currency="USD"
)
QUEUES = ("billing", "login", "shipping")


def settings(folder: Path, targets: tuple[str, ...] = QUEUES * 4, **more: Any) -> dict[str, Any]:
    rows = [{"ticket": f"Ticket {n}", "queue": queue} for n, queue in enumerate(targets)]
    path = folder / "tickets.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return {
        "data": {"path": str(path), "target": "queue"}, "template": "Route it.\n\n{ticket}\nQueue:",
        "models": ["simulated"], "recipes": ["typos"],
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "few"),
    [
        (QUEUES * 2, True),
        (QUEUES, False),
        (("billing",) * 9, False),
        (("Yes", "no", "yes", "No"), True),
        (("1", "2", "3") * 9, False),
        (tuple(map(str, range(21))) * 3, False),
        (tuple(f"label {n}" for n in range(20)) * 2, True),
        (tuple(f"label {n}" for n in range(21)) * 2, False),
        (("a" * 61, "b") * 4, False),
        (("one\ntwo", "b") * 4, False),
        ((), False),
    ],
)
def test_what_looks_like_labels(targets: tuple[str, ...], few: bool) -> None:
    """From 2 to 20 different short texts, twice each on average, and not only numbers."""
    assert are_labels(targets) is few
    name = usual_scorer(choices=False, likelihoods=False, targets=targets)
    assert (name == "label") is few


@pytest.mark.parametrize(
    ("targets", "scorer"),
    [
        (("12", "7", "1,500", "-3.5"), "numeric"),
        (("12", "7", "twelve"), "answer"),
        (("Paris", "the Danube", "42"), "answer"),
        (('{"a": 1}', ' {"a": 2, "b": [1]}'), "fields"),
        (('{"a": 1}', "{}"), "answer"),
        (('["Holland", "the Netherlands"]', "Paris"), "answer"),
        ((".", ","), "answer"),
        ((), "answer"),
    ],
)
def test_other_targets_name_their_scorer(targets: tuple[str, ...], scorer: str) -> None:
    """Numbers, JSON objects, and short answers for all else."""
    assert usual_scorer(choices=False, likelihoods=False, targets=targets) == scorer
    assert usual_reason(scorer, targets)


def test_options_go_before_labels() -> None:
    assert usual_scorer(choices=True, likelihoods=False, targets=QUEUES * 4) == "choice_letter"


def test_a_plan_says_which_scorer_and_why(tmp_path: Path) -> None:
    """The rule that chose it, or that it was asked for."""
    (chosen,) = resolve(read_experiment(settings(tmp_path))).panels
    (asked,) = resolve(read_experiment(settings(tmp_path, scorer="exact"))).panels
    assert chosen.panel.scorer == "label"
    text = panel_text(panel_row(PanelCost(panel=chosen, cost=COST, items=6), None))
    assert "  scorer label: 3 different targets, which repeat: one label of a closed set\n" in text
    assert asked.because == "as you asked"


def test_labels_are_those_of_all_items_however_many_are_asked(tmp_path: Path) -> None:
    """So that a smaller run reads by the same set; and they are stored with the run."""
    run = resolve(read_experiment(settings(tmp_path, limit=1))).run
    assert run.experiment["labels"] == {"tickets": list(QUEUES)}
    assert (
        "labels" not in resolve(read_experiment(settings(tmp_path, scorer="exact"))).run.experiment
    )
    (scorer,) = run_scorers(run).values()
    assert scorer.labels == {"tickets": QUEUES}


def test_labels_that_are_named_make_it_the_scorer(tmp_path: Path) -> None:
    """Also where the targets would not: there are too few items, or they are numbers."""
    named = settings(tmp_path, ("1", "2"), labels=["1", "2", "3"])
    resolved = resolve(read_experiment(named))
    assert resolved.panels[0].panel.scorer == "label"
    assert resolved.run.experiment["labels"] == {"tickets": ["1", "2", "3"]}


def test_a_target_that_is_no_label_is_an_error_with_the_nearest(tmp_path: Path) -> None:
    said = "^Unknown label in the targets of 'tickets': 'biling'"
    with pytest.raises(UnknownName, match=said) as raised:
        resolve(read_experiment(settings(tmp_path, ("biling", "login"), labels=list(QUEUES))))
    assert "billing" in str(raised.value)


@pytest.mark.parametrize("labels", [["billing"], ["billing", "Billing", "login"]])
def test_labels_that_are_no_set_are_refused(labels: list[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        resolve(read_experiment(settings(tmp_path, ("billing",) * 4, labels=labels)))


def test_labels_that_nothing_reads_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No scorer of this experiment uses"):
        resolve(read_experiment(settings(tmp_path, labels=list(QUEUES), scorer="exact")))


def test_a_stored_run_is_read_by_its_own_labels(tmp_path: Path) -> None:
    """From a run to its scores, without naming them again."""
    result = falter.run(**settings(tmp_path), store=tmp_path / "falter.db")
    outcomes = {row["outcome"] for row in result.scores()}
    assert "scored" in outcomes and "failed" not in outcomes


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.", "Das kann ich leider nicht beantworten.",
        "Lo siento, no puedo responder a eso.", "Je ne peux pas répondre à cette demande.",
        "Mi dispiace, non posso rispondere.", "申し訳ありませんが、お答えできません。",
        "Het spijt me, ik kan daar geen antwoord op geven.", "Desculpe, não posso responder.",
    ],
)  # fmt: skip
def test_a_refusal_is_recognised_in_every_bundled_language(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", ["billing", "I can't be sure, but billing.", "No.", "", "42"])
def test_what_answers_declines_nothing(text: str) -> None:
    assert not declines(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("billing", "billing"), ("**Billing**", "billing"), ('{"queue": "login"}', "login"),
        ("The login queue should handle this.", "login"), ("Not billing but login.", "login"),
        ("billing. Wait, no: login.", "login"), ("<think>billing</think>login", "login"),
        ("billing or perhaps login", None), ("billing, login", None), ("refunds", None),
        ("If it was paid, billing; otherwise login.", None), ("You asked: billing or login?", None),
        ("Le ticket concerne la file login.", "login"), ("billingではなくloginです。", "login"),
        ("Die Queue ist nicht billing, sondern login.", "login"), ("", None),
    ],
)  # fmt: skip
def test_one_label_is_read(text: str, label: str | None) -> None:
    assert read_label(text, QUEUES).answer == label


@pytest.mark.parametrize(
    "end", ["<think>" * 4000, "{" * 15_000, "(" * 15_000, "| " * 9000, "a" * 30_000]
)
def test_hostile_replies_are_read_as_nothing(end: str) -> None:
    """Deep, long or unclosed: nothing is raised."""
    assert read_label(end, QUEUES).answer is None
