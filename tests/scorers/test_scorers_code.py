"""Generated code: what is taken from a reply, and what running its tests says."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from falter.records.interfaces import Case
from falter.records.types import BASELINE, Item, Program, Prompt, Response, Section, Variant
from falter.sandbox.run import Job, Sandbox, Verdict
from falter.sandbox.verdicts import Verdicts
from falter.scorers import scorers
from falter.scorers.code import UnitTests, complete, extract_code
from falter.tasks.data_sets import humaneval
from falter.tasks.task import Task

DATA = Path(__file__).parents[1] / "data" / "HumanEval.jsonl.gz"
PREFIX = 'import math\n\n\ndef area(r: float) -> float:\n    """The area of a circle."""\n'
PROGRAM = Program(
    prefix=PREFIX,
    tests="def check(candidate):\n    assert 3.14 < candidate(1) < 3.15\n",
    entry_point="area",
)
METHOD = Program(
    prefix="class Solution:\n    def twice(self, x):\n        '''Two of them.'''\n",
    tests="def check(candidate):\n    assert candidate(2) == 4\n",
    entry_point="Solution().twice",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No verdict of an earlier test, or of the developer's own reports."""
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path))


def case(text: str, program: Program | None = PROGRAM, **response: str) -> Case:
    prompt = Prompt(sections=(Section(name="q", kind="input", text="?"),), program=program)
    item = Item(task="t", key="k", fields={})
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    return Case(variant=variant, response=Response(key="k", text=text, **response))


WHOLE = "def area(r):\n    return math.pi * r ** 2"
BODY = "    return math.pi * r ** 2"
REPLIES = {
    "body": BODY,
    "body without its indent": BODY.strip(),
    "long body without its indent": "s = r * r\nif s < 0:\n    return 0\nreturn math.pi * s",
    "first line without its indent": "s = r * r\n    return math.pi * s",
    "body and more": BODY + "\n\n\ndef other():\n    return\n\nprint(area(",
    "body and a stop": BODY + "<|endoftext|>Human: thanks",
    "body and a closing fence": BODY + "\n```\nThat is it.",
    "tabs": "\treturn math.pi * r ** 2",
    "Windows lines": "    s = r\r\n    return math.pi * s * s\r\n",
    "whole function": WHOLE,
    "prompt repeated": PREFIX + BODY,
    "fence": f"Here it is:\n```python\n{WHOLE}\n```\nIt squares the radius.",
    "fence without a name": f"```\n{WHOLE}\n```",
    "fence never closed": f"```python\n{WHOLE}\n",
    "fence with the body": f"```python\n{BODY}\n```",
    "indented fence": f"1. This:\n   ```python\n{textwrap.indent(WHOLE, '   ')}\n   ```",
    "example first": f"Use it so:\n```python\narea(3)\n```\nHere:\n```python\n{WHOLE}\n```",
    "prose around": f"Sure, here is the function.\n\n{WHOLE}\n\nThis works because of geometry.",
    "helper first": f"def square(x):\n    return x * x\n\n{WHOLE.replace('r ** 2', 'square(r)')}",
    "own import": f"from math import pi\n\n{WHOLE.replace('math.', '')}",
}


@pytest.mark.parametrize("name", REPLIES)
def test_right_code_is_found_in_a_reply(name: str) -> None:
    """A fenced block, a whole function, or the body, with what models put around it."""
    score = scorers.get("unit_tests").score(case(REPLIES[name]))
    assert (score.outcome, score.value) == ("scored", 1.0), (score, extract_code)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("    return r", "a test failed"),
        ("    return 1 / 0", "ZeroDivisionError"),
        ("```python\ndef area(r):\n    return (\n```", "SyntaxError"),
        ("```python\nprint('hello')\n```", "TypeError"),
        ("    while True:\n        pass", "out of processor time"),
        ("    import os\n    os._exit(0)", "the process ended itself"),
        ("    raise SystemExit(0)", "SystemExit"),
    ],
)
def test_wrong_code_is_wrong_with_a_reason(reply: str, reason: str) -> None:
    """What fails, crashes or hangs is a zero that says why."""
    scorer = UnitTests(Sandbox(timeout=1 if reason == "out of processor time" else 60))
    score = scorer.score(case(reply))
    assert (score.outcome, score.value) == ("scored", 0.0)
    assert reason in str(score.reason)
    scorer.sandbox.close()


@pytest.mark.parametrize(
    "reply",
    ["", "  \n", "Sorry", "The area is pi r squared.", "```\n```"],
)
def test_a_reply_without_code_is_unparsed(reply: str) -> None:
    """Prose is no wrong program."""
    score = scorers.get("unit_tests").score(case(reply))
    assert (score.outcome, score.value) == ("unparsed", None)


def test_what_is_not_the_programs_fault_is_failed() -> None:
    """A task without tests, tests that do not run, a failed request and a refusal."""
    scorer = scorers.get("unit_tests")
    broken = Program(prefix=PREFIX, tests="def check(", entry_point="area")
    assert scorer.score(case(BODY, None)).outcome == "failed"
    assert scorer.score(case(BODY, broken)).outcome == "failed"
    assert scorer.score(case("", finish_reason="refusal")).outcome == "refused"


@pytest.mark.parametrize(
    "reply",
    [
        "        return 2 * x",
        "return 2 * x",
        "    def twice(self, x):\n        return 2 * x",
        "def twice(self, x):\n    return 2 * x",
        "```python\nclass Solution:\n    def twice(self, x):\n        return 2 * x\n```",
        "```\ndef twice(self, x):\n    return self.a(x)\n\ndef a(self, x):\n    return 2 * x\n```",
    ],
)
def test_methods(reply: str) -> None:
    """A method may come as a body, alone, or in its class."""
    score = scorers.get("unit_tests").score(case(reply, METHOD))
    assert (score.outcome, score.value) == ("scored", 1.0), extract_code(reply, METHOD)


class Counting(Sandbox):
    runs = 0

    def run(self, job: Job) -> Verdict:
        self.runs += 1
        return super().run(job)


def test_a_program_is_run_once() -> None:
    """The same program is not run again when a run is analysed again; trouble is tried again."""
    sandbox = Counting(timeout=5)
    scorer = UnitTests(sandbox)
    first, second = (scorer.score(case(BODY)) for _ in range(2))
    assert first == second and sandbox.runs == 1
    broken = Program(prefix=PREFIX, tests="def check(", entry_point="area")
    for _ in range(2):
        scorer.score(case(BODY, broken))
    assert sandbox.runs == 3
    sandbox.close()


def test_verdicts_are_kept_between_processes(tmp_path: Path) -> None:
    """A scorer of a later report asks no sandbox; another limit, or trouble, is asked again."""
    first, later, other = (Counting(timeout=t) for t in (5, 5, 6))
    score = UnitTests(first).score(case(BODY))
    assert UnitTests(later).score(case(BODY)) == score
    assert (first.runs, later.runs) == (1, 0)
    UnitTests(other).score(case(BODY))
    broken = Program(prefix=PREFIX, tests="def check(", entry_point="area")
    UnitTests(later).score(case(BODY, broken))
    assert (other.runs, later.runs) == (1, 1)
    UnitTests(later).score(case(BODY, broken))
    assert later.runs == 2
    for sandbox in (first, later, other):
        sandbox.close()


def test_what_was_not_done_in_time_is_run_again() -> None:
    """A busy machine may be the cause, so neither this report nor the next one keeps it."""
    sandbox = Counting(timeout=0.1)
    scorer = UnitTests(sandbox)
    slow = case("    import time; time.sleep(9)\n    return 3.14 * r * r")
    for runs in (1, 2):
        scorer.prepare([slow])
        assert (scorer.score(slow).value, scorer.score(slow).reason) == (0.0, "out of time")
        assert sandbox.runs == runs
    assert UnitTests(Counting(timeout=0.1)).score(slow).reason == "out of time"
    sandbox.close()


@pytest.mark.parametrize("found", ["garbage", "folder"])
def test_a_damaged_cache_is_no_fault(found: str, tmp_path: Path) -> None:
    """Programs are run again where their verdicts cannot be read."""
    path = tmp_path / "verdicts.db"
    path.mkdir() if found == "folder" else path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    sandbox = Counting(timeout=60)
    assert UnitTests(sandbox, Verdicts(path)).score(case(BODY)).value == 1.0
    assert sandbox.runs == 1
    sandbox.close()


def test_programs_run_side_by_side() -> None:
    """What was prepared is not run again, and twice the same program is run once."""
    sandbox = Counting(timeout=60)
    scorer = UnitTests(sandbox)
    cases = [case(BODY), case(BODY), case("    return r"), case("    return 1 / 0"), case("no")]
    scorer.prepare(cases)
    assert sandbox.runs == 3
    assert [scorer.score(c).value for c in cases] == [1.0, 1.0, 0.0, 0.0, None]
    assert sandbox.runs == 3
    sandbox.close()


def test_the_check_before_a_run_starts_the_sandbox() -> None:
    """`check` is quiet where the sandbox works."""
    scorer = UnitTests()
    scorer.check()
    scorer.sandbox.close()


def test_complete() -> None:
    """A prompt that stops at the signature becomes a program."""
    assert complete("def f(x):\n") == "def f(x):\n    pass\n"
    assert complete("class A:\n    def f(self):\n") == "class A:\n    def f(self):\n        pass\n"
    assert complete(PREFIX) == PREFIX


def task() -> Task:
    return humaneval(str(DATA))


STYLES = [("{body}", 1), ("```python\n{prefix}{body}```", 4), ("Sure:\n\n{prefix}{body}", 4)]


@pytest.mark.parametrize(("style", "step"), STYLES)
def test_the_canonical_solutions_of_humaneval_pass(style: str, step: int) -> None:
    """All 164 as a bare continuation; a part in a fence, and behind a word of prose."""
    loaded = task()
    scorer = scorers.get("unit_tests")
    wrong = []
    for item in loaded.items[::step]:
        prompt = loaded.templates["open"].build(item)
        assert prompt.program is not None
        reply = style.format(prefix=prompt.program.prefix, body=prompt.target)
        given = Case(
            variant=Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline"),
            response=Response(key="k", text=reply),
        )
        score = scorer.score(given)
        if score.value != 1.0:
            wrong.append((item.key, score))
    assert (len(loaded.items), wrong) == (164, [])


def test_the_humaneval_task() -> None:
    """The prompt ends with the code, which a base model continues; the solution is the target."""
    loaded = task()
    prompt = loaded.templates["open"].build(loaded.items[0])
    assert loaded.scorer == "unit_tests"
    assert prompt.program is not None and prompt.program.entry_point == "has_close_elements"
    assert prompt.sections[-1].kind == "input" and prompt.delimiter == ""
    assert prompt.sections[-1].text == prompt.program.prefix
    assert isinstance(prompt.target, str) and prompt.target.startswith("    for idx")
