"""The whole line against a real local server: killed, interrupted, mistreated, repeated."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from falter.engine.config import read_experiment
from falter.engine.resolving import resolve
from falter.engine.results import open_result
from falter.records.codec import to_json
from falter.records.planning import plan
from falter.store.maintenance import verify
from falter.store.store import Store
from falter_process import PATIENCE, QUIET, FalterProcess
from faulty_server import FaultyServer

RECIPES = ("pad_quotes", "typos", "persona")
WAYS = 1 + len(RECIPES)


def write(folder: Path, items: int, *, shuffle: int | None = None, name: str = "data") -> Path:
    """A data file with so many items, and the template."""
    rows = [
        {"id": f"i{n}", "question": f"Which of the {n} little houses stands nearest the old river?",
         "answer": "ABCD"[n % 4]}
        for n in range(items)
    ]  # fmt: skip
    if shuffle is not None:
        random.Random(shuffle).shuffle(rows)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "prompt.txt").write_text("Answer with one letter.\n\n{question}\nAnswer:")
    return path


def command(data: Path, url: str, store: Path, *more: str) -> list[str]:
    line = [
        "run", "--data", str(data), "--template", str(data.parent / "prompt.txt"),
        "--target", "answer", "--key", "id", "--model", "openai:mock", "--base-url", url,
        "--store", str(store),
    ]  # fmt: skip
    for recipe in RECIPES:
        line += ["--recipe", recipe]
    return [*line, *more]


async def call(line: Sequence[str]) -> tuple[int, str, str]:
    """Run a command to its end: exit code, standard output, standard error."""
    with FalterProcess(line) as process:
        return await process.ended()


RUN_AND_REPORT = """
import sys
from falter.cli import run
from falter.cli.app import invoke
from falter.report.forms.data import as_json
read = run.stored_result
results = []
run.stored_result = lambda *a, **k: results.append(read(*a, **k)) or results[0]
code = invoke(sys.argv[1:])
print(as_json(results[0].study))
sys.exit(code)
"""


async def run_anew(line: Sequence[str], seed: str) -> list[dict[str, Any]]:
    """Run in an interpreter of its own, with a hash seed of its own: the figures it reads back."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RUN_AND_REPORT, *line,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **QUIET, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, err.decode()
    store = line[line.index("--store") + 1].encode()  # commands in the report name it
    text = out[out.index(b"\n{") :].replace(store, b"STORE")
    found: list[dict[str, Any]] = json.loads(text)["figures"]
    return found


def stored_prompts(path: Path, data: Path, url: str) -> set[str]:
    """The prompts whose answers are in the store, by the keys of the plan."""
    if not path.exists():
        return set()
    prompts = planned(data, url)
    with Store(path) as store:
        missing = store.missing(list(prompts))
    return {text for key, text in prompts.items() if key not in missing}


@cache
def planned(data: Path, url: str) -> dict[str, str]:
    """The prompts of the plan, by their keys."""
    experiment = read_experiment(
        {
            "data": {"path": str(data.absolute()), "target": "answer", "key": "id"},
            "template_file": str((data.parent / "prompt.txt").absolute()),
            "models": [{"name": "openai:mock", "base_url": url}],
            "recipes": list(RECIPES),
        }
    )
    (panel,) = resolve(experiment).panels
    return {r.key: r.messages[0][1] for r in plan(panel.items, panel.conditions, panel.target)}


def prompt_of(body: dict[str, Any]) -> str:
    text: str = body["messages"][0]["content"]
    return text


def test_a_run_survives_ten_kills_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    """SIGKILL at random moments; nothing that was stored is sent again, and all ends complete."""
    items, moments = 150, random.Random(7)

    async def main() -> None:
        data, path = write(tmp_path, items), tmp_path / "falter.db"
        async with FaultyServer(latency=0.02, keep=100_000) as server:
            line = command(data, server.base_url, path, "--concurrency", "8")
            for _ in range(10):
                stored, sent = stored_prompts(path, data, server.base_url), len(server.bodies)
                with FalterProcess(line) as process:
                    until = sent + moments.randint(1, 48)
                    while len(server.bodies) < until and process.running:
                        await asyncio.sleep(0.001)
                    process.send(signal.SIGKILL)
                    assert (await process.ended())[0] == -signal.SIGKILL
                await server.left_alone()  # what it had sent has arrived
                again = {prompt_of(body) for body in server.bodies[sent:]} & stored
                assert not again, "a stored request was sent once more"
            killed = len(stored_prompts(path, data, server.base_url))
            assert 0 < killed < items * WAYS, "the kills came too late or too early to say anything"
            before = stored_prompts(path, data, server.base_url)
            sent, server.latency = len(server.bodies), 0.0
            code, _, err = await call(line)
            assert code == 0, err
            assert not {prompt_of(body) for body in server.bodies[sent:]} & before
            assert len(server.bodies) - sent == items * WAYS - killed
        with Store(path) as store:
            assert store.counts(store.find_run().run) == (items * WAYS, items * WAYS)
            assert verify(store).problems == ()

    asyncio.run(main())


def test_twenty_percent_faults_change_nothing_but_the_time(tmp_path: Path) -> None:
    """429 with Retry-After, 500, truncated JSON, hung and closed connections: the same end."""
    faults = {"429": 0.05, "500": 0.05, "truncated": 0.04, "closed": 0.05, "hang": 0.02}

    async def main() -> None:
        data = write(tmp_path, 60)
        async with FaultyServer() as clean, FaultyServer(faults=faults, seed=2) as faulty:
            reports = []
            for server in (clean, faulty):
                path = tmp_path / f"{server.port}.db"
                line = command(data, server.base_url, path, "--timeout", "3")
                code, _, err = await call(line)
                assert code == 0, err
                reports.append(await panels(path))
            assert sum(faulty.faulted.values()) > 30
            assert set(faulty.faulted) == set(faults)
            assert max(faulty.answered.values()) == 1, "an answer was paid for twice"
        assert same(reports[0]) == same(reports[1])
        assert reports[0][0]["counts"]["failed"] == 0

    asyncio.run(main())


async def panels(path: Path) -> list[dict[str, Any]]:
    analysis = open_result(path).analysis
    found: list[dict[str, Any]] = [to_json(panel) for panel in analysis.panels]
    return found


def same(found: list[dict[str, Any]]) -> str:
    """A report without what names the server's address."""
    text = json.dumps(found, sort_keys=True)
    for panel in found:
        text = text.replace(json.dumps(panel["signature"])[1:-1], "signature")
        text = text.replace(json.dumps(panel["panel"]["model"]["base_url"]), '"url"')
    return text


def test_an_endpoint_that_always_fails_ends_the_run_and_reports_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        data, page = write(tmp_path, 100), tmp_path / "report.html"
        async with FaultyServer(faults={"500": 1.0}) as server:
            path = tmp_path / "falter.db"
            line = command(data, server.base_url, path, "--max-attempts", "2", "--html", str(page))
            code, out, err = await call(line)
            assert (code, out) == (1, "")
            assert "requests all failed; the last error was: HTTP 500 after 2 attempts" in err
            assert server.requests < 400
        assert not page.exists()
        code, out, err = await call(["report", "--store", str(path)])
        assert (code, out) == (2, "")
        assert "has no response yet" in err

    asyncio.run(main())


def test_few_requests_that_all_fail_report_nothing_either(tmp_path: Path) -> None:
    async def main() -> None:
        data = write(tmp_path, 3)
        async with FaultyServer(faults={"500": 1.0}) as server:
            line = command(data, server.base_url, tmp_path / "f.db", "--max-attempts", "1")
            code, out, err = await call(line)
            assert (code, out) == (1, "")
            assert "Every request failed" in err

    asyncio.run(main())


def test_some_requests_that_fail_are_left_out_counted_and_asked_again(tmp_path: Path) -> None:
    async def main() -> None:
        data, path = write(tmp_path, 40), tmp_path / "falter.db"
        async with FaultyServer(faults={"500": 0.04}, seed=2) as server:
            line = command(data, server.base_url, path, "--max-attempts", "1")
            code, out, err = await call(line)
            assert code == 1
            assert "requests failed and are left out of the numbers" in err
            assert "typos" in out
            first = await panels(path)
            failed = first[0]["counts"]["failed"]
            assert 0 < failed <= 16  # with more the report holds counts alone
            assert first[0]["counts"]["scored"] == first[0]["counts"]["cells"] - failed
            sent = server.requests
            server.faults = {}
            code, _, err = await call(line)
            assert code == 0, err
            assert server.requests - sent == failed
        assert (await panels(path))[0]["counts"]["failed"] == 0

    asyncio.run(main())


def test_refused_credentials_stop_a_run_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        data = write(tmp_path, 100)
        async with FaultyServer(script=[None] * 20 + ["401"] * 500) as server:
            code, out, err = await call(
                command(data, server.base_url, tmp_path / "f.db", "--concurrency", "4")
            )
            assert (code, out) == (1, "")
            assert "refused the credentials" in err
            assert server.requests <= 30
            assert len(stored_prompts(tmp_path / "f.db", data, server.base_url)) >= 16

    asyncio.run(main())


def test_ctrl_c_lets_answers_land_and_the_run_resumes(tmp_path: Path) -> None:
    async def main() -> None:
        data, path = write(tmp_path, 200), tmp_path / "falter.db"
        async with FaultyServer(latency=0.05) as server:
            line = command(data, server.base_url, path, "--concurrency", "8")
            with FalterProcess(line) as process:
                while server.requests < 50:
                    assert process.running
                    await asyncio.sleep(0.001)
                process.send(signal.SIGINT)
                code, out, err = await process.ended()
            assert (code, out) == (1, "")
            assert "interrupted" in err
            assert "Traceback" not in err
            assert len(stored_prompts(path, data, server.base_url)) == sum(
                server.answered.values()
            ), "an answer was lost"
            server.latency = 0.0
            code, _, error = await call(line)
            assert code == 0, error
            assert server.requests == 200 * WAYS

    asyncio.run(main())


def variants(path: Path) -> list[tuple[bytes, ...]]:
    db = sqlite3.connect(path)
    try:
        rows = db.execute("SELECT id, draw, status, prompt FROM variants ORDER BY id")
        return rows.fetchall()
    finally:
        db.close()


def test_the_same_experiment_gives_the_same_bytes(tmp_path: Path) -> None:
    """1 and 64 connections, items shuffled, another process with another hash seed."""

    async def main() -> None:
        data, shuffled = write(tmp_path, 10), write(tmp_path, 10, shuffle=3, name="other")
        shuffled = shuffled.rename(tmp_path / "elsewhere.jsonl")
        (tmp_path / "moved").mkdir()
        shuffled = shuffled.rename(tmp_path / "moved" / "data.jsonl")
        (tmp_path / "moved" / "prompt.txt").write_text((tmp_path / "prompt.txt").read_text())
        async with FaultyServer(latency=0.001) as server:
            found, bytes_ = [], []
            for n, (source, connections, seed) in enumerate(
                [(data, "64", "0"), (shuffled, "1", "1")]  # one that mattered would show
            ):
                path = tmp_path / f"{n}.db"
                line = command(source, server.base_url, path, "--concurrency", connections)
                found.append(await run_anew([*line, "--draws", "2"], seed))
                bytes_.append(variants(path))
        assert len(bytes_[0]) == 10 * (1 + 2 * len(RECIPES))
        assert bytes_[0] == bytes_[1]
        assert found[0] == found[1]

    asyncio.run(main())


def test_a_stored_run_sends_nothing_and_needs_no_server(tmp_path: Path) -> None:
    async def main() -> None:
        data, path = write(tmp_path, 10), tmp_path / "falter.db"
        async with FaultyServer() as server:
            line = command(data, server.base_url, path)
            first = await call(line)
            assert first[0] == 0, first[2]
        again = await call(line)
        assert again[:2] == first[:2]

    asyncio.run(main())


def test_a_second_model_sees_the_same_variants(tmp_path: Path) -> None:
    async def main() -> None:
        data, path = write(tmp_path, 10), tmp_path / "falter.db"
        async with FaultyServer(models=("mock", "other")) as server:
            line = command(data, server.base_url, path)
            assert (await call(line))[0] == 0
            one = variants(path)
            assert (await call([*line, "--model", "openai:other"]))[0] == 0
            assert variants(path) == one
            assert server.requests == 2 * 10 * WAYS

    asyncio.run(main())


def test_reports_come_in_every_format(tmp_path: Path) -> None:
    async def main() -> None:
        data, path = write(tmp_path, 10), tmp_path / "falter.db"
        async with FaultyServer() as server:
            assert (await call(command(data, server.base_url, path)))[0] == 0
        report = ["report", "--store", str(path)]
        for form in ("json", "csv", "md"):
            code, out, _ = await call([*report, f"--{form}"])
            assert code == 0
            assert "persona" in out, form
        code, out, _ = await call([*report, "--parquet", str(tmp_path / "n.parquet")])
        assert (code, out) == (0, "") and (tmp_path / "n.parquet").exists()
        code, out, err = await call([*report, "--scores", str(tmp_path / "s.parquet")])
        assert (code, out) == (0, "")
        assert f"{10 * WAYS} scores" in err

    asyncio.run(main())
