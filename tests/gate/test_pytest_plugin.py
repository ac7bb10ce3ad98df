"""The pytest plugin: one test a recipe, one run of the engine a case, plain words on failure."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import falter
from falter.gate.robust import CaseFunction, Robust, source_version
from falter.records.errors import FalterError

pytest_plugins = ["pytester"]

MODULE = """
import falter
from pathlib import Path

CASES = falter.cases("rows.jsonl", template="{question}", target="answer", scorer="exact")

def said(prompt):
    with (Path(__file__).parent / "calls.txt").open("a") as file:
        file.write("x")
    return "yes" if "  " not in prompt or HARD else "no"

HARD = %s

@falter.robust(CASES, recipes=["space_sequences", "casing"], max_drop=30, looks=1)
async def test_app(case):
    return said(case.text)
"""
IMPERATIVE = """
def test_prompt(falter_gate):
    verdict = falter_gate(model="simulated", data="rows.jsonl", target="answer", scorer="exact",
                          template="{question}", recipes=["casing"], max_drop=%s, looks=1,
                          max_calls=400)
    assert verdict.passed, verdict
"""
CONFTEST = """
import os
import pytest

@pytest.fixture(autouse=True)
def mocked(monkeypatch):
    monkeypatch.setenv("ROUTER", "on")

@pytest.fixture
def greeting():
    return "yes"
"""
FIXTURES = """
import os
import falter
import pytest
import pytest_asyncio

CASES = falter.cases("rows.jsonl", template="{question}", target="answer", scorer="exact")
GATE = falter.robust(CASES, recipes=["space_sequences", "casing"], max_drop=30, looks=1)

@pytest_asyncio.fixture
async def suffix():
    return ""

@pytest.mark.parametrize("mark", [".", ""])
@GATE
def test_fixtures(mark, greeting, case, monkeypatch, tmp_path, suffix):
    monkeypatch.setenv("LANGUAGE_OF_REPLY", "English")
    (tmp_path / "calls.txt").write_text(case.text)
    return greeting + suffix + mark if os.environ["ROUTER"] == "on" else "no"

class TestApp:
    @GATE
    async def test_method(self, case, greeting):
        return greeting
"""
DECORATED = """
import falter
CASES = falter.cases("rows.jsonl", template="{question}", target="answer")
@falter.robust(CASES, recipes="typos", max_drop=1)
def test_app(%s):
    return ""
"""
# Nothing else that is installed is loaded: it would take longer than all the rest.
PLUGINS = ("-p", "falter.gate.pytest_plugin", "-p", "xdist", "-p", "no:cacheprovider")


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Sixty questions whose answer is yes; NumPy's threads and the store of the suite stay out."""
    for variable in ("FALTER_STORE", "CI", "BUILD_NUMBER"):  # under CI, pytest's summary is long
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    own = str(Path(falter.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [own, os.getenv("PYTHONPATH")])))
    rows = (f'{{"question": "Is the number {n} greater than zero?", "answer": "yes"}}\n'
            for n in range(60))  # fmt: skip
    (pytester.path / "rows.jsonl").write_text("".join(rows), "utf-8")
    return pytester


def ran(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess(*PLUGINS, *arguments)


def calls(project: pytest.Pytester) -> int:
    path = project.path / "calls.txt"
    return len(path.read_text()) if path.exists() else 0


def test_two_workers_run_the_engine_once_and_a_rerun_calls_nothing(
    project: pytest.Pytester,
) -> None:
    """Sixty prompts as asked, three asked again, sixty under each recipe, none twice."""
    project.makepyfile(test_app=MODULE % True)
    result = ran(project, "-n", "2")
    result.assert_outcomes(passed=2)
    assert calls(project) == 60 + 3 + 60 + 60
    ran(project).assert_outcomes(passed=2)
    assert calls(project) == 183


def test_what_tests_say(project: pytest.Pytester) -> None:
    """A failure says which recipe, how much, how sure, with three examples and no traceback.

    So does the fixture's verdict, what cannot be shown, and what is no function of a case. The
    example's router is green.
    """
    source = Path(__file__).parents[2] / "docs" / "examples" / "router"
    for path in source.iterdir():
        if path.is_file() and ".db" not in path.name:
            (project.path / path.name).write_bytes(path.read_bytes())
    project.makepyfile(
        test_app=MODULE % False,
        test_good=IMPERATIVE % 35,
        test_bad=IMPERATIVE % 2,
        test_two=DECORATED % "prompt",
        test_narrow=DECORATED % "case",
    )
    result = ran(project, "--continue-on-collection-errors")
    result.assert_outcomes(passed=5, failed=3, errors=1)
    text = result.stdout.str()
    assert "test_app[space_sequences]" in text
    assert "fail: space_sequences: the score falls by " in text
    assert "95 % confidence" in text and "99.5 % over all 2 criteria" in text
    assert text.count("  expected: yes\n  answer to it: no\n  answer as asked: yes") == 3
    assert "are too few for a 2-point margin; about" in text
    assert "60 items are too few for a 1-point margin" in text
    assert "calls the function with a parameter named 'case', which is missing" in text
    assert "pytest_plugin.py" not in text


def test_calls_run_inside_the_fixtures_of_the_test(project: pytest.Pytester) -> None:
    """Autouse, monkeypatch, tmp_path, a fixture of conftest.py, an async one, other parameters.

    By two workers, each in random order.
    """
    project.makeconftest(CONFTEST)
    project.makepyfile(test_app=FIXTURES)
    result = ran(project, "-p", "pytest_asyncio.plugin", "-p", "pytest_randomly", "-n", "2")
    result.assert_outcomes(passed=6)


def test_another_state_of_the_project_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a test module imports of the project counts, and the files that it names."""
    (tmp_path / "helper_of_mine.py").write_text("def answer(text):\n    return text\n")
    (tmp_path / "tests_of_mine.py").write_text(
        "import json\nfrom helper_of_mine import answer\n"
        "def test_it(case):\n    return answer(case)\n"
    )
    (tmp_path / "prompt.txt").write_text("one")
    monkeypatch.syspath_prepend(tmp_path)
    function = CaseFunction(function=importlib.import_module("tests_of_mine").test_it)
    cases = falter.cases("x", template="{q}", target="a")

    def version(**more: str) -> str:
        mark = Robust(
            cases=cases, recipes=("typos",), settings={}, version=None,
            depends_on=tuple(more.values()),
        )  # fmt: skip
        return source_version(function, tmp_path, tmp_path, mark)

    first, with_prompt = version(), version(prompt="*.txt")
    assert version() == first != with_prompt
    (tmp_path / "prompt.txt").write_text("two")
    assert version(prompt="*.txt") != with_prompt
    (tmp_path / "helper_of_mine.py").write_text("def answer(text):\n    return text[1:]\n")
    assert version() != first
    with pytest.raises(FalterError, match="no such file"):
        version(prompt="*.md")


def test_the_plugin_loads_no_engine() -> None:
    """What pytest pays for every session is a few small modules."""
    script = (
        "import sys, falter.gate.pytest_plugin\n"
        "heavy = {'numpy', 'scipy', 'click', 'rich', 'falter.engine', 'falter.stats', 'yaml',\n"
        "         'sqlite3', 'falter.gate.run'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    doors = tomllib.loads(text)["project"]["entry-points"]["pytest11"]
    assert doors == {"falter": "falter.gate.pytest_plugin"}


CHATS = """
import falter

CASES = falter.cases("chats.jsonl", same="call")

@falter.robust(CASES, recipes=["tool_names"], max_drop=30, looks=1)
def test_reads_the_tools(case):
    (function,) = [t["function"] for t in case.tools if "ancel" in t["function"]["name"]]
    key = next(iter(function["parameters"]["properties"]))
    assert case.text == case.messages[-1]["content"]
    return {"name": function["name"], "arguments": {key: case.text[-5:]}}

@falter.robust(CASES, recipes=["tools"], max_drop=30, looks=1)
def test_knows_old_names(case):
    return {"name": "cancel_order", "arguments": {"order_id": case.text[-5:]}}

@falter.robust(CASES, recipes=["tool_names", "negated"], keep=80, follow=80, looks=1)
def test_is_deaf(case):
    return test_reads_the_tools(case)
"""


def test_conversations_need_neither_template_nor_target(pytester: pytest.Pytester) -> None:
    """A case has turns and tools; answers are compared with those to the clean prompt.

    A set is one test that holds for all its recipes; `keep` and `follow` are one each.
    """
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    about = {"description": "Cancels an order.", "parameters": schema}
    tools = [{"name": "cancel_order", **about}, {"name": "order_again", **about}]
    rows = [
        {"messages": [{"role": "user", "content": f"Cancel order A{1000 + n}"}], "tools": tools}
        for n in range(40)
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    pytester.makefile(".jsonl", chats=lines)
    pytester.makepyfile(test_chats=CHATS)
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_knows_old_names[[]tools[]]*",
            "*tool_names: the score falls by 100.0 points*",
            "*test_is_deaf[[]follow[]]*",
            "*fail: controls followed: the share is 0.0 %*above 80.0 %. 0 of 40 items hold in*",
        ]
    )
