"""What stands around a prompt, and who says it: stray sentences, marks, roles, turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from falter.analysis.meaning_checks import Rewording, meaning
from falter.perturbations import apply_recipe, parse_step, perturb
from falter.perturbations.augmentation import contains_answer
from falter.perturbations.recipes import Applied
from falter.perturbations.vocabulary import lines
from falter.records.errors import InvalidValue
from falter.records.render import messages, plain
from falter.records.types import Demonstration, Item, Prompt, Recipe, Section
from falter.tasks import Template, tasks
from falter.text.meaning import meaning_flags

DATA = Path(__file__).parents[1] / "data"
SUMS = (
    "A robe takes 2 bolts of blue fibre. Another takes half that much. Mary buys both of them. "
    "How many bolts does Mary need?"
)


def asked(text: str, template: str = "Answer in one word.\nQuestion: {q}\nAnswer:") -> Prompt:
    return Template.parse(template).build(Item(task="t", key="1", fields={"q": text}))


def changed(prompt: Prompt, step: str, draw: int = 0) -> Applied:
    return apply_recipe("k", prompt, Recipe(label="x", steps=(parse_step(step),)), 0, draw)


def losses(before: Prompt, after: Prompt) -> dict[str, int]:
    row = Rewording(item="1", before=before, after=after, status="changed")
    found = meaning([row], task="t", recipe="r", group="g")
    return {check: count for check, count in found.lost.items() if count}


# Wrong automatic corrections


def test_autocorrect() -> None:
    """Words become those that a phone writes; names, quantifiers, numbers and passives stay."""
    text = "Which of the 3 birds were found by Eve Moreau, and why do most of them like its well?"
    for seed in range(20):
        made = perturb(text, "autocorrect:rate=1", seed=seed)
        assert {"Moreau,", "3", "most", "were"} <= set(made.split()) and "it's" in made
        assert {flag.check for flag in meaning_flags(text, made)} <= {"word"}
    assert changed(asked("Zebras run"), "autocorrect").status == "not_applicable"
    assert perturb("May I use it?", "autocorrect:rate=1") == "May I yes it?"
    for text in ("Half of 16 balls", "1/5 of 100", "60% of 20", "If 20 people vote"):
        assert changed(asked(text), "autocorrect:rate=1").status == "not_applicable"


# Stray sentences


def test_stray_sentences_stay_beside_the_question() -> None:
    """The question's words stay, nothing is lost, and no added sentence holds the answer."""
    (task,) = [tasks.get("basics")(None)]
    template = task.templates["letter"]
    for item in task.items[:60]:
        before = template.build(item)
        after = changed(before, "distractor_context:sentences=3").prompt
        assert losses(before, after) == {}
        (own,) = [s for s in before.sections if s.kind == "input"]
        (now,) = [s for s in after.sections if s.kind == "input"]
        assert own.text in now.text or now.text.startswith(own.text[:10])
        new = now.text.replace(own.text, "")
        assert new.count(".") == 3 and not contains_answer(new, before)


def test_places_of_stray_sentences() -> None:
    """Before, after, or between two sentences of which the second does not point back."""
    between = perturb(SUMS, "distractor_context:place=between,sentences=1")
    head, tail = between.split("fibre.")
    assert tail.startswith(" Another takes half that much.") and tail.endswith("Mary need?")
    assert perturb(SUMS, "distractor_context:before").endswith(SUMS)
    assert perturb(SUMS, "distractor_context:after").startswith(SUMS)
    assert head == "A robe takes 2 bolts of blue "


def test_no_stray_sentence_becomes_a_point_or_an_antecedent() -> None:
    """None stands among or behind points that are asked about, nor before a bare pronoun."""
    points = "Which is true? 1. The sea is salty here.\n2. The lake is deep there."
    facing = "Statement 1| Oak trees are tall. Statement 2| Pine trees are green."
    for text in (points, facing):
        made = {perturb(text, "distractor_context", seed=seed) for seed in range(20)}
        assert len(made) > 5 and all(one.endswith(text) for one in made)
    numbered = "The points are: (1) Gold is soft. (2) Iron is hard. Which of them is right?"
    for seed in range(20):
        assert numbered in perturb(numbered, "distractor_context", seed=seed)
    pronoun = "If they study hard, can anyone get there?"
    made = {perturb(pronoun, "distractor_context", seed=seed) for seed in range(20)}
    assert all(one.startswith(pronoun) for one in made)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("She runs. He walks.", "Translate into French: {q}"),
        ("A film that I liked.", "Is the sentiment of this good?\n{q}"),
        ("Finish the story. He opened the door.", "{q}"),
        ("How many letters are in banana?", "{q}"),
        ("```\nx = 1\n```", "{q}"),
    ],
)
def test_no_stray_sentences_in_what_is_asked_about(text: str, rule: str) -> None:
    """Texts to be translated, judged, counted or written on are no place for them."""
    before = asked(text, rule)
    assert changed(before, "distractor_context").status == "not_applicable"


def test_own_stray_sentences(tmp_path: Path) -> None:
    """A file of one's own, without what holds the answer, a number or a denial."""
    file = tmp_path / "s.txt"
    file.write_text("Nobody came.\nIt cost 3 euros.\nThe Rhine is wide.\nBread is baked at dawn.\n")
    prompt = replace(asked("Which river is it?"), target="Rhine")
    step = f"distractor_context:sentences=4,place=before,file={file}"
    made = plain(changed(prompt, step).prompt)
    assert "Bread is baked" in made and "Rhine" not in made and "3" not in made
    with pytest.raises(InvalidValue, match="readable"):
        changed(prompt, "distractor_context:file=/nowhere.txt")
    assert len(lines("distractors_en.txt")) == 60


# Marks between examples


def shots(text: str) -> Prompt:
    one = asked("3 + 1?").sections
    shown = (Demonstration(sections=one, answer="4"), Demonstration(sections=one, answer="four"))
    return replace(asked(text), demonstrations=shown)


def test_marks_between_examples() -> None:
    """A mark before each example and the question; what they say stays; draws differ."""
    prompt = shots("2 + 2?")
    texts = {plain(changed(prompt, "demonstration_delimiter", draw).prompt) for draw in range(30)}
    assert len(texts) == 7
    headed = plain(changed(prompt, "demonstration_delimiter:headings").prompt)
    assert headed.count("## Example\n") == 2 and headed.count("## Question\n") == 1
    assert headed.replace("## Example\n", "").replace("## Question\n", "") == plain(prompt)
    assert plain(changed(prompt, "demonstration_delimiter:blank").prompt)[0] != "\n"
    assert changed(asked("2 + 2?"), "demonstration_delimiter").status == "not_applicable"


# Roles and turns


def test_the_instruction_in_another_role() -> None:
    """The instruction is said once, by the system; back again it opens the user's message."""
    before = shots("Why is it 2 + 2?")
    moved = changed(before, "role_placement").prompt
    system, *rest = messages(moved)
    assert system == ("system", "Answer in one word.")
    assert rest[-1] == ("user", "Question: Why is it 2 + 2?\nAnswer:")
    assert not any("one word" in text for _, text in rest) and losses(before, moved) == {}
    back = changed(moved, "role_placement:user").prompt
    assert messages(back)[-1][1] == "Answer in one word.\n\n" + rest[-1][1]
    both = messages(changed(before, "role_placement:both").prompt)
    assert both[0] == system and both[1:] == messages(before)
    assert changed(asked("Why?", "Question: {q}"), "role_placement").status == "not_applicable"
    assert changed(before, "role_placement:user").status == "not_applicable"


def test_no_empty_lines_are_left_where_the_instruction_was() -> None:
    """The user's message begins with words, whichever section the empty lines were in."""
    task = tasks.get("truthfulqa")(str(DATA / "truthfulqa_mc_task.json.gz"))
    before = task.templates["letter"].build(task.items[0])
    for step in ("role_placement", "sharded_turns"):
        said = messages(changed(before, step).prompt)
        assert said[-1][1].startswith("Question: "), said
    (control,) = messages(changed(before, "sharded_turns:way=one").prompt)
    assert "question.\nQuestion: " in control[1]


def test_a_lost_instruction_is_found() -> None:
    """The check reads the system's words too, so that an instruction that is gone is missed."""
    before = asked("Why?", "Use at most 20 words, never more.\nQuestion: {q}")
    moved = changed(before, "role_placement").prompt
    assert losses(before, moved) == {}
    gone = moved.with_sections(tuple(s for s in moved.sections if s.kind != "system"))
    assert {"number", "negation"} <= losses(before, gone).keys()


def test_a_request_over_several_turns() -> None:
    """The same words in the same order, in as many turns as asked for; the control in one."""
    before = asked(SUMS)
    spoken = before.sections
    for turns in range(2, 7):
        after = changed(before, f"sharded_turns:turns={turns}").prompt
        said = [text for role, text in messages(after) if role == "user"]
        assert 2 <= len(said) <= turns
        assert " ".join(said).split() == "".join(s.text for s in spoken).split()
        assert [role for role, _ in messages(after)][:2] == ["user", "assistant"]
        assert losses(before, after) == {}
        (one,) = messages(changed(before, f"sharded_turns:way=one,turns={turns}").prompt)
        assert one[1].split() == " ".join(said).split() and one[1].count("\n") >= len(said) - 1
    assert changed(asked("Why?", "Q: {q}\nA:"), "sharded_turns").status == "not_applicable"
    twice = Recipe(label="x", steps=(parse_step("sharded_turns"), parse_step("sharded_turns")))
    assert apply_recipe("k", before, twice, 0, 0).status == "not_applicable"


def test_a_chat_is_not_cut() -> None:
    """Among the lines of a chat or a log a turn would read as one of them."""
    lines = ("10:31 Ann: The Wi-Fi is gone again today.", "10:33 Bo: I am coming to see. Wait.")
    chat = "\n".join((*lines, "10:40 Ann: It works now, thank you very much."))
    after = changed(asked(chat, "Tell what happened.\nChat: {q}"), "sharded_turns:turns=8").prompt
    assert [text for role, text in messages(after) if role == "user"][1:] == [f"Chat: {chat}"]


def test_noise_and_turns() -> None:
    """Noise first and turns then, or the other way round: none undoes the other."""
    recipe = Recipe(label="x", steps=(parse_step("typos"), parse_step("sharded_turns")))
    after = apply_recipe("k", asked(SUMS), recipe, 0, 0)
    assert after.status == "changed" and len(messages(after.prompt)) == 3
    section = Section(name="reply", kind="reply", text="Yes.")
    assert messages(Prompt(sections=(section,))) == (
        ("user", ""),
        ("assistant", "Yes."),
        ("user", ""),
    )
