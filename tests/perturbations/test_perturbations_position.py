"""Position: parts move, documents and lists change order, and nothing is glued or lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb
from falter.perturbations.position import bullet_lists, documents
from falter.perturbations.recipes import Applied
from falter.records.render import messages, plain
from falter.records.types import Demonstration, Item, Prompt, Recipe, Section
from falter.tasks import Template, tasks

ITEM = Item(
    task="t",
    key="k",
    fields={
        "question": "Who\n\npays?", "a": "The firm pays.", "b": "Keep the bill.", "c": "Ask Ann.",
    },
    choices=("Ann", "Bob"),
    target=0,
)  # fmt: skip
LETTER = {
    "system": "Be brief.",
    "instruction": "Choose well.",
    "input": "\nQuestion: {question}",
    "choices": "{choices}",
    "output_format": "\nGive the letter.",
    "cue": "Answer:",
}


def run(prompt: Prompt, *steps: str, key: str = "k") -> Applied:
    recipe = Recipe(label="test", steps=tuple(map(parse_step, steps)))
    return apply_recipe(key, prompt, recipe, 0, 0)


def built(source: str | dict[str, str]) -> Prompt:
    return Template.parse(source).build(ITEM)


def outcomes(prompt: Prompt, *steps: str) -> set[str]:
    """Every prompt that some key gives, as the user's message."""
    made = [run(prompt, *steps, key=str(n)) for n in range(40)]
    return {messages(one.prompt)[-1][1] for one in made if one.status == "changed"}


QUESTION = "Question: Who\n\npays?\nA. Ann\nB. Bob"


def test_the_context_moves() -> None:
    """The input, its label and its options go before or behind; the breaks and the cue stay."""
    assert outcomes(built(LETTER), "move_context") == {
        f"{QUESTION}\n\nChoose well.\n\nGive the letter.\nAnswer:",
        f"Choose well.\n\nGive the letter.\n\n{QUESTION}\nAnswer:",
    }
    after = run(built(LETTER), "move_context").prompt
    assert plain(after).startswith("Be brief.\n\n")
    assert (after.target, after.choices) == (0, ("Ann", "Bob"))


def test_the_rules_for_the_answer_move() -> None:
    """The output instructions go to the front or between; the cue stays last."""
    assert outcomes(built(LETTER), "move_output_instructions") == {
        f"Give the letter.\n\nChoose well.\n\n{QUESTION}\nAnswer:",
        f"Choose well.\n\nGive the letter.\n\n{QUESTION}\nAnswer:",
    }


def test_both_move() -> None:
    """Mixed positions are such as neither move alone makes."""
    assert outcomes(built(LETTER), "mixed_positions") == {
        f"Give the letter.\n\n{QUESTION}\n\nChoose well.\nAnswer:",
        f"{QUESTION}\n\nGive the letter.\n\nChoose well.\nAnswer:",
    }


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{question}\nAnswer:", set()),
        ("Translate {question} please.", set()),
        ("Nothing but words. {question}", set()),
        (
            "{question}\n\nWork it out, then write it after '####'.",
            {"Work it out, then write it after '####'.\n\nWho\n\npays?"},
        ),
        (
            "Read this.\nCase:\n```\n{question}\n```\n\nSum it up.\nBe brief.\nSummary:",
            {
                "Case:\n```\nWho\n\npays?\n```\nRead this.\n\nSum it up.\nBe brief.\nSummary:",
                "Read this.\nSum it up.\nBe brief.\n\nCase:\n```\nWho\n\npays?\n```\nSummary:",
            },
        ),
        (
            "Read <case>\n<case>\n{question}\n</case>\n\nSum it up.",
            {
                "<case>\nWho\n\npays?\n</case>\nRead <case>\n\nSum it up.",
                "Read <case>\nSum it up.\n\n<case>\nWho\n\npays?\n</case>",
            },
        ),
        (
            "First: {a}\n\nThink.\n\nSecond: {b}",
            {
                "Think.\n\nFirst: The firm pays.\n\nSecond: Keep the bill.",
                "Think.\n\nSecond: Keep the bill.\n\nFirst: The firm pays.",
                "Second: Keep the bill.\n\nFirst: The firm pays.\n\nThink.",
                "First: The firm pays.\n\nSecond: Keep the bill.\n\nThink.",
            },
        ),
        ("Think.\n{question} Answer:", set()),
        (
            "\n\nThink.\n\n\n{a}\nLook.\n{b} Now:",
            {"\n\nThe firm pays.\n\n\nThink.\nLook.\nKeep the bill. Now:",
             "\n\nThink.\n\n\nLook.\nThe firm pays.\nKeep the bill. Now:"},
        ),
    ],
)  # fmt: skip
def test_unusual_templates(template: str, expected: set[str]) -> None:
    """Labels, headings, fences and tags move along; a line that cannot be cut stays."""
    prompt = built(template)
    assert outcomes(prompt, "move_context") == expected
    if not expected:
        assert run(prompt, "move_context") == (prompt, "not_applicable", "move_context")


def test_nothing_is_lost_and_nothing_glued() -> None:
    """The same words and the same line breaks, whatever moves."""
    for name in ("move_context", "move_output_instructions", "mixed_positions"):
        for key in map(str, range(10)):
            before, after = built(LETTER), run(built(LETTER), name, key=key).prompt
            assert Counter(plain(before).split()) == Counter(plain(after).split())
            assert plain(before).count("\n") == plain(after).count("\n")
            assert {s.name for s in before.sections} <= {s.name for s in after.sections}


def test_demonstrations_follow_the_template() -> None:
    """Solved examples of the same template are laid out alike; others stay."""
    prompt = built(LETTER)
    same = Demonstration(sections=prompt.sections, answer="A")
    other = Demonstration(sections=(Section(name="x", kind="input", text="Who?"),), answer="B")
    shot = replace(prompt, demonstrations=(same, other))
    after = run(shot, "move_context").prompt
    assert messages(after)[1][1] == messages(after)[-1][1] != messages(prompt)[-1][1]
    assert after.demonstrations[1] == other


def test_text_around_the_prompt_stays_around_it() -> None:
    """Padding and personas keep the first and the last place."""
    after = run(built(LETTER), "pad_quotes:count=2", "persona", "move_context").prompt
    lines = plain(after).removeprefix("Be brief.\n\n").split("\n")
    assert lines[0].startswith("You ")
    assert lines[1].startswith('""')
    assert lines[-1] == 'Answer:""'


def test_earlier_edits_move_along() -> None:
    """What an earlier step wrote stays written, wherever it goes."""
    once = run(built(LETTER), "shuffle_choice_texts", "persona").prompt
    after = run(built(LETTER), "shuffle_choice_texts", "persona", "move_context").prompt
    assert "A. Bob\nB. Ann" in plain(once) and "A. Bob\nB. Ann" in plain(after)
    assert plain(once) != plain(after)
    listed = [next(s for s in p.sections if s.kind == "choices") for p in (once, after)]
    assert listed[0].edits == listed[1].edits


def test_protected_sections_are_not_cut() -> None:
    """Where a closed section would have to be cut in two, that move is not made."""
    prompt = built("Think.\n\nQuestion: {question}\n\nLook.")
    assert run(prompt, "move_context").status == "changed"
    first, *others = prompt.sections
    closed = replace(first, protected=((0, len(first.text)),))
    made = outcomes(replace(prompt, sections=(closed, *others)), "move_context")
    assert made == set()
    label = replace(first, protected=((8, len(first.text)),))
    assert outcomes(replace(prompt, sections=(label, *others)), "move_context") == outcomes(
        prompt, "move_context"
    )


# Documents

DOCUMENTS = {
    "instruction": "Read.",
    "documents": "Document 1: {a}\n\nDocument 2: {b}\nDocument 3: {c}",
    "cue": "Answer:",
}


def lines_of(texts: Sequence[str]) -> set[str]:
    return {f"Read.\n{x}\n\n{y}\n{z}\nAnswer:" for x, y, z in texts}  # type: ignore[misc]


def test_documents_change_places_with_their_labels() -> None:
    """Each order but the first, the breaks between the places kept."""
    one, two, three = (
        f"Document {n}: {ITEM.fields[name]}" for n, name in zip("123", "abc", strict=True)
    )
    assert outcomes(built(DOCUMENTS), "reorder_documents") == lines_of(
        [(one, three, two), (two, one, three), (two, three, one), (three, one, two),
         (three, two, one)]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ("{a}\n{b}", {"Keep the bill.\nThe firm pays."}),
        ("Texts: {a}\n{b}", {"Texts: Keep the bill.\nThe firm pays."}),
        ("Texts:\n{a}\n{b}", {"Texts:\nKeep the bill.\nThe firm pays."}),
        ("Doc A:\n{a}\n\nDoc B:\n{b}", {"Doc B:\nKeep the bill.\n\nDoc A:\nThe firm pays."}),
        ("<doc>\n{a}\n</doc>\n<doc>\n{b}\n</doc>",
         {"<doc>\nKeep the bill.\n</doc>\n<doc>\nThe firm pays.\n</doc>"}),
        ("{a} {b}", set()),
        ("{a}\n{a}", set()),
        ("{a}", set()),
    ],
)  # fmt: skip
def test_document_labels(documents: str, expected: set[str]) -> None:
    """A label that each has moves along; a heading of all of them stays."""
    prompt = built({"documents": documents, "input": "{question}"})
    assert outcomes(prompt, "reorder_documents") == {f"{e}\nWho\n\npays?" for e in expected}


@pytest.mark.parametrize(
    ("text", "marked", "paragraphs"),
    [
        ("[1] a\nmore\n\n[2] b\n", ["[1] a\nmore", "[2] b"], ["[1] a\nmore", "[2] b"]),
        (
            "Source: x\nb\n\nc\nSource: y",
            ["Source: x\nb\n\nc", "Source: y"],
            ["Source: x\nb", "c\nSource: y"],
        ),
        ("Intro\nDoc 1: a\nDoc 2: b", ["Doc 1: a", "Doc 2: b"], ["Intro\nDoc 1: a\nDoc 2: b"]),
        ("Document A-1: a\nb\n\nDocument A-2: c", ["Document A-1: a\nb", "Document A-2: c"],
         ["Document A-1: a\nb", "Document A-2: c"]),
        ("A story.\n\nIt goes on.", [], ["A story.", "It goes on."]),
        ("# One\n\n# Two", [], ["# One", "# Two"]),
        ("1. a\n2. b", [], ["1. a\n2. b"]),
        ("", [], []),
    ],
)  # fmt: skip
def test_documents_in_one_text(text: str, marked: list[str], paragraphs: list[str]) -> None:
    """They are told apart by marks of one kind, or by paragraphs where that is asked for."""
    assert [text[a:b] for a, b in documents(text, "marked")] == marked
    assert [text[a:b] for a, b in documents(text, "paragraphs")] == paragraphs


def test_documents_of_one_field() -> None:
    """A field that holds several documents is reordered inside, as edits."""
    text = "[1] One.\n\n[2] Two.\n"
    item = replace(ITEM, fields={**ITEM.fields, "a": text})
    prompt = Template.parse({"documents": "Texts: {a}", "cue": "Answer:"}).build(item)
    after = run(prompt, "reorder_documents").prompt
    assert plain(after) == "Texts: [2] Two.\n\n[1] One.\n\nAnswer:"
    again = run(after, "reorder_documents")
    assert again == (after, "not_applicable", "reorder_documents")
    story = replace(item, fields={"a": "One.\n\nTwo."})
    prompt = Template.parse({"documents": "{a}", "cue": "Answer:"}).build(story)
    assert run(prompt, "reorder_documents").status == "not_applicable"
    made = run(prompt, "reorder_documents:split=paragraphs").prompt
    assert plain(made) == "Two.\n\nOne.\nAnswer:"


# Bullets


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("- a\n- b", [["- a", "- b"]]),
        ("Rules:\n* a\n  more\n\n* b\n\nEnd", [["* a\n  more", "* b"]]),
        ("- a\n  - x\n  - y\n- b", [["- a\n  - x\n  - y", "- b"]]),
        ("  • a\n  • b\n- c\n- d", [["  • a", "  • b"], ["- c", "- d"]]),
        ("- a\n- b\nText\n- c\n- d\n", [["- a", "- b"], ["- c", "- d"]]),
        ("1. a\n2. b", []),
        ("- a", []),
        ("- a\n- a", []),
        ("-5\n-6", []),
        ("```\n- a\n- b\n```", []),
        ("- First wash.\n- Then dry.", []),
        ("- Step 1: go\n- Step 2: stop", []),
        ("- 09:15 call\n- 09:30 mail", []),
        ("- apples,\n- pears and\n- plums", []),
        ("- red\n- not the above", []),
        ("", []),
    ],
)
def test_bullet_lists(text: str, lists: list[list[str]]) -> None:
    """Lists without an order of their own are found, with what is nested below their items."""
    assert [[text[a:b] for a, b in items] for items in bullet_lists(text)] == lists


def test_bullets_change_places() -> None:
    """Nested lines move with their item; every list gets an order of its own."""
    assert perturb("Rules:\n- a\n  - x\n- b\n\nEnd.", "reorder_bullets") == (
        "Rules:\n- b\n- a\n  - x\n\nEnd."
    )
    text = "- a\n- b\n\nand\n- c\n- d"
    assert perturb(text, "reorder_bullets") == "- b\n- a\n\nand\n- d\n- c"


def test_lists_that_go_on_in_another_section_stay() -> None:
    """A list whose last item is filled in from a field would be torn apart."""
    assert outcomes(built("- be kind\n- help {a}\n- be brief"), "reorder_bullets") == set()
    assert outcomes(built("{a}\n- be kind\n- be brief"), "reorder_bullets") == {
        "The firm pays.\n- be brief\n- be kind"
    }


def test_options_are_no_bullets() -> None:
    """A list of options in a choices section is left to the options family."""
    prompt = replace(built(LETTER), choice_format="- {text}\n")
    at = next(i for i, s in enumerate(prompt.sections) if s.kind == "choices")
    listed = replace(prompt.sections[at], text="- Ann\n- Bob")
    sections = (*prompt.sections[:at], listed, *prompt.sections[at + 1 :])
    assert run(replace(prompt, sections=sections), "reorder_bullets").status == "not_applicable"


def test_everything_at_once() -> None:
    """Lists and documents change order, and the parts move."""
    source = {**DOCUMENTS, "instruction": "Read.\n- one\n- two", "output_format": "\nBe brief."}
    after = messages(run(built(source), "mixed_positions").prompt)[-1][1]
    assert "- two\n- one" in after
    assert "Document 1: The firm pays.\n\nDocument 2" not in after
    assert not after.startswith("Read.") or after.index("Be brief.") < after.index("Document")
    assert run(built("- one\n- two\n\n{a}\nAnswer:"), "mixed_positions").status == "changed"
    assert run(built("Read.\n\n{a}\nAnswer:"), "mixed_positions").status == "not_applicable"


def test_place_words_stay_true() -> None:
    """Nothing moves across a line that points at it: *the question below*."""
    template = {
        "instruction": "Answer the question below.",
        "input": "\nQuestion: {question}",
        "output_format": "\nGive one word.",
        "cue": "Answer:",
    }
    assert outcomes(built(template), "move_context") == {
        "Answer the question below.\n\nGive one word.\n\nQuestion: Who\n\npays?\nAnswer:"
    }
    alone = {key: template[key] for key in ("instruction", "input")}
    assert run(built(alone), "move_context").status == "not_applicable"
    above = {"input": "{question}", "instruction": "\nAnswer the question above."}
    assert run(built(above), "move_context").status == "not_applicable"


@pytest.mark.parametrize(
    "text",
    [
        "- 1. Boil water.\n- 2. Add salt.", "Do this in the following order:\n- boil\n- salt",
        "Steps:\n- boil\n- salt", "* a) boil\n* b) salt",
    ],
)  # fmt: skip
def test_sequences_stay(text: str) -> None:
    """Numbered items, and lists that the prompt calls a sequence, keep their order."""
    prompt = Prompt(sections=(Section(name="i", kind="input", text=f"Read.\n{text}\nDone."),))
    assert run(prompt, "reorder_bullets").status == "not_applicable"


def test_examples_in_another_order() -> None:
    """The same examples, never in the order they had; one alone has no other order."""
    shown = tuple(
        Demonstration(sections=(Section(name="q", kind="input", text=f"{n} + 1?"),), answer=str(n))
        for n in range(3)
    )
    prompt = replace(built(LETTER), demonstrations=shown)
    for key in map(str, range(10)):
        after = run(prompt, "demonstration_order", key=key).prompt.demonstrations
        assert after != shown and set(after) == set(shown)
    single = replace(prompt, demonstrations=shown[:1] * 2)
    assert run(single, "demonstration_order").status == "not_applicable"


@pytest.mark.parametrize("name", ["case", "chat", "questions", "slots"])
def test_an_order_that_another_part_of_the_prompt_speaks_of_holds_no_list(name: str) -> None:
    """*The key events in the order of time*: the rules below it have no order."""
    task = tasks.get(f"enterprise_{name}")(None)
    for item in task.items:
        after = run(task.templates["open"].build(item), "reorder_bullets")
        assert after.status == "changed", item.key
        text = plain(after.prompt)
        assert "- key_events" not in text or text.index("- main_p") < text.index("- key_events")
