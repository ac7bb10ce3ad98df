"""Whether a reply takes its answer back without giving another."""

from __future__ import annotations

import re

from falter.records.lazy_regex import late_regex

_RETRACTS = (
    r"(?:scratch|strike|ignore|disregard|forget) (?:that|this|it|what i (?:just )?said|my (?:answer"
    r"|last \w+))(?=\s*[.!,;:…]|\s*$|\s+(?:answer|completely|please))"
    r"|i(?:'ll| will| have to| must)? (?:take (?:that|it|this) back|retract (?:that|this|it|my))"
    r"|i no longer (?:think|believe)|(?:edit|correction|update)\s*[:—–-]+\s*(?:that|this) (?:is"
    r"|was)"
    r" (?:wrong|incorrect)|ich nehme das zurück|das nehme ich zurück|vergiss (?:das|es)"
    r"|je retire (?:ma réponse|ce que)|oubliez (?:ça|cela)|lo retiro|olvida eso|retiro lo dicho"
    r"|ritiro (?:quanto|la risposta)|dimentica quanto|dat neem ik terug|vergeet dat"
    r"|retiro o que disse|esqueça isso"
)
_GIVES_UP = (
    r"(?:^|[.!?\n;,—–]\s*)(?:however|but|actually|hmm+|wait|on reflection|then again|that said"
    r"|although|though|still|on second thoughts?|aber|mais|pero|ma|maar|mas)\b[^.!?\n]{0,120}?"
    r"\b(?:i )?(?:can't|cannot|can not|couldn't|am unable to|am not able to|kann ich[^.!?\n]{0,20}"
    r"nicht|je ne peux pas|no puedo|non posso|kan ik[^.!?\n]{0,20}niet|não posso)"
    r" (?:really |actually |honestly |truly |now |vraiment |realmente )?(?:say|tell|decide"
    r"|determine"
    r"|classify|choose|answer|know|label|judge|settle|sagen|entscheiden|dire|trancher|decir|decidir"
    r"|zeggen|dizer)\b(?! (?:for (?:sure|certain)|with|more|much|anything|whether|if|mit|avec"
    r"|con\b))"
)
_WITHDRAWN = late_regex(rf"\b(?:{_RETRACTS})|{_GIVES_UP}", re.IGNORECASE)

PLANS = late_regex(
    r"\W*(?:(?:ok(?:ay)?|sure|alright|hmm+|so)[,.!]? )?(?:let me|let's|let us|i'll|i will|i need to"
    r"|first|to (?:answer|determine|solve|find|decide|work)|step 1|we (?:need|have) to|lass|schauen"
    r" wir|zuerst|zunächst|d'abord|voyons|regardons|primero|veamos|vamos a|prima|vediamo|eerst"
    r"|laten we|primeiro|vamos)\b",
    re.IGNORECASE,
)
"""How a reply begins that works something out and does not say its answer first."""


def taken_back_at(text: str, at: int) -> int | None:
    """Where a text takes back what it said before, behind a place; None if it does not.

    >>> taken_back_at("It is C. Actually, scratch that. I am not sure.", 6)
    18
    >>> taken_back_at("It is C. However, I can't say for sure.", 6)
    """
    match = _WITHDRAWN.search(text.replace("’", "'"), at)
    return match.start() if match else None
