"""Perturbations of characters: look-alikes, missing accents, invisible characters, case, markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise

from falter.perturbations.base import protected_spans, site_perturbation
from falter.perturbations.spacing import leaves_other_word
from falter.perturbations.vocabulary import (
    confusions,
    is_no_name,
    long_words,
    never_produced,
    never_written,
    plain_words,
    without_symbols,
    word_set,
)
from falter.records.chats import target_texts
from falter.records.rng import Rng
from falter.records.types import Prompt, Section, Span
from falter.text.names import copied_words, mentioned_words
from falter.text.spans import Replacement, merged, overlaps, uncovered
from falter.text.words import kept_words, natural_words, sentences

# Attempts to misread a word. Digits may replace letters, so the numbers of a text are no invariant.
_MAX_MISREADINGS = 12


def _long_words_with_letters(
    name: str, text: str, blocked: Sequence[Span], language: str
) -> list[Span]:
    return _words_with_letters(name, text, long_words(text, blocked, language))


def _words_with_letters(name: str, text: str, words: list[Span]) -> list[Span]:
    """Return the words that contain a letter of the table `name`."""
    has_letter = _letter_search(name)
    return [(start, end) for start, end in words if has_letter(text, start, end)]


@cache
def _letter_search(name: str) -> Callable[[str, int, int], object]:
    """Return a search for a letter of the table; case matters except in `leet`."""
    single = "".join(letters for letters in confusions(name) if len(letters) == 1)
    return re.compile(f"[{single}]", re.IGNORECASE if name == "leet" else 0).search


@site_perturbation("ocr", sites=partial(_long_words_with_letters, "ocr"))
def ocr(text: str, site: Span, rng: Rng, language: str) -> Replacement | None:
    """Misreads one letter or pair of letters of a word, as a scanner does.

    Words of three letters or more; the result is never another word. Digits may replace letters:
    *w0rd*.
    """
    start, end = site
    word, table, unwanted = text[start:end], confusions("ocr"), never_produced(language)
    for _ in range(_MAX_MISREADINGS):
        at = rng.below(len(word))
        pair = word[at : at + 2]
        piece = pair if pair in table and rng.below(2) else word[at]
        if piece in table:
            misread = word[:at] + rng.choice(table[piece]) + word[at + len(piece) :]
            if misread.lower() not in unwanted:
                return start, end, misread
    return None


def _lookalike_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    words = without_symbols(text, plain_words(text, blocked, language), language)
    return _words_with_letters("homoglyphs", text, words)


@site_perturbation("homoglyphs", sites=_lookalike_sites)
def homoglyphs(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Replaces about half of a word's letters, and at least one, by Unicode look-alikes.

    A letter that stands for something (*the side a*) stays.
    """
    start, end = site
    table, letters, draw = confusions("homoglyphs"), list(text[start:end]), rng.choice
    places = [at for at, letter in enumerate(letters) if letter in table]
    sure, coins = draw(places), rng.below(1 << 48)
    for at in places:
        if at == sure or coins >> at % 48 & 1:
            letters[at] = draw(table[letters[at]])
    return start, end, "".join(letters)


_SUM_SIGN = re.compile(r"(?<=\d)\+|\+(?=\d)")


@site_perturbation("leetspeak", sites=partial(_long_words_with_letters, "leet"))
def leetspeak(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Writes words in l33t: digits and signs in place of letters.

    Words of three letters or more; if no letter would be left, the first one stays. Beside a digit
    no plus is written: *837+3r* would be a sum.
    """
    start, end = site
    table, word = confusions("leet"), text[start:end]
    leet = "".join(
        rng.choice(table[low]) if (low := letter.lower()) in table else letter for letter in word
    )
    leet = _SUM_SIGN.sub("7", leet)
    if not any(map(str.isalpha, leet)):
        leet = word[0] + leet[1:]
    return start, end, leet


# Letters without their accents, as on a keyboard that has none

_GERMAN_SPELLINGS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"}
)
_WORDS = re.compile(r"\w+")
_SPANISH_N = "ñÑ"  # a letter of its own, with its own key


def _without_accents(word: str, language: str) -> str:
    """Return the word without accents, as on a keyboard that has none.

    In German, umlauts become two letters. In Spanish, ñ stays.
    """
    spelt = unicodedata.normalize("NFC", word)
    spelt = spelt.translate(_GERMAN_SPELLINGS) if language == "de" else spelt.replace("ß", "ss")
    own = _SPANISH_N if language == "es" else ""
    bases = ((letter, unicodedata.normalize("NFD", letter)[0]) for letter in spelt)
    return "".join(a if a in own or not base.isascii() else base for a, base in bases)


def _accented_words(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    """Return the words with accents that may lose them.

    Without its accents a word must not be a negation, a quantifier or a slur.
    """
    if text.isascii():
        return []
    unwanted = kept_words(language) | never_written() | word_set("bare_words")
    words = (
        (a, b, _without_accents(text[a:b], language))
        for a, b in plain_words(text, blocked, language)
    )
    return [(a, b) for a, b, bare in words if bare != text[a:b] and bare.lower() not in unwanted]


def _with_words_of_target(
    prompt: Prompt, section: Section, patterns: Sequence[str]
) -> Sequence[Span]:
    """Return the spans that no noise may edit, and each word of the target, however long it is."""
    called = target_texts(prompt.target)
    texts = [str(prompt.target or "")] if called is None else called
    words = _WORDS.findall("\n".join(texts))
    copied = copied_words(section.text, words, each_word=False)
    return merged((*protected_spans(prompt, section, patterns), *copied))


@site_perturbation("drop_diacritics", sites=_accented_words, closed=_with_words_of_target)
def drop_diacritics(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Writes letters without their accents, German ones as *ae*, *oe*, *ue* and *ss*.

    The Spanish *ñ* stays, and so do names and the words of the target.
    """
    start, end = site
    return start, end, _without_accents(text[start:end], language)


# Invisible characters, and characters as copying and saving change them

_SPACE_GAP = re.compile(r"(?<=\S) (?=\S)")
# Quotation marks, and single ones at the edge of a word; not the apostrophe of "don't".
_QUOTE = re.compile(r"\"|(?<!\w)'|'(?!\w)")
_FOREIGN = re.compile(r"[\u00a1-\u024f‘’“”–—…]")
_USUAL_CHANGES = ("no_break", "zero_width", "quotes", "accents")
Place = tuple[int, int, str]  # start, end and the change to make


def _invisible_sites(text: str, blocked: Sequence[Span], kind: str, language: str) -> list[Place]:
    """Return the places for the wanted kinds of change, in order."""
    wanted = _USUAL_CHANGES if kind == "all" else (kind,)
    found: list[Place] = []
    if "no_break" in wanted:
        found += _free_matches("no_break", _SPACE_GAP, text, blocked)
    plain = text.isascii()
    if "zero_width" in wanted or ("accents" in wanted and not plain):
        words = long_words(text, blocked, language, 4)
        if "zero_width" in wanted:
            found += [(at, at, "zero_width") for a, b in words for at in range(a + 2, b - 1)]
        if "accents" in wanted and not plain:
            letters = _free_matches("accents", _FOREIGN, text, blocked)
            found += [site for site in letters if _is_accented(text, site, words)]
    if "quotes" in wanted and ("'" in text or '"' in text):
        found += _free_matches("quotes", _QUOTE, text, blocked)
    if "mojibake" in wanted and not plain:
        found += _free_matches("mojibake", _FOREIGN, text, blocked)
    found.sort()
    return found


def _free_matches(
    change: str, pattern: re.Pattern[str], text: str, blocked: Sequence[Span]
) -> list[Place]:
    """Return the matches of the pattern outside the blocked spans, each with the change."""
    spans = [match.span() for match in pattern.finditer(text)]
    return [(start, end, change) for start, end in uncovered(spans, blocked)]


def _is_accented(text: str, site: Place, words: Sequence[Span]) -> bool:
    start, end, _ = site
    return overlaps(words, start, end) and not unicodedata.is_normalized("NFD", text[start:end])


@site_perturbation("invisible", sites=_invisible_sites)
def invisible(text: str, site: Place, rng: Rng, kind: str, language: str) -> Replacement | None:
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


# Upper and lower case

CasedSite = tuple[int, int, str]  # a word and its new style

# Words with apostrophes. "don't", "L'Eau", "d'aujourd'hui"; not "'tis".
_APOSTROPHED = re.compile(
    r"(?<![\w\u0300-\u036f'’])[^\W\d_]+(?:['’][^\W\d_]+)+(?![\w\u0300-\u036f'’])"
)
# Words of one letter. Between two ordinary words they are words; elsewhere they may be variables.
_ONE_LETTER_WORDS = {"es": "aeouy", "fr": "aàyô", "it": "aeèoi", "nl": "u", "pt": "aàeéoó"}
_SINGLE_GAP = re.compile(r",? (\w) ")
_ELIDING, _ELISION = ("fr", "it", "pt"), re.compile(r"(?<=['’])(?=\w\w)")
_FIRST = re.compile(r"\w")


def _cased_sites(text: str, blocked: Sequence[Span], style: str, language: str) -> list[CasedSite]:
    words = list(_cased_words(text, blocked, language))
    if style == "sentence":
        firsts = (_FIRST.search(text, start, end) for start, end in sentences(text))
        starts = {match.start() for match in firsts if match is not None}
        sites = [(a, b, "title" if a in starts else "lower") for a, b in words]
    else:
        sites = [(a, b, style) for a, b in words]
    return [
        site for site in sites if _case_changes(text[site[0] : site[1]], site[2], style, language)
    ]


def lowered_words(text: str, blocked: Sequence[Span], language: str = "en") -> list[Span]:
    """Return the words that lower case would change."""
    return [(start, end) for start, end, _ in _cased_sites(text, blocked, "lower", language)]


def _case_changes(word: str, to: str, style: str, language: str) -> bool:
    if style == "sentence" and language == "en" and word[0] == "I" and not word[1:2].isalpha():
        return False  # I, I'm
    if to == "random":
        return word.isupper() or _in_other_case(word, "upper", language) is not None
    return _in_other_case(word, to, language) is not None


def _cased_words(text: str, blocked: Sequence[Span], language: str) -> Iterator[Span]:
    """Yield the words whose case may change: no acronym, label, variable or unit."""
    words = natural_words(text, blocked)
    if "'" in text or "’" in text:
        joined = (
            m.span() for m in _APOSTROPHED.finditer(text) if _has_no_inner_capital(m[0], language)
        )
        words = sorted([*words, *uncovered(joined, blocked)])
    if language in _ONE_LETTER_WORDS:
        words = sorted([*words, *_single_words(text, words, blocked, language)])
    for start, end in words:
        if end - start > 1 or _is_word(text, start, language):
            yield start, end


def _has_no_inner_capital(word: str, language: str) -> bool:
    """Return True if the word has no inner capital: L'Eau has none, DON'T and O'Brien have."""
    parts = _ELISION.split(word) if language in _ELIDING else [word]
    return all(part[1:] == part[1:].lower() for part in parts)


def _is_word(text: str, at: int, language: str) -> bool:
    """Return True if a single letter is a word here, not a name or label."""
    return text[at + 1 : at + 2] in ("", " ") and is_no_name(text, at, text[at], language)


def _single_words(
    text: str, words: Sequence[Span], blocked: Sequence[Span], language: str
) -> Iterator[Span]:
    singles = _ONE_LETTER_WORDS[language]
    for (_, before), (after, _) in pairwise(words):
        gap = _SINGLE_GAP.fullmatch(text, before, after)
        if gap is not None and gap[1].lower() in singles and not overlaps(blocked, *gap.span(1)):
            yield gap.span(1)


def _in_other_case(word: str, style: str, language: str) -> str | None:
    """Return the word in another case; None if that changes nothing or cannot be undone.

    ß has no capital that becomes ß again. The Turkish İ and ı change into other letters under the
    rules of other languages, so words with them stay as they are.
    """
    if style == "title":
        cased = _title_cased(word, language)
    else:
        cased = word.upper() if style == "upper" else word.lower()
    if cased == word or "ı" in word or "İ" in word:
        return None
    return cased if cased.lower() == word.lower() and len(cased) == len(word) else None


def _title_cased(word: str, language: str) -> str:
    """Return the word with a capital first letter and small letters after it.

    The Dutch ij counts as one letter. The word after an elision (L'Eau) gets its own capital.
    """
    low = word.lower()
    if language == "nl" and low.startswith("ij"):
        return "IJ" + low[2:]
    return (
        "".join(map(str.capitalize, _ELISION.split(low)))
        if language in _ELIDING
        else low.capitalize()
    )


@site_perturbation("casing", sites=_cased_sites)
def casing(text: str, site: CasedSite, rng: Rng, style: str, language: str) -> Replacement | None:
    """Changes words to lower case, upper case, title case, sentence case or random case.

    The rate is the share of the words that this would change. Acronyms, labels, variables, units
    and protected text keep their case, and so do words whose case cannot be undone (ß).
    """
    start, end, to = site
    word = text[start:end]
    cased = _with_random_case(word, rng) if to == "random" else _in_other_case(word, to, language)
    return None if cased is None else (start, end, cased)


def _with_random_case(word: str, rng: Rng) -> str | None:
    """Return the word with the case of each letter drawn at random, but never unchanged."""
    shuffled = "".join(letter.upper() if rng.below(2) else letter.lower() for letter in word)
    return shuffled if shuffled != word else word.swapcase()


# Text copied from a page or a mail, with some of its markup

_PASTED = re.compile(r"(?<=\w) (?=\w)|(?<=\S)\n(?=[^\S\n]*\S)|&|\b[^\W\d_]{4,}\b(?!['’])")
# "<b", "</b", "&nbsp;", "a;b"; not "5 < 6", "so; then", "R&D".
_MARKED_UP = re.compile(r"<[/!A-Za-z]|&#?\w{1,8};|\w;\w")


def _pasted_sites(text: str, blocked: Sequence[Span]) -> list[Span]:
    """Return the spaces, line ends, ampersands and words that markup may replace or enclose.

    Empty if the text already has markup, or cells between `;`.
    """
    closed = merged((*blocked, *mentioned_words(text)))
    found = () if _MARKED_UP.search(text) else (m.span() for m in _PASTED.finditer(text))
    return [(a, b) for a, b in found if not overlaps(closed, a - (text[a] == "\n"), b + 1)]


@site_perturbation("html_paste", sites=_pasted_sites)
def html_paste(text: str, site: Span, rng: Rng) -> Replacement:
    """Leaves markup in a text as copying from a page or a mail does: `&nbsp;`, `<br>`, `<span>`.

    Without the tags, and with entities read, the text is what it was.
    """
    old = text[slice(*site)]
    ways = {" ": ("&nbsp;",), "\n": ("<br>\n", "<br />\n"), "&": ("&amp;",)}
    new = rng.choice(ways.get(old, (f"<span>{old}</span>", f"<font>{old}</font>")))
    return *site, new
