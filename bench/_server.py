"""Builds and runs `mock_server.c`, the local server of the benchmarks (Linux, with a C compiler).

with mock_server(latency_ms=50) as base_url:
    ...
    stats(base_url)["requests"]
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

__all__ = ["bodies", "body_hash", "build_server", "mock_server", "stats"]

SOURCE = Path(__file__).with_name("mock_server.c")
FLAGS = ("-O2", "-Wall", "-Wextra")
BODY = np.dtype([("hash", "<u8"), ("came", "<u4"), ("answered", "<u4")])
PATIENCE = 5.0


@cache
def build_server() -> Path:
    """The compiled server: built once for each version of its source, then kept."""
    if sys.platform != "linux":
        raise RuntimeError("the benchmark server needs Linux (it uses epoll)")
    name = "mock_server-" + hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = _folder()
    built = folder / name
    if built.is_file():
        return built
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise RuntimeError("the benchmark server needs a C compiler: no cc, gcc or clang on PATH")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        fresh = Path(scratch) / name
        command = [compiler, *FLAGS, "-o", str(fresh), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{compiler} could not build {SOURCE.name}:\n{done.stderr}")
        fresh.replace(built)
    return built


def _folder() -> Path:
    """A folder of this user's own to keep the server in."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = root / "falter-bench"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):  # no home, or none to write in
        pass
    return Path(tempfile.mkdtemp(prefix="falter-bench-"))


@contextmanager
def mock_server(
    latency_ms: float = 0,
    p429: float = 0,
    p500: float = 0,
    max_seconds: float = 900,
    resets: float = 0,
    torn: float = 0,
    retry_ms: float = 1000,
) -> Iterator[str]:
    """Run the server on a free port; the base URL to give to clients."""
    numbers = (0, latency_ms, p429, p500, max_seconds, resets, torn, retry_ms)
    with subprocess.Popen(
        [str(build_server()), *map(str, numbers)],
        stdin=subprocess.PIPE,  # closes with this process, and the server ends with it
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith("listening "):
                raise RuntimeError(f"the benchmark server did not start (printed {line!r})")
            yield f"http://{line.split()[1]}/v1"
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def stats(base_url: str, *, reset: bool = False) -> dict[str, int]:
    """What the server counted, this question's connection included; `reset` starts it again."""
    counts: dict[str, int] = json.loads(_get(base_url, "/stats/reset" if reset else "/stats"))
    return counts


def bodies(base_url: str) -> NDArray[np.void]:
    """Of each different chat request: `hash` of its body, how often it `came`, and `answered`."""
    rows = np.frombuffer(_get(base_url, "/bodies"), BODY)
    return rows[np.argsort(rows["hash"])]


def body_hash(body: bytes) -> int:
    """The hash of a chat request's body that the server counts it by: FNV-1a with 64 bits."""
    value = 0xCBF29CE484222325
    for byte in body:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def _get(base_url: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(urlsplit(base_url).netloc, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().read()
    finally:
        connection.close()
