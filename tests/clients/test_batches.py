"""`falter run --batch` against scripted batch servers, killed wherever it can be killed."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from batch_server import KEY, BatchServer
from falter.cli.app import invoke
from falter.engine import batch_sending as loop
from falter.engine.study import carry_out_study, read_study, study_in
from falter.records.errors import FalterError
from falter.store.batches import Batches
from falter.store.maintenance import verify
from falter.store.merge import merge
from falter.store.store import Store
from falter_process import WEIGHTLESS, FalterProcess

VARIABLES = {
    "openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY",
}  # fmt: skip
DIALECTS = tuple(VARIABLES)
CELLS = 18


@pytest.fixture(scope="module")
def shared() -> Iterator[BatchServer]:
    with BatchServer() as server:
        yield server


@pytest.fixture
def server(shared: BatchServer, monkeypatch: pytest.MonkeyPatch) -> BatchServer:
    """The server with nothing scripted, and no pauses."""
    shared.reset()
    monkeypatch.setattr(loop, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(loop, "MAX_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(loop, "LISTING_GRACE_SECONDS", -1.0)
    for name, value in WEIGHTLESS.items():
        monkeypatch.setenv(name, value)
    for variable in VARIABLES.values():
        monkeypatch.setenv(variable, KEY)
    return shared


def command(server: BatchServer, store: Path, dialect: str, *more: str) -> list[str]:
    return [
        "run", "--task", "basics:core", "--limit", "6", "-r", "typos", "-r", "casing",
        "--scorer", "choice_letter", "-m", f"{dialect}:m", "--base-url", server.url(dialect),
        "--store", str(store), *more,
    ]  # fmt: skip


def ask(server: BatchServer, store: Path, dialect: str, *, batch: bool = True) -> str:
    """The same run without its report, which takes longest; what it died of, if it did."""
    settings = {
        "task": "basics:core", "limit": 6, "recipes": ["typos", "casing"],
        "scorer": "choice_letter", "batch": batch,
        "models": [{"name": f"{dialect}:m", "base_url": server.url(dialect),
                    "api_key_env": VARIABLES[dialect]}],
    }  # fmt: skip
    with study_in(read_study(settings), store) as study, Store(store) as opened:
        try:
            carry_out_study(study, opened)
        except FalterError as error:
            return f"{error.exit_code}: {error}"
    return ""


def answers(store: Path) -> dict[str, str | None]:
    """Return the answer to every request of the newest run."""
    with Store(store) as opened:
        cells = opened.cells(opened.find_run().run)
        return {cell.key: None if cell.response is None else cell.response.text for cell in cells}


def wanted(server: BatchServer, folder: Path, dialect: str) -> dict[str, str | None]:
    """Return the answers of a run without batches."""
    assert not ask(server, folder / "direct.db", dialect, batch=False)
    server.paid.clear()
    server.direct = 0
    return answers(folder / "direct.db")


def report(store: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """All numbers of the newest run, without when and by which command it began."""
    capsys.readouterr()
    assert invoke(["report", "--store", str(store), "--json"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {name: value for name, value in shown.items() if name not in ("created_at", "origin")}


def states(store: Path) -> list[str]:
    with Store(store) as opened:
        assert verify(opened).problems == ()
        return [batch.state for batch in Batches(opened).all()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_batch_says_what_direct_requests_say(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], dialect: str
) -> None:
    """Results in another order, lines of nobody's, and every request paid once."""
    same = wanted(server, tmp_path, dialect)
    server.looks = 3
    stranger = {"custom_id": "f" * 64, "response": {"status_code": 200, "body": {}}, "result": {}}
    if dialect != "gemini":
        server.extra = [stranger, {"custom_id": "../../x"}, {"nothing": 1}]
    path = tmp_path / "batch.db"
    assert not ask(server, path, dialect)
    assert ("3 lines that this run did not request" in capsys.readouterr().err) == (
        dialect != "gemini"
    )
    assert answers(path) == same
    assert set(server.paid.values()) == {1}
    assert len(server.paid) == CELLS
    assert server.direct == 1, "one goes ahead, so that refusals show at once"
    assert states(path) == ["read"]
    # Nothing is left to ask.
    before = len(server.asked)
    assert not ask(server, path, dialect)
    assert len(server.asked) == before
    assert KEY.encode() not in path.read_bytes()


def test_the_report_is_the_same_to_the_last_digit(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command line, with every number of the report."""
    for name, more in (("direct.db", ()), ("batch.db", ("--batch",))):
        assert invoke(command(server, tmp_path / name, "openai", *more)) == 0
    assert report(tmp_path / "batch.db", capsys) == report(tmp_path / "direct.db", capsys)


@pytest.mark.parametrize(
    ("dialect", "place"),
    [
        ("openai", "create"),
        ("openai", "look"),
        ("openai", "read"),
        ("anthropic", "create"),
        ("anthropic", "read"),
        ("gemini", "create"),
    ],
)
def test_a_killed_process_pays_nothing_twice(
    server: BatchServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    dialect: str,
    place: str,
) -> None:
    """A real SIGKILL: while a batch is made, while it is waited for, amid its results."""
    same = wanted(server, tmp_path, dialect)
    path = tmp_path / "killed.db"
    server.stall = place
    with FalterProcess(command(server, path, dialect, "--batch")) as process:
        assert server.stalled.wait(60)
        process.send(signal.SIGKILL)
        asyncio.run(process.ended())
    with Store(path) as store:
        (batch,) = Batches(store).all()
        assert batch.state == ("sending" if place == "create" else "waiting")
        assert batch.requests == CELLS - 1
    # Without --batch, what it holds would be paid a second time.
    said = ask(server, path, dialect, batch=False)
    assert said.startswith(f"2: {CELLS - 1} of these requests are in batches")
    assert not ask(server, path, dialect)
    assert answers(path) == same
    assert len(server.batches) == 1
    assert len(server.paid) == CELLS
    assert set(server.paid.values()) == {1}
    assert server.direct == 1
    assert states(path) == ["read"]
    capsys.readouterr()
    assert invoke(["batch", "status", "--store", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["provider"], row["name"], row["state"]) == (dialect, "batch_0", "read")
    assert (row["requests"], row["answered"]) == (CELLS - 1, CELLS - 1)


def test_a_batch_that_never_arrived_is_handed_in_again(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server breaks while it takes one, and does not have it afterwards."""
    same = wanted(server, tmp_path, "openai")
    refusals = [(500, {"error": {"message": "out of order"}}), None]
    server.on_create = lambda size: refusals.pop(0)
    path = tmp_path / "a.db"
    assert not ask(server, path, "openai")
    assert "may have received" in capsys.readouterr().err
    assert answers(path) == same
    assert set(server.paid.values()) == {1}
    assert states(path) == ["lost", "read"]


def test_killed_before_a_batch_is_made(server: BatchServer, tmp_path: Path) -> None:
    """Written down and never handed in: looked for in vain, and then handed in."""
    path = tmp_path / "a.db"
    server.stall = "upload"
    with FalterProcess(command(server, path, "openai", "--batch")) as process:
        assert server.stalled.wait(60)
        process.send(signal.SIGKILL)
        asyncio.run(process.ended())
    assert states(path) == ["sending"]
    assert not ask(server, path, "openai")
    assert states(path) == ["lost", "read"]
    assert len(server.batches) == 1
    assert set(server.paid.values()) == {1}
    assert len(server.paid) == CELLS


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_results_that_break_off_are_read_again(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], dialect: str
) -> None:
    path = tmp_path / "a.db"
    server.stall = "break"
    assert not ask(server, path, dialect)
    assert "the connection broke while the results were read" in capsys.readouterr().err
    assert len(answers(path)) == CELLS
    assert None not in answers(path).values()
    assert set(server.paid.values()) == {1}


def test_a_strangers_batch_is_put_back(server: BatchServer, tmp_path: Path) -> None:
    """Anthropic's batches take no mark: one with as many requests may be somebody else's."""
    path = tmp_path / "a.db"
    server.stall = "create"
    with FalterProcess(command(server, path, "anthropic", "--batch")) as process:
        assert server.stalled.wait(60)
        process.send(signal.SIGKILL)
        asyncio.run(process.ended())
    ours = server.batches.pop("batch_0")
    foreign = {f"{number:064x}": body for number, body in enumerate(ours.requests.values())}
    server.batches = {"batch_other": type(ours)("batch_other", "anthropic", foreign, None)}
    server.batches["batch_0"] = ours
    assert not ask(server, path, "anthropic")
    assert states(path) == ["read"]
    with Store(path) as store:
        assert Batches(store).all()[0].name == "batch_0"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_expired_batches_keep_their_finished_lines(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], dialect: str
) -> None:
    """What a batch had finished when it expired is kept, and only the rest goes into another."""
    same = wanted(server, tmp_path, dialect)
    server.ends_as, server.finished = "expired", 7
    path = tmp_path / "a.db"
    assert not ask(server, path, dialect)
    assert answers(path) == same
    sizes = [len(batch.requests) for batch in server.batches.values()]
    assert sizes == [17, 10, 3]
    assert set(server.paid.values()) == {1}
    assert len(server.paid) == CELLS


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_file_is_read(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], dialect: str
) -> None:
    """Refused lines are failures with the provider's words, without the key, and asked again."""
    path = tmp_path / "a.db"
    assert not ask(server, tmp_path / "d.db", dialect, batch=False)
    refused = set(sorted(server.paid)[3:6])
    server.reset()
    server.broken = refused.__contains__
    assert not ask(server, path, dialect)
    assert KEY not in capsys.readouterr().err
    with Store(path) as store:
        failures = [cell.failure for cell in store.cells(store.find_run().run) if cell.failure]
    assert len(failures) == 3
    assert all("the prompt is refused, says …" in failure for failure in failures)
    assert len(server.batches) == 1
    assert len(server.paid) == CELLS - 3
    server.broken = lambda prompt: False
    assert not ask(server, path, dialect)
    assert set(server.paid.values()) == {1}
    assert KEY.encode() not in path.read_bytes()


def test_a_cancelled_batch_is_not_handed_in_at_once(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answers are kept; who cancelled it decides when the rest is asked."""
    path = tmp_path / "a.db"
    server.ends_as, server.finished = "cancelled", 5
    assert "a batch was cancelled at the provider" in ask(server, path, "openai")
    server.ends_as, server.finished = "completed", 100
    assert not ask(server, path, "openai")
    assert [len(batch.requests) for batch in server.batches.values()] == [
        17,
        11,
    ]  # and one ahead of each
    assert set(server.paid.values()) == {1}


def test_a_provider_that_takes_less_at_once(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenAI refuses a batch that is too much after it has taken it: smaller ones follow."""
    path = tmp_path / "a.db"
    limit = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
    server.fails = lambda batch: limit if len(batch.requests) > 5 else None
    assert not ask(server, path, "openai")
    assert "continuing with batches of 4 requests" in capsys.readouterr().err
    assert set(server.paid.values()) == {1}
    assert len(server.paid) == CELLS
    server.reset()
    server.fails = lambda batch: {"code": "invalid_model", "message": "no such model"}
    said = ask(server, tmp_path / "b.db", "openai")
    assert "batch_0 was refused: no such model" in said
    assert states(tmp_path / "b.db") == ["refused"]


def test_who_takes_no_batches_is_told_before_anything_is_sent(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "--task", "basics:core", "--limit", "6", "-r", "typos", "--batch"]
    line += ["--store", str(tmp_path / "a.db")]
    assert invoke([*line, "-m", "simulated"]) == 2
    assert "'simulated' has no batch API" in capsys.readouterr().err
    url = ["--base-url", server.url("openai"), "--api", "completions"]
    assert invoke([*line, "-m", "openai:m", *url, "--scorer", "choice_likelihood"]) == 2
    assert "log-probabilities, which cannot be requested in batches" in capsys.readouterr().err
    server.has_batches = False
    assert invoke(command(server, tmp_path / "a.db", "openai", "--batch")) == 2
    assert "has no batch API (HTTP 404)" in capsys.readouterr().err
    assert server.paid.total() == 0


def test_names_of_batches_are_not_trusted(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that could lead elsewhere is in no URL, in no store and on no terminal."""
    server.name = lambda number: "../../v1/files\x1b[31m" + "x" * 5000
    path = tmp_path / "a.db"
    assert invoke(command(server, path, "openai", "--batch")) == 1
    said = capsys.readouterr().err
    assert "without giving it a usable name" in said
    assert "\x1b" not in said
    with Store(path) as store:
        (batch,) = Batches(store).all()
        assert (batch.name, batch.state) == (None, "sending")


def test_a_lost_batch_is_given_up_by_hand_only(
    server: BatchServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A provider that no longer knows a batch: nothing is asked again until somebody says so."""
    path = tmp_path / "a.db"
    server.stall = "look"
    with FalterProcess(command(server, path, "openai", "--batch")) as process:
        assert server.stalled.wait(60)
        assert invoke(["batch", "forget", "batch_0", "--store", str(path)]) == 2
        assert "Another process is waiting" in capsys.readouterr().err
        process.send(signal.SIGKILL)
        asyncio.run(process.ended())
    server.batches.clear()
    assert "the provider has no batch batch_0" in ask(server, path, "openai")
    assert server.paid.total() == 1
    assert invoke(["batch", "status", "--store", str(path)]) == 0
    assert "1 of 17" not in capsys.readouterr().out
    assert invoke(["batch", "forget", "batch_0", "--store", str(path)]) == 0
    assert "17 requests will be sent and paid for again" in capsys.readouterr().err
    assert not ask(server, path, "openai")
    assert states(path) == ["given up", "read"]


def test_interrupting_leaves_the_batch_to_the_next_run(server: BatchServer, tmp_path: Path) -> None:
    """Ctrl-C says that the batches go on; a merged copy of the store reads them as well."""
    path = tmp_path / "a.db"
    server.looks = 10**6
    with FalterProcess(command(server, path, "openai", "--batch")) as process:
        while not any(batch.looks for batch in server.batches.values()):
            assert process.running
        process.send(signal.SIGINT)
        code, _, err = asyncio.run(process.ended())
    assert (code, "1 batches continue at the provider" in err) == (1, True), err
    merge([path], tmp_path / "merged.db")
    server.looks = 0
    assert not ask(server, tmp_path / "merged.db", "openai")
    assert set(server.paid.values()) == {1}
    assert states(tmp_path / "merged.db") == ["read"]


def test_two_that_share_a_store_share_the_batches(server: BatchServer, tmp_path: Path) -> None:
    """Whoever comes second waits for what the first handed in."""
    path = tmp_path / "a.db"
    server.looks = 2
    with Store(path), ThreadPoolExecutor(2) as pool:
        both = [pool.submit(ask, server, path, "openai") for _ in range(2)]
        assert [each.result(60) for each in both] == ["", ""]
    assert set(server.paid.values()) == {1}
    assert len(server.paid) == CELLS
    assert set(states(path)) == {"read"}


def test_the_plan_shows_half_the_price(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = ["plan", "--task", "basics", "--limit", "60", "-r", "typos", "-m", "openai:gpt-4o-mini"]
    line += ["--scorer", "choice_letter", "--prices", "2025-11", "--store", str(tmp_path / "a.db")]
    rows = {}
    for more in ((), ("--batch",)):
        assert invoke([*line, *more, "--json"]) == 0
        (rows[more],) = json.loads(capsys.readouterr().out)["panels"]
    whole, half = rows[()], rows["--batch",]
    assert half["cost_in_batches"] == pytest.approx(half["cost_at_most"] / 2)
    assert whole["cost_in_batches"] == half["cost_in_batches"]
    assert invoke([*line, "--batch"]) == 0
    text = capsys.readouterr().out
    shown = f"cost at most {half['cost_in_batches']:,.4f} USD in batches "
    assert f"{shown}({half['cost_at_most']:,.4f} without)" in text
    assert invoke(line) == 0
    assert f"{half['cost_in_batches']:,.4f} with --batch" in capsys.readouterr().out


def test_an_older_store_has_no_batches_and_takes_them(tmp_path: Path) -> None:
    """A store as it was before there were any: it opens, verifies and takes one."""
    path = tmp_path / "a.db"
    with Store(path):
        pass
    db = sqlite3.connect(path)
    db.executescript("DROP TABLE batches; DROP TABLE batch_keys; PRAGMA user_version = 7;")
    db.close()
    with Store(path) as store:
        assert verify(store).problems == ()
        assert Batches(store).all() == []
