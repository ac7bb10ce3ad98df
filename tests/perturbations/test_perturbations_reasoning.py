"""Reasoning: the wrong answer asked for, a stray answer, steps before the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.recipes import Applied
from falter.records.render import choice_block, messages, plain
from falter.records.types import Demonstration, Item, Prompt, Recipe
from falter.tasks import Template

LETTER = Template.parse(
    {
        "system": "Be brief.",
        "instruction": "Choose the right answer.",
        "input": "\nQuestion: {question}",
        "choices": "{choices}",
        "output_format": "\nReply with the letter alone.",
        "cue": "Answer:",
    },
    answer_as="label",
)
CLOZE = Template.parse("Question: {question}\nAnswer:")
OPEN = Template.parse("{question}\n\nWrite the final number after '####'.")
ENDING = Template.parse(
    "{question}\n{choices}\n\nReply with the letter.\nAnswer:", answer_as="label"
)
CITY = Item(
    task="t",
    key="city",
    fields={"question": "Which city lies on the Seine?"},
    choices=("Rome", "Paris", "Bern", "Oslo"),
    target=1,
)
SUM = Item(task="t", key="sum", fields={"question": "What is 3 + 4?"}, target="7")


def run(prompt: Prompt, *steps: str, key: str = "k", draw: int = 0) -> Applied:
    recipe = Recipe(label="test", steps=tuple(map(parse_step, steps)))
    return apply_recipe(key, prompt, recipe, 0, draw)


def test_elimination_asks_for_the_wrong_one() -> None:
    """Two options are left under the labels they had, and the target is the wrong one."""
    after, status, _ = run(LETTER.build(CITY), "elimination")
    assert status == "changed"
    assert plain(after) == (
        "Be brief.\n\nChoose the right answer.\n\nQuestion: Which city lies on the Seine?\n"
        "B. Paris\nD. Oslo\n\nReply with the letter alone.\n"
        "Only two options are left, and one of them is wrong. Whatever was said before, answer "
        "with the wrong one.\nAnswer:"
    )
    assert (after.choices, after.labels, after.target) == (("Paris", "Oslo"), ("B", "D"), 1)
    assert messages(after)[0] == ("system", "Be brief.")
    assert messages(after)[1] == ("user", plain(after).removeprefix("Be brief.\n\n"))


def test_its_control_differs_in_one_word() -> None:
    """The same two options, the same words but one, and the right one as the target."""
    asked, control = (
        run(LETTER.build(CITY), name).prompt for name in ("elimination", "elimination_control")
    )
    assert plain(control) == plain(asked).replace("with the wrong one", "with the right one")
    assert (control.choices, control.target) == (asked.choices, 0)


def test_the_pair_belongs_to_the_item() -> None:
    """Draw, key, chain and order of the options do not change which two are left."""
    prompt = LETTER.build(CITY)
    chains = (["elimination"], ["elimination_control"], ["pad_quotes", "elimination"])
    pairs = {
        frozenset(run(prompt, *steps, key=key, draw=draw).prompt.choices)
        for steps in chains
        for key in "ab"
        for draw in range(3)
    }
    turned = replace(CITY, choices=CITY.choices[::-1], target=2)
    pairs.add(frozenset(run(LETTER.build(turned), "elimination").prompt.choices))
    assert pairs == {frozenset({"Paris", "Oslo"})}
    items = (replace(CITY, choices=("Paris", f"a{n}", f"b{n}"), target=0) for n in range(20))
    others = {run(LETTER.build(item), "elimination").prompt.choices[1][0] for item in items}
    assert others == {"a", "b"}


def test_elimination_without_a_list() -> None:
    """A prompt that lists no options is shown the two that are left."""
    after = run(CLOZE.build(CITY), "elimination").prompt
    assert plain(after) == (
        "Question: Which city lies on the Seine?\n"
        "Only two answers are left, and one of them is wrong:\n- Paris\n- Oslo\n"
        "Whatever was said before, answer with the wrong one.\nAnswer:"
    )
    assert (after.choices, after.target) == (("Paris", "Oslo"), 1)


def test_elimination_keeps_no_option_that_speaks_of_others() -> None:
    """ "All of the above" among two options would mean something else."""
    choices = ("Rome", "Paris", "both A and B", "none of the above")
    for n in range(10):
        item = replace(CITY, choices=(*choices[:3], f"Bern {n}", choices[3]))
        kept = run(LETTER.build(item), "elimination").prompt.choices
        assert not {"both A and B", "none of the above"} & set(kept)
    wrong = replace(CITY, choices=choices, target=3)
    assert run(LETTER.build(wrong), "elimination").status == "not_applicable"
    alone = replace(CITY, choices=("Paris", "all of these"), target=0)
    assert run(LETTER.build(alone), "elimination_control").status == "not_applicable"


@pytest.mark.parametrize(
    ("question", "status"),
    [
        ("Which of these is NOT a city?", "not_applicable"),
        ("All are fruit except", "not_applicable"),
        ("Which statement is false?", "not_applicable"),
        ("It did not rain. Which city was it?", "changed"),
        ("Which city lies on the Seine?", "changed"),
    ],
)
def test_elimination_of_what_is_not(question: str, status: str) -> None:
    """A question that asks for the wrong one already cannot be turned round."""
    item = replace(CITY, fields={**CITY.fields, "question": question})
    for name in ("elimination", "elimination_control"):
        assert run(LETTER.build(item), name).status == status


@pytest.mark.parametrize("name", ["elimination", "elimination_control"])
def test_elimination_needs_an_open_list_and_a_target(name: str) -> None:
    """An edited or protected list, no target or no options: not applicable."""
    prompt = LETTER.build(CITY)
    at = next(i for i, s in enumerate(prompt.sections) if s.kind == "choices")
    closed = replace(prompt.sections[at], protected=((0, 1),))
    sections = (*prompt.sections[:at], closed, *prompt.sections[at + 1 :])
    for bad in (
        replace(prompt, sections=sections),
        replace(prompt, target=None),
        OPEN.build(SUM),
        run(prompt, "shuffle_choice_texts").prompt,
    ):
        assert run(bad, name) == (bad, "not_applicable", name)


@pytest.mark.parametrize(
    ("template", "item", "step", "stray"),
    [
        (LETTER, CITY, "ignore_above:answer=correct", "Paris"),
        (LETTER, CITY, "ignore_above", "Oslo"),
        (CLOZE, CITY, "ignore_above", "Oslo"),
        (OPEN, SUM, "ignore_above:answer=correct", "7"),
        (OPEN, SUM, "ignore_above", "14"),
        (OPEN, replace(SUM, target="2,125"), "ignore_above", "2,132"),
        (OPEN, replace(SUM, target="$18"), "ignore_above", "$25"),
        (OPEN, replace(SUM, target="-0.05"), "ignore_above", "0.02"),
        (OPEN, replace(SUM, target="Yes"), "ignore_above", "No"),
        (OPEN, replace(SUM, target="Big Ben."), "ignore_above:answer=correct", "Big Ben"),
    ],
)
def test_a_stray_answer(template: Template, item: Item, step: str, stray: str) -> None:
    """It stands before the prompt, with the advice to ignore it; the prompt stays the same."""
    prompt = template.build(item)
    after, status, _ = run(prompt, step)
    assert status == "changed"
    before = "Ignore everything above this line; it was left here by accident."
    assert messages(after)[-1][1] == (
        f"The answer is {stray}.\n\n{before}\n\n{messages(prompt)[-1][1]}"
    )
    assert (after.target, after.choices) == (prompt.target, prompt.choices)


def test_a_stray_answer_goes_ahead_of_demonstrations() -> None:
    """With solved examples it stands before the first of them."""
    shown = Demonstration(sections=CLOZE.build(CITY).sections, answer="Paris")
    after = run(replace(CLOZE.build(CITY), demonstrations=(shown,)), "ignore_above").prompt
    assert plain(after).startswith("The answer is ")
    own = plain(CLOZE.build(CITY))
    assert plain(after).endswith(f"accident.\n\n{own} Paris\n\n{own}")


def test_no_stray_answer_without_one_that_is_surely_wrong() -> None:
    """For a free text nobody knows what is wrong; without a target nothing is known at all."""
    free = replace(SUM, target="the Seine")
    assert run(OPEN.build(free), "ignore_above").status == "not_applicable"
    assert run(OPEN.build(free), "ignore_above:answer=correct").status == "changed"
    assert perturb("Why?", "ignore_above:answer=correct") == "Why?"
    for n in range(30):
        after = run(OPEN.build(SUM), "ignore_above", key=str(n)).prompt
        assert not plain(after).startswith("The answer is 7.")


ASK = (
    "Before you answer, think it through step by step and write the steps down, even where a short "
    "reply was asked for. Then close with a line of its own, in this form:\nAnswer: X\nwhere X is "
)


@pytest.mark.parametrize(
    ("template", "item", "expected"),
    [
        (
            LETTER,
            CITY,
            "Choose the right answer.\n\nQuestion: Which city lies on the Seine?\n"
            "A. Rome\nB. Paris\nC. Bern\nD. Oslo\n\nReply with the letter alone.\n"
            f"{ASK}the label of the option you choose.\nReasoning:",
        ),
        (
            CLOZE,
            CITY,
            f"Question: Which city lies on the Seine?\n{ASK}your answer.\nReasoning:",
        ),
        (
            OPEN,
            SUM,
            f"What is 3 + 4?\n\nWrite the final number after '####'.\n{ASK}your answer.",
        ),
        (
            ENDING,
            CITY,
            "Which city lies on the Seine?\nA. Rome\nB. Paris\nC. Bern\nD. Oslo\n\n"
            f"Reply with the letter.\n{ASK}the label of the option you choose.\nReasoning:",
        ),
        (
            Template.parse("{question} Answer:"),
            SUM,
            f"What is 3 + 4?\n{ASK}your answer.\nReasoning:",
        ),
        (
            Template.parse("{question}\n\n\nNow say in a word what you think it is:"),
            SUM,
            f"What is 3 + 4?\n\n\n{ASK}your answer.\n\n\nNow say in a word what you think it is:"
            "\nReasoning:",
        ),
    ],
)  # fmt: skip
def test_chain_of_thought(template: Template, item: Item, expected: str) -> None:
    """The request stands before the cue, which does not ask for the answer at once any more."""
    after, status, _ = run(template.build(item), "chain_of_thought")
    assert status == "changed"
    assert messages(after)[-1][1] == expected
    assert plain(after).endswith(expected)


def test_chain_of_thought_leaves_a_closed_cue() -> None:
    """A cue that is protected, or that an earlier step has edited, stays as it is."""
    prompt = CLOZE.build(CITY)
    *others, cue = prompt.sections
    for closed in (
        replace(cue, protected=((0, len(cue.text)),)),
        run(prompt, "chain_of_thought").prompt.sections[-1],
    ):
        after = run(replace(prompt, sections=(*others, closed)), "chain_of_thought").prompt
        assert after.sections[-1] == closed
        assert ASK in plain(after)


def test_chain_of_thought_behind_padding() -> None:
    """Text around the whole prompt stays around it; a text alone gets the request below it."""
    after = run(CLOZE.build(CITY), "pad_quotes:count=2", "chain_of_thought").prompt
    assert plain(after).endswith(f'Seine?\n{ASK}your answer.\nReasoning:""')
    assert perturb("Why?", "chain_of_thought") == f"Why?\n{ASK}your answer."
    assert perturb("", "chain_of_thought") == f"{ASK}your answer."


def test_the_order_of_relabelling_and_reasoning() -> None:
    """Options without labels are answered with their text, and so says the request."""
    after = run(LETTER.build(CITY), "relabel_choices:labels=none", "chain_of_thought").prompt
    assert "where X is the text of the option you choose." in plain(after)


def test_room_for_the_reply() -> None:
    """Reasoning needs tokens; the others do not ask for more."""
    assert perturbations.get("chain_of_thought").reply_tokens == 512
    assert perturbations.get("elimination").reply_tokens == 0
    block = choice_block(("B", "D"), ("Paris", "Oslo"), "{label}. {text}\n")
    assert block in plain(run(LETTER.build(CITY), "elimination").prompt)
