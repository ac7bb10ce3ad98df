"""The pages on measures and statistics: every number explained in two sentences, and computed."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import get_args

import pytest

from falter.measures import measures
from falter.records.types import EstimateStatus, Outcome, VariantStatus

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "measures.md", DOCS / "statistics.md"]


def sections(page: Path) -> dict[str, str]:
    """Return the text below each heading of the third level, up to the next one."""
    text = page.read_text("utf-8")
    return dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^##{1,2} |\Z)", text, re.DOTALL | re.MULTILINE))


def examples(text: str) -> str:
    return "\n".join(re.findall(r"^(?:>>>|\.\.\.) .*", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_are_true(page: Path) -> None:
    """Every example prints what the page says."""
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 50
    assert result.failed == 0


@pytest.mark.parametrize("name", measures())
def test_every_measure_has_a_section_with_an_example(name: str) -> None:
    """The heading names the function, and an example below it calls it."""
    (text,) = [text for head, text in sections(PAGES[0]).items() if head.startswith(f"`{name}(")]
    assert re.search(rf"\b{name}\(", examples(text)), f"{name} has no example"


def test_no_section_explains_a_measure_that_does_not_exist() -> None:
    """A heading outlives no function."""
    named = [head.split("(")[0].strip("`") for head in sections(PAGES[0])]
    assert sorted(named) == list(measures())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_section_begins_with_two_sentences(page: Path) -> None:
    """One for what the number tells, one for when to use it; and every section has an example."""
    for head, text in sections(page).items():
        first = text.strip().split("\n\n")[0]
        assert len(re.findall(r"[.?](?=\s|$)", first)) == 2, f"{head}: {first}"
        assert examples(text), f"{head} has no example"


def test_the_glossary_explains_every_status() -> None:
    """What became of a prompt, of an answer and of a number: each of their words has a row."""
    page = (DOCS / "glossary.md").read_text("utf-8")
    rows = re.findall(r"^\| `?([^|`]+?)`? \|", page, re.MULTILINE)
    explained = {word for row in rows for word in row.replace(" ", "_").split(",_")}
    words = get_args(EstimateStatus) + get_args(Outcome) + get_args(VariantStatus)
    assert set(words) <= explained
