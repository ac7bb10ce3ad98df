"""English as it is spoken elsewhere than in grammars: features that many dialects share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from falter.core.interfaces import Parameter
from falter.core.records import Span
from falter.core.rng import Rng
from falter.perturbations._base import site_perturbation
from falter.perturbations._rules import Rule, rule_places
from falter.text import Replacement, passive_auxiliaries

__all__ = ["FEATURES", "dialect"]


def _swapped(pattern: str, words: Mapping[str, str]) -> Rule:
    """A rule that writes other words for some, in a pattern that says where they stand."""
    either = "|".join(sorted(words, key=len, reverse=True))
    whole = re.compile(pattern.replace("WORD", f"(?P<word>{either})"))

    def write(match: re.Match[str]) -> str:
        start, end = (at - match.start() for at in match.span("word"))
        return match[0][:start] + words[match["word"]] + match[0][end:]

    needed = (max(re.findall("[a-z]+", key.lower()), key=len) for key in words)
    return Rule(whole, write, frozenset(needed))


_PARTICIPLES = {
    "broken": "broke", "chosen": "chose", "come": "came", "drunk": "drank", "eaten": "ate",
    "forgotten": "forgot", "given": "gave", "gone": "went", "seen": "saw", "spoken": "spoke",
    "stolen": "stole", "taken": "took", "written": "wrote",
}  # fmt: skip
_STEMS = (
    "bigg|cheap|clever|fast|great|hard|heavi|high|larg|light|long|old|short|slow|small|strong|tall"
    "|wid|young"
)
_PLAIN = ("bad", "cheap", "close", "loud", "quick", "slow", "smooth", "soft", "strong")
_GRADED = (
    "(?:bad|big|close|cold|early|far|fast|good|hard|heavy|high|hot|important|large|late|long|low"
    "|nice|old|short|slow|small|strong|well)"
)
# A sentence may follow these as their content, whose *that* is no relative pronoun.
_CONTENT = (
    "argument|assumption|belief|case|chance|claim|conclusion|condition|danger|degree|doubt|effect"
    "|evidence|extent|fact|fear|feeling|guarantee|hope|hypothesis|idea|impression|law|likelihood"
    "|myth|news|notion|odds|opinion|possibility|premise|principle|probability|proof|proposition"
    "|reason|report|result|risk|rule|rumou?r|same|sense|sign|so|statement|story|suggestion|theorem"
    "|theory|thought|threat|time|truth|view|warning|way|word|worry"
)
_ADVERB_END = (
    r"(?=[.,;:?!]|\Z| (?:across|and|as|at|by|down|from|in|into|on|over|than|through|to|up)\b)"
)

FEATURES: dict[str, tuple[Rule, ...]] = {
    # a name after that of the Electronic World Atlas of Varieties of English, from memory
    "adverbs_as_adjectives": (
        _swapped(rf"(?<=[a-z] )WORD{_ADVERB_END}", {f"{word}ly": word for word in _PLAIN}),
        _swapped(rf"\bWORD (?={_GRADED}\b)", {"really": "real"}),
    ),
    "aint": (
        _swapped(r"\b(?<=[a-z] )WORD\b", {"is not": "ain't", "are not": "ain't"}),
        _swapped(r"\bWORD(?!\w)", {"isn't": "ain't", "aren't": "ain't", "isn’t": "ain’t"}),
    ),
    "double_superlatives": (
        Rule(
            re.compile(rf"(?<=\bthe )({_STEMS})est\b(?! common\b)"),
            lambda match: f"most {match[0]}",
            frozenset(f"{stem}est" for stem in _STEMS.split("|")),
        ),
    ),
    "for_to": (_swapped(r"\bWORD (?=[a-z])", {"in order to": "for to"}),),
    "invariant_dont": (
        _swapped(r"\b(?:[Hh]e|[Ss]he|[Ii]t) WORD(?!\w)", {"doesn't": "don't", "doesn’t": "don’t"}),
        _swapped(r"\b(?:[Hh]e|[Ss]he|[Ii]t) WORD\b", {"does not": "don't"}),
    ),
    "past_for_participle": (_swapped(r"\b(?:has|have|had) WORD\b", _PARTICIPLES),),
    "reflexives": (_swapped(r"\bWORD\b", {"himself": "hisself", "themselves": "theirselves"}),),
    "relative_what": (
        _swapped(
            rf"(?<!such )\b(?:[Tt]he|[Aa]n?) (?!(?:{_CONTENT})s? )"
            r"[a-z]{3,} WORD (?=(?:is|are|was|were|has|had|can|lives?|makes?|eats?|[a-z]{3,}s)\b)",
            {"that": "what", "who": "what"},
        ),
    ),
    "stative_progressive": (
        _swapped(
            r"(?:^|(?<=[.!?,:] )|(?<= and )|(?<= but ))I WORD (?=[a-z])",
            {"want": "am wanting", "need": "am needing", "think": "am thinking"},
        ),
    ),
    "them_for_those": (
        _swapped(r"\bWORD (?=(?!is\b|was\b)[a-z]{2,}s\b)", {"those": "them"}),
    ),
    "there_is": (
        _swapped(r"\bWORD (?=[a-z\d])", {"there are": "there's", "There are": "There's",
                                          "there were": "there was", "There were": "There was"}),
    ),
    "was_for_were": (
        _swapped(r"\b(?:[Ww]e|[Tt]hey|[Yy]ou) WORD\b", {"were": "was"}),
    ),
    "zero_s": (
        _swapped(
            r"\b(?:[Hh]e|[Ss]he|[Ii]t) WORD\b",
            {f"{verb}s": verb for verb in (
                "ask", "buy", "come", "contain", "cost", "drink", "eat", "get", "give", "grow",
                "know", "like", "live", "make", "mean", "need", "pay", "play", "run", "say", "sell",
                "spend", "take", "use", "walk", "want", "work", "write",
            )},
        ),
    ),
}  # fmt: skip
_ALL = tuple(rule for rules in FEATURES.values() for rule in rules)
_FEATURE = Parameter(
    name="feature",
    type=str,
    default="any",
    help="one of the features; any: all that the text allows",
    options=("any", *sorted(FEATURES)),
)


def _sites(text: str, blocked: Sequence[Span], feature: str, language: str) -> list[Replacement]:
    found = rule_places(text, blocked, _ALL if feature == "any" else FEATURES[feature])
    if not any(new.startswith("ain") for _, _, new in found):
        return found
    passives = {start for start, _ in passive_auxiliaries(text, language)}
    return [site for site in found if site[0] not in passives or not site[2].startswith("ain")]


@site_perturbation(
    "dialect",
    version=2,
    title="features of dialects",
    sites=_sites,
    family="wording",
    group="everyday wording",
    default_rate=1.0,
    parameters=(_FEATURE,),
    invariants=("target", "choices", "numbers", "code", "negations", "lines"),
    languages=("en",),
)
def dialect(text: str, site: Replacement, rng: Rng, feature: str, language: str) -> Replacement:
    """Writes features that many dialects of English share: *them birds*, *she don't*.

    They are no portrait of a dialect, and need a speaker's review.
    """
    return site
