"""Settings of the condition: another number of examples, temperature or template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from falter.engine.config import read_experiment
from falter.engine.recipes import recipe_from
from falter.engine.resolving import resolve
from falter.engine.variants import variant_sets
from falter.perturbations import perturb
from falter.records.errors import FalterError, UsageError
from falter.records.planning import plan
from falter.records.types import Sampling


def experiment(**settings: Any) -> Any:
    return read_experiment({"task": "basics", "models": ["simulated"], "limit": 6} | settings)


def requests(**settings: Any) -> list[Any]:
    (panel,) = resolve(experiment(**settings)).panels
    return list(plan(panel.items, panel.conditions, panel.target))


def test_a_temperature_changes_only_the_sampling() -> None:
    """The words are the baseline's, the temperature another, and so is the request."""
    first, second = requests(recipes=["temperature:value=0.2"], scorer="choice_letter")[:2]
    assert first.messages == second.messages
    assert first.key != second.key
    assert (first.sampling.temperature, second.sampling.temperature) == (0.0, 0.2)
    assert second.sampling.max_tokens == first.sampling.max_tokens
    assert second.variant.status == "changed"


def test_a_temperature_needs_an_answer_that_is_written() -> None:
    """The likelihood of options has no temperature: an error before anything is sent."""
    with pytest.raises(UsageError, match="changes the written reply"):
        requests(recipes=["temperature"], scorer="choice_likelihood")


def test_fewer_demonstrations_are_some_of_more() -> None:
    """Each recipe has its number of examples, all from one held-out set; the items are shared."""
    (one,) = variant_sets(
        experiment(recipes=["demonstrations:count=2", "demonstrations:count=4"], demonstrations=1)
    )
    base, two, four = list(one.variants())[:3]
    shown = [[d.answer for d in v.prompt.demonstrations] for v in (base, two, four)]
    assert [len(answers) for answers in shown] == [1, 2, 4]
    assert set(shown[0]) <= set(shown[1]) <= set(shown[2])
    texts = {d.sections for d in four.prompt.demonstrations}
    assert all(v.prompt.sections not in texts for v in one.variants())


def test_another_template_asks_the_same_items(tmp_path: Path) -> None:
    """The user's file words the prompt anew; a placeholder without a field is an error."""
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_text("Please reply.\nQ: {question}\nA:")
    bad.write_text("{questoin}\nA:")
    (one,) = variant_sets(experiment(recipes=[{"template": {"file": str(good)}}]))
    base, other = list(one.variants())[:2]
    assert other.status == "changed"
    assert other.prompt.sections[0].text == "Please reply.\nQ: "
    assert other.prompt.choices == base.prompt.choices
    with pytest.raises(FalterError, match="has no field"):
        variant_sets(experiment(recipes=[{"template": {"file": str(bad)}}]))


def test_the_files_path_is_relative_to_the_experiment(tmp_path: Path) -> None:
    """A recipe's file lies beside the experiment file."""
    (tmp_path / "t.txt").write_text("{question}\nA:")
    found = read_experiment(
        {"task": "basics", "models": ["simulated"], "recipes": [{"template": {"file": "t.txt"}}]},
        folder=tmp_path,
    )
    assert recipe_from(found.recipes[0]).template == "{question}\nA:"


def test_settings_chain_with_perturbations() -> None:
    """A chain of noise, examples and temperature is one recipe; the noise is its only step."""
    recipe = recipe_from(
        [("typos", {}), ("demonstrations", {"count": 2}), ("temperature", {"value": 0.2})]
    )
    assert [step.name for step in recipe.steps] == ["typos"]
    assert recipe.demonstrations == 2
    assert recipe.sampling == {"max_tokens": 1, "temperature": 0.2}
    assert recipe.label == "typos+demonstrations(count=2)+temperature(value=0.2)"
    assert recipe.group == "chains"


def test_the_longer_answer_limit_counts() -> None:
    """A recipe that needs room for an answer never takes away the experiment's own."""
    asked = requests(
        recipes=["temperature"],
        scorer="choice_letter",
        sampling={"max_tokens": 900, "temperature": 0.1},
    )
    assert {r.sampling.max_tokens for r in asked} == {900}
    assert isinstance(asked[0].sampling, Sampling)


@pytest.mark.parametrize("name", ["temperature", "demonstrations", "identity", "template"])
def test_a_setting_is_nothing_for_a_text(name: str) -> None:
    """There is no text to change: a clear error, not the text unchanged."""
    with pytest.raises(UsageError, match="changes the request settings"):
        perturb("What is the capital of France?", name)


def test_identity_stands_alone() -> None:
    """In a chain it would mean nothing."""
    with pytest.raises(UsageError, match="is used alone"):
        recipe_from([("typos", {}), ("identity", {})])


def test_the_language_holds_for_every_step_that_has_one() -> None:
    """An experiment's language is that of its word noise; a step's own goes before it."""
    recipe = recipe_from([("typos", {}), ("pad_quotes", {})], language="en")
    assert recipe.steps[0].params["language"] == "en"
    with pytest.raises(UsageError, match="expected one of"):
        recipe_from([("typos", {})], language="xx")
    assert recipe_from([("typos:count=2,language=en", {})], language="xx").label


def test_an_item_has_one_persona_for_all_its_options() -> None:
    """Options are scored behind one and the same context, and every model draws the same one."""
    asked = requests(recipes=["persona"], models=["simulated"])
    assert all(len(r.continuations) == 4 for r in asked)
    others = requests(recipes=["persona"], models=[{"name": "simulated", "options": {"seed": 5}}])
    assert [r.context for r in asked] == [r.context for r in others]
    assert len({r.context.partition("\n")[0] for r in asked[1::2]}) > 1


def test_other_examples() -> None:
    """Sets of examples have none in common, every recipe asks the same items, and none is an
    example; without examples it is an error before anything is sent."""
    chosen = ["demonstration_choice", "demonstration_choice:number=2", "demonstrations:count=3"]
    (one,) = variant_sets(experiment(recipes=chosen, demonstrations=2))
    base, first, second, more = list(one.variants())[:4]
    assert {v.item.key for v in (base, first, second, more)} == {base.item.key}
    sets = [{d.sections for d in v.prompt.demonstrations} for v in (base, first, second, more)]
    assert [len(shown) for shown in sets] == [2, 2, 2, 3] and first.status == "changed"
    assert not sets[0] & sets[1] and not sets[1] & sets[2] and not sets[0] & sets[2]
    asked = {v.prompt.sections for v in one.variants()}
    assert asked.isdisjoint(set().union(*sets))
    with pytest.raises(UsageError, match="but the experiment has none"):
        variant_sets(experiment(recipes=["demonstration_choice"]))
