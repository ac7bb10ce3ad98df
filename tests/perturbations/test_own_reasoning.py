"""A perturbation of the user's own that asks for reasoning: known by what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import falter
from falter.clients import clients
from falter.engine.config import read_experiment
from falter.engine.recipes import recipe_from
from falter.engine.resolving import resolve
from falter.perturbations import framed, parse_step, perturbations, prompt_perturbation
from falter.protocols.brittlebench.arms import pairs_of
from falter.records.codec import from_json, to_json
from falter.records.errors import InvalidValue, UsageError
from falter.records.rng import Rng
from falter.records.types import BASELINE, Prompt, Recipe, Request, Step
from falter.store.store import Store
from falter.testing import Scripted
from falter.testing.properties import check_perturbation

ASKED = "Think aloud before you answer.\n"


@pytest.fixture(autouse=True)
def _aloud() -> Iterator[None]:
    """`think_aloud`, which other tests must not see."""

    @prompt_perturbation("think_aloud", reply_tokens=200, reasons=True)
    def think_aloud(prompt: Prompt, rng: Rng) -> Prompt:
        """Asks for thoughts in other words than ours."""
        return framed(prompt, "think_aloud", before=ASKED)

    yield
    perturbations._objects.pop("think_aloud")


@pytest.fixture
def _thinker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is always right, and thinks of a wrong answer first if it is asked to think."""

    def answer(request: Request) -> str:
        prompt = request.variant.prompt
        right, wrong = str(prompt.target), "999"
        if prompt.choices and isinstance(prompt.target, int):
            right = prompt.labels[prompt.target]
            wrong = prompt.labels[prompt.target - 1]
        asked = request.context + "".join(text for _, text in request.messages)
        return f"It could be {wrong}.\nAnswer: {right}" if ASKED in asked else right

    monkeypatch.setitem(clients._objects, "thinker", lambda _: Scripted(answer, name="thinker"))


@pytest.mark.usefixtures("_thinker")
@pytest.mark.parametrize(
    ("task", "scorer"),
    [("sums", "numeric"), ("sums", "exact"), ("basics", "choice_letter"), ("sums", "rougeL")],
)
def test_replies_to_it_are_read_from_their_end(task: str, scorer: str, tmp_path: Path) -> None:
    """Under any name, from the request to the score: every answer is right, none is 0.0."""
    result = falter.run(
        task=task, models=["thinker"], scorer=scorer, limit=8, store=tmp_path / "s.db",
        recipes=["typos", "think_aloud", "think_aloud+typos"],
    )  # fmt: skip
    rows = result.scores()
    assert {(row["outcome"], row["value"]) for row in rows} == {("scored", 1.0)}
    assert {row["recipe"] for row in rows if row["status"] == "changed"} >= {"think_aloud"}


def test_it_survives_the_store(tmp_path: Path) -> None:
    """What is read back still says that it reasons."""
    run = falter.run(
        task="sums", models=["simulated"], limit=3, recipes=["think_aloud"], store=tmp_path / "s.db"
    ).run
    with Store(tmp_path / "s.db") as store:
        again = store.find_run(run.id).run
    assert [recipe.reasons for recipe in again.recipes] == [False, True]
    assert again == run


@pytest.mark.usefixtures("_thinker")
def test_what_it_says_of_itself_may_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose replies were read wrongly is read anew when it is run again; nothing is asked."""
    asked = {"task": "sums", "models": ["thinker"], "scorer": "exact", "limit": 5,
             "recipes": ["think_aloud"], "store": tmp_path / "s.db"}  # fmt: skip
    with monkeypatch.context() as before:
        before.setattr(perturbations.get("think_aloud"), "reasons", False)
        wrong = falter.run(**asked)
    clients._objects.pop("thinker")
    monkeypatch.setitem(clients._objects, "thinker", lambda _: Scripted([], name="thinker"))
    right = falter.run(**asked)
    assert wrong.run.id == right.run.id
    drops = [result.analysis.panels[0].recipes[0].drop.value for result in (wrong, right)]
    assert drops == [1.0, 0.0]


def test_the_simulated_model_thinks_where_it_is_asked_to(tmp_path: Path) -> None:
    """It looks at the recipe, not at a name."""
    result = falter.run(
        task="basics", models=["simulated"], scorer="choice_letter", limit=6,
        recipes=["think_aloud"], store=tmp_path / "s.db",
    )  # fmt: skip
    with Store(tmp_path / "s.db") as store:
        for cell in store.cells(result.run):
            text = cell.response.text if cell.response else None
            assert text is not None
            assert ("Answer: " in text) == cell.variant.recipe.reasons
    assert {row["outcome"] for row in result.scores()} == {"scored"}


def test_both_arms_are_found_under_any_name() -> None:
    """A recipe's mate has the same steps but those that reason."""
    names = (["typos"], ["think_aloud"], ["think_aloud", "typos"], ["word_split"])
    recipes = (BASELINE, *(recipe_from([(name, {}) for name in chain]) for chain in names))
    pairs = pairs_of(recipes)
    assert pairs is not None
    assert (pairs.plain, pairs.thought, pairs.alone) == ((0, 1), (2, 3), ("word_split",))


def test_reasoning_is_no_part_of_an_identity() -> None:
    """Name and version say it already, so recipes of earlier versions keep their ids."""
    plain = Step(name="x", version=1)
    thinking = Step(name="x", version=1, reasons=True)
    one, other = Recipe(label="x", steps=(plain,)), Recipe(label="x", steps=(thinking,))
    assert (one.id, one.reasons, other.reasons) == (other.id, False, True)
    assert from_json(Recipe, to_json(other)) == other
    built_in = Recipe(label="", steps=(parse_step("chain_of_thought"),))
    assert built_in.reasons
    assert built_in.id[7:] == "64bf00dcdee220bc62b97e4951c5b10e7478c6842c2c406a923d110151a69b3c"


def test_it_needs_room_for_its_thoughts() -> None:
    """A reply cut at a letter's length would be unreadable: said when it is registered."""
    with pytest.raises(
        InvalidValue, match=r"reply_tokens of 'curt' is 0.*enough tokens for the reasoning"
    ):
        prompt_perturbation("curt", reasons=True)(lambda prompt, rng: prompt)
    assert "curt" not in perturbations


def test_likelihoods_cannot_show_it() -> None:
    """A scorer that reads no reply is refused before anything is sent."""
    experiment = read_experiment(
        {"task": "basics", "models": ["simulated"], "recipes": ["think_aloud"], "limit": 3}
    )
    with pytest.raises(UsageError, match="'think_aloud' changes the written reply"):
        resolve(experiment)


def test_it_passes_the_property_suite() -> None:
    check_perturbation(perturbations.get("think_aloud"))
