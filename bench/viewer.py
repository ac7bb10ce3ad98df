"""Costs of showing a million cells in the viewer: first paint, a filter, memory.

    python bench/viewer.py [--items 10000] [--conditions 100] [--rounds 5]

Serves simulated cells on the loopback, opens them in headless Chromium at 1,400 × 900 pixels and
takes times inside the page: from the start of navigation to the first map, and from the click on a
kind of flips to the frame that shows it. Memory is what the page's JavaScript holds after a
collection, with its array buffers, and what the whole renderer process has of its own. Asserts
nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from browser_page import NAMES, BrowserPage, opened_page  # noqa: E402
from falter.viewer.server import served  # noqa: E402
from viewer_samples import SimulatedSource  # noqa: E402

FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
FIRST = """new Promise(done => {
  const look = () => {
    const [mark] = performance.getEntriesByName('falter-map');
    if (mark) done(mark.startTime); else setTimeout(look, 20);
  };
  look();
})"""
CLICK = f"""(async () => {{
  const chip = [...document.querySelectorAll('.chip')][%d];
  const start = performance.now();
  chip.click();
  await {FRAME};
  return performance.now() - start;
}})()"""
TARGETS = {"first": 1500, "filter": 50, "memory": 200}


async def awaited(page: BrowserPage, expression: str) -> Any:
    """Return the result of a promise in the page."""
    answer = await page.send(
        "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
    )
    return answer["result"].get("value")


async def first_map(page: BrowserPage) -> float:
    """Milliseconds from the start of navigation to the first map."""
    return float(await awaited(page, FIRST))


async def measured(items: int, conditions: int, rounds: int) -> None:
    """Take the times and print them."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        sys.exit("no chromium on PATH")
    with tempfile.TemporaryDirectory() as folder:
        source = SimulatedSource(items, conditions)
        async with (
            served(source) as viewer,
            opened_page(browser, viewer.address, Path(folder)) as page,
        ):
            await page.send(
                "Emulation.setDeviceMetricsOverride",
                width=1400, height=900, deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            paints = [await first_map(page)]
            for _ in range(rounds - 1):
                await page.reload()
                paints.append(await first_map(page))
            chips = int(await page.value("document.querySelectorAll('.chip').length"))
            filters = [await awaited(page, CLICK % (n % chips)) for n in range(4 * rounds)]
            await page.send("HeapProfiler.enable")
            await page.send("HeapProfiler.collectGarbage")
            heap = await page.send("Runtime.getHeapUsage")
            held = heap["usedSize"] + heap.get("backingStorageSize", 0)
            renderer = max(map(private_memory, renderers()), default=float("nan"))
    print(f"{items * conditions:,} cells: {items:,} items × {conditions:,} conditions")
    show("first map", paints, "ms", TARGETS["first"])
    show("a kind of flips chosen, to its frame", filters, "ms", TARGETS["filter"])
    print(f"{'JavaScript and its buffers':40} {held / 1e6:8.1f} MB   (target {TARGETS['memory']})")
    print(f"{'the renderer process, its own':40} {renderer:8.1f} MB")


def renderers() -> list[int]:
    """The renderer processes that this one has started."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            commands[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = int(status.split("PPid:")[1].split()[0])
    own = {os.getpid()}
    for _ in range(8):
        own |= {process for process, parent in parents.items() if parent in own}
    return [process for process in own if b"--type=renderer" in commands.get(process, b"")]


def private_memory(process: int) -> float:
    """Return a process's own memory, without the libraries that it shares."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return float("nan")
    parts = [line.split() for line in lines if line.startswith("Private_")]
    return sum(int(part[1]) for part in parts) / 1e3


def show(what: str, values: list[float], unit: str, target: int) -> None:
    """The median and the slowest."""
    print(
        f"{what:40} {statistics.median(values):8.1f} {unit}   (target {target}; "
        f"slowest {max(values):.1f} of {len(values)})"
    )


def main() -> None:
    """Read the sizes and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--conditions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    asyncio.run(measured(given.items, given.conditions, given.rounds))


if __name__ == "__main__":
    main()
