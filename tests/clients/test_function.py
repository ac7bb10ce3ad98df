"""A function of the user's own as a model: in Python, by its name, and in a file."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.cli.app import invoke
from falter.engine.config import ModelSpec
from falter.engine.connections import connect
from falter.records.errors import InvalidValue, PreflightError, UsageError
from falter.store.store import Store

SPARE: dict[str, Any] = {
    "task": "basics", "recipes": ["identity"], "limit": 4, "scorer": "choice_letter",
}  # fmt: skip


def always_a(prompt: str) -> str:
    """The simplest application."""
    assert "Answer" in prompt
    return "A"


async def slowly_b(messages: list[dict[str, str]]) -> str:
    """One that awaits, and wants the turns."""
    await asyncio.sleep(0)
    assert messages[-1]["role"] == "user"
    return "B"


def judged(prompt: str) -> falter.Scored:
    """One that judges itself."""
    return falter.Scored("something long", 0.25)


class App:
    """An application with a state and a version."""

    version = "7"

    def __init__(self, reply: Any = "C") -> None:
        self.reply = reply

    def __call__(self, prompt: str) -> Any:
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply


def run(*models: Any, tmp_path: Path, **more: Any) -> Any:
    return falter.run(models=list(models), store=tmp_path / "falter.db", **{**SPARE, **more})


def test_callables_are_models(tmp_path: Path) -> None:
    """A function, a coroutine function, an object: all answer, each under its own name."""
    result = run(always_a, slowly_b, App(), tmp_path=tmp_path)
    panels = result.analysis.panels
    assert [panel.counts.scored for panel in panels] == [8, 8, 8]
    assert [panel.panel.model.name for panel in panels] == [
        "test_function:always_a", "test_function:slowly_b", "test_function:App",
    ]  # fmt: skip
    assert panels[2].panel.model.options == {"version": "7"}
    assert len({panel.panel.model.weights for panel in panels}) == 3
    assert all((panel.panel.model.weights or "").startswith("sha256:") for panel in panels)


def test_a_score_of_its_own_takes_the_place_of_the_scorers(tmp_path: Path) -> None:
    result = run(judged, tmp_path=tmp_path)
    (panel,) = result.analysis.panels
    assert (panel.baseline.value, panel.counts.scored) == (0.25, 8)
    with Store(tmp_path / "falter.db") as store:
        (stored,) = store.runs()
        values = {cell.response.value for cell in store.cells(stored.run) if cell.response}
    assert values == {0.25}


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ValueError("no luck"), "ValueError: no luck"),
        (StopIteration(), "RuntimeError: StopIteration"),
        (SystemExit(0), "SystemExit: 0"),
        (None, "TypeError: the function returned NoneType; expected a text, or falter.Scored"),
        (falter.Scored("x", 3), "ValueError: the function returned the score 3.0; expected 0 to 1"),
        (falter.Scored("x", float("nan")), "ValueError: the function returned the score nan"),
    ],
)
def test_what_goes_wrong_is_the_failure_of_a_request(
    reply: Any, reason: str, tmp_path: Path
) -> None:
    """Every other question has its answer."""
    turn = iter(range(100))

    def odd(prompt: str) -> Any:
        return App(reply)(prompt) if next(turn) % 2 else "A"

    result = run({"name": odd, "concurrency": 1}, tmp_path=tmp_path)
    (panel,) = result.analysis.panels
    assert (panel.counts.scored, panel.counts.failed) == (4, 4)
    assert all(said.startswith(reason) for said in panel.failures)


def test_the_version_and_the_source_set_models_apart() -> None:
    """Another version is another model; a partial is the function that it calls."""
    from falter.clients.function import register_callable

    name = register_callable(always_a)
    plain, second = (
        connect(ModelSpec(name=name, options=options)).model for options in ({}, {"version": "2"})
    )
    assert plain.id != second.id and second.options == {"version": "2"}
    assert connect(ModelSpec(name=register_callable(partial(always_a)))).model == plain
    with pytest.raises(InvalidValue, match="a function has no server"):
        connect(ModelSpec(name=name, base_url="http://localhost"))


def test_two_functions_of_one_name_are_refused(tmp_path: Path) -> None:
    one, other = (lambda prompt: "A"), (lambda prompt: "B")
    with pytest.raises(InvalidValue, match="functions of different names") as caught:
        run(one, other, tmp_path=tmp_path)
    assert caught.value.hint == "use def instead of lambda"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a module."""
    (tmp_path / "their_app.py").write_text("class Bot:\n    say = staticmethod(lambda p: 'A')\n")
    (tmp_path / "broken_app.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "their_app", raising=False)
    return tmp_path


OPTIONS = ["-r", "identity", "--limit", "2", "--scorer", "choice_letter", "--store", "f.db"]


def test_a_function_is_named_on_the_command_line(
    app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By module and name, from the working directory."""
    command = ["run", "--task", "basics", "-m", "function:their_app:Bot.say", *OPTIONS]
    assert invoke(command) == 0
    assert "their_app:Bot.say" in capsys.readouterr().out


@pytest.mark.parametrize("models", ["[function:their_app:Bot.say]", "function:their_app:Bot.say"])
def test_a_file_imports_code_only_where_that_is_allowed(
    models: str, app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever got the file from somewhere else is asked first, and nothing is imported."""
    (app / "e.yaml").write_text(f"task: basics\nlimit: 2\nmodels: {models}\n")
    assert invoke(["plan", "e.yaml", "--store", "f.db"]) == 2
    assert "add --allow-code" in capsys.readouterr().err
    assert "their_app" not in sys.modules
    assert invoke(["plan", "e.yaml", "--allow-code", "--store", "f.db"]) == 0


def test_a_function_that_is_not_there_is_said_before_the_run(app: Path) -> None:
    for name, match in (
        ("function:nowhere_app:x", "nowhere_app cannot be imported: ModuleNotFoundError"),
        ("function:broken_app:x", "broken_app cannot be imported: ZeroDivisionError"),
        ("function:their_app:Bot.cry", r"has no function Bot\.cry"),
    ):
        with pytest.raises(PreflightError, match=match):
            connect(ModelSpec(name=name))
    with pytest.raises((InvalidValue, UsageError), match="function:my_app:answer"):
        connect(ModelSpec(name="function:their_app"))
