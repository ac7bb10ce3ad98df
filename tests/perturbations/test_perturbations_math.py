"""Maths: the same values, written in another way; nothing else is touched."""

from __future__ import annotations

import gzip
import json
import re
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falter.perturbations import apply_recipe, parse_step, perturb
from falter.perturbations.recipes import resolve_step
from falter.records.types import Prompt, Recipe, Section

NAMES = ("symmetric_addition", "symmetric_multiplication", "latexify")
GSM8K = Path(__file__).parents[1] / "data" / "gsm8k_test.jsonl.gz"


@cache
def problems() -> list[str]:
    with gzip.open(GSM8K, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["question"] for line in lines]


# A reader of arithmetic of the tests' own: it takes the longest stretch that has a value

TOKEN = re.compile(
    r"(?P<mixed>\d+ \d+/\d+)|(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"|(?P<mark>\*\*|[-−+*/×÷^()%])|(?P<space>[ $]+)|(?P<other>.)",
    re.DOTALL,
)
Tokens = list[tuple[str, str]]


class NoValue(Exception):
    pass


class Reader:
    """Recursive descent over tokens: sums of products of powers."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = [token for token in tokens if token[0] != "space"]
        self.at = 0

    def next(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise NoValue
        self.at += 1
        return self.tokens[self.at - 1]

    def whole(self) -> Fraction:
        value = self.sum()
        if self.at < len(self.tokens):
            raise NoValue
        return value

    def sum(self) -> Fraction:
        value = self.product()
        while self.next() in ("+", "-", "−"):
            value = value + self.product() if self.take()[1] == "+" else value - self.product()
        return value

    def product(self) -> Fraction:
        value = self.sign()
        while self.next() in ("*", "×", "/", "÷"):
            if self.take()[1] in "*×":
                value *= self.sign()
            else:
                divisor = self.sign()
                if not divisor:
                    raise NoValue
                value /= divisor
        return value

    def sign(self) -> Fraction:
        if self.next() in ("-", "−"):
            self.take()
            return -self.sign()
        if self.next() == "+":
            self.take()
        return self.power()

    def power(self) -> Fraction:
        base = self.atom()
        if self.next() == "%":
            self.take()
        if self.next() not in ("^", "**"):
            return base
        self.take()
        exponent = self.sign()
        if exponent.denominator != 1 or abs(exponent) > 99 or (not base and exponent < 0):
            return Fraction(hash((base, exponent)) % 1009)  # some value, the same for the same
        return base ** int(exponent)

    def atom(self) -> Fraction:
        kind, text = self.take()
        if kind == "mixed":
            whole, _, part = text.partition(" ")
            return Fraction(whole) + Fraction(part)
        if kind == "number":
            return Fraction(text.replace(",", ""))
        if text != "(":
            raise NoValue
        value = self.sum()
        if self.take()[1] != ")":
            raise NoValue
        return value


def without_latex(text: str) -> str:
    """The text without commands."""
    text = text.replace("{,}", ",")
    text = re.sub(r"(\d?)\\frac\{([\d.,]+)\}\{([\d.,]+)\}", r"\1 \2/\3", text).replace("  ", " ")
    text = re.sub(r"\^\{([^{}]*)\}", r"^\1", text)
    for command, mark in ((r"\times", "*"), (r"\div", "÷"), (r"\,", " "), ("\\", "")):
        text = text.replace(command, mark)
    return text


def values(text: str) -> list[Fraction]:
    """The values of all arithmetic in a text, in order."""
    tokens = [(str(m.lastgroup), m.group()) for m in TOKEN.finditer(without_latex(text))]
    found: list[Fraction] = []
    at = 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and tokens[end][0] != "other":
            end += 1
        for stop in range(end, at, -1):
            try:
                found.append(Reader(tokens[at:stop]).whole())
            except NoValue:
                continue
            at = stop
            break
        else:
            at += 1
    return found


def test_the_reader_itself() -> None:
    """The tests' reader knows precedence, brackets, mixed numbers and prose."""
    assert values("2+3*4 and (2+3)*4, then 2 1/2 of 1,200.5") == [14, 20, Fraction(5, 2), 1200.5]
    assert values("6 (2 adults) at 5%, -3^2 12-mile") == [6, 2, 5, -9, 12]
    assert values(r"$\$48$ or $2\frac{1}{2}$ or $2^{10}$") == [48, Fraction(5, 2), 1024]


def changed(text: str, *steps: str) -> tuple[str, str]:
    prompt = Prompt(sections=(Section(name="q", kind="input", text=text),), target="7")
    recipe = Recipe(label="x", steps=tuple(map(parse_step, steps)))
    done = apply_recipe("k", prompt, recipe, 0, 0)
    return done.prompt.sections[0].text, done.status


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_gsm8k_is_kept(name: str) -> None:
    """In 1,319 problems all arithmetic has the value it had; a plain number always changes."""
    count = 0
    for text in problems():
        after, status = changed(text, name)
        assert values(after) == values(text), (text, after)
        count += status == "changed"
        if re.search(r"(?<=[a-z] )[1-9]\d?(?= [a-z]{4,}[ .,?])", text):
            assert status == "changed" or "page 1" in text, text
    assert (len(problems()), count) == (1319, 1290)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_terms_change(name: str) -> None:
    """Words, and the order of everything, are what they were."""
    for text in problems()[:300]:
        after, _ = changed(text, name)
        words = re.findall(r"[A-Za-z]+", text)
        assert re.findall(r"[A-Za-z]+", after.replace(r"\frac", "")) == words


@pytest.mark.parametrize(
    ("text", "added", "multiplied", "latex"),
    [
        ("3 + 4 = ?", "(1-1)+3 + 4 = ?", "1*(3 + 4) = ?", "$3 + 4$ = ?"),
        ("-5 + 3", "(1-1)-5 + 3", "1*(-5 + 3)", "$-5 + 3$"),
        ("What is 3*4?", "What is (1-1)+3*4?", "What is 1*3*4?", r"What is $3 \times 4$?"),
        ("Find 12 ÷ 4 × 2.", "Find (1-1)+12 ÷ 4 × 2.", "Find 1×12 ÷ 4 × 2.",
         r"Find $12 \div 4 \times 2$."),
        ("(6 + 2) * 3 = 24", "(1-1)+(6 + 2) * 3 = 24", "1*(6 + 2) * 3 = 24",
         r"$(6 + 2) \times 3$ = 24"),
        ("2^10 + 3", "(1-1)+2^10 + 3", "1*(2^10 + 3)", "$2^{10} + 3$"),
        ("has 16 eggs", "has ((1-1)+16) eggs", "has (1*16) eggs", "has $16$ eggs"),
        ("is -48 degrees", "is ((1-1)-48) degrees", "is (1*(-48)) degrees", "is $-48$ degrees"),
        ("pays $48 now", "pays $((1-1)+48) now", "pays $(1*48) now", r"pays $\$48$ now"),
        ("€1,200.50 each", "€((1-1)+1,200.50) each", "€(1*1,200.50) each",
         "€$1{,}200.50$ each"),
        ("200$ or .5", "((1-1)+200)$ or ((1-1)+.5)", "(1*200)$ or (1*.5)", r"$200\$$ or $.5$"),
        ("grew by 150%.", "grew by ((1-1)+150)%.", "grew by (1*150)%.", r"grew by $150\%$."),
        ("at 30mph, 5°C", "at 30mph, 5°C", "at 30mph, 5°C", "at $30$mph, $5$°C"),
        ("A Boeing 747 has 8 doors", "A Boeing 747 has ((1-1)+8) doors",
         "A Boeing 747 has (1*8) doors", "A Boeing 747 has $8$ doors"),
        ("$ 350 and 20", "$ ((1-1)+350) and ((1-1)+20)", "$ (1*350) and (1*20)", "$ 350 and $20$"),
        ("as ( 2 : 3 ), 8 in all", "as ( 2 : 3 ), ((1-1)+8) in all", "as ( 2 : 3 ), (1*8) in all",
         "as ( 2 : 3 ), $8$ in all"),
        ("ran 3.5 km", "ran ((1-1)+3.5) km", "ran (1*3.5) km", "ran $3.5$ km"),
        ("$35/hour", "$((1-1)+35)/hour", "$(1*35)/hour", r"$\$35$/hour"),
        ("1/2 of it", "((1-1)+1/2) of it", "(1*1/2) of it", r"$\frac{1}{2}$ of it"),
        ("2 1/2 cups", "((1-1)+2 1/2) cups", "(1*(2 1/2)) cups", r"$2\frac{1}{2}$ cups"),
        ("400 000 people", "((1-1)+400 000) people", "(1*400 000) people", r"$400\,000$ people"),
        ("Ann (5 years) and 7", "Ann (((1-1)+5) years) and ((1-1)+7)",
         "Ann ((1*5) years) and (1*7)", "Ann ($5$ years) and $7$"),
        ("100 * (1 + 5%)", "(1-1)+100 * (1 + 5%)", "1*100 * (1 + 5%)",
         r"$100 \times (1 + 5\%)$"),
        ("What is 10 - 4?", "What is (1-1)+10 - 4?", "What is 1*(10 - 4)?", "What is $10 - 4$?"),
    ],
)  # fmt: skip
def test_terms(text: str, added: str, multiplied: str, latex: str) -> None:
    """Numbers keep currency, percent and unit; sums get brackets; equations change on the left."""
    assert tuple(perturb(text, name) for name in NAMES) == (added, multiplied, latex)


@pytest.mark.parametrize(
    "text",
    [
        "10-15 people", "10 – 15 people", "20 - 30 people", "$10-$15", "pages 3-5", "2010-2020",
        "GPT-4 and iPhone 12", "Llama 3.1.2", "call 555-123-4567", "ISBN 9780306406157",
        "agent 007", "at 5:30 PM", "5 pm", "at 8 o'clock", "on 3 March 2020", "March 3", "in 2019",
        "3/14/2020", "open 24/7", "for his 30th", "2/3rds", "a 12-mile trail", "class 3B",
        "a ratio of 7:11", "as 2 : 3", "Apollo 11 flew", "It was on day 3",
        "horse #2", "$10^{-3}$", "$f(3, 4)$", "$x = 5$", r"\frac{3}{4}",
        "x - 5 = y", "5 + x = 7", "y = -5", "24 = 2p", "x^2 - 3x + 2", "f(5)", "a 2 x 4", "`5 + 3`",
        "```\nx = 5\n```", "see [12]", "the answer (3)", "http://a.b/5 www.a.b/6 /tmp/7", "{5}",
        "1.5.2", "1,00 or 1,2,3", "Figure 2", "step 4", "two 3-day trips", "4 1-hour lessons",
        "10²", "5! + 3 + x", "import os\nfor i in range(3):", "def f(x):\n    return x + 5", "",
        "10 apples10", "2(3+4)", "<b>5</b>", '{"a": 5}', "a_5 b5 5b v2", "in 5 BC", "1e5",
    ],
)  # fmt: skip
def test_what_only_looks_like_arithmetic_stays(text: str) -> None:
    """Ranges, dates, labels, names, algebra, code, LaTeX: not applicable, where alone."""
    for name in NAMES:
        after, status = changed(text, name)
        if text in ("10 apples10", "5! + 3 + x"):
            assert values(after) == values(text)
        else:
            assert (after, status) == (text, "not_applicable")


def test_line_numbers_stay() -> None:
    """A number that labels its line is no arithmetic; one that ends a sentence is."""
    assert perturb("1. Take 5\n2) Add 6.", "latexify") == "1. Take $5$\n2) Add $6$."
    assert perturb("It is\n19.", "latexify") == "It is\n$19$."


def test_protection_and_chains() -> None:
    """Patterns, protected spans and earlier edits are respected; nothing is added twice."""
    text = "She has 16 eggs and 7 hens"
    assert changed(text, "symmetric_addition:protect=16") == (
        "She has 16 eggs and ((1-1)+7) hens", "changed",
    )  # fmt: skip
    once, _ = changed(text, "latexify:count=1")
    twice, _ = changed(text, "latexify:count=1", "symmetric_addition")
    assert "$" in once and "$" in twice and "((1-1)+" in twice
    assert changed(text, "latexify", "symmetric_addition") == (text, "not_applicable")
    section = Section(name="q", kind="input", text=text, protected=((8, 10),))
    recipe = Recipe(label="x", steps=(resolve_step("latexify"),))
    after = apply_recipe("k", Prompt(sections=(section,)), recipe, 0, 0).prompt
    assert after.sections[0].text == "She has 16 eggs and $7$ hens"


def test_noise_stays_out_of_what_was_written() -> None:
    """Word noise after maths leaves the terms alone."""
    after, status = changed("They found 16 lovely eggs", "symmetric_addition", "typos:rate=1")
    assert status == "changed" and "((1-1)+16)" in after


@given(st.text(alphabet="123456789 +-*/^()=.,$%x\n", max_size=40))
def test_any_arithmetic_soup_keeps_its_values(text: str) -> None:
    """Whatever stands there, what changes keeps its value."""
    for name in NAMES[:2]:
        after, status = changed(text, name)
        if status == "changed":
            assert len(after) > len(text)
            assert values(after) == values(text), (text, after)
