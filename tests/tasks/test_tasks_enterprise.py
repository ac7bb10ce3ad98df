"""The enterprise tasks: their schemas, their translations, their scorers, and bad data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import falter
from falter.engine.config import read_experiment
from falter.engine.rewriting import bank_for
from falter.engine.variants import variant_sets
from falter.perturbations import apply_recipe, parse_step
from falter.records.answers import AnswerKey, AnswerSchema
from falter.records.errors import TaskError, UnknownName
from falter.records.interfaces import Case
from falter.records.render import plain
from falter.records.types import BASELINE, Item, Prompt, Recipe, Response, Variant
from falter.scorers import scorers
from falter.scorers.answer_parts import answer_parts
from falter.tasks import tasks
from falter.tasks.enterprise_data import read_domain, read_issues
from falter.tasks.task import Task

NAMES = ("enterprise_case", "enterprise_chat", "enterprise_questions", "enterprise_slots")
PARTS = {"enterprise_case": 3, "enterprise_chat": 6, "enterprise_questions": 2}
FORMS = ("json", "yaml", "xml", "markdown", "html", "text")
DATA = Path(falter.__file__).parent / "tasks" / "data" / "enterprise"


def task(name: str, argument: str | None = None) -> Task:
    return tasks.get(name)(argument)


def prompt_of(name: str, argument: str | None = None) -> Prompt:
    loaded = task(name, argument)
    return loaded.templates["open"].build(loaded.items[0])


SUMMARY = AnswerSchema(
    keys=(
        AnswerKey(name="main_problem"),
        AnswerKey(name="key_events", many=True),
    )
)
SLOTS = AnswerSchema(
    keys=(
        AnswerKey(name="town", optional=True),
        AnswerKey(name="light", choices=("red", "green"), optional=True),
        AnswerKey(name="open", optional=True),
    ),
    lines=True,
    empty="none",
)
REPLIES = {
    "json": '{"main_problem": "Disk & fan", "key_events": ["one: 1", "two"]}',
    "yaml": 'main_problem: Disk & fan\nkey_events:\n  - "one: 1"\n  - two',
    "xml": "<answer><main_problem>Disk &amp; fan</main_problem>"
    "<key_events><item>one: 1</item><item>two</item></key_events></answer>",
    "markdown": "## Main problem\nDisk & fan\n\n## key_events\n- one: 1\n- two",
    "html": '<p id="main_problem">Disk &amp; fan</p>'
    '<ul id="key_events"><li>one: 1</li><li>two</li></ul>',
}
FILLED = {
    "json": '{"town": "Lund", "light": null, "open": false}',
    "yaml": "town: Lund\nlight:\nopen: false",
    "xml": "<answer><town>Lund</town><light></light><open>false</open></answer>",
    "markdown": "## town\nLund\n## light\n## open\nfalse",
    "html": '<p id="town">Lund</p><p id="light"></p><p id="open">false</p>',
    "text": "town: Lund\nlight: None\nopen: false",
}


# Reading


@pytest.mark.parametrize("form", REPLIES)
def test_the_parts_are_the_same_in_every_form(form: str) -> None:
    """One meaning, five forms, read with real parsers; a fence around it does no harm."""
    expected = {"main_problem": "Disk & fan", "key_events": "one: 1\ntwo"}
    assert answer_parts(REPLIES[form], form, SUMMARY) == expected
    assert answer_parts(f"```{form}\n{REPLIES[form]}\n```", form, SUMMARY) == expected
    assert answer_parts(FILLED[form], form, SLOTS) == {"town": "Lund", "open": "false"}


def test_plain_text_is_free_but_for_slots() -> None:
    """No heading is demanded: any text is an answer of one part, an empty one is none."""
    assert answer_parts(" The disk.\n", "text", SUMMARY) == {"reply": "The disk."}
    assert answer_parts("  ", "text", SUMMARY) is None
    assert answer_parts(FILLED["text"], "text", SLOTS) == {"town": "Lund", "open": "false"}
    assert answer_parts("I would rather not.", "text", SLOTS) is None


@pytest.mark.parametrize("form", REPLIES)
@pytest.mark.parametrize(
    "reply",
    ["", "I cannot do that.", "{", "<answer><main_problem>x</answer>", "<a>" * 30_000, "\ud800"],
)
def test_what_is_not_in_its_form_has_no_parts(form: str, reply: str) -> None:
    assert answer_parts(reply, form, SUMMARY) is None


@pytest.mark.parametrize("form", REPLIES)
def test_a_reply_in_another_form_or_without_a_part_is_not_read(form: str) -> None:
    """Half an answer is none; the parts of the first form are no answer in the second."""
    for other, reply in REPLIES.items():
        if {form, other} not in ({"json", "yaml"},):
            assert (answer_parts(reply, form, SUMMARY) is not None) == (form == other), other
    cut = REPLIES[form].replace("key_events", "events")
    assert answer_parts(cut, form, SUMMARY) is None


def test_a_part_that_is_there_twice_is_ambiguous() -> None:
    doubled = REPLIES["markdown"] + "\n## Main problem\nAnother"
    assert answer_parts(doubled, "markdown", SUMMARY) is None


def test_scorers_read_the_form_that_the_prompt_or_the_recipe_asks_for() -> None:
    """The clean prompt asks for JSON, a format recipe for its own form."""
    item = Item(task="t", key="k", fields={}, target="town: Lund\nlight: green")
    prompt = Prompt(sections=(), schema=SLOTS, target=item.target)
    recipe = Recipe(label="format_xml", output_format="xml")

    def score(name: str, text: str, recipe: Recipe) -> Any:
        variant = Variant(item=item, recipe=recipe, draw=0, prompt=prompt, status="changed")
        return scorers.get(name).score(Case(variant=variant, response=Response(key="", text=text)))

    right = score("filled_slots", '{"town": "lund", "light": "green"}', BASELINE)
    assert (right.outcome, right.value) == ("scored", 1.0)
    assert score("filled_slots", '{"town": "Lund", "light": "Green"}', BASELINE).value == 0.5
    assert score("filled_slots", FILLED["xml"], BASELINE).outcome == "unparsed"
    assert score("filled_slots", FILLED["xml"], recipe).value == 0.5
    assert score("complete_parts", FILLED["xml"], recipe).value == 1.0
    facts = score("stated_facts", '{"town": "It is LIGHT:  green in town"}', BASELINE)
    assert (facts.outcome, facts.value) == ("scored", 0.5)


# Tasks


@pytest.mark.parametrize("name", NAMES)
def test_every_item_has_a_schema_of_its_own_task(name: str) -> None:
    """Two to six parts; those of slots are the item's own, with its own choices."""
    for argument, folder in (("it", "it/items"), ("hr", "hr/items"), ("it,ja", "it/items/ja")):
        loaded = task(name, argument)
        assert len(loaded.items) == len(list((DATA / folder).glob("*.yaml")))
        for item in loaded.items:
            prompt = loaded.templates["open"].build(item)
            assert prompt.schema is not None
            assert len(prompt.schema.keys) in ([PARTS[name]] if name in PARTS else range(8, 13))
            assert "{" not in plain(prompt).replace('{"', "")
    schemas = {json.loads(item.fields["answer_schema"])["keys"][0]["name"] for item in loaded.items}
    assert (len(schemas) > 1) == (name == "enterprise_slots")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_a_format_asks_for_the_tasks_own_keys(name: str, form: str) -> None:
    """Every key is in the rule, the old rule is gone, and the sketch of the form can be read."""
    prompt = prompt_of(name)
    recipe = Recipe(label=form, steps=(parse_step(f"format_{form}"),))
    changed = apply_recipe("k", prompt, recipe, 0, 0)
    assert changed.status == "changed"
    rule = plain(changed.prompt)[-1400:]
    assert prompt.schema is not None
    if form != "text":
        assert all(f"- {key.name}" in rule for key in prompt.schema.keys)
        sketch = rule.partition("It looks like this:\n")[2].partition("\nA")[0]
        assert answer_parts(sketch, form, prompt.schema) is not None
    assert "Reply with one JSON object and nothing else. Its keys, in English" not in rule


@pytest.mark.parametrize("name", NAMES)
def test_translating_gives_the_prompt_of_the_other_language(name: str) -> None:
    """Translated with the bundled translations, a prompt is the one written in that language."""
    for language in ("de", "fr-CA", "ja"):
        experiment = read_experiment(
            {"task": f"{name}:it,translated", "recipes": [f"translate:to={language}"], "limit": 2},
            needs_models=False,
        )
        (found,) = variant_sets(experiment, bank_for(experiment, None))
        other = task(name, f"it,{language}")
        written = {item.key: other.templates["open"].build(item) for item in other.items}
        for variant in (v for v in found.variants() if v.recipe.steps):
            assert variant.status == "changed"
            assert plain(variant.prompt) == plain(written[variant.item.key])
            assert variant.prompt.target == written[variant.item.key].target


def test_only_what_an_end_user_writes_is_open_to_their_typos() -> None:
    """The query is the user's, the schema and the instructions are the template's."""
    kinds = {s.name: s.kind for s in prompt_of("enterprise_slots").sections}
    assert (kinds["query"], kinds["schema"]) == ("input", "instruction")
    kinds = {s.name: s.kind for s in prompt_of("enterprise_questions").sections}
    assert (kinds["question"], kinds["documents"]) == ("input", "document")


@pytest.mark.parametrize(
    ("argument", "error"),
    [("it,deutsch", UnknownName), ("nowhere", TaskError), ("hr,translated", TaskError)],
)
def test_unknown_parts_of_a_name_raise(argument: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        task("enterprise_case", argument)


# Bad data


def written(folder: Path, language: str = "en", **changes: Any) -> Path:
    """The first item of the bundled ones with some fields changed, as a file of the folder."""
    key = "label-printer-shifted-labels"
    origin = DATA / "it" / "items"
    source = origin / f"{key}.yaml" if language == "en" else origin / language / f"{key}.yaml"
    row = yaml.safe_load(source.read_text("utf-8"))
    row.update(changes)
    place = folder if language == "en" else folder / language
    place.mkdir(parents=True, exist_ok=True)
    name = f"{row['key']}{len(list(place.iterdir()))}.yaml"
    (place / name).write_text(yaml.safe_dump(row, allow_unicode=True), "utf-8")
    return folder


def test_a_folder_of_the_users_own_is_a_task(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, "de")
    assert len(task("enterprise_slots", str(tmp_path)).items) == 1
    assert len(task("enterprise_slots", f"{tmp_path},de").items) == 1


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    """Duplicate keys, a missing translation, a value the schema lacks, a missing document."""
    written(tmp_path)
    written(tmp_path)
    written(tmp_path, key="other", answers=["HW-999"])
    slot = {"name": "light", "type": "choice", "choices": ["red"], "about": "x", "value": "blue"}
    written(tmp_path, key="third", slots=[slot], chat=[])
    written(tmp_path, key="fourth", rewrites={"tone": {"query": "Hello", "chat": ["One."]}})
    written(tmp_path, key="fifth", rewrites={"tone": {"answer": "No."}})
    written(tmp_path, "de")
    written(tmp_path, "ja", key="other")
    with pytest.raises(TaskError) as caught:
        task("enterprise_case", str(tmp_path))
    for fault in (
        "the key 'label-printer-shifted-labels' appears 2 times",
        "answers name the document 'HW-999', which is missing",
        "'chat' is not a list with entries",
        "rewrites, tone: 'chat' is not a list with a text for each turn",
        "rewrites, tone: 'answer' is not one of case, chat, question, query",
        "'other' has no translation into de",
        "'label-printer-shifted-labels' has no translation into ja",
    ):
        assert fault in str(caught.value)


def test_files_that_are_no_items_or_domains_are_named_with_the_line(tmp_path: Path) -> None:
    lines, domain = tmp_path / "items.jsonl", tmp_path / "domain.yaml"
    lines.write_bytes(b'{"key": "a", "language": "tlh"}\n{"key": "\xe4"}\n')
    with pytest.raises(TaskError, match=r"line 2: .*'utf-8' codec") as caught:
        task("enterprise_case", str(lines))
    assert "line 1: the language 'tlh' is not one of en, de" in str(caught.value)
    with pytest.raises(TaskError, match=r"items\.jsonl, line 2 is not UTF-8"):
        read_issues(str(lines), read_domain("hr"))
    domain.write_text("- name\n")
    with pytest.raises(TaskError, match="is not a mapping"):
        read_domain(str(domain))


def test_a_gold_value_that_the_schema_lacks_is_a_fault(tmp_path: Path) -> None:
    slot = {"name": "light", "type": "choice", "choices": ["red"], "about": "x", "value": "blue"}
    with pytest.raises(TaskError, match="the value 'blue' is not one of the slot's choices"):
        task("enterprise_case", str(written(tmp_path, slots=[slot])))


def test_a_rewritten_request_without_a_gold_value_is_a_fault(tmp_path: Path) -> None:
    reworded = {"paraphrase_free": {"query": "It prints too low."}}
    with pytest.raises(TaskError, match="slot 'bench': the value '3' does not appear in the query"):
        task("enterprise_case", str(written(tmp_path, rewrites=reworded)))
