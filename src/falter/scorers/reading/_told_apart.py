"""Numbers told apart: by the question, by when they hold, and by what is worked out of others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._asked import Asked, measured_in, words_of
from falter.scorers.reading._number_words import MONTH, VERB
from falter.scorers.reading._numerals import Number
from falter.scorers.reading._text_words import same_noun

_APART = late_regex(
    r"[,;:—]\s|\s(?:and|but|while|whereas|und|aber|während|et|mais|tandis que|y|pero|mientras|e|ma"
    r"|mentre|en|maar|terwijl|enquanto)\s",
    re.IGNORECASE,
)


def segment(text: str, start: int, end: int, number: Number) -> str:
    """The part of a sentence that a number is in, between commas and words that coordinate."""
    cuts = [m.span() for m in _APART.finditer(text, start, end)]
    left = max((b for a, b in cuts if b <= number.start), default=start)
    right = min((a for a, b in cuts if a >= number.end), default=end)
    return text[left:right]


def asked_about(said: Mapping[Number, str], asked: Asked) -> Number | None:
    """The one number whose words have something of the question that no other's have.

    >>> from falter.scorers.reading._asked import asked_for
    >>> from falter.scorers.reading._numerals import numbers
    >>> begun, done = numbers("begun in 1924, completed in 1932")
    >>> said = {begun: "begun in 1924", done: "completed in 1932"}
    >>> asked_about(said, asked_for("In which year was the bridge completed?")) is done
    True
    """
    words = {x: _of_question(text, asked) for x, text in said.items()}
    values = {x.value for x in words}
    own = {
        value: frozenset().union(*(w for x, w in words.items() if x.value == value))
        - frozenset().union(*(w for x, w in words.items() if x.value != value))
        for value in values
    }
    telling = [value for value, rest in own.items() if rest]
    if len(values) < 2 or len(telling) != 1:
        return None
    return [x for x in words if x.value == telling[0]][-1]


def _of_question(text: str, asked: Asked) -> frozenset[str]:
    """The words of a question that a text has, as the question writes them."""
    own = words_of(text)
    return frozenset(x for x in asked.words if any(same_noun(w, x) for w in own))


_DATE = late_regex(
    rf"(?:\b(?:in|since|until|as of|stand|im jahr|im jahre|seit|depuis|en|desde|nel|dal|em|sinds"
    rf"|{MONTH},?|the)|\d(?:st|nd|rd|th|\.)?,?)\s$",
    re.IGNORECASE,
)
_AFTER_YEAR = late_regex(
    r"\s*(?:[).,;:!?\]]|\Z|\s(?:census|survey|report|data|estimates?|edition|figures?|election|he"
    r"|is|was|were|are|had|has|have|will|would|hat|war|betrug|est|était|fue|era|è|foi|bedroeg|hatte"
    r"|she|it|they|the|a|an|and|but|when|after|with|at|which|volkszählung|recensement|censo"
    r"|censimento|volkstelling)\b)",
    re.IGNORECASE,
)


def says_when(text: str, number: Number) -> bool:
    """Whether a number is the year of a date: in 1998, as of 2021, the 2019 census."""
    if not re.fullmatch(r"1[5-9]\d\d|20\d\d", text[number.start : number.end]):
        return False
    before = text[max(0, number.start - 20) : number.start]
    return bool(_DATE.search(before) and _AFTER_YEAR.match(text, number.end))


_ITEM = late_regex(r"^[ \t]*[-*•+][ \t]", re.MULTILINE)


def in_items(text: str, numbers: Sequence[Number], asked: Asked) -> list[Number]:
    """The numbers of a list's items that are no answer, since each item has one of its own.

    Left out of them is what counts the thing that the question counts, where one item alone does.
    """
    items = [x for x in numbers if _ITEM.match(text, text.rfind("\n", 0, x.start) + 1)]
    if len({x.value for x in items}) < 2:
        return []
    fits = {x.value for x in items if measured_in(text, x, asked)}
    return [x for x in items if len(fits) != 1 or x.value not in fits]


def as_asked(text: str, pool: Sequence[Number], asked: Asked) -> tuple[list[Number], bool]:
    """The numbers without those of another unit, and whether only some with the right one are left.

    Nothing is left out where no number has what was asked for.
    """
    fits = {x: measured_in(text, x, asked) for x in pool}
    if True not in fits.values():
        return list(pool), False
    counted = {x.value for x in pool if fits[x]}
    if asked.nouns and asked.measure is None and len(counted) == 1:
        given = [x for x in pool if x.value in asked.given]
        if len(given) == len(pool) or not counted & {x.value for x in given}:
            return [x for x in pool if fits[x]], True
    left = [x for x in pool if fits[x] is not False]
    return left, len(left) < len(pool) and all(fits[x] for x in left)


_IF = late_regex(r"\W*(?:if|when|wenn|si|se|als|quando|cuando)\s[^,]{5,200},", re.IGNORECASE)


def granted(text: str, span: tuple[int, int], inside: Sequence[Number], asked: Asked) -> bool:
    """Whether a sentence opens with a condition that only says again what the question gives."""
    condition = _IF.match(text, *span)
    supposed = [x for x in inside if condition and x.start < condition.end()]
    return bool(supposed) and all(x.value in asked.given for x in supposed)


def most_about(
    text: str, span: tuple[int, int], said: Sequence[Number], asked: Asked
) -> Number | None:
    """The only number whose part of the sentence says most of what the question asks about."""
    around = {x: segment(text, *span, x) for x in said}
    shares = {x: asked.shared(words) for x, words in around.items()}
    most = max(shares.values())
    best = [x for x in said if shares[x] == most]
    return best[0] if most > 1 and len(best) == 1 else asked_about(around, asked)


def after_verb(text: str, at: int, later: Sequence[Number]) -> Number:
    """The number behind the verb that follows a cue; the first one where it comes at once."""
    verb = VERB.search(text, at, later[-1].start)
    behind = [x for x in later if verb and x.start >= verb.end()]
    if len(later) > 1 and _IS.fullmatch(text, later[0].end, later[1].start):
        return later[1]
    worked = len(later) > 1 and _WORKED.match(text, later[0].end, later[-1].start)
    if worked and (result := [x for x in later if 0 <= x.start - worked.end() < 3]):
        return result[0]  # so 15 % of 80 is 12
    if later[0].start - at < 4:
        return later[0]
    return (behind or list(later))[0]


_IS = late_regex(
    r"\s*(?:[^\W\d]{1,15}\s|[%€$]\s?)?(?:is|are|equals?|makes?|have|has|costs?|contains?|needs?"
    r"|takes?"
    r"|gives?|weighs?|holds?|ist|sind|est|es|è|é|=)\s"
    r"(?:about |roughly |exactly |only )?[$€£]?",
    re.IGNORECASE,
)
_WORKED = late_regex(
    r"\s?(?:%|percent|prozent|pour cent|por ciento|per cento|procent|por cento)?\s?"
    r"(?:of|times|multiplied by|plus|minus|divided by|over|von|mal|geteilt durch|de|fois|divisé par"
    r"|por|entre|di|per|diviso|van|keer|gedeeld door|vezes|dividido por|[-−+×x*/÷·])\s?"
    r"[$€£]?\d[\d.,]*\s?[^\W\d]{0,12}\s?(?:is|are|equals?|makes?|gives?|ist|sind|ergibt|est|fait|es|è|é"
    r"|son|fa|sono|maakt|são|dá|=)\s",
    re.IGNORECASE,
)
