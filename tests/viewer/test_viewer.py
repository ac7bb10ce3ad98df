"""The viewer: who may ask its server, what it says, and the page in a real browser."""

from __future__ import annotations

import asyncio
import functools
import gzip
import http.server
import json
import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from click.testing import CliRunner

import falter
from browser_page import NAMES, BrowserPage, opened_page
from falter.cli.app import cli
from falter.engine.answers import AnswerFilter, pick_answers
from falter.engine.results import open_result
from falter.records import numbers
from falter.records.errors import StoreBusy, StoreError
from falter.store.store import Store
from falter.store.studies import find_study
from falter.viewer.bundle import write_bundle
from falter.viewer.panels import CODES, corrections_file, notes_file
from falter.viewer.server import TOKEN_HEADER, Viewer, served
from falter.viewer.source import StoredSource
from falter_process import FalterProcess
from once import once
from viewer_samples import HOSTILE, SimulatedSource, hostile_store


@pytest.fixture(scope="module")
def browser() -> str:
    if os.environ.get("FALTER_NO_BROWSER"):
        pytest.skip("FALTER_NO_BROWSER is set")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("no chromium on PATH; install one, or set FALTER_NO_BROWSER=1")
    return found


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, of which one gives hostile answers."""

    def make(folder: Path) -> None:
        hostile_store(folder / "s.db", ("own", "other"))

    return once(tmp_path_factory, "viewer", make) / "s.db"


@pytest.fixture
def path(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(stored, tmp_path / "s.db"))


@pytest.fixture
def source(path: Path) -> Iterator[StoredSource]:
    with opened(path) as own:
        yield own


def opened(path: Path) -> StoredSource:
    with Store(path, writes=False) as store:
        return StoredSource(path, [find_study(store)])


# The server


async def asked(
    viewer: Viewer, path: str, **headers: str
) -> tuple[int, aiohttp.typedefs.LooseHeaders, bytes]:
    async with aiohttp.ClientSession() as session:
        address = f"http://127.0.0.1:{viewer.port}{path}"
        async with session.get(address, headers=headers) as answer:
            return answer.status, dict(answer.headers), await answer.read()


def test_nobody_else_is_answered(source: StoredSource) -> None:
    """Foreign hosts, origins and sites, and whoever lacks the token, get nothing but a refusal."""

    async def check() -> None:
        async with served(source) as viewer:
            own = {TOKEN_HEADER: viewer.token}
            refused: list[tuple[str, dict[str, str]]] = [
                ("/", {"Host": "evil.example"}),
                ("/", {"Host": f"evil.example:{viewer.port}"}),
                ("/", {"Host": "127.0.0.1"}),
                ("/app.js", {"Sec-Fetch-Site": "cross-site"}),
                ("/", {"Sec-Fetch-Site": "same-site"}),
                ("/api/panels", {}),
                ("/api/panels", {TOKEN_HEADER: "x" * len(viewer.token)}),
                ("/api/panels", {TOKEN_HEADER: "é"}),
                ("/api/panels", {TOKEN_HEADER: "\udcff"}),
                ("/api/panels?token=" + viewer.token, {}),
                ("/api/panels", own | {"Host": "evil.example"}),
                ("/api/panels", own | {"Origin": "http://evil.example"}),
                ("/api/panels", own | {"Origin": "null"}),
                ("/api/item/0/0", own | {"Sec-Fetch-Site": "cross-site"}),
                ("/api/events", {}),
                ("/api/findings/0", {}),
                ("/report/x", {"Sec-Fetch-Site": "cross-site"}),
            ]
            for where, headers in refused:
                status, _, body = await asked(viewer, where, **headers)
                assert (status, b"item-" in body) == (403, False), (where, headers)
            for where in (
                "/../pyproject.toml",
                "/page.py",
                "/api/cells/9",
                "/api/item/0/99",
                "/report/x",
            ):
                assert (await asked(viewer, where, **own))[0] == 404, where
            local = own | {"Host": f"localhost:{viewer.port}"}
            assert (await asked(viewer, "/api/panels", **local))[0] == 200

    asyncio.run(check())


def test_odd_requests_are_refused_and_say_nothing_in_the_terminal(
    source: StoredSource, capfd: pytest.CaptureFixture[str]
) -> None:
    """Numbers of 5,000 digits, and what is no HTTP."""

    async def check() -> None:
        async with served(source) as viewer:
            own = {TOKEN_HEADER: viewer.token}
            for where in ("/api/cells/" + "9" * 5000, "/api/item/0/" + "9" * 5000):
                assert (await asked(viewer, where, **own))[0] == 404
            odd = "/api/found/0?text=%ff%00%ed%a0%80%22" + "x" * 5000
            assert (await asked(viewer, odd, **own))[0] == 200
            assert (await asked(viewer, "/api/findings/" + "9" * 5000, **own))[0] == 404
            for sent in (b"GET / HTTP/9\r\n\r\n", b"\x16\x03\x01\x02\r\n\r\n", b"GET\r\n\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", viewer.port)
                writer.write(sent)
                assert b" 400 " in await reader.readline()
                writer.close()

    root = logging.getLogger()  # as in a terminal: without the handlers of the tests
    handlers, root.handlers = root.handlers, []
    try:
        asyncio.run(check())
    finally:
        root.handlers = handlers
    assert "Traceback" not in capfd.readouterr().err


def test_every_answer_has_the_policy(source: StoredSource) -> None:
    """Scripts and styles of its own only, in no frame; also where something is refused."""

    async def check() -> None:
        async with served(source) as viewer:
            assert viewer.address.startswith(f"http://127.0.0.1:{viewer.port}/#token=")
            own = {TOKEN_HEADER: viewer.token}
            for where in ("/", "/app.js", "/none", "/api/panels", "/api/cells/0"):
                for headers in (own, {"Host": "evil.example"}):
                    _, given, _ = await asked(viewer, where, **headers)
                    policy = dict(given)["Content-Security-Policy"]
                    assert policy.startswith("default-src 'none'; script-src 'self'; style-src")
                    assert "frame-ancestors 'none'; base-uri 'none'; form-action 'none'" in policy
                    assert dict(given)["X-Content-Type-Options"] == "nosniff"

    asyncio.run(check())


def test_the_bytes_say_what_the_answers_say(path: Path, source: StoredSource) -> None:
    """As many right, wrong and unparsed cells as `falter answers` shows."""
    panel = source.panels()[0]
    codes = source.codes(0)
    assert codes.shape == (len(HOSTILE), len(panel.columns))
    assert [column.recipe for column in panel.columns] == ["baseline", "pad_newlines", "casing"]
    picked = pick_answers(path, None, AnswerFilter(model="scripted:own"), limit=99).answers
    for answer in picked:
        row = panel.items.index(answer.item)
        column = [c.recipe for c in panel.columns].index(answer.recipe)
        said = answer.outcome if answer.value is None else ("wrong", "right")[int(answer.value)]
        assert CODES[codes[row, column]] == said
    assert len(picked) == codes.size


def test_an_item_has_everything_that_was_asked(source: StoredSource) -> None:
    """The texts as they are, the edits, the reading, and what a command needs to ask again."""
    panel = source.panels()[0]
    row = next(n for n, key in enumerate(panel.items) if key.startswith("item-0"))
    record = source.item(0, row)
    assert record["expected"] == "20"
    clean, padded, _ = record["cells"]
    assert (clean["read"], clean["answer"]) == ("20", "The sum is 20.")
    assert (clean["tier"], clean["readings"]) == ("stated", [])
    assert padded["answer"] == padded["reasoning"] == HOSTILE[0]
    assert padded["reason"]
    assert any(kind == "edit" and "\n" in after for kind, _, after in padded["edits"])
    assert padded["messages"][-1][1] == "".join(after for _, _, after in padded["edits"])


def test_texts_are_found_in_prompts_replies_and_readings(source: StoredSource) -> None:
    """In letters of any case, as they were before they became JSON, whose names are no text."""
    clean = np.zeros((5, 3), np.uint8)
    clean[:, 0] = 1
    for text, wanted in (
        ("the SUM is", clean),
        ("what is", np.ones((5, 3))),
        ("\u2028", np.outer([0, 0, 0, 0, 1], [1, 1, 1])),
        ('#\n"quoted"', np.outer([0, 0, 0, 0, 1], [1, 1, 1])),
        ("finish_reason", np.zeros((5, 3))),
    ):
        assert (source.found(0, text) == wanted).all(), text


def test_the_findings_are_those_of_the_report(path: Path, source: StoredSource) -> None:
    """The drops beside the recipes, and the page itself at an address that was told with them."""
    drops = open_result(path).analysis.panels[0].recipes
    shown = source.findings(0)
    assert set(shown.drops) == {"0", "1"}
    assert shown.drops["0"] == {r.label: numbers.shown(r.together, "points").text for r in drops}
    assert shown.drops["0"]["casing"].startswith("+100.0 [")

    async def check() -> None:
        async with served(source) as viewer:
            own = {TOKEN_HEADER: viewer.token}
            _, _, told = await asked(viewer, "/api/findings/0", **own)
            status, headers, page = await asked(viewer, "/" + json.loads(told)["page"])
            assert (status, page.decode()) == (200, shown.page)
            policy = dict(headers)["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src")
            assert (await asked(viewer, "/api/findings/1", **own))[0] == 404

    asyncio.run(check())


def test_the_command_serves_the_page(path: Path) -> None:
    """It prints the address of a page that answers, and Ctrl-C ends it without an error."""

    async def check() -> None:
        with FalterProcess(["view", "--store", str(path), "--no-open"]) as process:
            while "#token=" not in (said := process.printed()) and process.running:
                await asyncio.sleep(0.05)
            address, _, token = said.strip().partition("#token=")
            async with aiohttp.ClientSession() as session:
                reply = await session.get(f"{address}api/panels", headers={TOKEN_HEADER: token})
                assert (reply.status, "own" in await reply.text()) == (200, True)
            process.send(signal.SIGINT)
            code, _, error = await process.ended()
            assert (code, "Traceback" in error) == (0, False)

    asyncio.run(check())


def test_notes_are_kept_beside_the_store(path: Path, source: StoredSource) -> None:
    """The last note on an item counts, an empty one takes it back; broken lines are passed over."""
    notes, marks = notes_file(path), corrections_file(path)
    item = source.panels()[0].items[1]

    async def put(viewer: Viewer, body: str, kind: str = "notes") -> int:
        async with aiohttp.ClientSession() as session:
            address = f"http://127.0.0.1:{viewer.port}/api/{kind}"
            headers = {TOKEN_HEADER: viewer.token}
            async with session.put(address, data=body, headers=headers) as answer:
                return answer.status

    async def check() -> None:
        async with served(source, {"notes": notes, "marks": marks}) as viewer:
            for note in ("first", "</script> second"):
                assert await put(viewer, json.dumps({"panel": 0, "row": 1, "note": note})) == 200
            assert await put(viewer, json.dumps({"panel": 0, "row": 2, "note": "gone"})) == 200
            assert await put(viewer, json.dumps({"panel": 0, "row": 2, "note": ""})) == 200
            for wrong in ("", "[]", '{"panel": 0}', '{"panel": 9, "row": 0, "note": "x"}'):
                assert await put(viewer, wrong) == 400
            cell = {"panel": 0, "row": 1}
            for column, reading in ((0, None), (1, "22"), (2, "x"), (2, "")):
                mark = json.dumps({**cell, "column": column, "reading": reading})
                assert await put(viewer, mark, "marks") == 200
            for wrong in ({}, {"column": 3, "reading": ""}, {"column": -1, "reading": ""}):
                assert await put(viewer, json.dumps({**cell, **wrong}), "marks") == 400

    asyncio.run(check())
    with notes.path.open("a") as file:
        file.write('{"run": [1]}\nno json\n')
    (row,) = notes.rows()
    assert (row["item"], row["note"]) == (item, "</script> second")
    keys = [cell["key"] for cell in source.item(0, 1)["cells"]]
    assert [(m["key"], m["reading"]) for m in marks.rows()] == [(keys[0], None), (keys[1], "22")]
    assert not {"target", "expected"} & marks.rows()[0].keys()
    options = ["--store", str(path), "--marks", str(marks.path), "--json"]
    called = CliRunner().invoke(cli, ["rescore", *options])
    assert "numeric + 2 marks" in called.output, called.output


def cut_off(path: Path) -> list[Any]:
    """Make the run one that is not finished; the answers that it lacks now."""
    with closing(sqlite3.connect(path)) as db, db:
        taken = db.execute("SELECT * FROM responses WHERE rowid > 8").fetchall()
        db.execute("DELETE FROM responses WHERE rowid > 8")
        db.execute("UPDATE runs SET finished_at = NULL")
    return taken


def test_a_run_without_a_plan_has_a_page(path: Path) -> None:
    """As it is for a moment when a run begins."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM cells")
        db.execute("UPDATE runs SET finished_at = NULL, planned = 0")
    with opened(path) as source:
        assert [source.codes(n).size for n in range(2)] == [0, 0]
        assert (source.found(0, "sum").size, source.findings(0).page) == (0, "")
    with pytest.raises(StoreError, match="has no response yet"):
        open_result(path, incomplete=True)


def put_back(path: Path, responses: list[Any]) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO responses VALUES (?, ?, ?, ?, ?)", responses)


def test_a_column_of_text_may_be_called_messages(tmp_path: Path) -> None:
    rows = [{"messages": f"Mail {n}, where is it?", "answer": "x"} for n in range(6)]
    falter.run(
        data={"rows": rows, "target": "answer"}, template="Sort this. {messages}",
        scorer="includes", models=lambda prompt: "x", recipes=["pad_newlines"],
        store=tmp_path / "f.db",
    )  # fmt: skip
    with opened(tmp_path / "f.db") as source:
        assert "Mail 0, where is it?" in source.panels()[0].texts


def test_new_answers_are_seen(path: Path) -> None:
    """What another process stores later arrives as places and bytes; nothing else does."""
    taken = cut_off(path)
    with opened(path) as source:
        before = [source.codes(n).copy() for n in range(2)]
        assert sum(int((codes == CODES.index("missing")).sum()) for codes in before) == len(taken)
        assert source.arrivals() == []
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("INSERT INTO failures VALUES (?, 0.0, 'timed out')", (taken[0][0],))
        failed = {code for _, _, codes in source.arrivals() or () for code in codes}
        assert failed == {CODES.index("failed")}
        put_back(path, taken)
        arrived = source.arrivals()
        assert arrived
        for panel, places, codes in arrived:
            before[panel].flat[places] = codes
        with opened(path) as whole:
            for n in range(2):
                assert (before[n] == whole.codes(n)).all()
                assert (source.codes(n) == whole.codes(n)).all()
        assert source.arrivals() == []


def test_a_locked_store_does_not_end_the_events(
    source: StoredSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter((StoreBusy("locked"),))

    def arrivals() -> None:
        for error in looks:
            raise error

    async def main() -> bytes:
        async with served(source) as viewer, aiohttp.ClientSession() as session:
            address = f"http://127.0.0.1:{viewer.port}/api/events"
            async with session.get(address, headers={TOKEN_HEADER: viewer.token}) as answer:
                return await asyncio.wait_for(answer.content.readuntil(b"reload"), 10)

    monkeypatch.setattr(source, "arrivals", arrivals)
    assert asyncio.run(main()).endswith(b"event: reload")


def test_a_run_is_watched_from_elsewhere(path: Path) -> None:
    """As far as it has come, with intervals; a finished one is shown once. Nothing is changed."""
    whole = CliRunner().invoke(cli, ["watch", "--store", str(path)])
    assert whole.exit_code == 0, whole.output
    assert "scripted:own on items: 15 of 15 answers" in whole.output
    assert "+100.0" in whole.output
    taken = cut_off(path)
    before = path.read_bytes()
    part = CliRunner().invoke(cli, ["watch", "--store", str(path), "--once"])
    assert f"{30 - len(taken) - 15 if len(taken) < 15 else 8} of 15 answers" in part.output
    assert "whoever" not in part.output and "if you stop at a favourable look" in part.output
    assert path.read_bytes() == before
    missing = CliRunner().invoke(cli, ["watch", "--store", str(path.with_name("no.db"))])
    assert "does not exist" in str(missing.exception)


# The page

_ACTED = (
    "[document.title, document.querySelectorAll('#page img, #page script, #page iframe').length,"
    " document.documentElement.scrollWidth - innerWidth]"
)
_STATE = "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"


async def until(page: BrowserPage, expression: str) -> Any:
    """Return the value of an expression, as soon as it has one."""
    for _ in range(600):
        value = await page.value(f"(v => v instanceof Element || v)({expression})")
        if value:
            return value
        await asyncio.sleep(0.02)
    raise AssertionError(f"never: {expression}; {await page.value('document.body.innerText')}")


def noise(page: BrowserPage) -> list[Any]:
    kinds = ("Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening")
    return [event for event in page.events if event["method"] in kinds]


async def sized(page: BrowserPage, width: int, theme: str = "light") -> None:
    await page.send(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=900, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    media = [{"name": "prefers-color-scheme", "value": theme}]
    await page.send("Emulation.setEmulatedMedia", features=media)


KEPT = {"notes": notes_file, "marks": corrections_file}


async def text_of(page: BrowserPage, selector: str) -> str:
    text: str = await page.value(f"document.querySelector({selector!r})?.innerText ?? ''")
    return text


def test_the_page_by_its_keys(browser: str, source: StoredSource, tmp_path: Path) -> None:
    """Flips, item, conditions, search, another model beside it: by keys, and all in the address."""
    kept = {name: of(tmp_path / "s.db") for name, of in KEPT.items()}

    async def look() -> None:
        async with (
            served(source, kept) as viewer,
            opened_page(browser, viewer.address, tmp_path) as page,
        ):
            await sized(page, 1400)
            assert await until(page, "document.querySelectorAll('.flip').length") == 10
            await page.press("j", "j", "k", "Enter")
            await until(page, "document.querySelector('.item h2')")
            state = await page.value(_STATE)
            assert (state["condition"], state["open"]) == ("pad_newlines", "1")
            assert state["token"] == viewer.token
            await page.press("ArrowRight")
            await until(page, "location.hash.includes('condition=casing')")
            assert "casing" in await text_of(page, ".variant[aria-pressed=true]")
            await page.press("n")
            await page.write("a note")
            await page.press("Escape")
            await until(page, "document.body.innerText.includes('Export 1 note')")
            await page.press("m")
            await page.write("no number")
            await page.value("document.querySelectorAll('.misread[open] button')[0].click()")
            await until(page, "document.body.innerText.includes('Export 2 marks')")
            assert "Read by you: no number" in await text_of(page, "[data-current=true]")
            hash_before = await page.value("location.hash")
            await page.reload()
            await until(page, "document.querySelector('.item h2')")
            assert await page.value("location.hash") == hash_before
            assert await page.value("document.querySelector('#note').value") == "a note"
            await page.press("Escape", "c")
            await until(page, "document.querySelectorAll('canvas').length === 2")
            assert "10 cells where the two differ" in await text_of(page, ".flips")
            await page.press("Enter")
            assert "right" in await until(page, "document.querySelector('.other')?.innerText")
            await page.press("Escape", "c", "Escape", "Escape", "/")
            await page.write("item-4")
            await until(page, "document.querySelectorAll('.flip').length === 2")
            assert "What is 4 + 20?" in await text_of(page, ".flip .text")
            await page.value("document.querySelector('[type=search]').select()")
            await page.write("ONERROR")  # in a question, and in all that the model says for it
            await until(page, "document.querySelectorAll('.flip').length === 10")
            await until(
                page, "document.querySelector('.bar').innerText.includes('casing +100.0 [')"
            )
            await page.press("Escape", "?")
            assert "next, previous flip" in await until(
                page, "document.querySelector('.help')?.innerText"
            )
            await page.value("document.querySelector('.tabled summary').click()")
            rows = "document.querySelectorAll('.tabled tbody tr').length"
            assert await until(page, rows) == 3 + len(HOSTILE)
            assert noise(page) == []

    asyncio.run(look())


def test_hostile_answers_run_nothing(browser: str, source: StoredSource, tmp_path: Path) -> None:
    """Every item opened and unfolded, narrow and wide: nothing runs and nothing is pushed out."""

    async def look() -> None:
        async with (
            served(source) as viewer,
            opened_page(browser, viewer.address, tmp_path) as page,
        ):
            await until(page, "document.querySelector('.flip')")
            for width, theme in ((420, "dark"), (1400, "light")):
                await sized(page, width, theme)
                for place in range(len(HOSTILE)):
                    key = json.dumps(f"[id^=flip]:nth-child({2 * place + 1})")
                    await page.value(f"document.querySelector({key}).click()")
                    await until(page, "document.querySelector('.reply')")
                    await page.value(
                        "document.querySelectorAll('details').forEach(d => d.open = true)"
                    )
                    title, elements, over = await page.value(_ACTED)
                    assert (title, elements, over <= 0) == ("falter view", 0, True), place
                    shown = await page.value("document.querySelector('#page').innerText")
                    assert not set(shown) & set("\u202e\u2066\u2028\u0007")
                    assert len(shown) < 60_000
                    command = await text_of(page, ".command pre")
                    assert command.isascii()
                    await page.press("Escape")
                    await until(page, "document.querySelector('.flip')")
            assert noise(page) == []

    asyncio.run(look())


def test_the_page_follows_a_run(browser: str, path: Path, tmp_path: Path) -> None:
    """What another process stores appears in the list, without a word of the reader's."""
    taken = cut_off(path)

    async def look() -> None:
        with opened(path) as source:
            async with (
                served(source) as viewer,
                opened_page(browser, viewer.address, tmp_path) as page,
            ):
                await until(page, "document.querySelector('.count')")
                assert await page.value("document.querySelectorAll('.flip').length") < 10
                await asyncio.to_thread(put_back, path, taken)
                await until(page, "document.querySelectorAll('.flip').length === 10")
                assert noise(page) == []

    asyncio.run(look())


# Files


def downloaded(path: Path) -> list[Any]:
    """The lines of a file that the browser saves, which is gone afterwards."""
    until = time.monotonic() + 10
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    path.unlink()
    return lines


def test_the_command_prints_an_address_and_ends_with_ctrl_c(path: Path) -> None:
    """A process of its own, asked as the page asks; what it asks waits for the answers."""
    command = [sys.executable, "-m", "falter", "view", str(path), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().strip().partition("#token=")
        request = urllib.request.Request(f"{address}api/panels", headers={TOKEN_HEADER: token})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["panels"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *values: Any) -> None:
        pass


def test_a_bundle_on_a_plain_file_server(browser: str, path: Path, tmp_path: Path) -> None:
    """The same page without falter: given out by any server, and as one file from the disk."""
    folder = tmp_path / "bundle"
    called = CliRunner().invoke(cli, ["view", str(path), "--bundle", str(folder)])
    assert called.exit_code == 0, called.output
    assert "view.html" in called.output
    assert "falter report" in (folder / "report-0.html").read_text("utf-8")
    again = CliRunner().invoke(cli, ["view", str(path), "--bundle", str(folder)])
    assert "is not empty" in str(again.exception)
    handler = functools.partial(_Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    async def look() -> None:
        address = f"http://127.0.0.1:{server.server_port}/"
        async with opened_page(browser, address, tmp_path) as page:
            for where in (address, (folder / "view.html").as_uri()):
                await page.value("window.stale = true")
                await page.send("Page.navigate", url=where)
                await page.loaded()
                assert await until(page, "document.querySelectorAll('.flip').length") == 10
                link = "(document.querySelector('.head a')?.pathname ?? 'none')"
                wanted = "/report-0.html" if where == address else "none"
                await until(page, f"{link} === '{wanted}'")
                await page.press("/")
                await page.write("onerror")
                await until(page, "document.querySelectorAll('.flip').length < 10")
                await until(page, "document.querySelectorAll('.flip').length === 10")
                await page.value("document.activeElement.blur()")
                await page.press("j", "Enter")
                await until(page, "document.querySelector('.reply')")
                title, elements, over = await page.value(_ACTED)
                assert (title, elements, over <= 0) == ("falter view", 0, True)
                await page.value("document.querySelectorAll('.misread button')[1].click()")
                await until(page, "document.body.innerText.includes('Export 1 mark')")
                export = "[...document.querySelectorAll('.head button')].at(-2).click()"
                await page.value(export)
                (mark,) = await asyncio.to_thread(downloaded, tmp_path / "falter-marks.jsonl")
                assert mark["key"].startswith("sha256:") and mark["reading"] is None
                assert not {"expected", "target", "answer"} & mark.keys()
                assert noise(page) == []

    try:
        asyncio.run(look())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_texts_come_in_pieces(tmp_path: Path) -> None:
    """256 items a piece, the same bytes every time; many cells make no single file."""
    source = SimulatedSource(300, 100)
    first, second = tmp_path / "a", tmp_path / "b"
    assert write_bundle(source, first) == (first / "index.html",)
    write_bundle(source, second)
    names = sorted(file.name for file in (first / "data").iterdir())
    assert names == ["cells-0.bin", "panels.bin", "texts-0-0000.bin", "texts-0-0001.bin"]
    for name in names:
        assert (first / "data" / name).read_bytes() == (second / "data" / name).read_bytes()
    pieces = [json.loads(gzip.decompress((first / "data" / n).read_bytes())) for n in names[2:]]
    assert [len(piece) for piece in pieces] == [256, 44]
    assert pieces[1][0]["key"] == "item-000256"


def test_many_cells_are_drawn_and_filtered(browser: str, tmp_path: Path) -> None:
    """200,000 cells: the map, a kind chosen, a stretch brushed; `bench/viewer.py` takes times."""

    async def look() -> None:
        async with (
            served(SimulatedSource(4_000, 50)) as viewer,
            opened_page(browser, viewer.address, tmp_path) as page,
        ):
            await sized(page, 1400)
            await until(page, "document.querySelector('.flip')")
            every = await text_of(page, ".count")
            await page.value("document.querySelector('.chip').click()")
            await until(page, "location.hash.includes('kinds=lost')")
            lost = await text_of(page, ".count")
            await page.press("ArrowDown")
            for _ in range(9):
                await page.send(
                    "Input.dispatchKeyEvent", type="keyDown", key="ArrowDown", modifiers=8
                )
            await until(page, "location.hash.includes('rows=0-9')")
            counts = [int(text.split()[0].replace(",", "")) for text in (every, lost)]
            brushed = await until(page, "document.querySelector('.count').innerText")
            assert counts[0] > counts[1] > int(brushed.split()[0].replace(",", ""))
            assert await page.value("document.querySelectorAll('.flip').length") < 100
            assert noise(page) == []

    asyncio.run(look())
