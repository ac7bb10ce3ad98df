"""Tools described as JSON: found, written anew, left alone where their order or layout counts."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from falter.perturbations import apply_recipe, parse_step, perturbations
from falter.records.render import plain
from falter.records.types import Demonstration, Prompt, Recipe, Section
from falter.testing.properties import Sample, check_perturbation

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a day, not of a week.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "A caf\u00e9's town."},
                "day_of_week": {"type": "string", "enum": ["mon", "tue"], "default": "mon"},
            },
            "required": ["city"],
        },
    },
}
MAIL = {
    "name": "send_mail",
    "description": "Sends a mail",
    "inputSchema": {
        "type": "object",
        "properties": {
            "to": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "kind": {"const": 1.50}},
                },
            },
            "text": {"type": "string"},
        },
        "required": ["to", "text"],
    },
}
FORMS = {
    "list": json.dumps([WEATHER, MAIL], ensure_ascii=False),
    "indented": json.dumps([WEATHER, MAIL], indent=2),
    "one a line": f"<tools>\n{json.dumps(WEATHER)}\n{json.dumps(MAIL)}\n</tools>",
    "request": json.dumps({"tools": [MAIL, WEATHER], "tool_choice": "auto"}, indent=4),
    "alone": json.dumps(MAIL, separators=(",", ":")),
}
CALL = 'get_weather(city="Rome", day_of_week="tue")'
QUESTION = "What will get_weather say of Rome?"


def asked(schema: str, question: str = QUESTION, target: str = CALL) -> Prompt:
    return Prompt(
        sections=(
            Section(name="tools", kind="system", text=f"You may call tools.\n{schema}\nOne call."),
            Section(name="question", kind="input", text=question),
        ),
        target=target,
    )


def run(prompt: Prompt, way: str, key: str = "k") -> tuple[Prompt, str]:
    recipe = Recipe(label=way, steps=(parse_step(f"tool_schema:{way}"),))
    after, status, _ = apply_recipe(key, prompt, recipe, 0, 0)
    return after, status


def tools_of(prompt: Prompt) -> list[dict[str, Any]]:
    """The tools of the system message, as a program reads them."""
    inside = prompt.sections[0].text.split("\n", 1)[1].rsplit("\n", 1)[0]
    if "<tools>" in inside:
        return [json.loads(line) for line in inside.splitlines()[1:-1]]
    read = json.loads(inside)
    return read if isinstance(read, list) else read.get("tools", [read])


def by_name(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Tools without an order: by their name, what is required as a set, no stops at the end."""
    inner = [tool.get("function", tool) for tool in tools]
    inner = json.loads(json.dumps(inner).replace('."', '"'))
    for tool in inner:
        schema = tool.get("parameters") or tool.get("inputSchema")
        schema["required"] = sorted(schema["required"])
    return {tool["name"]: tool for tool in inner}


def order_of(value: Any) -> Any:
    """The keys of all objects and the items of all lists, as they come."""
    if isinstance(value, dict):
        return [(key, order_of(inner)) for key, inner in value.items()]
    return [order_of(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("form", FORMS)
def test_the_same_tools_in_another_order_and_layout(form: str) -> None:
    """Whoever reads the JSON reads the same tools; the rest of the prompt stays as it is."""
    before = asked(FORMS[form])
    for way in ("draw", "order", "layout"):
        after, status = run(before, way)
        text = after.sections[0].text
        assert status == "changed" and after.target == CALL
        assert text.startswith("You may call tools.\n") and text.endswith("\nOne call.")
        assert by_name(tools_of(after)) == by_name(tools_of(before))
        reordered = order_of(tools_of(after)) != order_of(tools_of(before))
        assert reordered is (way != "layout")
    layouts = {run(before, "layout", str(n))[0].sections[0].text for n in range(12)}
    assert len(layouts) == {"one a line": 1, "alone": 3, "request": 3}.get(form, 4)
    described = plain(run(before, "descriptions")[0])
    assert ("a day, not of a week." in described) is (form == "request")


def test_tools_of_one_name_keep_their_order() -> None:
    """In a prompt built by hand: nothing tells their orders apart, and the change ends."""
    parameters = {"properties": {"city": {"type": "string"}, "day": {"type": "string"}}}
    tool = json.dumps({"name": "get_weather", "parameters": parameters})
    twice = [Section(name="tool", kind="tool", text=tool)] * 2
    prompt = Prompt(sections=(*twice, Section(name="q", kind="input", text=QUESTION)))
    after, _ = run(prompt, "order")
    assert [s.name for s in after.sections] == ["tool", "tool", "q"]


def test_the_property_suite_holds() -> None:
    samples = [Sample(name=form, prompt=asked(text)) for form, text in FORMS.items()]
    check_perturbation(perturbations.get("tool_schema"), samples)


def test_names_are_spelt_anew_everywhere() -> None:
    """In the schema, the question, the examples and the expected call; no name is taken twice."""
    sections = (Section(name="q", kind="input", text="And now?"),)
    shown = Demonstration(sections=sections, answer='send_mail(text="Hi")')
    before = replace(asked(FORMS["list"]), demonstrations=(shown,))
    after, status = run(before, "names")
    assert status == "changed" and after.target == 'getWeather(city="Rome", dayOfWeek="tue")'
    assert after.demonstrations[0].answer == 'sendMail(text="Hi")'
    assert not any(name in plain(after) for name in ("get_weather", "day_of_week", "send_mail"))
    as_read = replace(
        after,
        sections=tuple(replace(section, edits=()) for section in after.sections),
        demonstrations=(replace(after.demonstrations[0], sections=sections),),
    )
    back, _ = run(as_read, "names")
    assert plain(back) == plain(before) and back.target == CALL
    taken = asked(FORMS["list"], question="Call get_weather, not getWeather.")
    assert run(taken, "names")[1] == "not_applicable"
    assert run(replace(before, choices=("send_mail", "none")), "names")[1] == "not_applicable"


@pytest.mark.parametrize(
    ("question", "target"),
    [
        ("Which does the second tool send?", "a mail"),
        ("Give positional arguments.", CALL),
        ("Will it rain in Rome?", 'get_weather("Rome", "tue")'),
    ],
    ids=["counted", "positional", "without names"],
)
def test_the_order_stays_where_something_goes_by_it(question: str, target: str) -> None:
    before = asked(FORMS["list"], question, target)
    assert run(before, "order")[1] == "not_applicable"
    after, status = run(before, "draw")
    names = [list(by_name(tools_of(prompt))) for prompt in (before, after)]
    assert status == "changed" and names[0] == names[1]


@pytest.mark.parametrize(
    "prompt",
    [
        asked('{"name": "x", "parameters": "none"}'),
        asked('{"name": "x", "name": "y", "parameters": {"type": "object"}}'),
        asked('{"name": "x", "parameters": {"type": '),
        asked("[" * 5000 + '"parameters": {'),
        asked(FORMS["list"], question="How many lines does this JSON have?"),
        asked(FORMS["alone"], target=FORMS["alone"]),
    ],
    ids=["no schema", "a key twice", "cut", "deep", "about the JSON", "copied"],
)
def test_what_is_no_tool_or_what_the_prompt_is_about_stays(prompt: Prompt) -> None:
    assert run(prompt, "draw")[1] == "not_applicable"


def test_examples_show_the_same_tools() -> None:
    """An example that shows the same block shows it as it is written now."""
    tools = asked(FORMS["list"]).sections
    before = replace(
        asked(FORMS["list"]), demonstrations=(Demonstration(sections=tools, answer=CALL),)
    )
    after, _ = run(before, "draw")
    assert after.demonstrations[0].sections[0].text == after.sections[0].text
