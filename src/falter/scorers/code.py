"""Scorer that runs the tests of generated code in a sandbox."""

from __future__ import annotations

import ast
import os
import re
import textwrap
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from falter.records.interfaces import Case
from falter.records.types import Program, Score
from falter.sandbox.run import Job, Sandbox, Verdict
from falter.sandbox.verdicts import Verdicts, verdict_key
from falter.scorers.base import TextScorer, declared, safe_score
from falter.text.code import fenced_blocks

_STOP_TOKENS = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "</s>")
MAX_REPLY_CHARACTERS = 60_000  # characters read at the end of a response
_MAX_PARSES = 8  # attempts to parse a text in which code and prose alternate
_PYTHON_NAMES = frozenset({"", "python", "python3", "py"})
# A sign that text is code: "return x", "x = 1", "print(x)"; not "The sum of both numbers".
_CODE_SIGN = re.compile(r"\b(?:return|yield|raise|pass|while|for|if|try|with)\b|[=(]")
# A line that begins a program: "def f(x):", "@cache", "from math import pi"; not "from here on".
_CODE_START = re.compile(
    r"^(?:@\w|(?:async[ ]+)?def[ ]|class[ ]|import[ ]|from[ ]\S+[ ]import\b)", re.M
)


def extract_code(reply: str, program: Program) -> str | None:
    """Return the program that a response makes of the prompt's program; None if it holds no code.

    Tried first is a fenced block: the block that defines the function, else the first. Then comes a
    complete function with the code it needs. Last comes the bare continuation of the prompt, up to
    the first line outside the function. Invalid Python is returned unchanged, because it fails when
    it is run.
    """
    text = _before_stop(reply)
    name = _requested_name(program)
    head = text.partition("\n```")[0]
    if text.count("```") == 1 and (_defines(head, name) or _continued_program(head, program)):
        text = head  # the fence closes what the prompt had opened
    fenced = [(block.info.lower(), text[slice(*block.inside)]) for block in fenced_blocks(text)]
    blocks = [inside for info, inside in fenced if _language(info) in _PYTHON_NAMES]
    blocks = blocks or [inside for _, inside in fenced]
    if blocks:
        block = next((b for b in blocks if _defines(b, name)), blocks[0])
        whole = _whole_program(block, program, name) or _continued_program(block, program)
        return whole or (program.prefix + block if block.strip() else None)
    if _defines(text, name):
        return _whole_program(_longest_program(text), program, name) or program.prefix + text
    return _continued_program(text, program)


def complete(code: str) -> str:
    """Return the prompt's code as a program that runs alone: an empty body gets `pass`."""
    if _is_python(code):
        return code
    indent = _indent(code)
    return f"{code.rstrip()}\n{indent}pass\n"


def _language(info: str) -> str:
    """Return the language name in the info string of a fence."""
    found = re.match(r"[\w+.-]*", info)
    return found[0] if found else ""


def _before_stop(reply: str) -> str:
    """Return the end of a response before any stop token, with tabs expanded in indentation."""
    reply = reply[-MAX_REPLY_CHARACTERS:]
    for stop in _STOP_TOKENS:
        reply = reply.partition(stop)[0]
    reply = reply.replace("\r\n", "\n")
    return re.sub(r"^[ \t]+", lambda m: m[0].expandtabs(4), reply, flags=re.M)


def _requested_name(program: Program) -> str:
    """Return the name of the requested function: `name` for `name` and for `Solution().name`."""
    return program.entry_point.rpartition(".")[2]


def _defines(code: str, name: str) -> bool:
    return re.search(rf"^[ \t]*(?:async[ ]+)?def[ ]+{re.escape(name)}\b", code, re.M) is not None


def _is_python(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _indent(code: str) -> str:
    """Return the indentation of the body that the prompt leaves open: its last definition's."""
    try:
        node: ast.AST = ast.parse(code).body[-1]
    except (SyntaxError, ValueError, IndexError):
        heads = re.findall(r"^([ ]*)(?:async[ ]+)?(?:def|class)\b", code, re.M)
        return f"{heads[-1]}    " if heads else ""
    indent = ""
    while isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        indent = " " * node.body[0].col_offset
        node = node.body[-1]
    return indent


def _whole_program(code: str, program: Program, name: str) -> str | None:
    """Return the prompt's program plus the function in `code`; None if it is not there."""
    code = textwrap.dedent(code)
    if not _defines(code, name):
        return None
    method = "." in program.entry_point
    if method and re.search(r"^class\b", code, re.M) is None:
        code = textwrap.indent(code, "    ")  # the method alone: it goes into the prompt's class
    return f"{complete(program.prefix).rstrip()}\n\n{code}"


def _continued_program(text: str, program: Program) -> str | None:
    """Return the prompt's program with `text` as the function's body; None if not Python."""
    for body in _indented_bodies(text, _indent(program.prefix)):
        if _CODE_SIGN.search(body):
            code = program.prefix.rstrip(" ") + body
            code = code if program.prefix.endswith("\n") else f"{program.prefix}\n{body}"
            if _is_python(code):
                return code
    return None


def _indented_bodies(text: str, indent: str) -> Iterator[str]:
    """Yield `text` as a body in up to two ways: unchanged, or all or its first line indented."""
    lines = text.strip("\n").split("\n")
    first = lines[0] if lines else ""
    if first.startswith(indent):
        yield _body_lines(lines)
    else:
        yield textwrap.indent(textwrap.dedent("\n".join(lines)), indent) + "\n"
        yield _body_lines([indent + first.lstrip(), *lines[1:]])


def _body_lines(lines: list[str]) -> str:
    """Return the lines before the first line that leaves the function."""
    kept: list[str] = []
    for line in lines:
        if line[:1] not in ("", " ", ")", "]", "}"):
            break
        kept.append(line)
    return "\n".join(kept) + "\n"


def _longest_program(text: str) -> str:
    """Return the text from its first definition or import, as far as it is valid Python.

    If no part is valid within `_MAX_PARSES` attempts, all of the text from there is returned.
    """
    start = _CODE_START.search(text)
    if start is None:
        return text
    rest = whole = text[start.start() :]
    for _ in range(_MAX_PARSES):
        wrong = _first_syntax_error(rest)
        if wrong is None:
            return rest
        starts = [m.start() for m in re.finditer(r"^\S", rest, re.M)][1:]
        at = sum(map(len, rest.splitlines(keepends=True)[: wrong - 1]))
        before = [end for end in starts if end <= at] or starts[:1]
        if not before:
            break
        rest = rest[: before[-1]]
    return whole


def _first_syntax_error(code: str) -> int | None:
    """Return the number (from 1) of the line at which a text stops being Python, else None."""
    try:
        ast.parse(code)
    except SyntaxError as error:
        return max(1, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


@declared("unit_tests")
class UnitTests(TextScorer):
    """The reply's code passes the prompt's tests, run in the sandbox.

    A program that fails, crashes or takes too long is wrong, with the reason. A reply without code
    is unparsed. Trouble of the tests or of the sandbox is `failed`, never wrong. Each distinct
    program is run once; its verdict is kept in the cache folder for later reports, unless the
    program was not done in time by the clock.
    """

    def __init__(self, sandbox: Sandbox | None = None, verdicts: Verdicts | None = None) -> None:
        self.sandbox = sandbox or Sandbox()
        self.verdicts = verdicts or Verdicts()
        self._verdict_futures: dict[str, Future[Verdict]] = {}
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `SandboxUnavailable` if generated code cannot be run safely."""
        self.sandbox.check()

    def read(self, text: str, case: Case) -> Score:
        program = case.variant.prompt.program
        if program is None:
            return self.failed("the task has no tests to run")
        code = extract_code(text, program)
        if code is None:
            return self.unparsed("the reply holds no Python that could follow the prompt")
        return self._scored(code, self._verdict(_job(code, program)))

    def prepare(self, cases: Sequence[Case]) -> None:
        """Run the programs of many cases in parallel, one for each available processor.

        Programs that timed out before are run again.
        """
        with self._lock:
            for key, known in list(self._verdict_futures.items()):
                if known.done() and not known.exception() and known.result().status == "timeout":
                    del self._verdict_futures[key]
        many = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        with ThreadPoolExecutor(many) as pool:
            for _ in pool.map(partial(safe_score, self), cases):
                pass

    def _verdict(self, job: Job) -> Verdict:
        """Return the verdict on a job. Threads that ask for the same job share one run.

        Errors of the sandbox are not cached.
        """
        key = verdict_key(job, self.sandbox.timeout, self.sandbox.megabytes)
        with self._lock:
            known = self._verdict_futures.get(key)
            mine: Future[Verdict] = Future()
            if known is None:
                self._verdict_futures[key] = mine
        # Outside the lock: another thread runs this job, and its Future delivers the verdict.
        if known is not None:
            return known.result()
        try:
            verdict = self._find_or_run(key, job)
        except BaseException as error:
            self._drop_future(key)
            mine.set_exception(error)
            raise
        if verdict.status == "error":
            self._drop_future(key)
        mine.set_result(verdict)
        return verdict

    def _find_or_run(self, key: str, job: Job) -> Verdict:
        verdict = self.verdicts.find(key)
        if verdict is None:
            verdict = self.sandbox.run(job)
            self.verdicts.put(key, verdict)
        return verdict

    def _drop_future(self, key: str) -> None:
        with self._lock:
            self._verdict_futures.pop(key, None)

    def _scored(self, code: str, verdict: Verdict) -> Score:
        if verdict.status == "error":
            return self.failed(verdict.reason or "the tests could not be run")
        return replace(self.scored(verdict.status == "passed", code), reason=verdict.reason)


def _job(code: str, program: Program) -> Job:
    helpers = complete(program.prefix)
    return Job(
        code=code,
        tests=program.tests,
        entry_point=program.entry_point,
        helpers=helpers if _is_python(helpers) else None,
    )
