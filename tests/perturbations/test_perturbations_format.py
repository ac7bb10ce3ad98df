"""Format: the answer asked for in a form, shown in it, and read back from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.recipes import Applied
from falter.records.interfaces import Case
from falter.records.render import messages, plain
from falter.records.types import Demonstration, Item, Prompt, Recipe, Response, Variant
from falter.scorers import scorers
from falter.tasks import Template

FORMS = ("json", "yaml", "xml", "markdown", "html")
ITEM = Item(
    task="t", key="k", fields={"question": "Who pays?"}, choices=("Ann", "Bob & Co."), target=1
)
LETTER = Template.parse(
    {
        "instruction": "Choose.",
        "input": "{question}",
        "choices": "{choices}",
        "output_format": "\nGive the letter.",
        "cue": "Answer:",
    },
    answer_as="label",
)
CLOZE = Template.parse("Question: {question}\nAnswer:")
SHAPES = {
    "json": 'has the single key "answer", whose value is {what}, as in {{"answer": "..."}}',
    "yaml": 'with the single key "answer", whose value is {what}, as in\nanswer: "..."',
    "xml": "the name answer that holds {what}, as in <answer>...</answer>",
    "markdown": '"Answer", and below it {what}, as in\n## Answer\n...',
    "html": 'the id "answer" that holds {what}, as in <p id="answer">...</p>',
}


def run(prompt: Prompt, *steps: str) -> Applied:
    recipe = Recipe(label="test", steps=tuple(map(parse_step, steps)))
    return apply_recipe("k", prompt, recipe, 0, 0)


@pytest.mark.parametrize("form", FORMS)
def test_the_rule_replaces_the_one_there_was(form: str) -> None:
    """The template's own rule gives way, its breaks stay, and the label is what is wanted."""
    after, status, _ = run(LETTER.build(ITEM), f"format_{form}")
    assert status == "changed"
    head, tail = "Choose.\nWho pays?\nA. Ann\nB. Bob & Co.\n\nReply ", "\nAnswer:"
    text = messages(after)[0][1]
    assert text == plain(after)
    assert text.startswith(head) and text.endswith(tail)
    rule = text.removeprefix(head).removesuffix(tail)
    assert rule.endswith(SHAPES[form].format(what="the label of the option you choose"))
    assert "before" not in rule
    assert (after.target, after.choices) == (1, ITEM.choices)


@pytest.mark.parametrize("form", FORMS)
def test_the_rule_stands_before_the_cue(form: str) -> None:
    """Without a rule to replace, it stands on lines of its own before the cue."""
    text = plain(run(CLOZE.build(ITEM), f"format_{form}").prompt)
    assert text.startswith("Question: Who pays?\nReply ")
    assert text.endswith(SHAPES[form].format(what="your answer") + "\nAnswer:")
    assert "nothing else, whatever form was asked for before" in text


def test_json_in_full() -> None:
    """The exact words, once."""
    assert perturb("Who pays?", "format_json") == (
        "Who pays?\n"
        "Reply with one JSON object and nothing else, whatever form was asked for before. "
        'It has the single key "answer", whose value is your answer, as in {"answer": "..."}'
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("json", '{"answer": "Bob & Co."}'),
        ("yaml", 'answer: "Bob & Co."'),
        ("xml", "<answer>Bob &amp; Co.</answer>"),
        ("markdown", "## Answer\nBob & Co."),
        ("html", '<p id="answer">Bob &amp; Co.</p>'),
    ],
)
def test_demonstrations_answer_in_the_form(form: str, expected: str) -> None:
    """A solved example that answered freely would contradict the rule."""
    shown = Demonstration(sections=LETTER.build(ITEM).sections, answer="Bob & Co.")
    shot = replace(LETTER.build(ITEM), demonstrations=(shown,))
    after = run(shot, f"format_{form}").prompt
    roles = [role for role, _ in messages(after)]
    assert roles == ["user", "assistant", "user"]
    assert messages(after)[1][1] == expected
    assert messages(after)[0] == messages(after)[2]


def test_rules_that_cannot_be_taken_out() -> None:
    """A rule that is protected, edited, or runs into other text stays, and ours comes later."""
    prompt = LETTER.build(ITEM)
    at = next(i for i, s in enumerate(prompt.sections) if s.kind == "output_format")
    before, own, behind = prompt.sections[:at], prompt.sections[at], prompt.sections[at + 1 :]
    inline = Template.parse({"input": "{question}", "output_format": "In a word on {question}."})
    for closed in (
        replace(prompt, sections=(*before, replace(own, protected=((0, 9),)), *behind)),
        run(prompt, "format_yaml").prompt,
        inline.build(ITEM),
    ):
        after = run(closed, "format_json").prompt
        assert all(s in after.sections for s in closed.sections)
        assert "whatever form was asked for before" in plain(after)


def test_several_rules_become_one() -> None:
    """The first is replaced, the others go."""
    prompt = LETTER.build(ITEM)
    *others, rule, cue = prompt.sections
    twice = replace(prompt, sections=(*others, rule, replace(rule, name="second"), cue))
    assert plain(run(twice, "format_xml").prompt) == plain(run(prompt, "format_xml").prompt)


RULES = {
    "Give the letter. Answer in French, in at most 10 words.": (
        "Reply with one JSON", " Answer in French, in at most 10 words."
    ),
    "Cite the law.\nReply with the letter only.": ("Cite the law.\nReply with one JSON", ""),
    "Answer in French, in at most 10 words, and cite the law.": (
        "Answer in French, in at most 10 words, and cite the law.", "whatever form was asked"
    ),
    "Give the letter in French and explain it.": (
        "Give the letter in French and explain it.", "whatever form was asked"
    ),
}  # fmt: skip


@pytest.mark.parametrize("rules", RULES)
def test_what_else_the_user_asks_for_stays(rules: str) -> None:
    """Only rules of form give way; where one sentence does both, the new rule comes behind it."""
    source = {"input": "{question}", "choices": "{choices}", "output_format": f"\n{rules}"}
    source["cue"] = "Answer:"
    prompt = Template.parse(source, answer_as="label").build(ITEM)
    text = plain(run(prompt, "format_json").prompt)
    assert all(part in text for part in RULES[rules] if part)
    assert ("Give the letter." in text) is False and "letter only" not in text


@pytest.mark.parametrize("form", FORMS)
def test_what_they_say_of_themselves(form: str) -> None:
    """The recipe learns the form, and leaves room for it."""
    made = perturbations.get(f"format_{form}")
    assert made.output_format == form
    assert made.reply_tokens >= 128


@pytest.mark.parametrize("form", FORMS)
@given(answer=st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40))
def test_what_is_shown_can_be_read_back(form: str, answer: str) -> None:
    """The form in which a demonstration answers is the one that the scorers read."""
    shown = Demonstration(sections=(), answer=answer)
    after = run(replace(CLOZE.build(ITEM), demonstrations=(shown,)), f"format_{form}").prompt
    recipe = Recipe(label="x", output_format=form)
    prompt = replace(after, choices=(), target=answer)
    variant = Variant(item=ITEM, recipe=recipe, draw=0, prompt=prompt, status="changed")
    reply = Response(key="k", text=after.demonstrations[0].answer)
    score = scorers.get("exact").score(Case(variant=variant, response=reply))
    if answer.strip() and not (form == "markdown" and answer.lstrip().startswith("#")):
        assert (score.outcome, score.value) == ("scored", 1.0)


@pytest.mark.parametrize("layout", ["plain", "markdown", "xml", "key_value", "draw"])
def test_the_question_in_another_form(layout: str) -> None:
    """Labels and the list change, what is put in and the right answer stay."""
    source = {
        "instruction": "Choose.", "input": "\nQuestion: {question}", "choices": "{choices}",
        "cue": "Answer:",
    }  # fmt: skip
    prompt = Template.parse(source, answer_as="label").build(ITEM)
    step, texts = parse_step(f"input_format:{layout}"), set()
    for key in map(str, range(30)):
        after, status, _ = apply_recipe(key, prompt, Recipe(label="x", steps=(step,)), 0, 0)
        assert status == "changed"
        assert (after.target, after.choices, after.labels) == (1, ITEM.choices, prompt.labels)
        text = plain(after)
        assert text.count("Who pays?") == 1 == text.count("Bob & Co.")
        assert ("<question>\nWho pays?\n</question>" in text) is (layout == "xml" or "<" in text)
        assert text == text.rstrip()
        texts.add(text)
    assert len(texts) > 8


def test_formats_of_prompts_without_labels() -> None:
    """Nothing to lay out, or examples that could not follow: not applicable."""
    bare = Template.parse("{question}").build(ITEM)
    assert run(bare, "input_format").status == "not_applicable"
    shown = Demonstration(sections=LETTER.build(ITEM).sections, answer="B")
    shot = replace(LETTER.build(ITEM), demonstrations=(shown,))
    assert run(shot, "input_format").status == "not_applicable"


@pytest.mark.parametrize("question", ["5 + 3 = ?", "−2 times 4?", "x = 7, so 2x?"])
def test_no_mark_of_a_label_becomes_a_part_of_a_sum(question: str) -> None:
    """Behind a label no minus, *greater than* or equals sign stands before a number."""
    prompt = Template.parse("Question: {question}\nAnswer:").build(
        Item(task="t", key="1", fields={"question": question})
    )
    for key in map(str, range(60)):
        recipe = Recipe(label="x", steps=(parse_step("input_format"),))
        text = plain(apply_recipe(key, prompt, recipe, 0, 0).prompt)
        before = text[: text.index(question)].rstrip()
        assert before[-1] not in "-=" and not before.endswith(("n >", "N >"))
