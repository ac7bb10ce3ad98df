"""What users add comes through the same door as what is built in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from falter.perturbations import perturbations, site_perturbation
from falter.records.errors import DuplicateName
from falter.text.words import natural_words

SHOUT = '''
from falter.perturbations import site_perturbation
from falter.text.words import natural_words

def words(text, blocked):
    return natural_words(text, blocked)

@site_perturbation("shout", sites=words, default_rate=1)
def shout(text, site, rng):
    """Puts words in capitals."""
    start, end = site
    return start, end, text[start:end].upper()
'''


def install(folder: Path, entry_points: str, code: str = SHOUT) -> None:
    """A package with entry points, as pip would leave it."""
    (folder / "loud.py").write_text(code)
    info = folder / "loud-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)


def falter(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    places = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "falter", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def test_an_installed_perturbation_is_there(tmp_path: Path) -> None:
    install(tmp_path, "[falter.perturbations]\nloud = loud\n")
    listed = json.loads(falter(tmp_path, "list", "perturbations", "--json").stdout)
    assert "shout" in [row["name"] for row in listed]
    done = falter(tmp_path, "perturb", "-p", "shout", "Where do penguins live?")
    assert done.stdout == "WHERE DO PENGUINS LIVE?\n"


@pytest.mark.parametrize(
    ("entry_points", "code", "message"),
    [
        ("[falter.perturbations]\nloud = loud\n", "1 / 0", "not be loaded: ZeroDivisionError"),
        (
            "[falter.perturbations]\nloud = loud\n",
            SHOUT.replace('"shout"', '"typos"'),
            "The perturbation 'typos' is registered twice",
        ),
        (
            "[falter.tasks]\nbasics = loud:nothing\n",
            SHOUT,
            "The task 'basics' is offered by",
        ),
    ],
    ids=["broken", "duplicate", "two offers"],
)  # fmt: skip
def test_a_plugin_that_does_not_fit_is_named(
    entry_points: str, code: str, message: str, tmp_path: Path
) -> None:
    install(tmp_path, entry_points, code)
    done = falter(tmp_path, "list")
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bundled_name_is_taken() -> None:
    """A bundled perturbation's description is not mixed into a user's of that name."""
    assert "tool_extra" in perturbations
    register = site_perturbation("tool_extra", sites=natural_words)
    with pytest.raises(DuplicateName):
        register(lambda text, site, rng: None)
