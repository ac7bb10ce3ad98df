"""Extraction of the option of a multiple-choice question from a response, by letter or text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.scorers.reading.candidates import MAX_MENTIONS, Finder, Span, read_candidate
from falter.scorers.reading.cleaning import clean, is_cut
from falter.scorers.reading.labels import MAX_LABELS, folded, label_finder
from falter.scorers.reading.reading import Reading

_COUNTED = named_regex("scorers/reading", "lettered_nouns")
"""Nouns and formulas that take letters: plan B, x = B."""
_COMPUTATION = named_regex("scorers/reading", "computes")
_NAMES_LETTER = named_regex("scorers/reading", "names_letter")
# Text after a letter that names an option. ".", ")", " "; not " is", "x".
_LETTER_END = lazy_regex(r"[\"'*”»]?(?:[.,;:!)\]\n。]|\s*\Z)")
# Text after an article or an initial: "A dog", "A B. Smith". " dog", "'s", " B. Smith"; not ".",
# " Dog".
_SMALL_FOLLOWS = lazy_regex(r"['’]?\s?[a-zà-ÿ]|\s[A-Z]\.")


@lru_cache(maxsize=64)
def _letter_pattern(letters: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, int]]:
    numbers: dict[str, int] = {}
    for n, letter in enumerate(letters):
        for form in (letter, letter.lower(), letter.upper()):
            numbers.setdefault(form.strip(" ()[].:"), n)
    inner = "|".join(sorted(map(re.escape, numbers), key=len, reverse=True))
    return re.compile(
        # Not inside a word, but next to Japanese (no spaces): 答えはB。Nor in R&A, I/A, 'A.
        rf"(?<![^\W\u3040-\u9fff])(?<![&/'’-])({inner})(?![^\W\u3040-\u9fff])"
    ), numbers


def _letter_spans(text: str, letters: tuple[str, ...]) -> list[Span]:
    """Return the letters in a text that name an option, as spans."""
    pattern, numbers = _letter_pattern(letters)
    # A reply that is one letter, however it is dressed: "(b)."
    if sum(map(str.isalnum, text[:20])) == 1 and len(text) < 20:
        return [(0, len(text), numbers[c]) for c in text if c in numbers]
    return [
        (match.start(), match.end(), numbers[match[0]])
        for match in [*pattern.finditer(text)][-2 * MAX_MENTIONS :]
        if _names_option(text, match, match[0] in letters)
    ]


def _names_option(text: str, match: re.Match[str], as_written: bool) -> bool:
    """Return True if a letter names an option, and is no word and no variable."""
    start, end = match.span()
    before, after = text[max(0, start - 24) : start], text[end : end + 10]
    if not as_written and not _LETTER_END.match(after):
        return False
    closed = after[:1] in (")", "]") and after[:1] != ""
    if closed and before[-1:] in ("(", "[") and not before[-2:-1].isalnum():
        return True
    at_line = not before.rpartition("\n")[2].strip(" \t*-#>\"'(“")
    if at_line and (after[:1] in (".", ":", ")", "]", "\n") or not after):
        return True
    if after[:1] == "(" or (before[-1:] == "(" and after.strip()):
        return False  # a function, its variable, or more than the letter in the brackets
    named = _NAMES_LETTER.search(before) is not None
    if not as_written:
        return named
    if "=" in text and not named:
        return False  # a variable
    if after[:1] in ("'", "’", "-", "/", "&") or _COMPUTATION.match(after):
        return False
    if _COUNTED.search(before) and not named:
        return False
    if match[0] in ("A", "I") or match[0].isdigit():
        return named or closed or not (_SMALL_FOLLOWS.match(after) or match[0].isdigit())
    return True


def _is_term(text: str, start: int, end: int, who: int) -> bool:
    """Return True if an option's text is part of a longer formula."""
    if re.search(r"[^\W\d_]{3}", text[start:end]):
        return False
    before = text[max(0, start - 2) : start].rstrip()[-1:]
    return before in tuple("=+-*/^)") or _COMPUTATION.match(text, end, end + 8) is not None


def option_finder(letters: Sequence[str], texts: Sequence[str]) -> Finder:
    """Return a finder of options by letter and text; without `letters`, by text only.

    A letter inside an option's text does not count as a letter.
    """
    named = tuple(letters)
    twice = {one for one, count in Counter(map(folded, texts)).items() if count > 1}
    # Options with equal texts cannot be named by text: a private character replaces the text.
    by_text = label_finder([f"\ue000{n}" if folded(t) in twice else t for n, t in enumerate(texts)])

    def find(text: str) -> list[Span]:
        named_texts = by_text(text)
        # A letter inside an option's text, as in "vitamin B", names no other option.
        covered = bytearray(len(text) + 1)
        for start, end, _ in named_texts:
            covered[start:end] = b"\1" * (end - start)
        taken = [span for span in named_texts if not _is_term(text, *span)]
        letters = _letter_spans(text, named) if named else []
        return sorted([*taken, *(span for span in letters if not any(covered[span[0] : span[1]]))])

    return find


def read_letter(
    reply: str,
    letters: Sequence[str],
    texts: Sequence[str],
    question: str = "",
    *,
    cut: bool = False,
) -> Reading[int]:
    """Return the index of the option that a response gives as its answer, by letter or text.

    With `cut` (a truncated response), only a `stated` answer counts.
    """
    if not texts or (letters and len(letters) != len(texts)) or len(texts) > MAX_LABELS:
        return Reading(reason="the options cannot be told apart")
    cleaned = clean(reply, keeps_tags=any("<" in text for text in texts))
    if cleaned.reason:
        return Reading(reason=cleaned.reason)
    found = read_candidate(cleaned, option_finder(letters, texts), len(texts), question)
    if found.tier == "inferred" and (cut or is_cut(cleaned.text)):
        return Reading(reason="the reply was cut off before it marked an answer")
    return found
