"""The bundled tasks of our own: sums, functions, and the core of basics."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.engine.config import read_experiment
from falter.engine.execution import planned_cost
from falter.perturbations import apply_recipe, parse_step
from falter.perturbations.recipes import Applied
from falter.records import render
from falter.records.errors import TaskError
from falter.records.types import Prompt, Recipe
from falter.rewrites.bank import bundled_rewrites
from falter.sandbox.run import Job, Sandbox
from falter.scorers.code import complete
from falter.store.store import Store
from falter.tasks import tasks
from falter.tasks.task import Task
from rewrite_samples import resolved_in

MATHS = ("symmetric_addition", "symmetric_multiplication", "latexify")
CODE = ("camel_case", "to_class", "remove_type_hints")
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def rows(name: str) -> list[dict[str, Any]]:
    text = resources.files("falter.tasks").joinpath(f"data/{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@cache
def task(name: str) -> Task:
    base, _, argument = name.partition(":")
    return tasks.get(base)(argument or None)


@cache
def prompts(name: str) -> dict[str, Prompt]:
    (template,) = task(name).templates.values()
    return {item.key: template.build(item) for item in task(name).items}


def applied(prompt: Prompt, *steps: str) -> Applied:
    recipe = Recipe(label="x", steps=tuple(map(parse_step, steps)))
    return apply_recipe("k", prompt, recipe, 0, 0)


def value(expression: str) -> Fraction:
    """A sum worked out by hand: whole numbers, + - * /, brackets."""

    def of(node: ast.expr) -> Fraction:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](of(node.left), of(node.right))
        assert isinstance(node, ast.Constant) and type(node.value) is int
        return Fraction(node.value)

    return of(ast.parse(expression, mode="eval").body)


@pytest.mark.parametrize(("name", "count"), [("sums", 80), ("functions", 40), ("basics:core", 60)])
def test_items_are_whole_and_each_is_there_once(name: str, count: int) -> None:
    """Unique keys, no text twice (case and spaces aside), nothing empty."""
    items = task(name).items
    assert len(items) == count
    assert len({item.key for item in items}) == count
    texts = [" ".join(next(iter(item.fields.values())).casefold().split()) for item in items]
    assert len(set(texts)) == count
    for item in items:
        assert item.task == task(name).name == name
        assert all(text.strip() == text or name == "functions" for text in item.fields.values())
        assert all(item.fields.values())
        assert str(item.target).strip()


@pytest.mark.parametrize("name", ["sums", "functions"])
def test_a_task_without_parts_takes_no_argument(name: str) -> None:
    with pytest.raises(TaskError, match="takes no argument after a colon, got 'x'"):
        tasks.get(name)("x")


# Sums


def test_every_answer_is_that_of_its_sum() -> None:
    """Worked out again by an evaluator of the test's own."""
    for row in rows("sums"):
        assert value(row["sum"]) == row["answer"] >= 0, row["key"]
    assert [item.target for item in task("sums").items] == [str(r["answer"]) for r in rows("sums")]


def test_an_expression_in_a_question_is_the_sum() -> None:
    """Where a question spells its sum out, it is this sum; there are at least 25 such."""
    spelled = 0
    for row in rows("sums"):
        found = re.findall(r"[(\d][\d\s()+*/-]*\d\)?(?:\s*[*]\s*\d+)?", row["question"])
        found = [one for one in found if re.search(r"[+*/-]", one)]
        spelled += len(found)
        for one in found:
            assert value(one) == row["answer"], row["key"]
    assert spelled >= 25


def test_the_numbers_of_a_sum_are_those_of_its_question() -> None:
    """Each number of the sum stands in the question, but for the 2 of a half."""
    for row in rows("sums"):
        asked = Counter(re.findall(r"\d+", row["question"]))
        used = Counter(re.findall(r"\d+", row["sum"]))
        if "half" in row["question"]:
            used -= Counter(["2"])
        spare = asked - used
        assert not used - asked, row["key"]
        assert sum(spare.values()) <= 1, row["key"]


def test_half_are_bare_and_half_are_stories() -> None:
    assert Counter(item.tags for item in task("sums").items) == {("plain",): 40, ("story",): 40}


def test_answers_are_spread() -> None:
    """No answer is right for more than six items, and few can be copied from the question."""
    answers = Counter(item.target for item in task("sums").items)
    assert len(answers) >= 30
    assert max(answers.values()) <= 6
    given = sum(str(r["answer"]) in re.findall(r"\d+", r["question"]) for r in rows("sums"))
    assert given <= 8, "the answer can be copied from the question"


@pytest.mark.parametrize("name", MATHS)
def test_maths_perturbations_find_a_number_in_nearly_every_sum(name: str) -> None:
    done = [applied(prompt, name) for prompt in prompts("sums").values()]
    assert sum(d.status == "changed" for d in done) >= 0.8 * len(done)
    for before, after in zip(prompts("sums").values(), done, strict=True):
        assert after.prompt.target == before.target
        assert after.prompt.sections[::2] == before.sections[::2]


def test_how_a_sum_is_asked() -> None:
    """Two lines, after a system turn that keeps small models short."""
    (_, system), (role, asked) = render.messages(prompts("sums")["plain-01"])
    assert system == "You are good at sums, and you reply in one short line."
    assert (role, asked) == ("user", "What is 7 + 5?\nReply with the number only.")
    kinds = [section.kind for section in prompts("sums")["plain-01"].sections]
    assert kinds == ["system", "input", "output_format"]


# Functions


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def job(prompt: Prompt, body: str | None = None) -> Job:
    program = prompt.program
    assert program is not None
    return Job(
        code=f"{program.prefix}{prompt.target if body is None else body}",
        tests=program.tests,
        entry_point=program.entry_point,
        helpers=complete(program.prefix),
    )


@pytest.mark.parametrize(
    ("chain", "changed"),
    [((), 0), (("camel_case",), 40), (("to_class",), 40), (("remove_type_hints",), 40), (CODE, 40)],
    ids=lambda chain: "+".join(chain) if isinstance(chain, tuple) else "",
)
def test_every_solution_passes_its_tests(
    chain: tuple[str, ...], changed: int, sandbox: Sandbox
) -> None:
    """Also with other names, as a method, without hints, and all of these at once."""
    done = {key: applied(prompt, *chain) for key, prompt in prompts("functions").items()}
    assert sum(d.status == "changed" for d in done.values()) == changed
    with ThreadPoolExecutor(2) as pool:
        verdicts = pool.map(sandbox.run, [job(d.prompt) for d in done.values()])
        wrong = {k: v for k, v in zip(done, verdicts, strict=True) if v.status != "passed"}
    assert wrong == {}


@pytest.mark.parametrize("result", ["None", "0", "''", "[]", "True"])
def test_no_constant_passes(result: str, sandbox: Sandbox) -> None:
    """The tests tell a function from one that always says the same."""
    jobs = [job(prompt, f"    return {result}\n") for prompt in prompts("functions").values()]
    with ThreadPoolExecutor(2) as pool:
        assert {verdict.status for verdict in pool.map(sandbox.run, jobs)} == {"failed"}


def test_functions_are_small_and_typed() -> None:
    """One function each, hints on everything, names of several words, a docstring, two tests."""
    for row in rows("functions"):
        (function,) = ast.parse(row["prompt"] + row["solution"]).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == row["entry_point"]
        assert function.returns is not None
        assert ast.get_docstring(function)
        assert len(function.body) == 2
        for argument in function.args.args:
            assert argument.annotation is not None
            assert "_" in argument.arg.strip("_")
        assert row["entry_point"].count("_") >= 1
        assert row["test"].count("assert candidate(") >= 2


# The core of basics


def test_the_core_is_what_has_paraphrases() -> None:
    """Its questions are those that the bundled paraphrases start from, and no others."""
    core = {item.fields["question"] for item in task("basics:core").items}
    data = Path(falter.__file__).parent / "rewrites" / "data" / "basics_paraphrases.jsonl"
    rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
    assert core == {row["source"] for row in rows}
    assert core < {rewrite.source for rewrite in bundled_rewrites()}
    assert {item.key for item in task("basics:core").items} == {row["item"] for row in rows}


def test_the_core_asks_what_basics_asks() -> None:
    """The same keys, fields, options and targets; so seeds, prompts and answers are shared."""
    whole = {item.key: item for item in task("basics").items}
    for item in task("basics:core").items:
        twin = whole[item.key]
        assert (item.fields, item.choices, item.target, item.tags) == (
            twin.fields, twin.choices, twin.target, twin.tags,
        )  # fmt: skip
    assert task("basics:core").templates == task("basics").templates
    assert Counter(item.tags for item in task("basics:core").items) == dict.fromkeys(
        {item.tags for item in whole.values()}, 5
    )


def test_the_core_is_a_panel_beside_basics_and_is_not_asked_again(tmp_path: Path) -> None:
    """Two panels with their own names; what basics has answered costs the core nothing."""
    store = tmp_path / "falter.db"
    settings: dict[str, Any] = {"models": ["simulated"], "recipes": ["typos", "identity"]}
    falter.run(task="basics", store=store, **settings)
    core = read_experiment({"task": "basics:core", **settings})
    with Store(store) as opened, resolved_in(core, store) as resolved:
        (planned,) = planned_cost(resolved, opened)
    assert (planned.cost.cells, planned.cost.stored, planned.cost.calls) == (180, 180, 0)
    both = falter.run(tasks=["basics", "basics:core"], store=store, **settings)
    assert [p.panel.task for p in both.analysis.panels] == ["basics", "basics:core"]
    assert [p.baseline.items for p in both.analysis.panels] == [264, 60]
    alone = falter.run(core, store=store)
    assert alone.analysis.panels[0].baseline.value == both.analysis.panels[1].baseline.value


def test_another_part_of_basics_is_an_error_that_names_the_core() -> None:
    with pytest.raises(TaskError) as caught:
        tasks.get("basics")("hard")
    assert "basics:core" in str(caught.value.hint)
