"""Forged scores: programs that look for the tests, or for the verdict, instead of solving them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest

from falter.sandbox.run import Job, Sandbox, Verdict

MARK = "nowhere but in the tests"
TESTS = f"""
SECRET = {MARK!r}
def check(candidate):
    assert candidate(2) == 4
    assert candidate({MARK!r} + "!") == "the " + {MARK!r}
"""
RIGHT = Verdict(status="passed")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(timeout=60, megabytes=512)
    yield made
    made.close()


def job(code: str, tests: str = TESTS, helpers: str | None = None) -> Job:
    return Job(code=textwrap.dedent(code), tests=tests, entry_point="f", helpers=helpers)


# Each searches for the tests and raises `Found` with what it sees of them; a value that equals
# everything would not help, since it does not cross.
SPIES = {
    "frames": """
        import sys
        def f(x):
            frame = sys._getframe()
            while frame:
                for held in (frame.f_locals, frame.f_globals):
                    if "tests" in held or "check" in held or "tests" in held.get("job", ()):
                        raise LookupError("found")
                frame = frame.f_back
            return 4
    """,
    "collector": """
        import gc
        def f(x):
            for thing in gc.get_objects():
                if isinstance(thing, dict) and "tests" in thing and "helpers" in thing:
                    if isinstance(thing["tests"], str):
                        raise LookupError("found")
            return 4
    """,
    "modules": """
        import sys
        def f(x):
            for module in list(sys.modules.values()):
                if hasattr(module, "check") or hasattr(module, "SECRET"):
                    raise LookupError("found")
            return 4
    """,
    "memory file": """
        def f(x):
            open("/proc/self/mem", "rb").read(1)
            raise LookupError("found")
    """,
    "raw memory": """
        import ctypes, gc
        def f(x):
            near = range(-64, 65)
            pages = {(id(thing) >> 12) + n for thing in gc.get_objects() for n in near}
            there = ctypes.c_ubyte()
            libc = ctypes.CDLL(None)
            def mapped(page):
                return not libc.mincore(ctypes.c_void_p(page << 12), 1, ctypes.byref(there))
            def marks(page):  # in two parts, so as not to find itself
                held = ctypes.string_at(page << 12, 4096)
                return any(part.startswith(b"nowhere") for part in held.split(b"SECRET = '")[1:])
            found = sum(marks(page) for page in pages if mapped(page))
            if found:
                raise LookupError(f"found {found}")
            return 4
    """,
}


@pytest.mark.parametrize("name", SPIES)
def test_the_tests_are_nowhere_in_the_candidates_process(sandbox: Sandbox, name: str) -> None:
    """Frames, collector, modules and raw memory hold nothing of them; the search is a failure."""
    sandbox.run(job("def f(x): return 4"))  # an earlier job of the same process leaves nothing
    verdict = sandbox.run(job(SPIES[name]))
    assert verdict.status == "failed"
    assert "found" not in str(verdict.reason), verdict


def test_the_search_of_raw_memory_finds_what_is_there(sandbox: Sandbox) -> None:
    """The same search, in a program that holds the text itself, is not blind."""
    held = 'HELD = "".join(["SECRET = ", "\'nowhere", " but"])\n' + textwrap.dedent(
        SPIES["raw memory"]
    )
    assert "found" in str(sandbox.run(job(held)).reason)


FORGED = {
    "empty message": "{}",
    "raised a number": '{"raised": 5}',
    "raised a long text": '{"raised": ["E", "x" * 6_000_000]}',
    "six megabytes": '{"value": "\\u00e4" * 1_000_000}',
    "a list": "[]",
    "a value of no kind": '{"value": ["kind", 1]}',
    "a value that is no pair": '{"value": [1, 2, 3]}',
    "a bad number": '{"value": ["int", "zz"]}',
    "an unhashable key": '{"value": ["dict", [[["list", []], 1]]]}',
    "arguments of another number": '{"value": 4, "args": ["list", [1, 2, 3]]}',
    "arguments of no kind": '{"value": 4, "args": 7}',
    "a verdict": '{"status": "passed"}',
    "an early answer": '{"value": 4}',
    "ready twice": '{"ready": true}',
    "a deep list": '{"value": "DEEP"}',
}
WRITE = """
import json, os, struct
def say(message):
    data = json.dumps(message).encode().replace(b'"DEEP"', b"[" * 100_000 + b"]" * 100_000)
    for fd in range(3, 64):
        try:
            rest = struct.pack(">I", len(data)) + data
            while rest:
                rest = rest[os.write(fd, rest):]
        except OSError:
            pass
"""


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("when", ["while it is defined", "when it is called"])
def test_a_garbled_channel_is_wrong_and_not_left_out(
    sandbox: Sandbox, name: str, when: str
) -> None:
    """Whatever is written where answers belong is a failure of the program that wrote it."""
    message = FORGED[name].replace("true", "True")
    code = f"{WRITE}\nMESSAGE = {message}\n"
    if when == "while it is defined":
        code += "say(MESSAGE)\ndef f(x): return 5\n"
    else:
        code += "def f(x):\n    say(MESSAGE)\n    return 5\n"
    verdict = sandbox.run(job(code))
    assert verdict.status == "failed", verdict
    assert len(str(verdict.reason)) < 300
    assert sandbox.run(job("def f(x): return 4", "def check(c): assert c(2) == 4")) == RIGHT


def test_tests_that_forge_a_verdict_break_no_other(sandbox: Sandbox) -> None:
    """What is no verdict is an error of the job whose tests wrote it."""
    forging = f"{WRITE}\ndef check(candidate):\n    candidate(2)\n    say([5])\n"
    assert sandbox.run(job("def f(x): return 4", forging)).status == "error"
    assert sandbox.run(job("def f(x): return 4", "def check(c): assert c(2) == 4")) == RIGHT


BENT = {
    "equal to everything": "class A:\n def __eq__(s, o): return True\ndef f(x): return A()",
    "less than everything": "class A(int):\n def __eq__(s, o): return True\n"
    " def __lt__(s, o): return True\ndef f(x): return A(7)",
    "a text of its own": "class A(str):\n def __eq__(s, o): return True\n"
    " __hash__ = str.__hash__\ndef f(x): return A('no')",
    "a list of its own": "class A(list):\n def __eq__(s, o): return True\ndef f(x): return A([1])",
    "builtins": "import builtins\nbuiltins.len = builtins.sorted = builtins.abs = lambda *a, **k: 4"
    "\nbuiltins.AssertionError = Exception\ndef f(x): return 5",
    "operators": "import operator\noperator.eq = lambda a, b: True\ndef f(x): return 5",
    "codec": "import json, sys\njson.dumps = lambda *a, **k: '{\"value\": 4}'\ndef f(x): return 5",
    "sandbox modules": "import sys\nfor m in list(sys.modules.values()):\n"
    "    if hasattr(m, 'pack'):\n        m.pack = lambda *a, **k: ['kind', 0]\ndef f(x): return 5",
    "exit code": "import os\ndef f(x): os._exit(0)",
    "exit code at once": "import os\nos._exit(0)",
    "at exit": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): raise SystemExit(0)",
    "a name of its own": "class M(type):\n @property\n def __name__(s): return 5\n"
    "class E(Exception, metaclass=M): pass\ndef f(x): raise E",
    "half a character": "def f(x): raise ValueError('\\ud800' + chr(27) + '[2J')",
    "a generator that never ends": "def f(x):\n while True: yield 4",
    "an object in a list": "def f(x): return [object()]",
    "itself": "def f(x):\n a = []\n a.append(a)\n return a",
    "a huge range": "def f(x): return range(10 ** 18)",
    "a huge fraction": "import fractions\nclass A(fractions.Fraction):\n"
    " def __str__(s): return '1e99999999999'\ndef f(x): return A(1)",
    "not a number": "def f(x): return float('nan')",
}  # fmt: skip


@pytest.mark.parametrize("name", BENT)
def test_bent_values_builtins_and_ends_are_wrong(sandbox: Sandbox, name: str) -> None:
    """Comparisons happen in the judge, between values of built-in kinds."""
    verdict = sandbox.run(job(BENT[name], "def check(c):\n    assert c(2) == 4\n"))
    assert verdict.status == "failed", verdict
    assert verdict.reason is not None
    assert verdict.reason.isprintable()


@pytest.mark.parametrize(
    "tests",
    [
        "def check(c):\n    assert c(c(2)) == 4\n",
        "def check(c):\n    try:\n        c(c(2))\n    except BaseException:\n        pass\n",
        "def check(c):\n    assert len(c([c(2)])) == 2\n",
    ],
)
def test_an_object_that_is_handed_on_is_the_programs_fault(sandbox: Sandbox, tests: str) -> None:
    """Tests that give a result back to the program do not turn an odd one into left out."""
    verdict = sandbox.run(job("def f(x): return object()", tests))
    assert verdict == Verdict(status="failed", reason="it returned a object object")


def test_an_iterator_can_be_handed_on(sandbox: Sandbox) -> None:
    """What crossed as an iterator crosses back as one."""
    tests = "def check(c):\n    assert list(c(c([1, 2]))) == [1, 2]\n"
    assert sandbox.run(job("def f(x): return iter(x)", tests)) == RIGHT


def test_a_lost_program_stays_lost(sandbox: Sandbox) -> None:
    """Tests that catch everything do not catch the end of the process."""
    tests = "def check(c):\n    try:\n        c(2)\n    except:\n        return\n"
    assert sandbox.run(job("import os\ndef f(x): os._exit(0)", tests)).status == "failed"
    tests = "try:\n    f(2)\nexcept:\n    pass\ndef check(c):\n    pass\n"
    assert sandbox.run(job("import os\ndef f(x): os._exit(0)", tests)).status == "failed"


def test_a_program_that_exhausts_the_tests_is_wrong(sandbox: Sandbox) -> None:
    """A value that the tests cannot stomach ends the judge, and that is the program's fault."""
    tests = "def check(c):\n    assert len(list(c(2))) == 4\n"
    assert sandbox.run(job("def f(x): return range(10 ** 18)", tests)).status == "failed"


def test_a_long_program_is_wrong(sandbox: Sandbox) -> None:
    """Six megabytes of reply are not sent to the sandbox at all."""
    assert sandbox.run(job("def f(x): return 4\n#" + "x" * 6_000_000)).status == "failed"


def test_tests_that_come_too_late_leave_nothing_behind() -> None:
    """A program that is out of time takes its process with it, and the next one is judged anew.

    How far it came by then is the machine's business: it may have failed already.
    """
    made = Sandbox(timeout=0.0)
    assert made.run(job("def f(x): return 4")).status in ("timeout", "error", "failed")
    made.timeout = 60
    assert made.run(job("def f(x): return 4", "def check(c): assert c(2) == 4")) == RIGHT
    made.close()
