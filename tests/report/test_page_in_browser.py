"""The page in a real browser: nothing cut off, no word broken, choices without script, paper."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest

from browser_page import NAMES, BrowserPage, opened_page
from falter.engine.findings import shown_analysis
from falter.report.page import html
from figure_samples import ordinary
from report_samples import one_panel, two_by_two

PAGES: dict[str, Callable[[], str]] = {
    "one panel": cache(lambda: html(shown_analysis(one_panel()))),
    "two models on two tasks": lambda: html(shown_analysis(two_by_two())),
    "protocol": cache(lambda: html(ordinary())),
}
SIZES = ((1400, 1000), (420, 900))

# What reaches beyond the window, what scrolls or is cut inside a box, and words on two lines.
CUT_OFF = """(() => {
  const seen = e => !e.closest('.away, svg, thead') && e.getClientRects().length;
  const all = [...document.querySelectorAll('body *')].filter(seen);
  const name = e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 60);
  const beyond = all.filter(e => e.getBoundingClientRect().right > innerWidth + 1);
  const cut = all.filter(e => getComputedStyle(e).overflowX !== 'visible'
    && e.scrollWidth > e.clientWidth + 1);
  const over = document.documentElement.scrollWidth - innerWidth;
  return [...(over > 0 ? ['page ' + over] : []), ...beyond.map(e => 'beyond ' + name(e)),
          ...cut.map(e => 'cut ' + name(e))];
})()"""
BROKEN_WORDS = """(() => {
  const broken = [];
  const walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (node.parentElement.closest('.prompt, .said, .signature, footer, .away')) continue;
    for (const word of node.data.matchAll(/[A-Za-z]{2,}/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > 1) broken.push(word[0] + ' in ' + node.data.slice(0, 60));
    }
  }
  return broken;
})()"""
ALL_OPEN = "document.querySelectorAll('details').forEach(d => d.open = true)"


@pytest.fixture(scope="module")
def browser() -> str:
    if os.environ.get("FALTER_NO_BROWSER"):
        pytest.skip("FALTER_NO_BROWSER is set")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, "no chromium or google-chrome on PATH; FALTER_NO_BROWSER=1 leaves these tests out"
    return found


@asynccontextmanager
async def shown(browser: str, folder: Path, text: str) -> AsyncIterator[BrowserPage]:
    file = folder / "report.html"
    file.write_text(text, "utf-8")
    async with opened_page(browser, file, folder) as page:
        yield page


def looked(
    browser: str, folder: Path, text: str, look: Callable[[BrowserPage], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with shown(browser, folder, text) as page:
            await look(page)

    asyncio.run(run())


async def sized(page: BrowserPage, width: int, height: int) -> None:
    await page.send(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=height, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_and_no_word_is_broken(browser: str, tmp_path: Path, name: str) -> None:
    """At 1,400 and 420 pixels, everything unfolded: no table ends at an edge."""

    async def look(page: BrowserPage) -> None:
        await page.value(ALL_OPEN)
        for width, height in SIZES:
            await sized(page, width, height)
            assert await page.value(CUT_OFF) == [], width
            assert await page.value(BROKEN_WORDS) == [], width

    looked(browser, tmp_path, PAGES[name](), look)


def test_the_check_would_see_a_cut_table_and_a_broken_word(browser: str, tmp_path: Path) -> None:
    async def look(page: BrowserPage) -> None:
        await sized(page, 420, 900)
        await page.value(
            "document.querySelector('main').insertAdjacentHTML('afterbegin',"
            '\'<div style="overflow:auto"><div style="width:900px">x</div></div>'
            '<p style="width:3em;word-break:break-all">unbreakable</p>\')'
        )
        assert any(found.startswith("cut") for found in await page.value(CUT_OFF))
        assert any("unbreakable" in found for found in await page.value(BROKEN_WORDS))

    looked(browser, tmp_path, PAGES["one panel"](), look)


def test_the_first_screen_holds_all_of_the_answer(browser: str, tmp_path: Path) -> None:
    """Also on a telephone the words come before the fold, and nothing but names stands above."""

    async def look(page: BrowserPage) -> None:
        for width, height in SIZES:
            await sized(page, width, height)
            lines = "document.querySelector('.short').getBoundingClientRect()"
            assert await page.value(f"{lines}.top") < 300
            assert await page.value(f"{lines}.bottom") < height

    looked(browser, tmp_path, PAGES["one panel"](), look)


def test_a_legend_stands_in_two_columns_on_a_telephone(browser: str, tmp_path: Path) -> None:
    """And text that wraps begins below text, not below its mark."""
    starts = """[...document.querySelectorAll('.legend')].map(l => new Set([...l.children].map(
      e => Math.round(e.getBoundingClientRect().left))).size)"""
    wrapped = """[...document.querySelectorAll('.legend li:has(>svg)')].filter(e => {
      const r = document.createRange(); r.selectNodeContents(e.lastChild);
      return new Set([...r.getClientRects()].map(b => Math.round(b.left))).size > 1;
    }).length"""

    async def look(page: BrowserPage) -> None:
        await sized(page, 420, 900)
        await page.value(ALL_OPEN)
        columns = await page.value(starts)
        assert columns and max(columns) <= 2
        assert await page.value(wrapped) == 0

    looked(browser, tmp_path, PAGES["one panel"](), look)


def test_examples_are_chosen_without_script(browser: str, tmp_path: Path) -> None:
    """Lost, gained, and one recipe: what is chosen stays, all else goes."""
    count = "[...document.querySelectorAll('.example')].filter(e => e.getClientRects().length)"

    async def look(page: BrowserPage) -> None:
        every = await page.value(f"{count}.length")
        await page.value("document.querySelector('.only-r0').click()")
        chosen = await page.value(f"{count}.map(e => e.className)")
        assert 0 < len(chosen) < every
        assert all(" r0" in kind for kind in chosen)
        assert await page.value("document.scripts.length") == 0

    looked(browser, tmp_path, PAGES["one panel"](), look)


def test_the_contents_stay_in_view(browser: str, tmp_path: Path) -> None:
    async def look(page: BrowserPage) -> None:
        for width, height in SIZES:
            await sized(page, width, height)
            await page.value("scrollTo(0, document.body.scrollHeight / 2)")
            place = await page.value(
                "(r => [r.top, r.bottom])(document.querySelector('.contents')"
                ".getBoundingClientRect())"
            )
            assert 0 <= place[0] < place[1] <= height, width

    looked(browser, tmp_path, PAGES["protocol"](), look)


def _texts(document: bytes) -> Iterator[bytes]:
    """The streams of a PDF that can be inflated."""
    for part in document.split(b"stream\r\n")[1:] + document.split(b"stream\n")[1:]:
        try:
            yield zlib.decompress(part)
        except zlib.error:
            continue


def test_on_paper_folded_parts_are_open(browser: str, tmp_path: Path) -> None:
    """As many pages folded as unfolded: paper holds everything."""

    async def look(page: BrowserPage) -> None:
        def pages(document: str) -> int:
            return base64.b64decode(document).count(b"/Type /Page\n") or base64.b64decode(
                document
            ).count(b"/Type/Page")

        folded = pages((await page.send("Page.printToPDF"))["data"])
        await page.value(ALL_OPEN)
        assert folded == pages((await page.send("Page.printToPDF"))["data"]) > 1
        await page.send("Emulation.setEmulatedMedia", media="print")
        assert await page.value(
            "getComputedStyle(document.querySelector('.contents')).display"
        ) == ("none")

    looked(browser, tmp_path, PAGES["one panel"](), look)
