"""docs/tutorial.md: every command runs, in order, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from falter.cli.app import invoke

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"```console\n\$ falter (.*?)\n(.*?)```", PAGE, re.DOTALL)
OTHERS = re.findall(r"^    falter (.+)$", PAGE, re.MULTILINE)
LINKED = ("tickets.jsonl", "route.txt", "router.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the three files, and the one that the page asks to save."""
    for name in LINKED:
        shutil.copy(ROOT / "docs" / "examples" / name, tmp_path)
    (settings,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "tickets.yaml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "router", raising=False)
    return tmp_path


def plain(text: str) -> str:
    return " ".join(text.split())


def test_the_commands_print_what_the_page_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the page, in one folder; a line may be the beginning of what is printed."""
    assert len(BLOCKS) >= 6
    for command, expected in BLOCKS:
        code = invoke(shlex.split(command))
        shown = capsys.readouterr()
        assert code == 0, f"{command}\n{shown.err}"
        for line in expected.splitlines():
            assert plain(line) in plain(shown.out), f"{command}: {line}\n{shown.out}"
    assert (folder / "report.html").stat().st_size > 5000


@pytest.mark.parametrize("command", OTHERS, ids=lambda command: command.rpartition("--model ")[2])
def test_the_commands_with_a_language_model_can_be_planned(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their answers take minutes or a server, so their plan is what is run here."""
    assert command.startswith("run ")
    assert invoke(["plan", *shlex.split(command)[1:]]) == 0
    assert "42 items × " in capsys.readouterr().out
