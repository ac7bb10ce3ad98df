"""Pictures of pages, to be looked at: wide and narrow, light and dark, and as printed.

    python bench/pictures.py FOLDER PAGE.html|http://127.0.0.1:PORT/… …
    python bench/pictures.py --readme        # runs the demo and writes docs/images/report.png

Each page is shown at 1,400 and 420 pixels, in light and dark, with its first 2,400 pixels; a PDF is
what a printer gets. Prints a line a page: how high it is, and whether anything is wider than the
window.
"""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from browser_page import NAMES, BrowserPage, opened_page  # noqa: E402

WIDTHS = (1400, 420)
THEMES = ("light", "dark")
FRONT = 2400
README = ROOT / "docs" / "images" / "report.png"
README_WIDTH, README_HEIGHT = 1000, 1150
MOST_BYTES = 160_000


async def picture(page: BrowserPage, theme: str, width: int, height: int) -> bytes:
    """The front of a page as a PNG."""
    feature = {"name": "prefers-color-scheme", "value": theme}
    await page.send("Emulation.setEmulatedMedia", features=[feature])
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = await page.send(
        "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
    )
    return base64.b64decode(shot["data"])


async def pictures(browser: str, page: Path | str, folder: Path, name: str) -> None:
    """Every picture of a page, and its PDF."""
    for width in WIDTHS:
        async with opened_page(browser, page, folder, width) as tab:
            await asyncio.sleep(1.0)  # a page of the viewer fetches what it shows
            height = int(await tab.value("document.documentElement.scrollHeight"))
            held = int(await tab.value("document.documentElement.scrollWidth"))
            wider = "" if held <= width else f", but its content is {held} pixels wide"
            print(f"{name} at {width} pixels: {height} pixels high{wider}")
            for theme in THEMES:
                shot = await picture(tab, theme, width, min(height, FRONT))
                (folder / f"{name}-{width}-{theme}.png").write_bytes(shot)
    async with opened_page(browser, page, folder) as tab:
        printed = await tab.send("Page.printToPDF", printBackground=True)
        (folder / f"{name}.pdf").write_bytes(base64.b64decode(printed["data"]))


def readme(browser: str) -> None:
    """Run the demo as a new user does, and take the picture of its page."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "falter", "demo"]
        subprocess.run(command, cwd=scratch, check=True)
        page = Path(scratch) / "falter-demo.html"

        async def shoot() -> bytes:
            async with opened_page(browser, page, Path(scratch), README_WIDTH) as tab:
                return await picture(tab, "light", README_WIDTH, README_HEIGHT)

        README.write_bytes(asyncio.run(shoot()))
    if README.stat().st_size > MOST_BYTES:
        print(f"note: the picture is {README.stat().st_size:,} bytes")


def main(arguments: list[str]) -> int:
    """The pictures that the command line asks for."""
    browser = next((found for name in NAMES if (found := shutil.which(name))), None)
    if browser is None:
        print("error: there is no Chromium on this machine")
        return 2
    if arguments == ["--readme"]:
        readme(browser)
        return 0
    if len(arguments) < 2:
        print(__doc__)
        return 2
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(arguments[1:], 1):
        at = name if name.startswith("http://") else Path(name).resolve()
        title = f"page-{number}" if isinstance(at, str) else at.stem
        asyncio.run(pictures(browser, at, folder, title))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
