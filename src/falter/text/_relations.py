"""What turns a sentence round when it is lost: the parts of a passive, letters that are symbols."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from falter.core.late_regex import late_regex
from falter.core.records import Span
from falter.text._read_once import of_short_texts

__all__ = ["letter_symbols", "lost_relations", "lost_symbols", "passive_auxiliaries"]

_TOKEN = late_regex(r"(?<![\w'’/-])[^\W\d_]++(?:['’][^\W\d_]++)?(?![\w/\-])")

# Without its auxiliary, what is eaten eats.
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
    language: late_regex(rf"(?:{ending})\Z", re.IGNORECASE)
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
_CLAUSE_END = late_regex(r"[.,;:?!]|\n[ \t]*\n")

_AGENTS = {
    "de": {"von", "vom", "durch"}, "en": {"by"}, "es": {"por"}, "fr": {"par"}, "it": {"da", "dal"},
    "nl": {"door"}, "pt": {"por", "pelo", "pela"},
}  # fmt: skip


def passive_auxiliaries(text: str, language: str = "en") -> list[Span]:
    """The spans of auxiliaries with a participle behind them in the same clause."""
    return [auxiliary.span() for auxiliary, _ in _passives(text, language)]


def _find_passives(text: str, language: str) -> list[tuple[re.Match[str], re.Match[str]]]:
    auxiliaries, participle = _auxiliaries(language), _PARTICIPLE[language]
    tokens = list(_TOKEN.finditer(text))
    lows = [token[0].lower() for token in tokens]
    if "’" in text:
        lows = [low.replace("’", "'") for low in lows]
    found: list[tuple[re.Match[str], re.Match[str]]] = []
    for n, low in enumerate(lows):
        if low not in auxiliaries and not ("'" in low and _is_short(low, auxiliaries, language)):
            continue
        for ahead in range(n + 1, min(n + 1 + _REACH, len(tokens))):
            if _CLAUSE_END.search(text, tokens[ahead - 1].end(), tokens[ahead].start()):
                break
            if tokens[ahead][0].islower() and participle.match(lows[ahead]):
                found.append((tokens[n], tokens[ahead]))
                break
    return found


def _is_short(low: str, auxiliaries: frozenset[str], language: str) -> bool:
    """Whether it holds an auxiliary: *it's*, *wasn't*."""
    ending = language == "en" and low.endswith(_SHORT_FORMS)
    return ending or low.removesuffix("n't") in auxiliaries


_passives = of_short_texts(_find_passives)
_SHORT_FORMS = ("'s", "'re", "'m")


@cache
def _auxiliaries(language: str) -> frozenset[str]:
    return frozenset(_PASSIVE_AUXILIARIES[language].split())


def _low(token: re.Match[str]) -> str:
    return token.group().replace("’", "'").lower()


def lost_relations(before: str, after: str, language: str) -> list[str]:
    """Passives whose participle is still there, without its auxiliary or without its agent.

    A passive that became an active sentence has another form of the verb, and is no loss; nor is a
    word that was misspelt, joined to the next or moved: only one that is gone.
    """
    passives = _passives(before, language)
    if not passives or len(before.split()) == len(after.split()):
        return []
    still = Counter(_low(participle) for _, participle in _passives(after, language))
    words = Counter(_low(token) for token in _TOKEN.finditer(after))
    gone = Counter(_low(token) for token in _TOKEN.finditer(before)) - words
    letters = _squeezed(after)
    lost: list[str] = []
    for auxiliary, participle in passives:
        low = _low(participle)
        if not words[low]:
            continue
        still[low] -= 1
        if (
            still[low] < 0
            and gone[_low(auxiliary)]
            and _with_next(before, auxiliary) not in letters
        ):
            lost.append(f"{_low(auxiliary)} … {low}")
        agent = _agent(before, participle, language)
        if agent is not None and not words[agent] and low + agent not in letters:
            lost.append(f"{low} {agent}")
    return lost


_WORDS = late_regex(r"\S+")


def _squeezed(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _with_next(text: str, token: re.Match[str]) -> str:
    """A word and the next one, joined: what merging and splitting words leave as it is."""
    following = _WORDS.search(text, token.end())
    return _squeezed(token.group() + ("" if following is None else following[0]))


def _agent(text: str, participle: re.Match[str], language: str) -> str | None:
    """The word for *by* behind a participle."""
    following = _TOKEN.search(text, participle.end())
    low = "" if following is None else _low(following)
    return low if low in _AGENTS[language] else None


# A letter by itself may be a symbol: the side a, the current I.
_OTHER_SYMBOL = late_regex(r"(?<![\w'’.-])[b-hj-zB-HJ-Z](?![\w'’-])")
_NO_ARTICLE = late_regex(
    r"[ ](?:and|or|are|be|by|but|divided|equals?|for|from|gives?|has|if|in|is|minus|of|on|over|plus"
    r"|such|that|then|times|to|was|were|when|where|which|with)\b|[^\s\w]"
    r"|[ ][^\s\w$€£¥\"“‘'(\[{<*_`]|\Z|\n",
)
_LETTER = late_regex(r"(?<![\w'’-])[A-Za-z](?![\w'’-])")


_BEFORE_WORD = ("", " ", "\n", '"', "“", "‘", "(")


def letter_symbols(text: str) -> list[Span]:
    """The spans of single letters that stand for something: no article and no pronoun."""
    letters = list(_LETTER.finditer(text))
    if not letters:
        return []
    others = _OTHER_SYMBOL.search(text) is not None
    return [match.span() for match in letters if _is_symbol(text, match, others)]


def _is_symbol(text: str, match: re.Match[str], others: bool) -> bool:
    start, end = match.span()
    if match.group() not in ("a", "A", "I"):
        return True
    if text[end : end + 1] not in (" ", "") or text[start - 1 : start] not in _BEFORE_WORD:
        return match.group() != "I" or text[end : end + 1] in "=)]"
    if match.group() == "I":
        return False
    return _NO_ARTICLE.match(text, end) is not None and (others or match.group() == "a")


def lost_symbols(before: str, after: str) -> list[str]:
    """Letters that stand for something, and stand there fewer times."""
    old = Counter(before[start:end] for start, end in letter_symbols(before))
    new = Counter(match.group() for match in _LETTER.finditer(after)) if old else Counter()
    return list((old - new).elements())
