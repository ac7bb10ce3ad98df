"""The documents are outputs: they are held against the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import falter
from command_line_page import PAGE, page
from falter.cli.app import COMMANDS
from falter.clients import clients
from falter.measures import measures
from falter.perturbations import perturbations
from falter.perturbations.recipes import DEFAULT_RECIPES
from falter.scorers import scorers
from falter.tasks import tasks
from once import README_STDOUT

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_the_command_line_page_is_what_the_program_says() -> None:
    """Mend with: python tests/support/command_line_page.py"""
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize(
    ("names", "document"),
    [
        (clients.names(), "docs/clients.md"),
        (tasks.names(), "docs/tasks.md"),
        (scorers.names(), "docs/tasks.md"),
        (list(measures()), "docs/measures.md"),
    ],
    ids=["clients", "tasks", "scorers", "measures"],
)
def test_every_registered_name_is_documented(names: list[str], document: str) -> None:
    text = (ROOT / document).read_text("utf-8")
    named = [name for name in names if name[0].islower()]
    missing = [name for name in named if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", text)]
    assert not missing, f"{document} does not name {missing}"


@pytest.mark.parametrize("document", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
        if not re.match(r"[a-z]+:", target):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_readmes_python_runs(readme_run: Path) -> None:
    """The snippet as it is printed, in an empty folder, with the real model."""
    assert "pad_newlines" in (readme_run / README_STDOUT).read_text("utf-8")
    assert (readme_run / "report.html").stat().st_size > 5000


def test_the_readmes_commands_are_in_the_makefile() -> None:
    readme, makefile = ((ROOT / name).read_text("utf-8") for name in ("README.md", "Makefile"))
    for command in re.findall(r"^    make (\w+)\b", readme, re.MULTILINE):
        assert f"\n{command}:" in makefile


def test_the_default_recipes_exist() -> None:
    assert {r for r in DEFAULT_RECIPES if r != "identity"} <= set(perturbations.names())


def test_the_changelog_names_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## Unreleased" in text or f"## {falter.__version__}" in text


def test_every_command_that_is_named_exists() -> None:
    """Messages, hints and pages name commands that somebody will type."""
    texts = [*(ROOT / "src").rglob("*"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    texts = [path for path in texts if path.suffix in {".py", ".md", ".toml", ".yaml"}]
    named = {w for p in texts for w in re.findall(r"['`]falter ([a-z]+)", p.read_text("utf-8"))}
    assert len(named) > 15
    assert named <= set(COMMANDS)
