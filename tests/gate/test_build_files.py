"""The action and the pre-commit hook, on a repository made for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GATE = """
task: basics:core
models: [simulated]
recipes: [casing]
limit: 60
gate: {max_drop: %s, looks: 1}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "wide.yaml").write_text(GATE % 40)
    (tmp_path / "narrow.yaml").write_text(GATE % 1)
    (tmp_path / "broken.yaml").write_text("task: basics\nmodles: [simulated]\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    return tmp_path


def bash(script: str, *arguments: str, folder: Path, **variables: str) -> Any:
    environment = os.environ | variables
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    command = ["bash", "-eo", "pipefail", "-c", script, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("gate", "code", "verdict"), [("wide.yaml", 0, "pass"), ("narrow.yaml", 2, "impossible")]
)
def test_the_action_plans_then_decides(
    repository: Path, gate: str, code: int, verdict: str
) -> None:
    """Its script runs as it stands; what GitHub fills in are only variables."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = next(step for step in action["runs"]["steps"] if step.get("id") == "gate")
    assert "${{" not in step["run"]
    defaults = {name: str(one.get("default", "")) for name, one in action["inputs"].items()}
    given = defaults | {"gate": gate, "store": "answers.db"}
    variables = {
        name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, value in step["env"].items()
    }
    outputs = repository / "outputs"
    done = bash(step["run"], folder=repository, GITHUB_OUTPUT=str(outputs), **variables)
    assert done.returncode == code, done.stderr
    written = dict(line.split("=") for line in outputs.read_text().splitlines())
    assert written["verdict"] == verdict
    assert (repository / written["comment"]).exists() == (code == 0)
    assert set(action["outputs"]) == set(written)


def test_the_hook_reads_experiment_files(repository: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    entry = hook["entry"]
    good = bash(f'{entry} "$@"', "hook", "wide.yaml", folder=repository)
    assert good.returncode == 0, good.stderr
    bad = bash(f'{entry} "$@"', "hook", "broken.yaml", "wide.yaml", folder=repository)
    assert bad.returncode == 1
    assert "modles" in bad.stderr
    assert not list(repository.glob("*.db"))
