"""Code: the same Python written in another way, and what is executed follows."""

from __future__ import annotations

import ast
import doctest
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from falter.perturbations import apply_recipe, parse_step, perturb, perturbations
from falter.perturbations.python_source import camel
from falter.perturbations.recipes import Applied
from falter.records.render import plain
from falter.records.types import Program, Prompt, Recipe, Section
from falter.sandbox.run import Job, Sandbox, Verdict
from falter.scorers.code import complete
from falter.tasks.data_sets import humaneval

DATA = Path(__file__).parents[1] / "data" / "HumanEval.jsonl.gz"
NAMES = ("camel_case", "to_class", "remove_type_hints")


@cache
def prompts() -> dict[str, Prompt]:
    task = humaneval(str(DATA))
    return {item.key: task.templates["open"].build(item) for item in task.items}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def applied(prompt: Prompt, *steps: str) -> Applied:
    recipe = Recipe(label="x", steps=tuple(map(parse_step, steps)))
    return apply_recipe("k", prompt, recipe, 0, 0)


def program_of(prompt: Prompt) -> Program:
    assert prompt.program is not None
    return prompt.program


def job(prompt: Prompt) -> Job:
    """The prompt's program with the expected continuation."""
    program = program_of(prompt)
    return Job(
        code=f"{program.prefix}{prompt.target}",
        tests=program.tests,
        entry_point=program.entry_point,
        helpers=complete(program.prefix),
    )


CHAINS = [
    (("camel_case",), 122),
    (("to_class",), 164),
    (("remove_type_hints",), 60),
    (("to_class", "camel_case", "remove_type_hints"), 45),
]


@pytest.mark.parametrize(("chain", "count"), CHAINS, ids=lambda c: str(c))
def test_humaneval_still_passes(chain: tuple[str, ...], count: int, sandbox: Sandbox) -> None:
    """Where a prompt changes, its solution changes along and passes the tests; the rest is not
    applicable: 42 have no name to change, 104 no annotation."""
    done = {key: applied(prompt, *chain) for key, prompt in prompts().items()}
    statuses = Counter(result.status for result in done.values())
    assert statuses == {"changed": count} | ({"not_applicable": 164 - count} if count < 164 else {})
    changed = {key: d.prompt for key, d in done.items() if d.status == "changed"}
    for prompt in changed.values():
        assert prompt.sections[-1].text == program_of(prompt).prefix
    with ThreadPoolExecutor(2) as pool:
        verdicts = pool.map(sandbox.run, map(job, changed.values()))
        wrong = {k: v for k, v in zip(changed, verdicts, strict=True) if v.status != "passed"}
    assert wrong == {}


def test_wrong_solutions_still_fail(sandbox: Sandbox) -> None:
    """The tests of changed prompts are no easier."""
    for key in ("HumanEval/0", "HumanEval/32", "HumanEval/50"):
        for name in NAMES[:2]:
            prompt = applied(prompts()[key], name).prompt
            indent = "        " if name == "to_class" else "    "
            program = program_of(prompt)
            given = Job(
                code=f"{program.prefix}{indent}return None\n",
                tests=program.tests,
                entry_point=program.entry_point,
                helpers=program.prefix,
            )
            assert sandbox.run(given).status == "failed"


def test_no_old_name_is_left_in_humaneval() -> None:
    """The entry point's name is camelCase in signature, docstring and examples; one solution
    calls `eval`, and so keeps its names."""
    for key, prompt in prompts().items():
        name = program_of(prompt).entry_point
        done = applied(prompt, "camel_case")
        if camel(name) is not None and key != "HumanEval/160":
            assert program_of(done.prompt).entry_point == camel(name)
            assert not re.search(rf"\b{name}\b", plain(done.prompt))


def test_examples_of_humaneval_stay_examples() -> None:
    """Doctests have as many examples as before, and call what is there now."""
    parser = doctest.DocTestParser()
    for prompt in prompts().values():
        try:
            before = parser.get_examples(program_of(prompt).prefix)
        except ValueError:
            continue  # two prompts are no doctests to begin with
        for name in NAMES:
            program = program_of(applied(prompt, name).prompt)
            after = parser.get_examples(program.prefix)
            assert [e.want for e in after] == [e.want for e in before]
            assert len(after) == len(before)


SOURCE = '''from typing import List, Optional
import os.path as my_path


MAX_SIZE: int = 10


def my_helper(some_list: List[int], *, max_value: int = 3) -> "Optional[int]":
    """Takes some_list, at most max_value.

    >>> my_helper([1, 2], max_value=1)
    1
    """
    my_count: int = 0  # my_count of some_list
    for one_item in some_list:
        my_count += one_item
    return min(my_count, max_value)


def first_word(my_text: str, sep_by=(" ")) -> (str):
    """
    Return the first word: first_word("a b") is "a"; see 'my_text' and my_path.
    """
'''


def test_camel_case() -> None:
    """What the code defines changes everywhere; imports, constants and data do not."""
    after = perturb(SOURCE, "camel_case")
    assert "def myHelper(someList: List[int], *, maxValue: int = 3)" in after
    assert ">>> myHelper([1, 2], maxValue=1)" in after
    assert "myCount: int = 0  # myCount of someList" in after
    assert 'def firstWord(myText: str, sepBy=(" "))' in after
    assert "import os.path as my_path" in after and "see 'my_text' and my_path" in after
    assert "MAX_SIZE" in after
    ast.parse(after)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("def f(my_arg):\n    return sorted(my_arg, my_key=1, key=2)\n",
         "def f(myArg):\n    return sorted(myArg, my_key=1, key=2)\n"),
        ("import x\ndef f(my_arg):\n    return x.g(my_arg=my_arg)\n",
         "import x\ndef f(myArg):\n    return x.g(my_arg=myArg)\n"),
        ("def f(my_arg, h):\n    return h(my_arg=my_arg)\n", None),
        ("def g(my_arg): pass\ndef f(h):\n    return g(my_arg=1)\n",
         "def g(myArg): pass\ndef f(h):\n    return g(myArg=1)\n"),
        ("def f(my_arg, myArg): pass\n", None),
        ("def f(my_arg):\n    return f'{my_arg}'\n", None),
        ("def f(my_arg):\n    return {'my_arg': my_arg}\n", None),
        ("def f(my_arg):\n    return locals()\n", None),
        ("from x import my_arg\ndef f(y): return my_arg\n", None),
        ("def f(a_b, x):\n    return x.a_b + a_b\n", "def f(aB, x):\n    return x.a_b + aB\n"),
        ("class A:\n    def do_it(self): return self.do_it()\n",
         "class A:\n    def doIt(self): return self.doIt()\n"),
        ("class A:\n    def do_it(self, x): return x.do_it()\n", None),
        ("class A:\n    a_b: int = 1\n", None),
        ("def __my_f__(): pass\n", None),
        ("def _my_f(): pass\n", "def _myF(): pass\n"),
        ("def My_F(A_B): pass\n", None),
        ("def f():\n    '''f of my_x'''\n    my_x = 'my x'; return my_x\n",
         "def f():\n    '''f of myX'''\n    myX = 'my x'; return myX\n"),
        ("The word snake_case is prose.", None),
        ("Say what this does:\n```python\ndef my_f(): pass\n```\nWhy my_f?",
         "Say what this does:\n```python\ndef myF(): pass\n```\nWhy myF?"),
        ("Complete it.\n\ndef my_f(é_x, a_b):\n    '''é a_b'''\n",
         "Complete it.\n\ndef myF(é_x, aB):\n    '''é aB'''\n"),
    ],
)  # fmt: skip
def test_names_that_change_and_names_that_stay(text: str, want: str | None) -> None:
    """Foreign keywords, attributes, data, clashes, reflection and prose keep their names."""
    prompt = Prompt(sections=(Section(name="q", kind="input", text=text),))
    done = applied(prompt, "camel_case")
    assert done.status == ("not_applicable" if want is None else "changed")
    assert plain(done.prompt) == (text if want is None else want)


def test_a_name_is_the_same_in_all_of_a_prompt() -> None:
    """Instructions change too; a name that is fixed somewhere, or among the choices, stays."""
    sections = (
        Section(name="i", kind="instruction", text="Complete my_f, and mind a_b."),
        Section(name="q", kind="input", text="def my_f(a_b, c_d):\n"),
    )
    prompt = Prompt(sections=sections, choices=("a_b", "none"), labels=("A", "B"), target=0)
    done = applied(prompt, "camel_case").prompt
    assert done.sections[0].text == "Complete myF, and mind a_b."
    assert done.sections[1].text == "def myF(a_b, cD):\n"
    fixed = applied(prompt, "camel_case:protect=my_f").prompt
    assert plain(fixed) == "Complete my_f, and mind a_b.def my_f(a_b, cD):\n"


def test_tests_and_entry_point_are_renamed() -> None:
    """Tests change where they mean the prompt's names, not where they have their own."""
    prefix = "def my_help(a_b):\n    return a_b\n\ndef my_f(a_b, n_m=1):\n"
    tests = (
        "def check(candidate):\n    n_m = 3\n    assert candidate(a_b=my_help(2), n_m=n_m) == 6\n"
        "    assert my_f(1, 1) == 1, 'my_f'\n"
    )
    prompt = Prompt(
        sections=(Section(name="q", kind="input", text=prefix),),
        target="    own_x = a_b\n    return own_x * n_m\n",
        program=Program(prefix=prefix, tests=tests, entry_point="my_f"),
    )
    done = applied(prompt, "camel_case").prompt
    program = program_of(done)
    assert "candidate(aB=myHelp(2), nM=n_m)" in program.tests
    assert "myF(1, 1) == 1, 'my_f'" in program.tests
    assert (program.entry_point, done.target) == ("myF", "    own_x = aB\n    return own_x * nM\n")
    sandbox = Sandbox()
    assert sandbox.run(job(done)) == Verdict(status="passed")
    sandbox.close()


def test_to_class() -> None:
    """The last function becomes a method, with its lines moved in; the other stays outside."""
    after = perturb(SOURCE, "to_class")
    assert "\ndef my_helper(" in after
    assert "\n\nclass Solution:\n    def first_word(self, my_text: str" in after
    assert '        Return the first word: Solution().first_word("a b") is "a"' in after
    assert after.split("class Solution")[0] == SOURCE.split("def first_word")[0]
    tree = ast.parse(after)
    assert isinstance(tree.body[-1], ast.ClassDef)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("def f():\n    return 1\n", "class Solution:\n    def f(self):\n        return 1\n"),
        ("def f(*a):\n    return f(a)\n",
         "class Solution:\n    def f(self, *a):\n        return self.f(a)\n"),
        ("@cache\nasync def f(a,\n            b):\n    pass\n",
         "class Solution:\n    @cache\n    async def f(self, a,\n                b):\n"
         "        pass\n"),
        ("def f(x):\n    # todo\n\n    a = '''\nx\n'''\n    return a\n",
         "class Solution:\n    def f(self, x):\n        # todo\n\n        a = '''\nx\n'''\n"
         "        return a\n"),
        ("class Solution: pass\ndef f(x):\n    pass\n",
         "class Solution: pass\nclass Solution2:\n    def f(self, x):\n        pass\n"),
        ("def f(x):\n    pass\nclass A: pass\n", None),
        ("def f(self):\n    pass\n", None),
        ("def f(x):\n    f = 3\n", None),
        ("def f(x):\n    return f'{f(x)}'\n", None),
        ("class A:\n    def f(self): pass\n", None),
        ("What is f(3)?\n```python\ndef f(x):\n    return x\n```\n",
         "What is Solution().f(3)?\n```python\nclass Solution:\n    def f(self, x):\n"
         "        return x\n```\n"),
        ("A plain text about def and class.", None),
    ],
)  # fmt: skip
def test_functions_that_become_methods(text: str, want: str | None) -> None:
    """Calls inside go through self, those in prose through an instance; strings are not moved."""
    prompt = Prompt(sections=(Section(name="q", kind="input", text=text),))
    done = applied(prompt, "to_class")
    assert plain(done.prompt) == (text if want is None else want)
    assert done.status == ("not_applicable" if want is None else "changed")


def test_to_class_leaves_protected_code_alone() -> None:
    """All of the function or nothing."""
    text = "def f(x):\n    return x\n"
    prompt = Prompt(sections=(Section(name="q", kind="input", text=text, protected=((9, 15),)),))
    assert applied(prompt, "to_class") == (prompt, "not_applicable", "to_class")


def test_remove_type_hints() -> None:
    """Signatures and variables lose their annotations; everything else stays as it is."""
    after = perturb(SOURCE, "remove_type_hints")
    assert "\nMAX_SIZE = 10\n" in after
    assert "def my_helper(some_list, *, max_value = 3):" in after
    assert "    my_count = 0  # my_count" in after
    assert 'def first_word(my_text, sep_by=(" ")):' in after
    assert "from typing import List, Optional" in after


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("def f(a: int, *b: str, c: 'x' = 1, **d: (int)) -> (\n    int\n): pass\n",
         "def f(a, *b, c = 1, **d): pass\n"),
        ("def f(é: str = 'é: int') -> str: return 'é -> int'\n",
         "def f(é = 'é: int'): return 'é -> int'\n"),
        ("def f():\n    x: int\n    x = 2\n    y: dict[str, int] = {}\n",
         "def f():\n    pass\n    x = 2\n    y = {}\n"),
        ("async def f(a: Callable[[int], str]): pass\n", "async def f(a): pass\n"),
        ("class A:\n    x: int = 1\n    def f(self, y: int): pass\n",
         "class A:\n    x: int = 1\n    def f(self, y): pass\n"),
        ("def f(a: int): return f.__annotations__\n", None),
        ("def f(a): return {1: 2}\n", None),
        ("Note: this is prose -> so there.", None),
    ],
)  # fmt: skip
def test_annotations_that_go_and_those_that_stay(text: str, want: str | None) -> None:
    """Brackets go along; class bodies and code that reads annotations keep them."""
    assert perturb(text, "remove_type_hints") == (text if want is None else want)


@pytest.mark.parametrize("name", NAMES)
def test_a_second_time_there_is_nothing_to_do(name: str) -> None:
    """Each is its own end."""
    prompt = prompts()["HumanEval/0"]
    assert applied(prompt, name, name).status == "not_applicable"


@pytest.mark.parametrize("name", NAMES)
def test_prompts_without_code_are_not_applicable(name: str) -> None:
    """Prose, even about code, is left alone."""
    for text in ("", "What is `my_name`?", "def is a keyword: true", "a_b = ", "x -> y: z"):
        prompt = Prompt(sections=(Section(name="q", kind="input", text=text),))
        assert applied(prompt, name) == (prompt, "not_applicable", name)


WORDS = sorted(p.name for p in perturbations if p.group == "word manipulation")


def outside_docstrings(text: str) -> tuple[str, list[str]]:
    """The code with its docstrings taken out, and the lines of their examples."""
    tree = ast.parse(text)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    examples: list[str] = []
    lines: list[str | None] = list(text.split("\n"))
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            for inner in node.body:
                if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                    for at in range(inner.lineno - 1, inner.end_lineno or inner.lineno):
                        lines[at] = None
                    shown = str(inner.value.value).split("\n")
                    examples += [x.strip() for x in shown if x.strip().startswith((">>>", "..."))]
    return "\n".join(line for line in lines if line is not None), examples


@pytest.mark.parametrize("name", WORDS)
def test_word_noise_leaves_the_code_of_humaneval_alone(name: str) -> None:
    """Whatever noise does to the words of a docstring, code and examples stay, and so does what
    is executed."""
    for prompt in prompts().values():
        done = applied(prompt, name).prompt
        assert done.program == prompt.program
        before, after = prompt.sections[-1].text, done.sections[-1].text
        assert outside_docstrings(after) == outside_docstrings(before)
