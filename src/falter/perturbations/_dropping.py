"""Function words dropped: those that only link, or everything that the published list holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from falter.core.errors import InvalidValue
from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._resources import lines, stop_words
from falter.perturbations._wording import (
    FAMILY,
    LANGUAGES,
    MANIPULATION,
    MEANING,
    is_no_name,
    spelt_spans,
)
from falter.text import Replacement, overlaps, uncovered

__all__ = ["drop_stop_words"]

_STYLE = Parameter(
    name="style",
    type=str,
    default="careful",
    help="careful: words that only link; published: every word of the published list, negations "
    "included (English)",
    options=("careful", "published"),
)
_TOKEN = re.compile(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])")

# Passives: without the auxiliary, what is eaten eats.
_PASSIVE_AUXILIARIES = {
    "de": "wird werden wirst werde werdet wurde wurden wurdest wurdet worden geworden ist sind war "
    "waren bin bist seid",
    "en": "am is are was were be been being i'm you're he's she's it's we're they're "
    "that's there's",
    "es": "es son era eran fue fueron será serán sido siendo ser está están estaba estaban",
    "fr": "est sont était étaient sera seront été étant être suis es sommes êtes c'est",
    "it": "è sono era erano sarà saranno stato stata stati state essere essendo viene vengono",
    "nl": "wordt worden werd werden geworden is zijn was waren",
    "pt": "é são era eram foi foram será serão sido sendo ser está estão estava estavam",
}
_IRREGULAR = (
    "beaten become begun bent bet bitten blown born borne bought bound bred broken brought built "
    "burnt burst cast caught chosen come cut dealt done drawn driven drunk dug eaten fallen fed "
    "felt fought found flown forbidden forgiven forgotten found frozen given gone ground grown "
    "heard held hidden hit hung hurt kept knit known laid led left lent let lit lost made meant "
    "met paid proven put read rid ridden risen run said seen sent set shaken shed shone shot shown "
    "shut slain sold sought spent split spoken sprung spun stolen stuck struck stung sung sunk "
    "sworn swept swum swung taken taught thought thrown told torn understood undone upset won worn "
    "wound woven written"
)
_PARTICIPLE = {
    language: re.compile(rf"(?:{ending})\Z", re.IGNORECASE)
    for language, ending in {
        "de": r"\w*ge\w{2,}(?:t|en)|\w{3,}iert|(?:be|er|ver|ent|zer)\w{2,}(?:t|en)",
        "en": rf"\w{{2,}}ed|{_IRREGULAR.replace(' ', '|')}",
        "es": r"\w{2,}[aií]d[oa]s?|hech[oa]s?|dich[oa]s?|vist[oa]s?|puest[oa]s?|escrit[oa]s?",
        "fr": r"\w{2,}(?:é|i|u|is|it|ert)e?s?",
        "it": r"\w{2,}(?:at|ut|it|tt|st|nt)[oaie]",
        "nl": r"ge\w{2,}(?:d|t|en)|(?:be|ver|ont)\w{2,}(?:d|t|en)",
        "pt": r"\w{2,}[aií]d[oa]s?|feit[oa]s?|dit[oa]s?|vist[oa]s?|escrit[oa]s?",
    }.items()
}
_REACH = 6  # words between an auxiliary and its participle
_CLAUSE_END = re.compile(r"[.,;:?!\n]")

# Words of one set say who or where. Where a text has two of them, leaving them out mixes them up.
_CONTRASTS = {
    "en": (
        (
            "in inside into", "on upon onto", "at", "under below beneath", "over above", "off out",
            "behind", "beside", "for", "against", "outside", "between", "near",
        ),
        (
            "i me my myself i'm i've i'd i'll", "you your yours yourself you're you've you'd",
            "he him his himself he's he'd he'll", "she her hers herself she's she'd she'll",
            "we us our ours ourselves we're we've we'd we'll",
            "they them their theirs themselves they're they've they'd they'll",
        ),
        ("this these here", "that those there"),
    )
}  # fmt: skip

# A letter by itself may be a symbol: the side a, the current I.
_OTHER_SYMBOL = re.compile(r"(?<![\w'’.-])[b-hj-zB-HJ-Z](?![\w'’-])")
_NO_ARTICLE = re.compile(
    r"[ ](?:and|or|are|be|by|but|divided|equals?|for|from|gives?|has|if|in|is|minus|of|on|over|plus"
    r"|such|that|then|times|to|was|were|when|where|which|with)\b|[ ]?[^\s\w]|\Z|\n",
)


@cache
def _dropped_words(language: str, style: str) -> frozenset[str]:
    if style == "careful":
        return stop_words(language)
    if language != "en":
        raise InvalidValue(
            "drop_stop_words.style", style, f"careful for the language '{language}'",
            hint="the published list is English",
        )  # fmt: skip
    return frozenset(lines("published_stop_words_en.txt"))


def _drop_sites(text: str, blocked: Sequence[Span], style: str, language: str) -> list[Span]:
    words = _dropped_words(language, style)
    tokens = list(_TOKEN.finditer(text))
    spans: list[Span] = []
    for match in tokens:
        word = match.group().replace("’", "'")
        if word.lower() in words and is_no_name(text, match.start(), word, language):
            spans.append(match.span())
    if style == "careful":
        kept = _kept_tokens(text, tokens, language)
        spans = [span for span in spans if span[0] not in kept]
    free = uncovered(uncovered(spans, blocked), spelt_spans(text, language))
    return list(_with_spaces(text, free, blocked))


def _kept_tokens(text: str, tokens: Sequence[re.Match[str]], language: str) -> set[int]:
    """Where the words begin that would be dropped, but carry meaning in this text."""
    lows = [match.group().replace("’", "'").lower() for match in tokens]
    kept = {tokens[n].start() for n in _passives(text, tokens, lows, language)}
    for contrast in _contrasts(language):
        present = {contrast[low] for low in lows if low in contrast}
        if len(present) > 1:
            kept |= {m.start() for m, low in zip(tokens, lows, strict=True) if low in contrast}
    symbols = _OTHER_SYMBOL.search(text) is not None if language == "en" else False
    for match in tokens:
        if match.end() - match.start() == 1 and _is_symbol(text, match, symbols):
            kept.add(match.start())
    return kept


@cache
def _contrasts(language: str) -> tuple[dict[str, int], ...]:
    return tuple(
        {word: number for number, words in enumerate(sets) for word in words.split()}
        for sets in _CONTRASTS.get(language, ())
    )


def _passives(
    text: str, tokens: Sequence[re.Match[str]], lows: Sequence[str], language: str
) -> Iterator[int]:
    """The auxiliaries with a participle behind them in the same clause."""
    auxiliaries, participle = _auxiliaries(language), _PARTICIPLE[language]
    for n, low in enumerate(lows):
        if low not in auxiliaries:
            continue
        for ahead in range(n + 1, min(n + 1 + _REACH, len(lows))):
            if _CLAUSE_END.search(text, tokens[ahead - 1].end(), tokens[ahead].start()):
                break
            if participle.match(lows[ahead]) is not None:
                yield n
                break


@cache
def _auxiliaries(language: str) -> frozenset[str]:
    return frozenset(_PASSIVE_AUXILIARIES[language].split())


def _is_symbol(text: str, match: re.Match[str], symbols: bool) -> bool:
    """Whether a single letter stands for something: no article and no pronoun."""
    start, end = match.span()
    if text[end : end + 1] not in (" ", "") or text[start - 1 : start] not in (" ", "", "\n"):
        return True
    if match.group() not in ("a", "A"):
        return False
    return _NO_ARTICLE.match(text, end) is not None and (symbols or match.group() == "a")


def _with_spaces(text: str, words: Sequence[Span], blocked: Sequence[Span]) -> Iterator[Span]:
    """Each word with the space behind it at the start of a line, else with the space before it."""
    head = 0
    for start, end in words:
        line = text.rfind("\n", 0, start) + 1
        leads = start in (line, head)
        if (leads or not _space(text, start - 1, blocked)) and _space(text, end, blocked):
            head = end + 1 if leads else head
            yield start, end + 1
        elif start and _space(text, start - 1, blocked):
            yield start - 1, end
        else:
            yield start, end


def _space(text: str, at: int, blocked: Sequence[Span]) -> bool:
    """Whether there is a space here that may go."""
    return at >= 0 and text[at : at + 1] == " " and not overlaps(blocked, at, at + 1)


@site_perturbation(
    "drop_stop_words",
    sites=_drop_sites,
    family=FAMILY,
    group=MANIPULATION,
    version=2,
    default_rate=1.0,
    parameters=(_STYLE,),
    invariants=MEANING,
    languages=LANGUAGES,
)
def drop_stop_words(text: str, site: Span, rng: Rng, style: str, language: str) -> Replacement:
    """Drops function words, each with one space beside it.

    Question words, negation, quantifiers, comparison, logic and time are kept; so are the
    auxiliary and the agent of a passive, *with*, letters that are symbols, and words that a text
    contrasts (*in* and *on*, *he* and *she*). `style=published` drops every word of the published
    list. What follows a dropped first word is not given a capital.
    """
    return site[0], site[1], ""
