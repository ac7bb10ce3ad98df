"""Of this drop, how much is real: from stored answers to the sentence of a report."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import falter
from every_estimate import every_estimate
from falter.analysis.results import PanelResult, RecipeParts
from falter.cli.app import invoke
from falter.clients import clients
from falter.engine.config import read_experiment
from falter.engine.results import Result
from falter.perturbations import perturbations, site_perturbation
from falter.records.rng import Rng
from falter.records.types import Request, Response
from falter.testing import Scripted

QUEUES = ["billing", "delivery", "returns", "account", "technical", "sales"]
Answer = Callable[[Request], "str | Response"]


def tickets(folder: Path, items: int = 48) -> dict[str, Any]:
    """Made-up tickets with a number word in each, their queues listed as choices."""
    rows = [
        {"key": f"t{n:02d}", "text": f"My five parcels and seven letters, case {n}.",
         "queues": QUEUES, "queue": QUEUES[n % 6]}
        for n in range(items)
    ]  # fmt: skip
    path = folder / "tickets.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return {"path": str(path), "target": "queue", "choices": ["queues"], "key": "key"}


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer, recipe: str, **settings: Any
) -> Result:
    """A run of one recipe and identity, answered by a function, scored strictly."""
    monkeypatch.setitem(clients._objects, "own", lambda _: Scripted(answer, name="own"))
    given = {"data": tickets(folder), "models": ["own"], "recipes": [recipe, "identity"],
        "template": "Ticket: {text}\nQueue:",
             "scorer": "exact", **settings}  # fmt: skip
    return falter.run(read_experiment(given), store=folder / "s.db")


def panel_of(result: Result) -> PanelResult:
    return result.analysis.panels[0]


def parts_of(result: Result) -> RecipeParts:
    (parts,) = panel_of(result).parts
    return parts


def target(request: Request) -> str:
    prompt = request.variant.prompt
    assert isinstance(prompt.target, int)
    return prompt.choices[prompt.target]


def number(request: Request) -> int:
    return int(request.variant.item.key[1:])


def changed(request: Request) -> bool:
    return bool(request.variant.recipe.steps)


def wordy(request: Request) -> str:
    """Every third answer to a changed prompt is a sentence around the right queue."""
    right = target(request)
    return f"This one is for {right}." if changed(request) and number(request) % 3 == 0 else right


def test_a_reader_that_would_judge_much_otherwise_is_the_headline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A strict scorer takes wordy answers for wrong ones; the second reader knows better.

    The first sentence says so with the command that applies it, and no part acquits the prompt.
    """
    result = asked(tmp_path, monkeypatch, wordy, "persona")
    parts = parts_of(result)
    assert parts.reader == "named_answer"
    assert parts.split.drop.value == parts.split.wording.value == pytest.approx(1 / 3)
    assert parts.split.blamed is None
    assert (parts.churn.lost, parts.churn.gained, parts.churn.again.value) == (16.0, 0.0, 0.0)
    assert all("second reader named_answer" in e.signature for e in every_estimate(parts))
    first = result.study.figures[0].text[0]
    assert first.startswith(
        "named_answer would judge 16 of 144 responses (11.1 %) differently, with another verdict "
        "on persona: 'falter rescore "
    )
    command = shlex.split(first.split("'")[1])
    assert invoke([*command[1:], "--store", str(tmp_path / "s.db")]) == 0


def test_refusals_are_the_prompts_doing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A perturbation that makes the model refuse: the points come from the prompt, by refusals."""

    def answer(request: Request) -> str:
        if changed(request) and number(request) % 3 == 0:
            return "I'm sorry, but I can't help with that."
        return str(request.variant.prompt.target)

    data = {name: tickets(tmp_path)[name] for name in ("path", "target", "key")}
    result = asked(tmp_path, monkeypatch, answer, "persona", scorer="label", data=data)
    text = " ".join(result.study.figures[0].text)
    assert (
        "All of the 33.3 points under a persona in front come from the changed prompt itself, all "
        "of them because the model refuses." in text
    )
    assert "not shown to come from" not in text
    assert "16 of 144 responses hold no usable answer (16 refused) and count as wrong" in text


def test_a_second_host_is_the_servings_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fourth changed prompt went to another version, which gets everything wrong."""

    def answer(request: Request) -> Response:
        away = changed(request) and number(request) % 4 == 0
        text = "nothing" if away else target(request)
        return Response(
            key="", text=text, finish_reason="stop", served_by="model-2" if away else "model-1"
        )

    split = parts_of(asked(tmp_path, monkeypatch, answer, "persona")).split
    assert split.corrected[2] == 12
    assert split.serving.value == pytest.approx(1 / 4)
    assert split.wording.value == pytest.approx(0.0)
    assert split.blamed == "serving"


def careless() -> None:
    """A perturbation that takes a number out of every second ticket."""

    def sites(text: str, blocked: object) -> list[tuple[int, int]]:
        found = re.search(r"seven(?=.* case \d*[02468]\.)|letters(?=.* case \d*[13579]\.)", text)
        return [found.span()] if found else []

    @site_perturbation("careless", sites=sites, default_rate=1.0)
    def _careless(text: str, site: tuple[int, int], rng: Rng) -> tuple[int, int, str]:
        """Takes a number out of every second ticket."""
        return *site, "some"


def test_a_lost_number_is_the_meanings_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the prompts lose a number, and the answers to every second of these are wrong."""

    def answer(request: Request) -> str:
        right = target(request)
        wrong = changed(request) and number(request) % 4 == 0
        return QUEUES[(QUEUES.index(right) + 1) % 6] if wrong else right

    careless()
    try:
        split = parts_of(asked(tmp_path, monkeypatch, answer, "careless")).split
    finally:
        perturbations._objects.pop("careless")
    assert split.corrected == (0, 24, 0)
    assert split.drop.value == split.meaning.value == 0.25
    assert (split.reading.value, split.serving.value, split.wording.value) == (0.0, 0.0, 0.0)
    assert split.blamed == "meaning"


def test_a_recipe_of_settings_is_not_checked_for_its_meaning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another template says other words on purpose: no check says anything, and it is never 0."""
    other = tmp_path / "other.txt"
    other.write_text("{text}\nWhich queue?", encoding="utf-8")

    def answer(request: Request) -> str:
        return "sales" if request.variant.recipe.sets else target(request)

    found = parts_of(asked(tmp_path, monkeypatch, answer, f"template:file={other}"))
    assert (found.split.meaning.status, found.split.meaning.value) == ("not_identified", None)


def test_what_asking_again_turns_stands_beside_what_the_recipe_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked again, every eighth answer turns wrong; changed, every fourth."""

    def answer(request: Request) -> str:
        every = 4 if changed(request) else 8 if request.repeat else 999
        return target(request) if number(request) % every or every == 999 else "sales or billing"

    churn = parts_of(asked(tmp_path, monkeypatch, answer, "persona")).churn
    assert (churn.lost, churn.gained) == (12.0, 0.0)
    assert churn.again.value == 3.0
    assert churn.ratio.value == 2.0
    assert churn.ratio.low is not None and churn.ratio.low > 0.0


def test_options_by_likelihood_have_nothing_to_read_again(tmp_path: Path) -> None:
    """No second reader, nothing to correct: the wording part is the drop."""
    result = falter.run(
        read_experiment({"task": "basics", "models": ["simulated"], "recipes": ["typos"],
                         "scorer": "choice_likelihood", "limit": 40}),
        store=tmp_path / "s.db",
    )  # fmt: skip
    parts = parts_of(result)
    assert parts.reader is None
    assert parts.split.reading.method == "none: nothing to correct"
    assert parts.split.serving.method == "none: nothing to correct"
    assert parts.churn.ratio.status == "not_identified"


def test_parts_of_unread_answers_add_up(tmp_path: Path) -> None:
    """It says nothing in a known share of its answers, alike on both sides; the parts add up."""
    result = falter.run(
        read_experiment({"task": "basics",
                         "models": [{"name": "simulated", "options": {"unparsed": 0.2}}],
                         "recipes": ["typos"], "scorer": "choice_letter", "limit": 100}),
        store=tmp_path / "s.db",
    )  # fmt: skip
    split = parts_of(result).split
    assert sum(p.value or 0.0 for p in split.parts) == pytest.approx(split.drop.value)


def test_the_command_prints_one_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--figure parts` shows the parts alone; an unknown name is refused with the nearest one."""
    asked(tmp_path, monkeypatch, wordy, "persona")

    def shown(*figures: str) -> tuple[int, str]:
        named = [part for figure in figures for part in ("--figure", figure)]
        code = invoke(["report", "--store", str(tmp_path / "s.db"), *named])
        return code, "".join(capsys.readouterr())

    code, text = shown("parts")
    assert code == 0
    for word in ("reading", "meaning", "serving", "wording", "16 were lost"):
        assert word in text
    assert "Baseline accuracy" not in text
    assert "Every number, recipe by recipe" in shown("parts", "recipes")[1]
    code, text = shown("partz")
    assert code != 0
    assert "did you mean 'parts'?" in text
