"""A real page in a real browser: opened from a file, driven by keys, its download read back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

__all__ = ["NAMES", "BrowserPage", "opened_page"]

NAMES = ("chromium", "google-chrome", "chromium-browser", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--remote-debugging-port=0",
)  # fmt: skip
PATIENCE = 60


class BrowserPage:
    """One tab, spoken to over the browser's own debugging protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[dict[str, Any]] = []

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command, and its answer."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        while True:
            message = json.loads((await self._socket.receive(PATIENCE)).data)
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self.events.append(message)

    async def value(self, expression: str) -> Any:
        """What an expression is in the page."""
        found = await self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def loaded(self) -> None:
        """Wait until the page, a fresh one after a reload, has run its script."""
        for _ in range(20 * PATIENCE):
            with contextlib.suppress(AssertionError):  # between two documents there is none
                if await self.value(
                    "document.readyState === 'complete' && !window.stale"
                    " && /^(file|http):$/.test(location.protocol)"
                ):
                    return
            await asyncio.sleep(0.05)
        raise AssertionError("the page did not load")

    async def reload(self) -> None:
        """Load the page anew."""
        await self.value("window.stale = true")
        await self.send("Page.reload")
        await self.loaded()

    async def press(self, *keys: str) -> None:
        """Keys, pressed and let go."""
        for key in keys:
            text = key if len(key) == 1 else ""
            await self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
            await self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def write(self, text: str) -> None:
        """Text, put into the field that has the focus."""
        await self.send("Input.insertText", text=text)


@contextlib.asynccontextmanager
async def opened_page(browser: str, page: Path | str, folder: Path) -> AsyncIterator[BrowserPage]:
    """A file or an address in a browser with a profile of its own; downloads go to the folder."""
    start = page if isinstance(page, str) else page.as_uri()
    profile = folder / "profile"
    command = (browser, *FLAGS, f"--user-data-dir={profile}", start)
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    try:
        port = await _port(profile, process)
        async with aiohttp.ClientSession() as session:
            address = await _tab(session, port)
            async with session.ws_connect(address, max_msg_size=0) as socket:
                tab = BrowserPage(socket)
                await tab.send("Page.enable")
                await tab.send("Log.enable")
                await tab.send("Runtime.enable")
                await tab.send(
                    "Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder)
                )
                await tab.send("Emulation.setFocusEmulationEnabled", enabled=True)
                await tab.loaded()
                yield tab
    finally:
        process.kill()
        await process.wait()
        shutil.rmtree(profile, ignore_errors=True)


async def _port(profile: Path, process: asyncio.subprocess.Process) -> int:
    """The port the browser chose, which it writes into its profile."""
    file = profile / "DevToolsActivePort"
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.returncode is None:
        if file.exists() and "\n" in file.read_text():
            return int(file.read_text().split("\n")[0])
        await asyncio.sleep(0.1)
    raise AssertionError("the browser did not start")


async def _tab(session: aiohttp.ClientSession, port: int) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        async with session.get(f"http://127.0.0.1:{port}/json") as answer:
            tabs = [tab for tab in await answer.json() if tab["type"] == "page"]
        if tabs and tabs[0]["url"].startswith(("file:", "http:")):
            address: str = tabs[0]["webSocketDebuggerUrl"]
            return address
        await asyncio.sleep(0.1)
    raise AssertionError("the browser opened no page")
