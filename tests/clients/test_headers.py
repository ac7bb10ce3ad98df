"""Headers by the names of variables, `--option` and `--env-file`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from falter.cli.app import invoke
from falter.cli.options import read_env_file
from falter.clients import ClientSettings
from falter.engine.config import ModelSpec, read_experiment
from falter.engine.connections import connect
from falter.engine.execution import run_async
from falter.records.errors import InvalidValue, UsageError
from local_server import Asked, LocalServer, Reply

TOKEN = "Bearer tk-very-secret-0123456789"


def said(text: str) -> Reply:
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return 200, {"model": "m", "choices": [choice]}


def fill(arguments: list[str], url: str) -> None:
    """Put the server's address into the experiment file."""
    for name in arguments:
        if name.endswith(".yaml"):
            path = Path(name)
            path.write_text(path.read_text("utf-8").replace("URL", url), "utf-8")


def run_at(arguments: list[str]) -> tuple[int, list[Asked]]:
    """`falter` against a server that repeats the header it got; what was posted."""

    def answer(asked: Asked) -> Reply:
        if asked.method == "GET":
            return 404, {}
        return said(f"A {asked.headers.get('x-team')}")

    async def main() -> tuple[int, list[Asked]]:
        async with LocalServer(answer) as server:
            fill(arguments, server.base_url)
            return await asyncio.to_thread(invoke, arguments), server.posted

    return run_async(main)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and an environment that is put back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    return tmp_path


FILE = """\
task: basics
limit: 2
recipes: [identity]
scorer: choice_letter
models:
  - name: openai:m
    base_url: URL
    headers: {X-Team: TEAM_TOKEN}
    options: {top_k: 20, min_p: 0.1}
"""


def test_a_header_is_sent_and_never_shown(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its value comes from a variable, here of `.env`; an answer that repeats it is masked."""
    (here / "e.yaml").write_text(FILE)
    (here / ".env").write_text(f'# ours\nexport TEAM_TOKEN="{TOKEN}"  # the team\n')
    code, posted = run_at(
        ["run", "e.yaml", "--option", "top_k=5", "--option", "stop_token_ids=[1, 2]",
         "--store", "f.db", "--env-file", "--allow-env", "TEAM_TOKEN"]
    )  # fmt: skip
    assert code == 0
    assert {asked.headers["x-team"] for asked in posted} == {TOKEN}
    out = capfd.readouterr()
    stored = b"".join(path.read_bytes() for path in here.glob("f.db*"))
    assert TOKEN not in out.out + out.err and TOKEN.encode() not in stored
    assert "A …".encode() in stored
    body = posted[0].body
    assert (body["top_k"], body["min_p"], body["stop_token_ids"]) == (5, 0.1, [1, 2])


def test_a_variable_that_is_not_set_is_named_before_anything_is_sent(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "e.yaml").write_text(FILE)
    code, posted = run_at(["run", "e.yaml", "--store", "f.db", "--allow-env", "TEAM_TOKEN"])
    assert (code, posted) == (2, [])
    assert "TEAM_TOKEN, which a header needs, is not set" in capsys.readouterr().err


def test_a_value_where_a_variable_belongs_is_not_shown() -> None:
    """Who mistakes the setting's meaning has put the secret itself there."""
    models: Any = [{"name": "openai:m", "headers": {"X-Team": TOKEN}}]
    with pytest.raises(InvalidValue, match="the name of an environment variable") as caught:
        read_experiment({"task": "basics", "models": models})
    assert TOKEN not in str(caught.value)
    with pytest.raises(InvalidValue, match="the name of a header"):
        ClientSettings(name="m", headers={"X Team": "T"})


def test_headers_are_no_part_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_TOKEN", TOKEN)
    url = "http://localhost:1/v1"
    with_header = ModelSpec(name="openai:m", base_url=url, headers={"X-Team": "TEAM_TOKEN"})
    assert connect(with_header).model == connect(ModelSpec(name="openai:m", base_url=url)).model


@pytest.mark.parametrize("written", ["top_k", "=3", "  =3"])
def test_an_option_without_name_or_value_is_refused(
    written: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["plan", "--task", "basics", "-m", "openai:m", "--option", written]
    assert invoke(command) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_an_env_file_is_read_line_by_line(here: Path) -> None:
    """Quotes, comments and `export` are left out; what is set already stays."""
    path = here / "keys.env"
    lines = ["\ufeffA=1", "", "# none", "export B='two # words'", 'C = "x" # why', "D=plain # why"]
    path.write_text("\n".join([*lines, "E=", "F=a=b#c"]), "utf-8")
    assert dict(read_env_file(path)) == {
        "A": "1", "B": "two # words", "C": "x", "D": "plain", "E": "", "F": "a=b#c",
    }  # fmt: skip
    os.environ["A"] = "mine"
    assert invoke(["doctor", "--env-file", "keys.env", "--json"]) == 0
    assert (os.environ["A"], os.environ["D"]) == ("mine", "plain")


def test_a_line_that_is_none_is_named_by_its_number_alone(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / ".env").write_text("A=1\nsk-my-key\n")
    with pytest.raises(UsageError, match=r"Line 2 of \.env is not NAME=value"):
        list(read_env_file(Path(".env")))
    assert invoke(["doctor", "--env-file"]) == 2
    assert "sk-my-key" not in capsys.readouterr().err
    with pytest.raises(UsageError, match="cannot be read"):
        list(read_env_file(Path("nowhere.env")))
