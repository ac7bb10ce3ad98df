"""Scorers: strict extraction, likelihoods, numbers; absence is never a zero."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.records.interfaces import Case
from falter.records.types import (
    BASELINE,
    ContinuationScore,
    Item,
    Prompt,
    Recipe,
    Response,
    Score,
    Section,
    Step,
    Variant,
)
from falter.scorers import scorers
from falter.scorers.answers import last_number
from falter.scorers.choices import begun_text
from falter.scorers.reading.letters import read_letter
from falter.scorers.reading.numbers import read_number
from falter.scorers.replies import final_answer, in_form

LABELS = ("A", "B", "C", "D")
CHOICES = ("Paris", "Rome", "New York City", "A")


def case(response: Response, target: int | str = 0, choices: tuple[str, ...] = CHOICES) -> Case:
    prompt = Prompt(
        sections=(Section(name="q", kind="input", text="?"),),
        choices=choices,
        labels=LABELS[: len(choices)],
        target=target,
    )
    item = Item(task="t", key="k", fields={})
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    return Case(variant=variant, response=response)


@pytest.mark.parametrize(
    "text",
    [
        "B", "b", " B ", "B.", "(B)", "B)", "**B**", "**B.**", "`B`", '"B"', "[B]", "B:",
        "Answer: B", "answer is B", "The answer is B.", "The correct answer is (B).",
        "The best option is B", "Option B", "B. Rome", "B) rome", "(B) Rome.",
        "The answer is B. Rome",
        "B - Rome", "\n\nB\n", "Rome", "I think it is B", "The answer is Rome.",
        "B because Rome is the capital",
    ],
)  # fmt: skip
def test_a_letter_is_read(text: str) -> None:
    assert read_letter(text, LABELS, CHOICES).answer == 1


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "B or C", "A and B", "B. Paris", "Bravo", "E", "1",
        "Not B", "BB", "B C", "It depends.", "?", "B, Paris", "B. Rome or A. Paris",
    ],
)  # fmt: skip
def test_anything_else_is_unparsed(text: str) -> None:
    assert read_letter(text, LABELS, CHOICES).answer is None
    score = scorers.get("choice_letter").score(case(Response(key="k", text=text)))
    assert (score.outcome, score.value) == ("unparsed", None)


@given(st.text())
def test_the_extractor_never_raises_and_names_a_known_label(text: str) -> None:
    assert read_letter(text, LABELS, CHOICES).answer in (*range(4), None)


def scored(*logprobs: float) -> Response:
    return Response(key="k", scores=tuple(ContinuationScore(logprob=x, tokens=1) for x in logprobs))


def test_raw_and_per_character_likelihoods_differ() -> None:
    """Paris −6 on 5 characters, New York City −9 on 13: raw and per character disagree."""
    response = scored(-6.0, -30.0, -9.0, -30.0)
    raw = scorers.get("choice_likelihood").score(case(response, 0))
    per = scorers.get("choice_likelihood_norm").score(case(response, 0))
    assert (raw.value, raw.extracted) == (1.0, "A")
    assert (per.value, per.extracted) == (0.0, "C")


def test_an_exact_tie_goes_to_the_first_option() -> None:
    score = scorers.get("choice_likelihood").score(case(scored(-2, -1, -1, -2), 1))
    assert score.extracted == "B"


@pytest.mark.parametrize(
    "response",
    [scored(0, 0, 0, 0), scored(-1, -1, -1, -1), scored(-9999, -19998, -9999, -1e9)],
    ids=str,
)
def test_numbers_that_prefer_nothing_are_no_answer(response: Response) -> None:
    """All the same, or all what a server sends in place of a number: unparsed."""
    for name in ("choice_likelihood", "choice_likelihood_norm"):
        score = scorers.get(name).score(case(response, 0))
        assert (score.outcome, score.value) == ("unparsed", None)
    real = scorers.get("choice_likelihood").score(case(scored(-9999, -3, -9999, -1e9), 0))
    assert real.extracted == "B"


@pytest.mark.parametrize(
    "response", [scored(-1.0, -2.0), scored(float("nan"), -1, -1, -1), scored()], ids=str
)
def test_incomplete_scores_fail_and_are_not_wrong(response: Response) -> None:
    score = scorers.get("choice_likelihood").score(case(response))
    assert (score.outcome, score.value) == ("failed", None)


@pytest.mark.parametrize("name", scorers.names())
def test_a_failed_response_is_failed_in_every_scorer(name: str) -> None:
    score = scorers.get(name).score(case(Response(key="k", failure="HTTP 500")))
    assert (score.outcome, score.value, score.reason) == ("failed", None, "HTTP 500")


@pytest.mark.parametrize("name", ["choice_letter", "exact", "includes", "label", "numeric"])
def test_a_refusal_is_refused(name: str) -> None:
    response = Response(key="k", text="I cannot help.", finish_reason="content_filter")
    assert scorers.get(name).score(case(response)).outcome == "refused"


@pytest.mark.parametrize(
    ("name", "text", "target", "value"),
    [
        ("exact", " Paris. ", "paris", 1.0),
        ("exact", "'PARIS'", "Paris", 1.0),
        ("exact", "Paris, France", "Paris", 0.0),
        ("exact", "Rome", 1, 1.0),
        ("includes", "It is Paris, of course", "Paris", 1.0),
        ("includes", "Parisian", "Paris", 0.0),
        ("includes", "C++ rules", "C++", 1.0),
        ("numeric", "so 3 + 4 = 7", "7", 1.0),
        ("numeric", "#### 1,234.50 dollars 9", "1234.5", 1.0),
        ("numeric", "It is −5.", "-5", 1.0),
        ("numeric", "18 eggs", "17", 0.0),
        ("last_number", "It takes 3-7 days", "7", 1.0),
        ("last_number", "3%-7%", "-7", 0.0),
        ("last_number", "so x=_-7_", "-7", 1.0),
    ],
)
def test_free_answers(name: str, text: str, target: int | str, value: float) -> None:
    score = scorers.get(name).score(case(Response(key="k", text=text), target))
    assert (score.outcome, score.value) == ("scored", value)


@pytest.mark.parametrize("name", ["exact", "includes", "label", "numeric"])
def test_an_empty_answer_is_unparsed(name: str) -> None:
    score = scorers.get(name).score(case(Response(key="k", text="  "), "7"))
    assert (score.outcome, score.value) == ("unparsed", None)


@given(st.text())
def test_reading_a_number_never_raises(text: str) -> None:
    last_number(text)
    read_number(text)


# Replies in a form

FORMS = ("json", "yaml", "xml", "markdown", "html")
REASONED = Recipe(label="cot", steps=(Step(name="think_first", version=1, reasons=True),))


def judged(
    name: str,
    text: str,
    target: int | str,
    recipe: Recipe,
    *,
    line: str = "{label}. {text}\n",
    finish: str = "stop",
) -> Score:
    prompt = Prompt(
        sections=(
            Section(name="i", kind="instruction", text="Question: "),
            Section(name="q", kind="input", text="What?"),
        ),
        choices=CHOICES if isinstance(target, int) else (),
        labels=LABELS if isinstance(target, int) else (),
        choice_format=line,
        target=target,
    )
    item = Item(task="t", key="k", fields={})
    variant = Variant(item=item, recipe=recipe, draw=0, prompt=prompt, status="changed")
    response = Response(key="k", text=text, finish_reason=finish)
    return scorers.get(name).score(Case(variant=variant, response=response))


def form(name: str) -> Recipe:
    return Recipe(label=name, output_format=name)


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("json", '{"answer": "B"}', "B"),
        ("json", ' {"answer": "B", "why": "it is"}\n', "B"),
        ("json", '```json\n{"answer": "B"}\n```', "B"),
        ("json", 'Here it is:\n```\n{"answer": "B"}\n```\nDone.', "B"),
        ("json", '{"answer": 12.50}', "12.5"),
        ("json", '{"answer": 1e3}', "1000"),
        ("json", '{"answer": true}', "true"),
        ("json", '{"answer": ["a", 2]}', "a\n2"),
        ("json", '{"answer": {"b": 1}}', '{"b":1}'),
        ("json", '{"answer": null}', None),
        ("json", '{"reply": "B"}', None),
        ("json", '["B"]', None),
        ("json", "B", None),
        ("json", 'The answer: {"answer": "B"}', None),
        ("json", '{"answer": "B"} {"answer": "C"}', None),
        ("json", '```\n{"answer": "B"}\n```\n```\n{"answer": "C"}\n```', None),
        ("json", '{"answer": "B"', None),
        ("yaml", "answer: B", "B"),
        ("yaml", 'answer: "B"', "B"),
        ("yaml", "---\nanswer: No\n", "No"),
        ("yaml", "answer: 0o10", "0o10"),
        ("yaml", "answer: 12:30", "12:30"),
        ("yaml", "answer:\n  - a\n  - b", "a\nb"),
        ("yaml", "```yaml\nanswer: |\n  two\n  lines\n```", "two\nlines"),
        ("yaml", "answer: ~", None),
        ("yaml", "answer:", None),
        ("yaml", "answer: 'null'", "null"),
        ("yaml", "B", None),
        ("yaml", "answer: a: b", None),
        ("yaml", "a: &a [x]\nanswer: *a", None),
        ("xml", "<answer>B</answer>", "B"),
        ("xml", '<?xml version="1.0"?>\n<answer> B </answer>', "B"),
        ("xml", "<reply><answer>a <b>c</b> &amp; d</answer></reply>", "a c & d"),
        ("xml", "<answer>B", None),
        ("xml", "<answer>AT&T</answer>", None),
        ("xml", "<answer>B</answer><answer>C</answer>", None),
        ("xml", "<a><answer>B</answer><answer>C</answer></a>", None),
        ("xml", "<!DOCTYPE a [<!ENTITY b 'B'>]><answer>&b;</answer>", None),
        ("markdown", "## Answer\nB", "B"),
        ("markdown", "# **Answer**:\n\nB\n\n## Why\nBecause.", "B"),
        ("markdown", "```markdown\n## Answer\nB\n```", "B"),
        ("markdown", "## Answer\n```python\nx\n```", "```python\nx\n```"),
        ("markdown", "**Answer:** B", None),
        ("markdown", "## Answer\nB\n## Answer\nC", None),
        ("html", '<p id="answer">B</p>', "B"),
        ("html", "<!DOCTYPE html><body><p id='answer'>a <b>c</b> &amp; d</p></body>", "a c & d"),
        ("html", '```html\n<p id="answer">B</p>\n```', "B"),
        ("html", '<p id="answer">B', "B"),
        ("html", "<p>B</p>", None),
        ("html", '<p id="answer">B</p><p id="answer">C</p>', None),
        ("html", '<p id="answer">1 < 2</p>', None),
        ("html", '<p id="answer">B</p><!-- C -->', None),
    ],
)  # fmt: skip
def test_a_form_is_read_back(name: str, text: str, answer: str | None) -> None:
    """One answer in the form that was asked for, or none at all."""
    assert in_form(text, name) == answer


@pytest.mark.parametrize("name", ["choice_letter", "exact", "includes", "numeric"])
@pytest.mark.parametrize("kind", FORMS)
def test_every_text_scorer_reads_forms(name: str, kind: str) -> None:
    """The right answer in the form is right, a wrong one wrong, and a free one unparsed."""
    shapes = {
        "json": '{{"answer": "{}"}}', "yaml": "answer: {}", "xml": "<answer>{}</answer>",
        "markdown": "## Answer\n{}", "html": '<p id="answer">{}</p>',
    }  # fmt: skip
    target: int | str = 1 if name == "choice_letter" else "7"
    right, wrong = ("B", "C") if name == "choice_letter" else ("7", "8")
    assert judged(name, shapes[kind].format(right), target, form(kind)).value == 1.0
    assert judged(name, shapes[kind].format(wrong), target, form(kind)).value == 0.0
    score = judged(name, right, target, form(kind))
    assert (score.outcome, score.value) == ("unparsed", None)
    assert score.reason == f"the reply is not the required {kind.upper()}"


def test_a_form_after_reasoning() -> None:
    """With both, the form is what follows the last "Answer:"; another item begun is cut off."""
    both = Recipe(label="x", steps=REASONED.steps, output_format="json")
    assert judged("exact", 'I think.\nAnswer: {"answer": "7"}', "7", both).value == 1.0
    assert judged("exact", 'I think.\nAnswer: {"answer": "7"}', "7", form("json")).value is None
    sequel = '{"answer": "7"}\n\nQuestion: What?\nAnswer: {"answer": "8"}'
    assert judged("exact", sequel, "7", form("json")).value == 1.0


def hostile() -> Iterator[tuple[str, str]]:
    """Replies that make a careless parser slow, large or loud."""
    n = 6000
    nested = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1},*a{i - 1}]\n" for i in range(1, 30))
    entities = "".join(f'<!ENTITY e{i} "&e{i - 1};&e{i - 1};">' for i in range(1, 30))
    texts = {
        "json": ["[" * n, '{"answer":' * 1500, '{"answer": "\\ud800"}', '{"answer": NaN}', '"' * n],
        "yaml": [
            f"{nested}answer: *a29",
            "[" * n,
            "{" * n,
            "- " * n,
            "? " * n,
            "&a " * n,
            "answer: !!python/object/apply:os.getcwd []",
            'answer: "\\UFFFFFFFF"',
            "%YAML 9.9\n---\nanswer: 1",
            "answer: !<",
            "\x00",
        ],
        "xml": [
            f"<!DOCTYPE a [<!ENTITY e0 'x'>{entities}]><answer>&e29;</answer>",
            '<!DOCTYPE a SYSTEM "file:///etc/hostname"><answer/>',
            "<a>" * n,
            "<a>" * 2500 + "</a>" * 2500,
            "<answer>\x00</answer>",
            "<answer>&e;</answer>",
            "&" * n,
        ],
        "html": [
            "<" * n,
            "<a " * n,
            "</" * n,
            "<p" * n,
            "&#" * n,
            "<p id=answer " + "a=" * n,
            "<script>" * 2000,
            "<p " + "'" * n,
        ],
        "markdown": ["#" * n, "# " * n, "## answer" + " " * 15000 + "x", "```\n" * 4000],
    }
    for kind, replies in texts.items():
        for text in [*replies, "", " ", "\ud800", "x" * 30_000, "\n" * 15_000]:
            yield kind, text


@pytest.mark.parametrize(("kind", "text"), list(hostile()), ids=lambda value: repr(value)[:24])
def test_hostile_replies_are_unparsed(kind: str, text: str) -> None:
    """Nothing escapes and nothing expands; some of these would take minutes if let through."""
    for reasoned in (False, True):
        assert in_form(text, kind, reasoned=reasoned) in (None, "", "os.getcwd", "1")


@given(
    st.sampled_from(FORMS),
    st.text(st.sampled_from("answer:<>/\"'{}[]&*!#|-`= \n1\\")),
    st.booleans(),
)
def test_reading_a_form_never_raises(kind: str, text: str, reasoned: bool) -> None:
    for reply in (text, f"answer: {text}", f"<answer>{text}</answer>", f"## Answer\n{text}"):
        assert isinstance(in_form(reply, kind, reasoned=reasoned), str | None)


# After reasoning


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Steps.\nAnswer: Paris", "Paris"),
        ("Answer: Rome\nNo, wait.\nAnswer: Paris\n", "Paris"),
        ("**Final answer:** Paris.", "Paris."),
        ("So the answer is Paris", "Paris"),
        ("> Answer:\n\nParis\nIndeed.", "Paris"),
        ("The answer is: Paris", "Paris"),
        ("I do not know what the answer is.", None),
        ("Answers: many", None),
        ("Paris", None),
        ("Answer:", None),
        ("", None),
    ],
)
def test_the_last_answer_line(text: str, line: str | None) -> None:
    """What follows the last "Answer:" that begins a line, on the line or below."""
    assert final_answer(text) == line


@pytest.mark.parametrize(
    ("name", "text", "target", "value"),
    [
        ("exact", "Rome is older.\nAnswer: Paris.", "Paris", 1.0),
        ("exact", "Paris", "Paris", None),
        ("includes", "Not Rome.\nAnswer: Paris, France", "Paris", 1.0),
        ("includes", "Paris is big.\nAnswer: Rome", "Paris", 0.0),
        ("includes", "I first thought of Paris", "Paris", None),
        ("numeric", "3 and 4.\nAnswer: 7", "7", 1.0),
        ("numeric", "Answer: 7 dollars\nThat took 2 steps.", "7", 1.0),
        ("numeric", "Answer: 3 + 4 = 7", "7", 1.0),
        ("numeric", "Answer: 7 in 2 days", "7", 1.0),
        ("numeric", "Answer: unknown, 3 or so\n#### 7", "7", 1.0),
        ("numeric", "It makes 3 + 4 = 7", "7", 1.0),
        ("choice_letter", "A is wrong, C too.\nAnswer: (B)", 1, 1.0),
        ("choice_letter", "Rome, so the answer is **B**.", 1, 1.0),
        ("choice_letter", "The answer is not A.\nAnswer: B. Rome", 1, 1.0),
        ("choice_letter", "Answer: A\nNo.\nAnswer: B\n\nI hope that helps.", 1, 1.0),
        ("choice_letter", "Answer:\n**C**", 1, 0.0),
        ("choice_letter", "B", 1, 1.0),
        ("choice_letter", "It must be B", 1, 1.0),
        ("choice_letter", "The answer is not A", 1, None),
        ("choice_letter", "The answer is B or C", 1, None),
        ("choice_letter", "Answer: B. Paris", 1, None),
        ("choice_letter", "Answer: X", 1, None),
        ("choice_letter", "Answer: B\n\nQuestion: Next?\nAnswer: C", 1, 1.0),
        ("choice_letter", "Question: What?\nHm.\nAnswer: B", 1, 1.0),
        ("choice_letter", "", 1, None),
    ],
)  # fmt: skip
def test_answers_after_reasoning(
    name: str, text: str, target: int | str, value: float | None
) -> None:
    """Read from the end, strictly: what is not one clear answer is unparsed."""
    score = judged(name, text, target, REASONED)
    assert (score.outcome, score.value) == ("unparsed" if value is None else "scored", value)


def test_reasoning_that_was_cut_has_no_number() -> None:
    """The last number of half a calculation is not its result."""
    assert judged("numeric", "3 + 4 = 7, times", "7", REASONED, finish="length").value is None
    assert judged("numeric", "So 7.\nAnswer: 7\nLet", "7", REASONED, finish="length").value == 1.0


@pytest.mark.parametrize(
    ("name", "text", "target", "value"),
    [
        ("choice_letter", "A is wrong.\nAnswer: B", 1, 1.0),
        ("choice_letter", "B\n\nQuestion: Next?\nAnswer: C", 1, 1.0),
        ("exact", "Rome?\nAnswer: Paris", "Paris", 0.0),
        ("numeric", "Answer: 7 in 2 days", "7", 1.0),
    ],
)
def test_replies_that_were_not_asked_to_reason(
    name: str, text: str, target: int | str, value: float | None
) -> None:
    """A later "Answer:" that belongs to a question the model went on to invent is not read."""
    assert judged(name, text, target, BASELINE).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Rome", 1.0),
        ("the answer is rome.", 1.0),
        ("**Rome**", 1.0),
        ("Paris", 0.0),
        ("B", None),
        ("A", 0.0),
        ("Rome or Paris", None),
    ],
)
def test_options_without_labels_are_named_by_their_text(text: str, value: float | None) -> None:
    assert judged("choice_letter", text, 1, BASELINE, line="{text}\n").value == value


def test_the_beginning_of_an_option_counts_when_the_reply_was_cut() -> None:
    """Long options do not fit into a short reply; one that begins no other is still clear."""
    long = ("The river that runs west", "The river that runs east", "A lake in the hills")
    assert begun_text("The river that runs w", long) == 0
    assert begun_text("The river that runs", long) is None
    assert begun_text("A lake", long) is None
