"""Characters that nobody sees, and what copying and saving makes of others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._spacing import leaves_other_word
from falter.perturbations._wording import FAMILY, LANGUAGES, MEANING, NOISE, long_words
from falter.text import Replacement, overlaps, uncovered

__all__ = ["invisible"]

_KIND = Parameter(
    name="kind",
    type=str,
    default="all",
    help="no_break: a space that does not break; zero_width: a space without width inside a word; "
    "quotes: straight marks become curly; accents: letter and accent apart; mojibake: read in the "
    "wrong encoding",
    options=("accents", "all", "mojibake", "no_break", "quotes", "zero_width"),
)
_GAP = re.compile(r"(?<=\S) (?=\S)")
_QUOTE = re.compile(r"\"|(?<!\w)'|'(?!\w)")
_FOREIGN = re.compile(r"[\u00a1-\u024f‘’“”–—…]")
_USUAL = ("no_break", "zero_width", "quotes", "accents")
Site = tuple[int, int, str]  # a place and what to do there


def _sites(text: str, blocked: Sequence[Span], kind: str, language: str) -> list[Site]:
    wanted = _USUAL if kind == "all" else (kind,)
    found: list[Site] = []
    if "no_break" in wanted:
        found += _free("no_break", _GAP, text, blocked)
    plain = text.isascii()
    if "zero_width" in wanted or ("accents" in wanted and not plain):
        words = long_words(text, blocked, language, 4)
        if "zero_width" in wanted:
            found += [(at, at, "zero_width") for a, b in words for at in range(a + 2, b - 1)]
        if "accents" in wanted and not plain:
            letters = _free("accents", _FOREIGN, text, blocked)
            found += [site for site in letters if _is_accented(text, site, words)]
    if "quotes" in wanted and ("'" in text or '"' in text):
        found += _free("quotes", _QUOTE, text, blocked)
    if "mojibake" in wanted and not plain:
        found += _free("mojibake", _FOREIGN, text, blocked)
    found.sort()
    return found


def _free(change: str, pattern: re.Pattern[str], text: str, blocked: Sequence[Span]) -> list[Site]:
    """Where the pattern is found outside the blocked spans, and what to do there."""
    spans = [match.span() for match in pattern.finditer(text)]
    return [(start, end, change) for start, end in uncovered(spans, blocked)]


def _is_accented(text: str, site: Site, words: Sequence[Span]) -> bool:
    start, end, _ = site
    return overlaps(words, start, end) and not unicodedata.is_normalized("NFD", text[start:end])


@site_perturbation(
    "invisible",
    title="invisible characters",
    sites=_sites,
    family=FAMILY,
    group=NOISE,
    version=2,
    default_rate=0.1,
    parameters=(_KIND,),
    invariants=MEANING,
    languages=LANGUAGES,
)
def invisible(text: str, site: Site, rng: Rng, kind: str, language: str) -> Replacement | None:
    """Puts characters in that nobody sees: no-break and zero-width spaces, curly quotation marks.

    Accented letters are taken apart (the same to the eye). `mojibake`, which one does see, has to
    be asked for. Code and whatever else is protected stays as it is.
    """
    start, end, change = site
    old = text[start:end]
    if change == "no_break":
        return start, end, "\u00a0"
    if change == "zero_width":
        if leaves_other_word(text, start, language):
            return None
        return start, end, "\u200b"
    if change == "accents":
        return start, end, unicodedata.normalize("NFD", old)
    if change == "mojibake":
        return start, end, old.encode("utf-8").decode("cp1252", "replace")
    opening = not text[:start] or text[start - 1].isspace() or text[start - 1] in "([{"
    return start, end, {'"': "”“", "'": "’‘"}[old][opening]
