"""Mistakes of learners of English, as rules: where each may be made, and what is written then."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from falter.core.records import Span
from falter.perturbations._rules import Rule, rule_places
from falter.text import Replacement

__all__ = ["learner_errors"]


def _words(*pairs: tuple[str, str]) -> Rule:
    """A set phrase written as another: *depend on* as *depend of*."""
    table = dict(pairs)
    pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, table), key=len, reverse=True))})\b")
    longest = frozenset(max(phrase.split(), key=len) for phrase in table)
    return Rule(pattern, lambda match: table[match[1]], longest)


def _rule(pattern: str, write: Callable[[re.Match[str]], str], words: str) -> Rule:
    return Rule(re.compile(pattern), write, frozenset(words.split()))


_UNCOUNTED = (
    "advice", "baggage", "equipment", "evidence", "feedback", "furniture", "homework",
    "information", "knowledge", "luggage", "music", "software", "traffic",
)  # fmt: skip
# Where such a noun ends its group of words: in *traffic jam* and *music teacher* it does not.
_NOUN_ENDS = (
    r"(?=[.,;:?!)]|\Z|\s(?:about|and|are|as|at|because|but|by|can|could|did|do|does|for|from|had|has"
    r"|have|he|if|in|into|is|it|of|on|or|she|so|than|that|they|to|was|we|were|when|which|while|who"
    r"|will|with|would|you)\b)"
)
_VERBS = (
    "asks", "becomes", "begins", "believes", "belongs", "breaks", "brings", "builds", "buys",
    "calls", "comes", "contains", "costs", "decides", "drinks", "drives", "earns", "eats",
    "feels", "finds",
    "gets", "gives", "grows", "happens", "helps", "keeps", "knows", "learns", "likes", "lives",
    "loses", "loves", "makes", "means", "moves", "needs", "pays", "plays", "produces", "reads",
    "runs", "says", "sees", "sells", "sends", "shows", "sings", "sleeps", "spends", "starts",
    "takes", "tells", "thinks", "uses", "wants", "walks", "wears", "wins", "works", "writes",
)  # fmt: skip
# Without the article these would say another amount, or another one.
_COUNTING = (
    "most|least|same|other|others|rest|more|less|fewer|only|first|second|third|last|next|few|little"
    "|lot|lots|couple|pair|dozen|hundred|thousand|million|billion|half|quarter|single|double|total"
    "|dead|living|poor|rich|old|young|blind|deaf|sick|right|left|past|future|whole|number|day|week|month|year|hour|minute|second|time|piece|certain|one|two|three|four|five|board|case"
)
_PAST = (
    ("become", "became"), ("begin", "began"), ("bring", "brought"), ("build", "built"),
    ("buy", "bought"), ("come", "came"), ("drink", "drank"), ("eat", "ate"), ("find", "found"),
    ("get", "got"), ("give", "gave"), ("go", "went"), ("happen", "happened"), ("have", "had"),
    ("make", "made"), ("say", "said"), ("sell", "sold"), ("spend", "spent"), ("start", "started"),
    ("take", "took"), ("use", "used"), ("want", "wanted"), ("win", "won"), ("write", "wrote"),
)  # fmt: skip
_PAST_OF = dict(_PAST)
_PLAIN_PAST = "|".join(verb if verb != "use" else r"use(?! to\b)" for verb in _PAST_OF)
_NO_SUBJECT = "the|an?|this|that|these|those|my|your|his|her|its|our|their|some|any|no|each|every"
_RULES: tuple[Rule, ...] = (
    # articles: the and a are left out where they count nothing, a stands for an
    _rule(rf"the (?<=[a-z] the )(?!(?:{_COUNTING})\b)(?=[a-z]{{3,}})", lambda match: "", "the"),
    _rule(rf"\b((?:as|be|had|has|have|is|of|to|under|was|with) )an? (?!(?:{_COUNTING})\b)"
          r"(?=[a-z]{3,})", lambda match: match[1], "a an"),
    _rule(r"\ban(?= [aeiou][a-z]{2,})", lambda match: "a", "an"),
    # agreement
    _rule(rf"(?<=\b[Hh]e )({'|'.join(_VERBS)})\b|(?<=\b[Ss]he )({'|'.join(_VERBS)})\b"
          rf"|(?<=\b[Ii]t )({'|'.join(_VERBS)})\b",
          lambda match: match[0][:-1] if not match[0].endswith("ies") else match[0][:-3] + "y",
          " ".join(_VERBS)),
    _rule(r"\b(?:people) are\b", lambda match: "people is", "people"),
    _rule(rf"\b(?:{'|'.join(_UNCOUNTED)})\b{_NOUN_ENDS}", lambda match: match[0] + "s",
          " ".join(_UNCOUNTED)),
    # did + past
    _rule(rf"\b(did (?!(?:{_NO_SUBJECT}) )(?:I|[a-z]+) )({_PLAIN_PAST})\b",
          lambda match: match[1] + _PAST_OF[match[2]], "did"),
    # prepositions that a word asks for, so that another one does not change the sense
    _words(
        ("depend on", "depend of"), ("depends on", "depends of"),
        ("interested in", "interested on"),
        ("listen to", "listen"), ("different from", "different of"), ("married to", "married with"),
        ("good at", "good in"), ("bad at", "bad in"), ("consists of", "consists in"),
        ("responsible for", "responsible of"), ("afraid of", "afraid from"),
        ("example of", "example for"), ("reason for", "reason of"), ("full of", "full with"),
        ("discuss the", "discuss about the"), ("explain why", "explain me why"),
        ("according to", "according with"), ("capable of", "capable to"),
        ("in the world", "on the world"),
        *((f"{be} used to make", f"{be} used for make")
          for be in ("are", "be", "been", "is", "was", "were")),  # not *he used to make money*
    ),
)  # fmt: skip


def learner_errors(text: str, blocked: Sequence[Span]) -> list[Replacement]:
    """The mistakes that can be made in a text, none inside another."""
    return rule_places(text, blocked, _RULES)
