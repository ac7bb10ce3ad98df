"""Words dropped or replaced by others: stop words, homophones, contractions, synonyms.

Importing this module also registers the other perturbations of words and the family *wording*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial

from falter.perturbations import (  # noqa: F401  (they register)
    augmentation,
    letters,
    spacing,
    spelling,
    surroundings,
    value_formats,
    wording,
)
from falter.perturbations.base import site_perturbation
from falter.perturbations.vocabulary import (
    capitalised_like,
    contraction_table,
    homophone_table,
    is_no_name,
    lines,
    plain_words,
    spelt_spans,
    stop_words,
    synonym_table,
    table,
    word_set,
)
from falter.records.errors import InvalidValue
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Span
from falter.text.meaning import letter_symbols, passive_auxiliaries, word_tokens
from falter.text.spans import Replacement, overlaps, uncovered
from falter.text.words import kept_words

_bundled_regex = partial(named_regex, "perturbations")

# Function words dropped: only those that link, or all words of the published list


@cache
def _dropped_words(language: str, style: str) -> frozenset[str]:
    """Return the function words of a style.

    Raise `InvalidValue` for the published list in another language than English.
    """
    if style == "careful":
        return stop_words(language)
    if language != "en":
        raise InvalidValue(
            "drop_stop_words.style", style, f"careful for the language '{language}'",
            hint="the published list is English",
        )  # fmt: skip
    return frozenset(lines("published_stop_words_en.txt"))


def _drop_sites(text: str, blocked: Sequence[Span], style: str, language: str) -> list[Span]:
    """Return the spans to drop: function words, each with one space."""
    words = _dropped_words(language, style)
    known = _with_contrasts(language, style)
    tokens = zip(*word_tokens(text, language), strict=True)
    small = [(*token.span(), low) for token, low in tokens if low in known]
    kept = _kept_starts(text, small, language) if style == "careful" else ()
    spans: list[Span] = [
        (start, end)
        for start, end, word in small
        if start not in kept
        and word in words
        and is_no_name(text, start, text[start:end].replace("’", "'"), language)
    ]
    free = uncovered(uncovered(spans, blocked), spelt_spans(text, language))
    return list(_with_spaces(text, free, blocked))


@cache
def _with_contrasts(language: str, style: str) -> frozenset[str]:
    return _dropped_words(language, style).union(*_contrast_sets(language))


def _kept_starts(text: str, small: Sequence[tuple[int, int, str]], language: str) -> set[int]:
    """Return the starts of small words that carry meaning in this text and must not be dropped."""
    kept = {start for start, _ in passive_auxiliaries(text, language)}
    kept |= {start for start, _ in letter_symbols(text)} if language == "en" else set()
    for contrast in _contrast_sets(language):
        sides = {start: contrast[word] for start, _, word in small if word in contrast}
        if len(set(sides.values())) > 1:
            kept |= sides.keys()
    return kept


@cache
def _contrast_sets(language: str) -> tuple[dict[str, int], ...]:
    """Return contrasts, such as *in* and *on* or *he* and *she*: each word with its set's number.

    If a text has words of two sets, dropping the words would mix up persons or places.
    """
    contrasts: list[list[str]] = table("word_sets_en.json")["contrasts"] if language == "en" else []
    return tuple(
        {word: number for number, words in enumerate(sets) for word in words.split()}
        for sets in contrasts
    )


def _with_spaces(text: str, words: Sequence[Span], blocked: Sequence[Span]) -> Iterator[Span]:
    """Yield each word with the space to remove with it.

    It is the space after the word at the start of a line, otherwise the space before it.
    """
    head = 0
    for start, end in words:
        line = text.rfind("\n", 0, start) + 1
        leads, spaced = start in (line, head), _is_removable_space(text, start - 1, blocked)
        if (leads or not spaced) and _is_removable_space(text, end, blocked):
            head = end + 1 if leads else head
            yield start, end + 1
        elif spaced:
            yield start - 1, end
        else:
            yield start, end


def _is_removable_space(text: str, at: int, blocked: Sequence[Span]) -> bool:
    """Return True if there is a space at this offset that may be removed."""
    there = at >= 0 and text[at : at + 1] == " "
    return there and not (blocked and overlaps(blocked, at, at + 1))


@site_perturbation("drop_stop_words", sites=_drop_sites)
def drop_stop_words(text: str, site: Span, rng: Rng, style: str, language: str) -> Replacement:
    """Drops function words, each with one space beside it.

    Question words, negation, quantifiers, comparison, logic and time are kept; so are the
    auxiliary and the agent of a passive, *with*, letters that are symbols, and words that a text
    contrasts (*in* and *on*, *he* and *she*). `style=published` drops every word of the published
    list. What follows a dropped first word is not given a capital.
    """
    return site[0], site[1], ""


# Words replaced by others: homophones, contractions, synonyms

_WORD = re.compile(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])(?!['’]\w)")


def _homophone_sites(text: str, blocked: Sequence[Span], language: str) -> list[Span]:
    table, protected_words = homophone_table(language), kept_words(language)
    spans: list[Span] = []
    for match in _WORD.finditer(text):
        word = match.group()
        low = word.lower().replace("’", "'")
        if low in table and low not in protected_words and is_no_name(text, match.start(), word):
            spans.append(match.span())
    return uncovered(uncovered(spans, blocked), spelt_spans(text, language)) if spans else spans


@site_perturbation("homophones", sites=_homophone_sites)
def homophones(text: str, site: Span, rng: Rng, language: str) -> Replacement:
    """Writes another word that sounds the same: their and there, to and too."""
    start, end = site
    word = text[start:end]
    homophone = rng.choice(homophone_table(language)[word.lower().replace("’", "'")])
    return start, end, capitalised_like(word, homophone)


# After a short form with n't, the spelled-out form has the subject between verb and not, if no
# subject comes before: *don't you* → *do you not*.
_SUBJECT = re.compile(r"[ ](i|you|he|she|it|we|they)(?![\w'’])", re.IGNORECASE)
_NO_SUBJECT = _bundled_regex("no_subject")
# A clause that continues: *who is it?* and *that is, …* do not.
_GOES_ON = _bundled_regex("clause_goes_on")


@cache
def _contractible_forms(kind: str, language: str) -> re.Pattern[str]:
    """Return a pattern for the forms that can be contracted, expanded, or either."""
    tables = contraction_table(language)
    chosen = tables if kind == "both" else {kind: tables[kind]}
    forms = sorted({form for table in chosen.values() for form in table}, key=len, reverse=True)
    either = "|".join(map(re.escape, forms)).replace("'", "['’]")
    return re.compile(rf"(?<![\w'’-])(?:{either})(?![\w'’-])", re.IGNORECASE)


def _contraction_sites(
    text: str, blocked: Sequence[Span], kind: str, language: str
) -> list[Replacement]:
    """Return the replacements that contract or expand forms of a text."""
    tables = contraction_table(language)
    sites: list[Replacement] = []
    for match in _contractible_forms(kind, language).finditer(text):
        form = match.group().replace("’", "'")
        if not form[1:].islower():
            continue
        low = form.lower()
        expanded = tables["expand"].get(low) if kind != "contract" else None
        if expanded is not None:
            site = _expansion(text, match, expanded)
        elif low.endswith("not") or _GOES_ON.match(text, match.end()):
            site = (*match.span(), _apostrophes(text, tables["contract"][low]))
        else:
            continue
        sites.append((site[0], site[1], capitalised_like(form, site[2])))
    return [site for site in sites if not overlaps(blocked, site[0], site[1])]


def _expansion(text: str, match: re.Match[str], full: str) -> Replacement:
    """Return the replacement of a contraction by its full form, the subject moved if needed."""
    start, end = match.span()
    subject = _SUBJECT.match(text, end) if full.endswith("not") else None
    before = text[max(0, start - 12) : start]
    if subject is None or (before.strip() and not _NO_SUBJECT.search(before)):
        return start, end, full
    verb = full.removesuffix("not").rstrip()
    if verb == "are" and subject[1] in "Ii":
        verb = "am"
    return start, subject.end(), f"{verb}{subject[0]} not"


def _apostrophes(text: str, form: str) -> str:
    """Return the form with the kind of apostrophe that the text uses."""
    return form.replace("'", "’") if "’" in text and "'" not in text else form


@site_perturbation("contractions", sites=_contraction_sites)
def contractions(text: str, site: Replacement, rng: Rng, kind: str, language: str) -> Replacement:
    """Contracts full forms and expands contractions: do not and don't, what is and what's.

    A verb without *not* is contracted only if its clause continues. Ambiguous short forms (*he's*,
    *she'd*) are not expanded. A negation changes its form but is never lost.
    """
    return site


# An article, which must fit the next word. "a dog", "an animal". "a ", "An "; not "the ", "Cuba ".
_ARTICLE = re.compile(r"(?<![\w'’-])an? \Z", re.IGNORECASE)
# Vowels by sound, including words whose spelling misleads.
_VOWEL = _bundled_regex("vowel")


Mention = tuple[int, int, int]  # start, end, and where an article before the word starts
_BEFORE_NOUN = word_set("before_noun")
_AFTER_NOUN = word_set("after_noun")
# Words whose sense depends on their neighbour: *thus far*, *a distant cousin*.
_COLLOCATIONS = word_set("collocations")
_NEXT_WORD = re.compile(r" ([^\W\d_]+)")
_PREVIOUS_WORD = re.compile(r"([^\W\d_]+) \Z")


def _replaceable_mentions(
    text: str, blocked: Sequence[Span], language: str
) -> list[tuple[Mention, ...]]:
    """Return the words with synonyms, each as all of its mentions.

    A word is left out if one of its mentions must stay.
    """
    table, nouns = synonym_table(language), _nouns(language)
    mentions: dict[str, list[Mention]] = {}
    for start, end in plain_words(text, blocked, language):
        low = text[start:end].lower()
        if low not in table:
            continue
        article = _ARTICLE.search(text, max(0, start - 4), start)
        first = start if article is None else article.start()
        if (
            is_no_name(text, start, text[start:end])
            and not overlaps(blocked, first, start)
            and _keeps_sense(text, start, end, noun=low in nouns)
        ):
            mentions.setdefault(_stem(low), []).append((start, end, first))
    if not mentions:
        return []
    counts = Counter(_stem(match[0].lower()) for match in _LETTERS.finditer(text))
    return [tuple(places) for stem, places in mentions.items() if len(places) == counts[stem]]


_LETTERS = re.compile(r"[^\W\d_]+")


def _stem(word: str) -> str:
    """Return the word without a plural ending."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


@cache
def _nouns(language: str) -> frozenset[str]:
    """Return the nouns of the synonym table.

    The table has the singular and the plural of a noun, and no form of it in *-ing*.
    """
    table = synonym_table(language)
    verbs = {word[:-3] for word in table if word.endswith("ing")}
    plurals = {word for word in table if _stem(word) in table and word != _stem(word)}
    roots = {root for word in plurals if not _is_verb_form(root := _stem(word), verbs)}
    return frozenset(roots | {word for word in plurals if _stem(word) in roots})


def _is_verb_form(word: str, verbs: set[str]) -> bool:
    return not {word, word.removesuffix("e"), word + word[-1]}.isdisjoint(verbs)


def _keeps_sense(text: str, start: int, end: int, *, noun: bool) -> bool:
    """Return True if nothing next to the word points to another sense.

    Signs of another sense are a hyphen, a name, a set phrase, or a second word that makes a
    compound of a noun.
    """
    if "-" in (text[start - 1 : start], text[end : end + 1]):
        return False
    after, before = (
        _NEXT_WORD.match(text, end),
        _PREVIOUS_WORD.search(text, max(0, start - 24), start),
    )
    word = text[start:end].lower()
    following = "" if after is None else after[1]
    previous = "" if before is None else before[1]
    if following[:1].isupper() and start:
        return False
    if f"{word}.{following}" in _COLLOCATIONS or f"{previous}.{word}" in _COLLOCATIONS:
        return False
    if not noun:
        return True
    return (not following or following in _AFTER_NOUN) and (
        not previous or previous.lower() in _BEFORE_NOUN
    )


@site_perturbation("synonyms", sites=_replaceable_mentions)
def synonyms(text: str, site: Sequence[Mention], rng: Rng, language: str) -> list[Replacement]:
    """Replaces words by synonyms in the same form, all mentions of a word alike.

    The rate is the share of the words that are in the table. *a* and *an* follow the new word, and
    capitals stay; names, compounds and set phrases are left alone.
    """
    drawn = rng.below(_DRAW_RANGE)
    return [_synonym_replacement(text, mention, drawn, language) for mention in site]


# One number is drawn for all mentions of a word; each form takes it modulo its number of synonyms.
_DRAW_RANGE = 1 << 20


def _synonym_replacement(text: str, mention: Mention, drawn: int, language: str) -> Replacement:
    start, end, first = mention
    word = text[start:end]
    choices = synonym_table(language)[word.lower()]
    synonym = capitalised_like(word, choices[drawn % len(choices)])
    if first == start or bool(_VOWEL.match(word)) == bool(_VOWEL.match(synonym)):
        return start, end, synonym
    return first, end, f"{text[first]}{'n' if _VOWEL.match(synonym) else ''} {synonym}"
