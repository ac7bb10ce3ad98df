"""The review page in a real browser: filled in by keys, it gives the CSV that is imported."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser_page import NAMES, BrowserPage, opened_page
from falter.perturbations.rewriting import rewrite_key
from falter.records.reviews import Review, Sample
from falter.records.types import Rewrite
from falter.rewrites.reviews import make_sheet, read_reviews, rows_of, sheet_csv, sheet_page

HOSTILE = (
    '</script><script>document.title="pwned"</script>',
    "<img src=x onerror=\"document.title='pwned'\">",
    '=cmd|"/C calc"!A0,\n"quoted"\ttab',
    "\u202eright to left\u200b ‮ \u0007bell 👩\u200d🚀",
    "@sum(1)\r\nnext line; semicolon",
)
Drive = Callable[[BrowserPage], Coroutine[Any, Any, Any]]


@pytest.fixture(scope="module")
def browser() -> str:
    if os.environ.get("FALTER_NO_BROWSER"):
        pytest.skip("FALTER_NO_BROWSER is set")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.fail("no chromium on PATH; install one, or set FALTER_NO_BROWSER=1")
    return found


def rewrite(source: str, text: str | None) -> Rewrite:
    return Rewrite(
        key=rewrite_key("tone", 1, {"tone": "angry"}, source, 0), perturbation="tone", version=1,
        params={"tone": "angry"}, source=source, draw=0, author="m",
        status="refused" if text is None else "ok", text=text,
    )  # fmt: skip


def sheet() -> tuple[str, dict[str, Sample]]:
    made = [rewrite(text, f"{text} again") for text in HOSTILE]
    return make_sheet([*made, rewrite("Write me by hand?", None)], calibration=0)


def driven(browser: str, page: str, folder: Path, drive: Drive) -> Any:
    file = folder / "review.html"
    file.write_bytes(page.encode())

    async def run() -> Any:
        async with opened_page(browser, file, folder) as opened:
            found = await drive(opened)
            noise = [
                e for e in opened.events
                if e["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")
            ]  # fmt: skip
            assert noise == []
            return found

    return asyncio.run(run())


async def downloaded(page: BrowserPage, folder: Path) -> Path:
    await page.value("document.getElementById('download').click()")
    for _ in range(300):
        found = list(_files(folder))
        if found:
            return found[0]
        await asyncio.sleep(0.05)
    raise AssertionError("nothing was downloaded")


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("review-*.csv") if path.stat().st_size)


def test_two_rows_filled_in_by_keys_come_back(browser: str, tmp_path: Path) -> None:
    """Decisions, a rating, an edit, a comment and the name; hostile texts stay texts."""
    name, rows = sheet()
    first, second = list(rows)[:2]
    assert rows[first].shown == ""  # this seed's order: the text to be written comes first

    async def drive(page: BrowserPage) -> Path:
        await page.value("document.getElementById('rater').focus()")
        await page.write("Ann B.")
        await page.press("Escape", "a", "e")
        await page.write('=better, "text"\nof two lines')
        await page.press("Escape", "1", "ArrowRight", "a", "4")
        await page.value("document.getElementById('comment').focus()")
        await page.write("-so so")
        await page.press("Escape")
        assert await page.value("document.getElementById('count').textContent") == (
            "2 of 6 reviewed"
        )
        assert await page.value("document.title") == "Review of 6 rewrites"
        return await downloaded(page, tmp_path)

    file = driven(browser, sheet_page(name, rows), tmp_path, drive)
    assert file.name == f"review-{name}-Ann_B_.csv"
    text = file.read_bytes().decode("utf-8-sig")
    assert read_reviews(text, "page", rows, rater="nobody") == [
        Review(
            sample=rows[first].id, rater="Ann B.", decision="edit",
            text='=better, "text"\nof two lines', rating=1,
        ),
        Review(
            sample=rows[second].id, rater="Ann B.", decision="accept", rating=4,
            comment="-so so",
        ),
    ]  # fmt: skip
    assert rows_of(text, "page") == list(rows)
    assert not re.search(r'(?:^|,)"[=+\-@\t\r\n]', text, re.MULTILINE)


def test_an_untouched_page_gives_the_table_that_is_exported(browser: str, tmp_path: Path) -> None:
    """Cell by cell the same as the CSV that Python writes."""
    import csv
    import io

    name, rows = sheet()

    async def drive(page: BrowserPage) -> str:
        return str(await page.value("csv()"))

    from_page = driven(browser, sheet_page(name, rows), tmp_path, drive)

    def cells(text: str) -> list[list[str]]:
        return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))

    assert cells(from_page) == cells(sheet_csv(rows))


def test_drafts_survive_and_nothing_hidden_is_shown(browser: str, tmp_path: Path) -> None:
    """What was decided is there after a reload; control characters are spelled out."""
    name, rows = sheet()

    async def drive(page: BrowserPage) -> tuple[str, str, list[str]]:
        await page.press("r")
        await page.press("n")
        assert await page.value("document.getElementById('place').textContent") == "2 of 6"
        for _ in range(40):  # another process of the browser writes the storage, in its own time
            await page.reload()
            count = await page.value("document.getElementById('count').textContent")
            if count != "0 of 6 reviewed":
                break
            await asyncio.sleep(0.1)
        place = await page.value("document.getElementById('place').textContent")
        seen = []
        for n in range(len(rows)):
            await page.value(f"go({n})")
            seen.append(await page.value("document.getElementById('source').textContent"))
        return count, place, seen

    count, place, seen = driven(browser, sheet_page(name, rows), tmp_path, drive)
    assert (count, place) == ("1 of 6 reviewed", "2 of 6")
    (turned,) = [text for text in seen if "right to left" in text]
    assert turned.startswith("⟨U+202E⟩right") and "⟨U+0007⟩" in turned
    assert HOSTILE[0] in seen


def test_a_large_sheet_opens_and_moves(browser: str, tmp_path: Path) -> None:
    """Ten thousand rows: one is drawn at a time."""
    made = [rewrite(f"Question {n} is it?", f"Is it question {n}? " * 5) for n in range(10_000)]
    name, rows = make_sheet(made, calibration=0.02)

    async def drive(page: BrowserPage) -> str:
        await page.value("go(9998)")
        await page.press("ArrowRight", "5")
        return str(await page.value("document.getElementById('place').textContent"))

    assert driven(browser, sheet_page(name, rows), tmp_path, drive) == "10000 of 10000"


def test_the_page_names_its_script_and_reaches_nothing() -> None:
    """One policy, hashes for script and style, no address, and no tag out of a text."""
    name, rows = sheet()
    page = sheet_page(name, rows)
    assert page.count("<script") == 2 and page.count("</script>") == 2
    assert "default-src &#x27;none&#x27;" in page and "unsafe" not in page
    assert not re.search(r"https?://", page)
    (data,) = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert [row["source"] for row in json.loads(data)["rows"]] == [s.source for s in rows.values()]
    assert "flaw" not in data and "calibration" not in data


def test_flags_are_shown_only_when_asked_for() -> None:
    made = [rewrite("It is not so, all of it?", "It is so?")]
    name, rows = make_sheet(made, calibration=0)
    assert "negation: not" in sheet_page(name, rows, language="en")
    assert "negation" not in sheet_page(name, rows)
