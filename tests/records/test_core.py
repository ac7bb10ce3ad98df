"""Records, ids, seeds, the registry and the exception tree."""

from __future__ import annotations

import ast
import json
import random
import string
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.records import errors, ids, render
from falter.records.codec import from_json, to_json
from falter.records.errors import DuplicateName, FalterError, InvalidValue, RunError, UnknownName
from falter.records.registry import Registry
from falter.records.rng import Rng
from falter.records.types import (
    BASELINE,
    Demonstration,
    Edit,
    Estimate,
    Item,
    Model,
    Panel,
    Prompt,
    Recipe,
    Response,
    Run,
    Section,
    Step,
)

ITEM = Item(task="t", key="1", fields={"q": "é"}, choices=("a", "b"), target=1, tags=("x",))
PROMPT = Prompt(
    sections=(
        Section(name="s", kind="system", text="Be brief."),
        Section(
            name="q", kind="input", text="Who?", protected=((0, 1),),
            edits=(Edit(start=0, end=0, new_start=0, new_end=1),),
        ),
        Section(name="c", kind="choices", text="A. x\nB. y"),
        Section(name="cue", kind="cue", text="\nAnswer:"),
    ),
    demonstrations=(
        Demonstration(sections=(Section(name="q", kind="input", text="2+2?"),), answer="4"),
    ),
    choices=("x", "y"),
    labels=("A", "B"),
    target=0,
)  # fmt: skip
RECIPE = Recipe(
    label="typos(count=2)",
    group="g",
    steps=(Step(name="typos", version=1, params={"count": 2}),),
    sampling={"temperature": 0.5},
)
MODEL = Model(client="openai", name="m", base_url="http://x/v1", options={"top_k": 1})
RUN = Run(
    experiment={"limit": None, "level": 0.95},
    version="0",
    seed=0,
    recipes=(BASELINE, RECIPE),
    panels=(Panel(task="t", revision="sha256:0", model=MODEL, scorer="exact"),),
)


@pytest.mark.parametrize(
    "record",
    [ITEM, PROMPT, RECIPE, MODEL, RUN, Response(key="k", text="t"), Estimate(measure="m", value=1)],
    ids=lambda r: type(r).__name__,
)
def test_records_survive_json(record: object) -> None:
    """A record is the same after a round trip through JSON text."""
    again = from_json(type(record), json.loads(json.dumps(to_json(record))))
    assert again == record
    if hasattr(record, "id"):
        assert again.id == record.id


def test_from_json_refuses_unknown_fields() -> None:
    with pytest.raises(ValueError, match="Item has no field nonsense"):
        from_json(Item, {"task": "t", "key": "1", "fields": {}, "nonsense": 1})


def test_ids_are_pinned() -> None:
    """The ids that stores in the field hold must never change by accident."""
    assert ITEM.id == "sha256:" + ITEM.id[7:] and len(ITEM.id) == 71
    assert {
        "item": ids.short(ITEM.id),
        "recipe": ids.short(RECIPE.id),
        "model": ids.short(MODEL.id),
        "run": ids.short(RUN.id),
        "baseline": ids.short(BASELINE.id),
    } == PINNED


PINNED = {
    "item": "a081121599",
    "recipe": "3f338ba2c5",
    "model": "e846f472e2",
    "run": "4a034c9556",
    "baseline": "8407bec566",
}


def test_a_label_is_not_part_of_a_recipe() -> None:
    """Two recipes that do the same are the same, whatever they are called."""
    other = Recipe(label="other", group="h", steps=RECIPE.steps, sampling=RECIPE.sampling)
    assert other.id == RECIPE.id


@given(
    st.dictionaries(
        st.text(), st.integers(-(2**63), 2**63 - 1) | st.text() | st.booleans() | st.none()
    )
)
def test_canonical_json_ignores_the_order_of_keys(data: dict[str, object]) -> None:
    backwards = dict(reversed(data.items()))
    assert ids.canonical(data) == ids.canonical(backwards)


@pytest.mark.parametrize("value", ["half \ud800 a pair", 2**70, ["\udfff", 1.5]], ids=ascii)
def test_canonical_json_takes_what_orjson_refuses(value: object) -> None:
    assert ids.canonical(value) == ids.canonical(value)
    assert ids.digest("t", value).startswith("sha256:")


def test_canonical_json_refuses_what_is_not_json() -> None:
    with pytest.raises(TypeError):
        ids.canonical(object())


def test_the_seed_of_a_step_depends_on_what_it_should() -> None:
    """Run seed, name, version, occurrence, item and draw: nothing else, and each of them."""
    base = (0, "typos", 1, 0, "item", 0)
    seeds = {ids.step_seed(*base)}
    for place, other in enumerate((1, "persona", 2, 1, "other", 1)):
        changed = list(base)
        changed[place] = other  # type: ignore[call-overload]
        seeds.add(ids.step_seed(*changed))  # type: ignore[arg-type]
    assert len(seeds) == 7


def test_draws_are_pinned() -> None:
    """The same draws on every machine and Python, and the global generator untouched."""
    before = random.getstate()
    rng = Rng(12345)
    drawn = [rng.below(1000) for _ in range(5)], list(rng.order(6)), rng.choice("abc")
    assert drawn == ([416, 10, 825, 298, 368], [1, 3, 2, 0, 4, 5], "a")
    assert random.getstate() == before


@given(st.integers(0, 2**64 - 1), st.integers(0, 60))
def test_an_order_is_a_permutation(seed: int, n: int) -> None:
    assert sorted(Rng(seed).order(n)) == list(range(n))


def test_an_unknown_name_offers_the_nearest() -> None:
    registry: Registry[int] = Registry("thing", "falter.nothing")
    registry.register("typos", 1)
    registry.register("persona", 2)
    with pytest.raises(UnknownName) as caught:
        registry.get("typo")
    assert str(caught.value) == "Unknown thing 'typo'\n\nhint: did you mean 'typos'?"
    with pytest.raises(UnknownName, match="known: persona, typos"):
        registry.get("zzz")


def test_a_duplicate_name_is_refused() -> None:
    registry: Registry[object] = Registry("thing", "falter.nothing")
    registry.register("a", "x")
    with pytest.raises(DuplicateName, match="The thing 'a' is registered twice"):
        registry.register("a", "y")


@given(st.text(string.printable, max_size=30))
def test_an_invalid_value_shows_argument_value_and_what_would_do(value: str) -> None:
    error = InvalidValue("rate", value, "a number from 0 to 1")
    assert error.message.startswith("rate is ") and error.message.endswith("a number from 0 to 1")
    assert error.exit_code == 2 and RunError("x").exit_code == 1
    assert isinstance(error, FalterError)


def test_plain_rendering() -> None:
    assert render.plain(PROMPT) == "Be brief.\n\n2+2? 4\n\nWho?A. x\nB. y\nAnswer:"
    assert render.continuations(PROMPT) == (" x", " y")


def test_chat_rendering() -> None:
    assert render.messages(PROMPT) == (
        ("system", "Be brief."),
        ("user", "2+2?"),
        ("assistant", "4"),
        ("user", "Who?A. x\nB. y\nAnswer:"),
    )


def test_other_choices_are_listed_anew_and_carry_the_target() -> None:
    moved = render.with_choices(PROMPT, ("y", "x"), ("A", "B"), 1)
    assert moved.choices[1] == PROMPT.choices[0] and moved.target == 1
    assert moved.sections[2].text == "A. y\nB. x"


def test_every_sentence_of_a_refusal_is_used_with_its_values() -> None:
    """A table that is missing, left over or filled with other values would show at the error."""
    home = Path(errors.__file__).parents[1]
    for table in home.glob("*/data/refusals.toml"):
        package = table.parts[-3]
        sentences = tomllib.loads(table.read_text("utf-8"))
        wanted = {
            (f"{package}.{name}", frozenset(field for text in texts.values()
             for _, field, _, _ in string.Formatter().parse(text) if field))
            for name, texts in sentences.items()
        }  # fmt: skip
        calls = (
            node
            for path in (home / package).rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "refusal"
        )
        assert wanted == {
            (ast.literal_eval(call.args[1]), frozenset(str(k.arg) for k in call.keywords))
            for call in calls
        }
