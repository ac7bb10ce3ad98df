"""The sandbox: hostile programs neither harm, nor hang, nor pass."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from falter.sandbox import run as _sandbox
from falter.sandbox.run import UNSAFE, Job, Sandbox, SandboxUnavailable, Verdict

PATIENCE = 60  # seconds, for what takes none
TESTS = "def check(candidate):\n    assert candidate(2) == 4\n"
RIGHT = "def f(x):\n    return x * 2\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox(timeout=PATIENCE, megabytes=256)
    yield made
    made.close()


@contextlib.contextmanager
def little_time(sandbox: Sandbox, seconds: float) -> Iterator[None]:
    """The same sandbox, for programs that take all the time there is."""
    sandbox.timeout = seconds
    yield
    sandbox.timeout = PATIENCE


def job(code: str, tests: str = TESTS, *, entry: str = "f", helpers: str | None = None) -> Job:
    return Job(code=code, tests=tests, entry_point=entry, helpers=helpers)


def body(lines: str) -> str:
    """A candidate that does this when it is called, and then answers right."""
    return "def f(x):\n" + "".join(f"    {line}\n" for line in lines.split("\n")) + "    return 4\n"


def test_right_and_wrong(sandbox: Sandbox) -> None:
    """A right program passes; a wrong one, a broken one and a raising one fail with the reason."""
    assert sandbox.run(job(RIGHT)) == Verdict(status="passed")
    assert sandbox.run(job("def f(x): return 5")).reason == "a test failed"
    assert "SyntaxError" in str(sandbox.run(job("def f(x: return")).reason)
    assert (
        sandbox.run(job("def f(x): return 1 / 0")).reason == "ZeroDivisionError: division by zero"
    )
    assert "NameError" in str(sandbox.run(job("def g(x): return 4")).reason)


ENDLESS = [body("while True: pass"), body("import time; time.sleep(99)"), "while True: pass"]


@pytest.mark.parametrize("code", ENDLESS)
def test_endless_programs_are_out_of_time(sandbox: Sandbox, code: str) -> None:
    """A loop ends with its processor time, in the definition too, and a sleep far later."""
    with little_time(sandbox, 0.3):
        verdict = sandbox.run(job(code))
    assert (verdict.status, verdict.reason) in (
        ("timeout", "out of time"),
        ("failed", "out of processor time"),
    )
    assert verdict.status == "timeout" or "sleep" not in code


def test_a_program_that_has_to_wait_is_not_out_of_time(sandbox: Sandbox) -> None:
    """Processor time decides: on a busy machine a right program takes longer by the clock."""
    with little_time(sandbox, 0.4):
        assert sandbox.run(job(body("import time; time.sleep(0.8)"))) == Verdict(status="passed")


@pytest.mark.parametrize("letter", ["\U0001f600", "\x00", "\ud800", "\u00e9"])
def test_a_program_of_odd_characters_is_wrong(sandbox: Sandbox, letter: str) -> None:
    """However many bytes its characters take, it reaches the sandbox and fails there."""
    assert sandbox.run(job(letter * 700_000)).status == "failed"


HOSTILE = {
    "fork bomb": body("import os\nwhile True: os.fork()"),
    "new program": body("import os\nos.execv('/bin/sh', ['sh', '-c', 'exit 0'])"),
    "subprocess": body("import subprocess\nsubprocess.run(['true'])"),
    "memory bomb": body("a = []\nwhile True: a.append('x' * 10**7)"),
    "huge number": body("9 ** 9 ** 9 ** 9"),
    "huge answer": "def f(x):\n    return 'x' * 10**8\n",
    "endless iterator": "import itertools\ndef f(x):\n    return itertools.count()\n",
    "home folder": body("import os\nos.listdir(os.path.expanduser('~'))"),
    "password file": body("open('/etc/passwd').read()"),
    "processes": body("open('/proc/self/environ').read()"),
    "memory of others": body("import os\nopen(f'/proc/{os.getppid()}/mem', 'rb')"),
    "write": body("open('/tmp/falter-was-here', 'w').write('x')"),
    "remove": body("import os\nos.remove('/tmp/x')"),
    "socket": body("import socket\nsocket.socket()"),
    "socket pair": body("import socket\nsocket.socketpair()"),
    "leave at once": "import os\nos._exit(0)\n",
    "leave when called": body("import os\nos._exit(0)"),
    "exit": body("import sys\nsys.exit(0)"),
    "exit at once": "import sys\nsys.exit(0)\n",
    "kill parent": body("import os\nos.kill(os.getppid(), 9)"),
    "kill all": body("import os\nos.kill(-1, 9)"),
    "kill itself": body("import os, signal\nsignal.raise_signal(signal.SIGKILL)"),
    "deep recursion": body(
        "import sys\nsys.setrecursionlimit(10**9)\n(lambda g: g(g))(lambda g: g(g))"
    ),
    "deep answer": "def f(x):\n    a = []\n    for _ in range(99999): a = [a]\n    return a\n",
    "segmentation fault": body("import ctypes\nctypes.string_at(0)"),
    "close files": body("import os\nos.closerange(0, 999)"),
    "trace": body("import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0) < 0: raise OSError"),
    "raise limits": body(
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (99, 99))"
    ),
    "new namespace": body("import ctypes\nif ctypes.CDLL(None).unshare(0x10000000): raise OSError"),
    "equal to all": "class A:\n    def __eq__(s, o): return True\ndef f(x): return A()",
    "equal text": "class A(int):\n    def __eq__(s, o): return True\ndef f(x): return A(5)",
    "no assertions": "import builtins\nbuiltins.AssertionError = Exception\ndef f(x): return 5",
    "own check": "def check(c): pass\ndef f(x): return 5",
    "frames": "import sys\ndef f(x):\n    g = sys._getframe()\n    while g:\n"
    "        g.f_globals['check'] = lambda c: None\n        g = g.f_back\n    return 5\n",
    "false verdict": "import os, struct, json\ndef f(x):\n    for m in ({'status': 'passed'}, "
    "{'value': 4}):\n        d = json.dumps(m).encode()\n        for fd in range(64):\n"
    "            try: os.write(fd, struct.pack('>I', len(d)) + d)\n"
    "            except OSError: pass\n    os._exit(0)\n",
    "garbage": "import os\ndef f(x):\n    for fd in range(64):\n        try: "
    "os.write(fd, b'x' * 99)\n        except OSError: pass\n    return 4\n",
    "promise of more": "import os\ndef f(x):\n    for fd in range(64):\n"
    "        try: os.write(fd, b'\\xff' * 8)\n        except OSError: pass\n    return 4\n",
    "assertion": "def f(x): raise AssertionError",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_programs_do_not_pass(sandbox: Sandbox, name: str) -> None:
    """Each is a failure or out of time, and the next program runs as if nothing had been."""
    tests = TESTS if name != "false verdict" else TESTS.replace("== 4", "== 5")
    with little_time(sandbox, 1):
        verdict = sandbox.run(job(HOSTILE[name], tests))
    assert verdict.status in ("failed", "timeout"), verdict
    assert verdict.reason
    assert sandbox.run(job(RIGHT)) == Verdict(status="passed")


def test_nothing_of_the_machine_is_seen_or_changed(sandbox: Sandbox, tmp_path: Path) -> None:
    """A secret in a readable file, an open port and a folder to write in stay out of reach."""
    secret = tmp_path / "secret"
    secret.write_text("42")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        tries = (
            f"open({str(secret)!r}).read()",
            f"open({str(tmp_path / 'new')!r}, 'w')",
            f"import os; os.listdir({str(tmp_path)!r})",
            f"import os; os.truncate({str(secret)!r}, 0)",
            f"import os; os.rename({str(secret)!r}, {str(tmp_path / 'b')!r})",
            f"import os; os.symlink({str(secret)!r}, {str(tmp_path / 'c')!r})",
            f"import socket; socket.create_connection(('127.0.0.1', {port}))",
        )
        for line in tries:
            verdict = sandbox.run(job(body(line)))
            assert "Error" in str(verdict.reason), (line, verdict)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert secret.read_text() == "42"


def test_the_environment_is_empty(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment does not get in."""
    monkeypatch.setenv("SECRET_KEY", "s3cret")
    fresh = Sandbox(timeout=PATIENCE)
    code = "import os\ndef f(x): return sorted(k for k in os.environ if 'KEY' in k or 'PATH' == k)"
    tests = "def check(candidate):\n    assert candidate(2) == []\n"
    assert fresh.run(job(code, tests)) == Verdict(status="passed")
    fresh.close()


def test_output_is_thrown_away(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    """A program may print as much as it likes."""
    code = body("import sys\nfor _ in range(100): print('x' * 10**5, file=sys.stderr)")
    assert sandbox.run(job(code)).status == "passed"
    assert capfd.readouterr() == ("", "")


def test_no_exception_passes_for_success(sandbox: Sandbox) -> None:
    """An end of iteration inside of `all(map(…))` would look like one."""
    tests = "def check(c):\n    assert all(map(lambda x: c(x) == 4, [1, 2]))\n"
    for kind in ("StopIteration", "GeneratorExit", "KeyboardInterrupt", "SystemExit"):
        assert sandbox.run(job(f"def f(x): raise {kind}", tests)).status == "failed"


def test_a_dead_candidate_is_not_caught_by_the_tests(sandbox: Sandbox) -> None:
    """Tests that expect an exception take a real one, not the end of the process."""
    tests = "def check(c):\n    try: c(2)\n    except ValueError: return\n    assert False\n"
    assert sandbox.run(job("def f(x): raise ValueError('no')", tests)).status == "passed"
    broad = tests.replace("ValueError", "Exception")
    assert sandbox.run(job("import os\ndef f(x): os._exit(0)", broad)).status == "failed"


@pytest.mark.parametrize(
    "value",
    [
        "None", "True", "1", "-1.5", "float('inf')", "10**40", "'ä\\ud800'", "b'x'",
        "[1, (2, {3})]",
        "{'a': [1], 2: None}", "frozenset({1})", "1 + 2j", "range(3)", "bytearray(b'x')",
        "__import__('fractions').Fraction(1, 3)", "__import__('decimal').Decimal('1.50')",
        "__import__('collections').Counter('aab')", "{1: 2}.keys()",
    ],
)  # fmt: skip
def test_plain_data_crosses_unchanged(sandbox: Sandbox, value: str) -> None:
    """What Python calls equal is equal on the other side, there and back."""
    tests = f"v = {value}\ndef check(c):\n    assert c({value}) == v and c(v=v) == v\n"
    code = "def f(v): return v"
    if value.startswith("{1"):
        code, tests = f"def f(v): return {value}", "def check(c):\n    assert c(1) == {1}\n"
    assert sandbox.run(job(code, tests)) == Verdict(status="passed")


def test_iterators_and_changes_in_place_cross(sandbox: Sandbox) -> None:
    """A generator arrives as an iterator; a list that was sorted in place is sorted."""
    tests = (
        "def check(c):\n    a = [3, 1]\n    assert list(c(a)) == [1, 3] and a == [1, 3]\n"
        "    assert c([1]) != [1]\n"
    )
    for code in ("    return iter(a)", "    yield from a"):
        assert sandbox.run(job(f"def f(a):\n    a.sort()\n{code}\n", tests)).status == "passed"


def test_trouble_of_the_tests_is_an_error(sandbox: Sandbox) -> None:
    """Tests that do not run, or hand over what is no data, say nothing about the program."""
    for tests in ("def check(c:", "x = 1", "def check(c):\n    c(lambda: 0)\n"):
        assert sandbox.run(job(RIGHT, tests)).status == "error"


def test_helpers_are_ours(sandbox: Sandbox) -> None:
    """Tests use the prompt's own functions, not what the program made of them."""
    tests = "def check(c):\n    assert twice(c(2)) == 8\n"
    code = "def twice(x): return 8\ndef f(x): return 5"
    helpers = "def twice(x): return x * 2"
    assert sandbox.run(job(code, tests, helpers=helpers)).status == "failed"
    assert sandbox.run(job(RIGHT, tests, helpers=helpers)).status == "passed"


def test_methods_threads_and_the_library_work(sandbox: Sandbox) -> None:
    """Honest code has the standard library, classes and threads."""
    code = (
        "import csv, hashlib, json, sqlite3, threading, zoneinfo, dataclasses\n"
        "@dataclasses.dataclass\nclass Solution:\n    a: int = 2\n    def f(self, x):\n"
        "        out = []\n        t = threading.Thread(target=lambda: out.append(x * self.a))\n"
        "        t.start(); t.join()\n        return out[0]\n"
    )
    assert sandbox.run(job(code, entry="Solution().f")) == Verdict(status="passed")


def test_results_repeat(sandbox: Sandbox) -> None:
    """Hashes and random numbers are the same in every process."""
    code = "import random\ndef f(x): return [random.random(), str({'a', 'b', 'c', 'd'}), hash('a')]"
    tests = "def check(c):\n    raise ValueError(c(1))\n"
    other = Sandbox(timeout=PATIENCE)
    assert sandbox.run(job(code, tests)) == other.run(job(code, tests))
    other.close()


def test_nothing_is_left_running(sandbox: Sandbox) -> None:
    """Closing ends every process of the pool."""
    made = Sandbox(timeout=PATIENCE)
    made.run(job(RIGHT))
    (server,) = made._idle_servers
    made.close()
    with pytest.raises(ProcessLookupError):
        os.killpg(server._process.pid, 0)
    assert made.run(job(RIGHT)).status == "passed"  # and it starts again when asked
    made.close()


def test_a_broken_sandbox_is_an_error(sandbox: Sandbox) -> None:
    """When the process behind it dies, that is no verdict, and the next one works."""
    made = Sandbox(timeout=PATIENCE)
    made.check()
    made._idle_servers[0]._process.kill()
    made._idle_servers[0]._process.wait()
    assert made.run(job(RIGHT)).status == "error"
    assert made.run(job(RIGHT)).status == "passed"
    made.close()


WITHOUT = """
import ctypes, importlib.util, struct, sys
spec = importlib.util.spec_from_file_location("locks", {locks!r})
locks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(locks)
op, deny, allow = locks._op, 0x00050000 | 38, 0x7FFF0000
code = b"".join([op(0x20, 0), op(0x15, {call}, 0, 1), op(0x06, deny), op(0x06, allow)])
held = ctypes.create_string_buffer(code, len(code))
head = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(held)))
locks._prctl(38, 1)
locks._prctl(22, 2, ctypes.addressof(head))
from falter.records.errors import FalterError
from falter.sandbox.run import Job, Sandbox
made = Sandbox(timeout=60)
try:
    made.check()
    job = Job(code="def f(x): return 4", tests="def check(c): assert c(1) == 4", entry_point="f")
    print(made.run(job).status)
except FalterError as error:
    print(error)
made.close()
"""


def without(call: int, allowed: str) -> str:
    """Return a sandbox's words on a kernel that does not know a system call."""
    locks = str(Path(_sandbox.__file__).with_name("_locks.py"))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(locks=locks, call=call)],
        capture_output=True, text=True, timeout=300, env={**os.environ, UNSAFE: allowed},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_kernel_without_landlock_is_refused() -> None:
    """Where a lock does not close nothing is run, unless the user says so."""
    said = without(444, "")
    assert "Missing: file access (Landlock, Linux 5.13)" in said
    assert UNSAFE in said
    assert without(444, "1") == "passed"


def test_namespaces_are_not_needed() -> None:
    """Where they are forbidden, as in many containers, the other locks do."""
    assert without({"x86_64": 272, "aarch64": 97}[platform.machine()], "") == "passed"


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names every lock that does not close, and how to go on."""
    monkeypatch.delenv(UNSAFE, raising=False)
    closed = {"files": True, "calls": False, "privileges": True, "limits": False}
    with pytest.raises(SandboxUnavailable, match=r"network and processes .* resource limits"):
        _sandbox._missing(closed)
    monkeypatch.setenv(UNSAFE, "1")
    assert _sandbox._missing(closed) == ["calls", "limits"]


def test_systems_that_cannot_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows is told so before anything starts."""
    monkeypatch.delattr(os, "fork")
    with pytest.raises(SandboxUnavailable, match="has no fork"):
        Sandbox().check()
