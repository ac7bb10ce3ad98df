"""A real page in a real browser: opened from a file, driven by keys, its download read back."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import functools
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

__all__ = ["NAMES", "BrowserPage", "dumped_page", "opened_page"]

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
        """Return the value of an expression in the page."""
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
async def opened_page(
    browser: str, page: Path | str, folder: Path, width: int | None = None
) -> AsyncIterator[BrowserPage]:
    """A file or an address in a tab with a storage of its own; downloads go to the folder.

    A `width` is that of the window, without scroll bars.

    The browser is started once in a process of tests, which takes longer than most pages.
    """
    start = page if isinstance(page, str) else page.as_uri()
    address = _started(browser)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address, max_msg_size=0) as whole,
    ):
        control = BrowserPage(whole)
        context = (await control.send("Target.createBrowserContext"))["browserContextId"]
        await control.send(
            "Browser.setDownloadBehavior",
            behavior="allow", downloadPath=str(folder), browserContextId=context,
        )  # fmt: skip
        try:
            made = await control.send(
                "Target.createTarget", url="about:blank", browserContextId=context
            )
            tab_address = f"{address.split('/devtools/')[0]}/devtools/page/{made['targetId']}"
            async with session.ws_connect(tab_address, max_msg_size=0) as socket:
                tab = BrowserPage(socket)
                await tab.send("Page.enable")
                await tab.send("Log.enable")
                await tab.send("Runtime.enable")
                await tab.send("Emulation.setFocusEmulationEnabled", enabled=True)
                if width is not None:
                    await tab.send("Emulation.setDeviceMetricsOverride", width=width,
                                   height=900, deviceScaleFactor=1, mobile=False)  # fmt: skip
                    await tab.send("Emulation.setScrollbarsHidden", hidden=True)
                await tab.send("Page.navigate", url=start)
                await tab.loaded()
                yield tab
        finally:
            await control.send("Target.disposeBrowserContext", browserContextId=context)


def dumped_page(browser: str, page: Path, folder: Path, width: int = 1280) -> str:
    """The page as the browser holds it once every script had its chance."""

    async def dump() -> str:
        async with opened_page(browser, page, folder, width) as tab:
            dom: str = await tab.value("document.documentElement.outerHTML")
            return f"<!DOCTYPE html>{dom}"

    return asyncio.run(dump())


@functools.cache
def _started(browser: str) -> str:
    """The address at which the running browser takes commands; it ends with this process."""
    profile = Path(tempfile.mkdtemp(prefix="browser"))
    command = (browser, *FLAGS, f"--user-data-dir={profile}", "about:blank")
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=_ends_with_its_parent if sys.platform == "linux" else None,
    )  # fmt: skip
    atexit.register(_end, process, profile)
    file = profile / "DevToolsActivePort"  # the browser writes the port that it chose
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        if file.exists() and "\n" in (text := file.read_text()):
            port, path = text.split("\n")
            return f"ws://127.0.0.1:{port}{path}"
        time.sleep(0.05)
    raise AssertionError("the browser did not start")


def _ends_with_its_parent() -> None:
    """Linux ends the browser when the tests are killed, too, which runs no exit handler."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def _end(process: subprocess.Popen[bytes], profile: Path) -> None:
    process.kill()
    process.wait()
    shutil.rmtree(profile, ignore_errors=True)
