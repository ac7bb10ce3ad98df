"""Options in another order or under other labels: the right answer stays the right answer."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.options import movable, referenced_options
from falter.perturbations.recipes import Applied
from falter.records.render import choice_block, continuations, messages, plain
from falter.records.rng import Rng
from falter.records.types import Demonstration, Item, Prompt, Recipe, Section
from falter.tasks import Template

DATA = Path(__file__).parents[1] / "data"
LABELS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
EVERY = (
    "shuffle_choice_texts",
    "shuffle_choice_order",
    "relabel_choices",
    "relabel_choices:labels=lower",
    "relabel_choices:labels=roman",
    "relabel_choices:labels=none",
)


def listing(
    *choices: str, target: int = 0, rule: str = "Give the letter.", line: str = "{label}. {text}\n"
) -> Prompt:
    labels = LABELS[: len(choices)]
    return Prompt(
        sections=(
            Section(name="instruction", kind="instruction", text="Which city is the capital?\n"),
            Section(name="choices", kind="choices", text=choice_block(labels, choices, line)),
            Section(name="output_format", kind="output_format", text=f"\n\n{rule}"),
            Section(name="cue", kind="cue", text="\nAnswer:"),
        ),
        choices=choices,
        labels=labels,
        choice_format=line,
        answer_as="label",
        target=target,
    )


def run(prompt: Prompt, *steps: str, key: str = "k") -> Applied:
    recipe = Recipe(label="test", steps=tuple(map(parse_step, steps)))
    return apply_recipe(key, prompt, recipe, 0, 0)


CITIES = listing("Rome", "Paris", "Berlin", target=1)


def test_texts_move_under_their_labels() -> None:
    """The labels stay, the texts and the target's label move; the rest of the prompt does not."""
    after, status, _ = run(CITIES, "shuffle_choice_texts")
    assert (status, after.labels) == ("changed", ("A", "B", "C"))
    assert plain(after) == (
        "Which city is the capital?\nA. Paris\nB. Rome\nC. Berlin\n\nGive the letter.\nAnswer:"
    )
    assert (after.target, after.choices) == (0, ("Paris", "Rome", "Berlin"))
    assert messages(after) == (("user", plain(after)),)


def test_options_move_with_their_labels() -> None:
    """Label and text stay together; choices, labels and target follow the order on the page."""
    after, status, _ = run(CITIES, "shuffle_choice_order")
    assert status == "changed"
    assert plain(after) == (
        "Which city is the capital?\nC. Berlin\nB. Paris\nA. Rome\n\nGive the letter.\nAnswer:"
    )
    assert (after.labels, after.target) == (("C", "B", "A"), 1)
    assert continuations(after) == (" C", " B", " A")


@pytest.mark.parametrize(
    ("style", "shown", "word"),
    [
        ("digits", "1. Rome\n2. Paris\n3. Berlin", "number"),
        ("lower", "a. Rome\nb. Paris\nc. Berlin", "letter"),
        ("roman", "i. Rome\nii. Paris\niii. Berlin", "numeral"),
        ("none", "Rome\nParis\nBerlin", "text"),
    ],
)
def test_labels_change_and_the_template_follows(style: str, shown: str, word: str) -> None:
    """The list, the word for a label, and what counts as the answer agree with each other."""
    after, status, _ = run(CITIES, f"relabel_choices:labels={style}")
    assert status == "changed"
    assert plain(after) == f"Which city is the capital?\n{shown}\n\nGive the {word}.\nAnswer:"
    assert (after.target, after.choices) == (1, CITIES.choices)
    assert after.answer_as == ("text" if style == "none" else "label")
    right = "Paris" if style == "none" else shown.split("\n")[1].split(".")[0]
    assert continuations(after)[1] == f" {right}"


@pytest.mark.parametrize(
    ("rule", "style", "expected"),
    [
        ("Reply with A, B or C.", "digits", "Reply with 1, 2 or 3."),
        ("Reply (A-C).", "roman", "Reply (i-iii)."),
        ("Reply with the correct letter: A/B/C", "digits", "Reply with the correct number: 1/2/3"),
        ("A single letter, A or B or C", "lower", "A single letter, a or b or c"),
        ("Mark your choice.", "none", "Mark your choice."),
        ("Reply with A, B or C.", "none", None),
        ("Letters only.", "digits", None),
        ("Nur den Buchstaben.", "digits", None),
        ("The letter, in capitals.", "lower", None),
        ('{"answer": "the letter"}', "digits", '{"answer": "the number"}'),
        ("Answer the question with a letter.", "roman", "Answer the question with a numeral."),
        ("Read the letter and choose.", "digits", None),
        ("Only the letter from A to C", "digits", "Only the number from 1 to 3"),
    ],
)  # fmt: skip
def test_words_about_labels(rule: str, style: str, expected: str | None) -> None:
    """What the template says of labels is said anew; where that cannot be done, nothing is."""
    after, status, _ = run(
        listing("Rome", "Paris", "Oslo", rule=rule), f"relabel_choices:labels={style}"
    )
    assert status == ("not_applicable" if expected is None else "changed")
    if expected is not None:
        assert after.sections[2].text == f"\n\n{expected}"


def test_a_letter_that_somebody_wrote_stays() -> None:
    """Only the word for a label changes, also where an item's text is part of the system prompt."""
    parts = {
        "system": "{case}",
        "input": "Which team answers?",
        "choices": "{choices}",
        "output_format": "Reply with the letter of your choice.",
    }
    case = {"case": "A customer wrote a letter to us, and the bank two letters to him."}
    item = Item(task="t", key="1", fields=case, choices=("Post", "Billing"), target=0)
    prompt = Template.parse(parts, answer_as="label").build(item)
    after, status, _ = run(prompt, "relabel_choices")
    assert (status, after.sections[0].text) == ("changed", prompt.sections[0].text)
    assert plain(after).endswith("\n1. Post\n2. Billing\nReply with the number of your choice.")


@pytest.mark.parametrize(
    ("choices", "style"),
    [
        (("2", "4", "6"), "digits"),
        (("x", "y", "A"), "lower"),
        (("i", "v", "x"), "roman"),
        (("Yes", "yes", "no"), "none"),
        (("Rome", "Paris", "both A and B"), "digits"),
    ],
)
def test_no_label_that_an_option_already_means(choices: tuple[str, ...], style: str) -> None:
    """A reply must not be able to mean two options, nor an option a label that is gone."""
    prompt = listing(*choices)
    if style == "roman":
        assert run(prompt, "relabel_choices:labels=roman").status == "changed"  # "i" is its own
        prompt = listing("v", "i", "x")
    after, status, step = run(prompt, f"relabel_choices:labels={style}")
    assert (after, status, step) == (prompt, "not_applicable", "relabel_choices")


def _shots(answer_as: str = "label") -> Prompt:
    first, second = listing("Oslo", "Bern", target=1), listing("x.\nB) y", "Kiel", "Bonn", "Trier")
    shown = (
        Demonstration(sections=first.sections, answer="B" if answer_as == "label" else "Bern"),
        Demonstration(sections=second.sections, answer="D" if answer_as == "label" else "Trier"),
    )
    return replace(CITIES, demonstrations=shown, answer_as=answer_as)  # type: ignore[arg-type]


def test_demonstrations_get_the_same_labels() -> None:
    """Listed options and answers of the solved examples follow, or they would contradict."""
    after = run(_shots(), "relabel_choices").prompt
    one, two = after.demonstrations
    assert plain(Prompt(sections=one.sections)).endswith(
        "1. Oslo\n2. Bern\n\nGive the number.\nAnswer:"
    )
    assert two.sections[1].text == "1. x.\nB) y\n2. Kiel\n3. Bonn\n4. Trier"
    assert (one.answer, two.answer) == ("2", "4")
    bare = run(_shots(), "relabel_choices:labels=none").prompt
    assert [d.answer for d in bare.demonstrations] == ["Bern", "Trier"]
    assert bare.demonstrations[1].sections[1].text == "x.\nB) y\nKiel\nBonn\nTrier"
    texts = run(_shots("text"), "relabel_choices").prompt
    assert [d.answer for d in texts.demonstrations] == ["Bern", "Trier"]


def test_demonstrations_that_cannot_follow_stop_it() -> None:
    """An example whose answer is no label, or whose list is not the template's, is not guessed."""
    base = _shots()
    for bad in (
        replace(base.demonstrations[0], answer="maybe"),
        replace(base.demonstrations[0], sections=(replace(base.sections[1], text="X. a\nB. b"),)),
    ):
        prompt = replace(base, demonstrations=(bad,))
        assert run(prompt, "relabel_choices").status == "not_applicable"


def test_shuffles_leave_demonstrations_alone() -> None:
    """A permutation belongs to the item."""
    for name in EVERY[:2]:
        assert run(_shots(), name).prompt.demonstrations == _shots().demonstrations


def test_other_ways_of_listing() -> None:
    """A list in another format, with text around it, is found as it was made."""
    prompt = listing("Rome", "Paris", target=1, line="({label}) {text};\n")
    first = replace(prompt.sections[1], text=f"Options:\n{prompt.sections[1].text}\n")
    prompt = replace(prompt, sections=(prompt.sections[0], first, *prompt.sections[2:]))
    swapped = run(prompt, "shuffle_choice_texts").prompt
    assert swapped.sections[1].text == "Options:\n(A) Paris;\n(B) Rome;\n"
    bare = run(prompt, "relabel_choices:labels=none").prompt
    assert bare.sections[1].text == "Options:\nRome;\nParis;\n"
    behind = listing("Rome", "Paris", line="{text} [{label}]\n")
    after = run(behind, "relabel_choices:labels=none").prompt
    assert after.sections[1].text == "Rome\nParis"
    assert run(after, "relabel_choices").status == "not_applicable"


@pytest.mark.parametrize("name", EVERY)
def test_options_are_never_read_out_of_prose(name: str) -> None:
    """A question that begins with "A train", or lists things itself, has no options."""
    text = "A train leaves.\nB. Clark waits.\nA. Yes\nB. No\n(C) Maybe"
    assert perturb(text, name) == text
    cloze = replace(CITIES, sections=(Section(name="q", kind="input", text=text),))
    assert run(cloze, name).status == "not_applicable"


@pytest.mark.parametrize("name", EVERY)
def test_a_list_that_is_closed_stays(name: str) -> None:
    """Protected and edited lists are left alone, and so is one that is not the prompt's own."""
    listed = CITIES.sections[1]
    for closed in (
        replace(listed, protected=((0, 1),)),
        replace(listed, text=listed.text.replace("Rome", "Roma")),
        run(CITIES, "shuffle_choice_texts").prompt.sections[1],
    ):
        sections = (CITIES.sections[0], closed, *CITIES.sections[2:])
        assert run(replace(CITIES, sections=sections), name).status == "not_applicable"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris", None),
        ("A currency.", None),
        ("a banking service", None),
        ("It is all in the mind", None),
        ("He gave away two of them.", None),
        ("above 30 %", None),
        ("vitamin C", None),
        ("All of the above", ()),
        ("none of these", ()),
        ("Both of them", ()),
        ("None of the above answers is right", ()),
        ("Neither", ()),
        ("any of the others.", ()),
        ("the options listed below", ()),
        ("Keine der genannten", ()),
        ("Toutes ces réponses", ()),
        ("Ninguna de las anteriores", ()),
        ("上記のすべて", ()),
        ("Both A & C", (0, 2)),
        ("A, B, and D", (0, 1, 3)),
        ("(a) and (b)", (0, 1)),
        ("Either A or B but not C", (0, 1, 2)),
        ("B only", (1,)),
        ("all except C", (2,)),
        ("option 2", (0, 1, 2, 3)),
        ("the first two options", (0, 1, 2, 3)),
    ],
)
def test_options_that_speak_of_others(text: str, expected: tuple[int, ...] | None) -> None:
    """What an option says of places and labels is recognised; ordinary words are not."""
    assert referenced_options(text, LABELS[:4]) == expected


def test_options_that_speak_of_others_keep_their_place() -> None:
    """So do those they name; and nothing crosses an option that means what is above it."""
    assert movable(("a", "b", "c", "all of the above"), LABELS[:4]) == ((0, 1, 2),)
    assert movable(("a", "b", "c", "Both A and C"), LABELS[:4]) == ()
    assert movable(("a", "b", "none of the above", "c", "d"), LABELS[:5]) == ((0, 1), (3, 4))
    assert movable(("a", "a", "a"), LABELS[:3]) == ()
    prompt = listing("Rome", "Paris", "both A and B", "Bonn", "Kiel", "none of the above", target=3)
    seen = set()
    for key in map(str, range(12)):
        for name in EVERY[:2]:
            after = run(prompt, name, key=key).prompt
            assert after.choices[:3] == ("Rome", "Paris", "both A and B")
            assert set(after.choices[3:5]) == {"Bonn", "Kiel"}
            assert after.choices[after.target] == "Bonn"  # type: ignore[index]
            seen.add(after.choices)
    assert len(seen) == 1  # the only other order there is


def test_a_permutation_permutes() -> None:
    """Never the order it was, every other one as often; equal texts count as one."""
    shuffle = perturbations.get("shuffle_choice_texts")
    orders = Counter(shuffle(CITIES, Rng(seed)).choices for seed in range(1000))
    assert CITIES.choices not in orders
    assert len(orders) == 5
    assert min(orders.values()) > 150
    twins = listing("Rome", "Rome", "Bonn", target=2)
    assert all(shuffle(twins, Rng(s)).choices != twins.choices for s in range(50))


def real_prompts() -> Iterator[tuple[str, Prompt]]:
    """Every item of four MMLU subjects and of TruthfulQA, as a listing prompt."""
    for path in sorted((DATA / "mmlu").glob("*.csv.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        for n, row in enumerate(csv.reader(io.StringIO(text, newline=""))):
            yield f"{path.name}-{n}", listing(*row[1:5], target=LABELS.index(row[5]))
    raw = gzip.decompress((DATA / "truthfulqa_mc_task.json.gz").read_bytes())
    for n, entry in enumerate(json.loads(raw)):
        targets = entry["mc1_targets"]
        yield f"truthfulqa-{n}", listing(*targets, target=list(targets.values()).index(1))


@pytest.mark.parametrize("name", EVERY)
def test_the_right_answer_survives_on_real_data(name: str) -> None:
    """On 776 MMLU and 790 TruthfulQA items the target's text is what it was."""
    statuses: Counter[str] = Counter()
    for key, prompt in real_prompts():
        after, status, _ = run(prompt, name, key=key)
        statuses[status] += 1
        assert isinstance(prompt.target, int) and isinstance(after.target, int)
        assert after.choices[after.target] == prompt.choices[prompt.target]
        assert sorted(after.choices) == sorted(prompt.choices)
        listed = choice_block(after.labels, after.choices, after.choice_format)
        assert after.sections[1].text == listed
        assert (status == "changed") == (listed != prompt.sections[1].text)
    assert sum(statuses.values()) == 1566
    assert statuses["changed"] >= 1530
    assert set(statuses) <= {"changed", "not_applicable"}
