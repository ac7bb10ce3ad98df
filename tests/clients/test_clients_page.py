"""docs/clients.md: its clients run as they are printed, and its tables are complete."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import falter
from falter.clients import ClientSettings, OptionTable, clients
from falter.engine.config import ModelSpec
from falter.engine.connections import connect
from falter.engine.execution import run_async
from falter.records.errors import AuthenticationError, InvalidValue, PreflightError, UnknownName
from local_server import Asked, LocalServer, Reply

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "clients.md").read_text("utf-8")
GUIDE = (DOCS / "extending.md").read_text("utf-8")
KEY = "ak-very-secret-0123456789"
SPARE = {"recipes": ["typos", "identity"], "limit": 6, "scorer": "choice_letter"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The modules of the guide, imported; no other test sees their clients."""
    _, _, section = GUIDE.partition("## A client of your own")
    section = section.partition("\n## ")[0]
    modules = {}
    monkeypatch.syspath_prepend(tmp_path)
    for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        name = re.findall(r'registers\("(\w+)"\)', code)[0]
        (tmp_path / f"page_{name}.py").write_text(code)
        modules[name] = importlib.import_module(f"page_{name}")
    yield modules
    for name in modules:
        clients._objects.pop(name)
        sys.modules.pop(f"page_{name}")


def acme(asked: Asked) -> Reply:
    """Acme, as its documentation says; models beyond the second refuse temperatures."""
    if asked.headers.get("x-api-key") != KEY or asked.headers.get("acme-version") != "2025-06-01":
        return 401, {"type": "error", "error": {"message": f"who is {asked.headers}?"}}
    if asked.path == "/v1/models":
        return 200, {"data": [{"id": "roadrunner-2"}, {"id": "roadrunner-3"}]}
    if asked.path != "/v1/messages" or any(
        turn["role"] == "system" for turn in asked.body["messages"]
    ):
        return 404, {"type": "error", "error": {"message": "no such thing"}}
    if asked.body["model"] == "roadrunner-3" and "temperature" in asked.body:
        return 400, {
            "type": "error",
            "error": {"message": "`temperature` is deprecated for this model."},
        }
    return 200, {
        "model": asked.body["model"],
        "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "Answer: A"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 20, "output_tokens": 4},
    }


def run_at(server: LocalServer, store: Path, name: str, **model: Any) -> Any:
    spec = {"name": name, "base_url": server.base_url, "api_key_env": "ACME_API_KEY", **model}
    return falter.run(task="basics", models=[spec], store=store, **SPARE)


@pytest.mark.usefixtures("page")
def test_the_http_client_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through planning, preflight, sending and storing, at a server that checks what it gets."""
    monkeypatch.setenv("ACME_API_KEY", KEY)

    async def main() -> None:
        async with LocalServer(acme) as server:
            result = await asyncio.to_thread(
                run_at, server, tmp_path / "a.db", "acme:roadrunner-2",
                options={"top_k": 5, "stop_sequences": None},
            )  # fmt: skip
            (panel,) = result.analysis.panels
            assert (panel.counts.scored, panel.counts.failed) == (18, 0)
            assert panel.served_by == ("roadrunner-2",)
            bodies = [asked.body for asked in server.posted]
            assert len(bodies) == 18
            assert set(bodies[0]) == {"model", "messages", "max_tokens", "temperature", "top_k"}

            server.asked.clear()
            result = await asyncio.to_thread(
                run_at, server, tmp_path / "b.db", "acme:roadrunner-3", concurrency=1
            )
            (panel,) = result.analysis.panels
            assert panel.served_by == ("roadrunner-3, asked without temperature",)
            assert len(server.posted) == 19

            with pytest.raises(PreflightError, match="has no model 'roadruner-2'") as caught:
                await asyncio.to_thread(run_at, server, tmp_path / "c.db", "acme:roadruner-2")
            assert caught.value.hint == "did you mean 'roadrunner-2'?"
            monkeypatch.setenv("ACME_API_KEY", "wrong-" + KEY)
            with pytest.raises(PreflightError, match="refused the credentials") as caught:
                await asyncio.to_thread(run_at, server, tmp_path / "d.db", "acme:roadrunner-2")
            assert KEY not in str(caught.value)

    run_async(main)
    assert "acme:roadrunner-3: temperature is not sent" in capsys.readouterr().err


@pytest.mark.usefixtures("page")
def test_the_http_client_of_the_page_stops_a_run_whose_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the model list open to all, the first answer says it."""
    monkeypatch.setenv("ACME_API_KEY", KEY)

    def refusing(asked: Asked) -> Reply:
        return (200, {}) if asked.method == "GET" else (403, {"error": {"message": "no credit"}})

    async def main() -> None:
        async with LocalServer(refusing) as server:
            with pytest.raises(AuthenticationError, match="no credit"):
                await asyncio.to_thread(run_at, server, tmp_path / "a.db", "acme:roadrunner-2")

    run_async(main)


@pytest.mark.usefixtures("page")
def test_what_the_http_client_of_the_page_is_told_wrongly_is_refused() -> None:
    """By its table, before anything is sent."""
    for settings in (
        {"name": ""},
        {"name": "m", "options": {"messages": []}},
        {"name": "m", "options": {"temperature": 1}},
        {"name": "m", "base_url": "http://localhost/v1/messages"},
    ):
        with pytest.raises(InvalidValue):
            clients.get("acme")(ClientSettings(**settings))  # type: ignore[arg-type]


@pytest.mark.usefixtures("page")
def test_the_clients_in_this_process_of_the_page_run(tmp_path: Path) -> None:
    """One that answers by itself, and one that batches, writes and scores."""
    rules = {"name": "rules", "options": {"word": "which", "answer": "B"}}
    store = tmp_path / "falter.db"
    result = falter.run(task="basics", models=[rules, "backwards"], store=store, **SPARE)
    first, second = result.analysis.panels
    assert (first.counts.scored, second.counts.cells) == (18, 18)
    result = falter.run(
        task="basics", models=["backwards"], store=store, recipes=["typos", "identity"], limit=6
    )
    (panel,) = result.analysis.panels
    assert (panel.counts.scored, panel.noise_floor.value) == (18, 0.0)
    with pytest.raises(UnknownName, match="Unknown option of rules 'wrod'"):
        connect(ModelSpec(name="rules", options={"wrod": "x"}))
    with pytest.raises(InvalidValue, match=r"options.answer is 'C'; expected one of: A, B"):
        connect(ModelSpec(name="rules", options={"answer": "C"}))


def test_the_http_client_of_the_page_is_short() -> None:
    """What a provider costs: one module of about 70 lines."""
    code = next(
        c for c in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL) if "class Acme" in c
    )
    assert len(code.splitlines()) <= 75


TABLES = {
    module: importlib.import_module(f"falter.{module}").OPTIONS
    for module in (
        "clients.anthropic", "clients.function", "clients.gemini", "clients.openai",
        "clients.responses", "clients.simulated", "integrations.hf_client",
        "integrations.inspect_client", "integrations.lm_eval_client", "integrations.vllm_client",
    )
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_option_of_a_client_is_on_the_page(table: OptionTable) -> None:
    for parameter in table.known:
        assert f"`{parameter.name}`" in PAGE, f"docs/clients.md does not name {parameter.name}"


def settings_of(table: OptionTable, **options: Any) -> ClientSettings:
    return ClientSettings(name="provider/model", options=options)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_client_reads_its_options_from_its_table(table: OptionTable) -> None:
    """Wrong names and values, names that are falter's, and sampling settings: each is refused."""
    assert table.client in clients.names()
    defaults = table.read(settings_of(table))
    assert defaults == {parameter.name: parameter.default for parameter in table.known}
    for parameter in table.known:
        with pytest.raises(InvalidValue, match=rf"^options\.{parameter.name} is .*; expected "):
            table.read(settings_of(table, **{parameter.name: [3]}))
    if table.passes_on:
        assert table.read(settings_of(table, another=[3])) == {**defaults, "another": [3]}
        for name in table.ours:
            with pytest.raises(InvalidValue, match="an option that falter does not set itself"):
                table.read(settings_of(table, **{name: 1}))
        for name in table.sampling:
            with pytest.raises(InvalidValue, match="None, to leave the field out"):
                table.read(settings_of(table, **{name: 1}))
            assert table.read(settings_of(table, **{name: None}))[name] is None
    else:
        last = table.known[-1].name
        with pytest.raises(UnknownName, match=f"Unknown option of {table.client}") as caught:
            table.read(settings_of(table, **{last + "x": 1}))
        assert caught.value.hint == f"did you mean '{last}'?"


def test_plugins_can_be_type_checked() -> None:
    """Type checkers read the annotations of a package that has this marker."""
    assert (Path(falter.__file__).parent / "py.typed").exists()
