"""The replies that answers are read from, and how well each kind of them is read."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from falter.scorers.reading.answers import read_answer
from falter.scorers.reading.fields import read_fields
from falter.scorers.reading.labels import read_label, read_yes_no
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number
from falter.scorers.reading.phrases import LANGUAGES, words_of
from falter.scorers.reading.reading import Reading
from reply_sets import KINDS, UNSEEN, counted

REPLIES = Path(__file__).parents[1] / "data" / "replies"


@pytest.mark.parametrize("kind", KINDS)
def test_cases_are_whole(kind: str) -> None:
    """A reading is one of the options or labels, a number, yes or no, or nothing."""
    lines = (REPLIES / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert max(Counter(case["id"] for case in cases).values()) == 1
    for case in cases:
        assert case["reply"] is not None
        assert case["why"]
        if case["read"] is None:
            continue
        match kind:
            case "letters":
                assert case["read"] in case["options"], case["id"]
            case "labels":
                assert case["read"] in case["labels"], case["id"]
            case "numbers":
                float(case["read"])
            case "yesno":
                assert case["read"] in ("yes", "no"), case["id"]


def test_traps_name_cases() -> None:
    """Every trap is a case of the files."""
    ids = {
        json.loads(line)["id"]
        for kind in KINDS
        for line in (REPLIES / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    }
    assert set(json.loads((REPLIES / "traps.json").read_text(encoding="utf-8"))) <= ids


@pytest.mark.parametrize(
    ("kind", "precision", "recall"),
    [
        ("letters", 0.985, 0.79), ("labels", 0.975, 0.81), ("numbers", 0.975, 0.72),
        ("yesno", 0.975, 0.7), ("json", 0.9, 0.8),
    ],
)  # fmt: skip
def test_reading_gets_no_worse(kind: str, precision: float, recall: float) -> None:
    """Floors just below the present figures on replies that have been read, most of them hard."""
    counts = counted(kind)
    assert counts.precision > precision and counts.recall > recall
    assert kind == "json" or counts.stated - counts.stated_right <= 1


@pytest.mark.parametrize("kind", ["letters", "labels", "numbers", "yesno"])
def test_what_is_stated_is_never_read_wrongly(kind: str) -> None:
    """Of replies that nobody has read, no stated answer is wrong. Only the count is looked at."""
    counts = counted(kind, UNSEEN)
    assert counts.stated == counts.stated_right > 20
    assert counts.precision > 0.88


STATED = [
    ("The answer is (B).", 1), ("B", 1), ("**B) Rome**", 1), ("Final answer: B", 1),
     ("\\boxed{B}", 1),
    ("#### B", 1), ('{"answer": "B"}', 1), ("Rome", 1), ("<think>A?</think>\n\nB", 1),
    ("The correct answer to this question is therefore option B: Rome.", 1),
    ("A is tempting.\n\nAnswer:\n\nB", 1), ("Die richtige Antwort ist B.", 1), ("答えはBです。", 1),
    ("La respuesta correcta es la B.", 1), ("La bonne réponse est la B.", 1),
    ("- [ ] A\n- [x] B\n- [ ] C", 1),
]  # fmt: skip
OPEN = [
    "The answer is A or B.", "The answer is (A), (B), and (C).", "It could be A or B.", "",
    "The answer is A. Wait, that is wrong.", "If it rains, the answer is A; otherwise it is B.",
    "The closest option is (A). However, none of the options is correct.",
    "I'm sorry, but I can't help with that.", "The answer is not A.", "A/B", "The answer is D.",
    "Is the answer A?",
]  # fmt: skip


@pytest.mark.parametrize(("reply", "option"), STATED)
def test_a_marked_option_is_stated(reply: str, option: int) -> None:
    """An option alone, in a box, in an object, in a ticked line or behind a mark is stated."""
    found = read_letter(reply, "ABC", ["Paris", "Rome", "Oslo"], "Which city is the capital?")
    assert found == Reading(answer=option, tier="stated")


@pytest.mark.parametrize("reply", OPEN)
def test_what_is_left_open_is_unread_with_a_reason(reply: str) -> None:
    """Two answers, a condition, a denial, a retraction and a refusal give none."""
    found = read_letter(reply, "ABC", ["Paris", "Rome", "Oslo"], "Which city is the capital?")
    assert found.answer is None and found.tier is None and found.reason


def test_prose_is_inferred() -> None:
    """A sole or last concluded candidate is inferred, and the other of two that is denied."""
    labels = ("billing", "login", "shipping")
    reply = "Although it mentions a parcel (shipping), this one belongs to billing."
    assert read_label(reply, labels) == Reading(answer="billing", tier="inferred")
    assert read_label("This isn't toxic.", ("toxic", "harmless")).answer == "harmless"
    hedged = read_label("I don't know, perhaps billing?", labels)
    assert hedged == Reading(answer="billing", tier="inferred")
    assert read_label("Classified as: billing", labels).tier == "stated"
    assert read_yes_no("The museum is open.", "Is the museum open?").answer is None


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("Is Paris bigger than Rome?", "Rome is bigger than Paris."),
        ("Did Anna pay Ben?", "Ben paid Anna."),
        ("Is the fox older than the dog?", "The dog is older."),
        ("Does Python support tail calls?", "Python supports calls."),
        ("Did Germany beat Brazil in 2014?", "Brazil beat Germany in 2014."),
        ("Is the museum open on Mondays?", "The museum is open on Tuesdays."),
        ("Did the team win the cup in 2019?", "They lost it in 2019."),
        ("Does it allow subletting without consent?", "It allows subletting with consent."),
        ("Is the claim supported?", "Supported claims need a source."),
        ("¿Incluye el precio el desayuno?", "El desayuno incluye el precio."),
    ],
)
def test_the_questions_words_in_other_roles_are_no_yes(question: str, reply: str) -> None:
    """A statement with the same words says something else, and is not read."""
    assert read_yes_no(reply, question).answer is None


@pytest.mark.parametrize(
    ("reply", "question", "wrong"),
    [
        ("The total interest is **1,500**, so the total repayment is 11,500.",
         "A loan of 10,000 costs 5 % a year for three years. What is the total interest?", 11500),
        ("387,758. Rounded to the nearest thousand, that is 388,000.", "What is 402 × 964.57?",
        388000),
        ("40-50", "How many guests?", 50), ("x = 4 or x = -4", "What is x?", -4),
        ("There are 3 editions, and the price depends on the seats.", "How much is the upgrade?",
        3),
    ],
)  # fmt: skip
def test_a_number_beside_the_answer_is_not_taken(reply: str, question: str, wrong: int) -> None:
    """Each was read wrongly and with confidence before; now it is right or unread."""
    assert read_number(reply, question).answer != wrong


@pytest.mark.parametrize(
    ("reply", "question", "number"),
    [
        ("72", "", "72"), ("Answer: $1,234.50", "", "1234.50"), ("#### 1.234,5", "", "1234.5"),
        ("\\boxed{\\frac{3}{4}}", "", "0.75"), ("So 15 % of 80 is 12.", "What is 15 % of 80?",
        "12"),
        ("Twelve dozen.", "How many dozen eggs are 144 eggs?", "12"), ("einundzwanzig", "", "21"),
        ("quatre-vingt-dix-sept", "", "97"), ("約1万2400人です。", "", "12400"),
        ("The tower is about 300 feet (91.5 metres) tall.", "How tall is it in metres?", "91.5"),
        ('{"errors": 3, "warnings": 12}', "How many errors does the log show?", "3"),
    ],
)  # fmt: skip
def test_numbers_are_worked_out(reply: str, question: str, number: str) -> None:
    """Separators, fractions, words, scales and units; the number that the question asks for."""
    assert read_number(reply, question).answer == Decimal(number)


@pytest.mark.parametrize(
    ("question", "reply", "answer", "tier"),
    [
        ("What is the capital of France?", "The capital of France is **Paris**.", "Paris",
        "stated"),
        ("What is the capital of France?", "The capital of France is Paris, a city.", "Paris",
        "inferred"),
        ("What is the capital of France?", "Paris.", "Paris", "stated"),
        ("Who wrote Faust?", "Faust wurde von Johann Wolfgang von Goethe geschrieben.",
         "Johann Wolfgang von Goethe", "inferred"),
        ("Which planet is the largest?", "The answer is Jupiter, because it is.", "Jupiter",
        "stated"),
        ("Which planet is the largest?", "I don't know.", None, None),
        ("Which planet is the largest?", "Jupiter... no wait, Saturn.", None, None),
    ],
)  # fmt: skip
def test_short_answers(question: str, reply: str, answer: str | None, tier: str | None) -> None:
    """A marked, bold or lone answer is stated; a sentence that gives it is inferred."""
    found = read_answer(reply, question)
    assert (found.answer, found.tier) == (answer, tier)


@pytest.mark.parametrize(
    "reply",
    [
        '{"city": "Rome", "size": 3}', 'Sure:\n```json\n{"city": "Rome", "size": 3}\n```\nBye.',
        "{'city': 'Rome', 'size': 3,}", '{"city": "Rome", // the town\n "size": 3}',
        '{city: "Rome", size: 3}', '"{\\"city\\": \\"Rome\\", \\"size\\": 3}"',
        '{"city": "Oslo", "size": 1}\nSorry, corrected:\n{"city": "Rome", "size": 3}',
    ],
)  # fmt: skip
def test_objects_are_found_and_repaired(reply: str) -> None:
    """Fences, prose, single quotes, trailing commas, comments and bare keys hide no object."""
    assert read_fields(reply).answer == {"city": "Rome", "size": 3}


@pytest.mark.parametrize(
    "reply",
    ['{"city": "Ro', '{"a": 1} or {"a": 2}', '{"city": "<city>"}', "no object", '{"a": 1, "a": 2}'],
)
def test_objects_that_are_not_there_are_unread(reply: str) -> None:
    """A cut or ambiguous object, a form and a text give no object, and the reason."""
    found = read_fields(reply)
    assert found.answer is None and found.reason


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_its_words(language: str) -> None:
    """Each bundled language says what marks, denies, corrects and refuses an answer."""
    assert {"answer", "not", "correction", "refuse", "yes", "no"} <= set(words_of(language))


HOSTILE = (
    " " * 10**6, "\n" * 10**6, "[" * 10**6, "{" * 10**6, '{"a":' * 600 + "1" + "}" * 600,
    "9" * 10**6,
    '{"a": ' + "9" * 10**5 + "}", "`" * 10**6, "```\n" * 10**5, "<think>" * 10**5, "\ud800 B",
    "NaN",
    '{"answer": NaN}', "\\boxed{" * 10**5, "a" * 10**6, "**" * 10**5, "é" * 10**6, '{"' * 10**5,
    "(" * 10**6,
    "the answer is " * 10**5, "B or " * 10**5, '"' * 10**6, "1 + " * 10**5, "| " * 10**5,
    "İ" * 10**5,
)  # fmt: skip


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda text: repr(text[:8]))
def test_no_reply_breaks_a_reader(reply: str) -> None:
    """A million of any character is read or refused with a reason, and nothing is raised."""
    for found in (
        read_letter(reply, "ABC", ["x", "y", "z"], "Which?"), read_label(reply, ("yes", "no")),
        read_number(reply, "How many?"), read_yes_no(reply, "Is it?"), read_answer(reply, "Who?"),
        read_fields(reply),
    ):  # fmt: skip
        assert (found.answer is None) == bool(found.reason) == (found.tier is None)


def test_every_digit_of_a_number_is_kept() -> None:
    """Nothing is rounded to the precision of decimal arithmetic, and 3.5 million is an integer."""
    assert read_number("9" * 59).answer == Decimal("9" * 59)
    assert str(read_number("about 3.5 million").answer) == "3500000"


def test_options_with_equal_texts_are_not_told_apart() -> None:
    """Only their letters name them."""
    assert read_letter("same", "AB", ["same", "same"]).answer is None
    assert read_letter("B", "AB", ["same", "same"]).answer == 1
