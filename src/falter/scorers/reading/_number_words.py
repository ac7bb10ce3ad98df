"""The words around numbers: what marks, concludes, limits them or counts beside them."""

from __future__ import annotations

import re

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._clause_words import IDLE_IF
from falter.scorers.reading._words import CONCLUSION, FINAL


def _re(*parts: str) -> re.Pattern[str]:
    return late_regex("".join(parts), re.IGNORECASE)


LIMIT = _re(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|under|above|below|up to|no "
    r"more than|no fewer than|minimum of|maximum of|mindestens|höchstens|mehr als|weniger als"
    r"|au moins|au plus|plus de|moins de|al menos|más de|menos de|almeno|più di|meno di"
    r"|minstens|meer dan|pelo menos|mais de)|[<>≤≥])\s*(?:[$€£]|about)?\s*$"
)
BESIDE = _re(
    r"(?:\b(?:steps?|note|page|chapter|section|part|item|question|rule|version|figure|table"
    r"|line|day|row|no\.|number|nr\.?|option|room|paragraph|team|player|box|room|schritt|seite"
    r"|étape|page|paso|passo|stap|passo|article|artikel|option|week|phase|exercise|level|grade"
    r"|type|id|code|request|error|status|chapter|verse|platform|gate|bus|tram|flight)\s*#?|#)$"
)
ORDINAL = late_regex(
    r"(?:st|nd|rd|th)\b|h\b(?=\s*(?:e|y|et|und|and|[.,;]|$))|[:/]\d|(?:\.|er|ère|ème|º|ª"
    r"|e)\s(?=(?:januar|februar|märz|april|mai"
    r"|juni|juli|august))|%?\s*(?:o'clock|uhr\b|a\.m\.|p\.m\.|am\b|pm\b)|\s*h\b(?:\s*\()"
)
MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|s)?|märz|apr(?:il)?|may|mai|june?"
    r"|juni|juin|july?|juli|juillet|aug(?:ust)?|août|sept?(?:ember)?|oct(?:ober)?|oktober"
    r"|octobre|nov(?:ember|embre)?|dec(?:ember)?|dezember|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b"
)
DATED = _re(
    rf"(?:\s+|\s?(?:-|–|au|to|bis|al?|tot|e|y|et|und|and|en)\s?\d{{1,2}}\.?\s+)(?:de )?{MONTH}"
)
CHECKED = _re(
    r"\b(?:check|double-?check(?:ing)?|verify|verification|checking|probe|vérif\w*|proof"
    r"|for comparison)\b"
)
ELSEWHEN = _re(
    r"\b(?:remaining|would only|last (?:week|year|month)|previous(?:ly)?|earlier|compared?"
    r"|yesterday"
    r"|letzte[nsr]? (?:jahr|woche|monat)|gestern|l'an dernier|hier|el año pasado|ayer|l'anno scorso"
    r"|ieri|vorig jaar|gisteren|no ano passado|ontem)\b"
)
MARK = _re(r"^[\W_]*(?:", FINAL, r")")
SUM = _re(
    r"^[\W_]*(?:in total|total|altogether|overall|final|sum|grand total|insgesamt|gesamt"
    r"|zusammen|au total|en total|in totale|totaal|no total|合計)\b[^.\n]{0,40}?[:=]"
)
CUE = _re(
    CONCLUSION,
    r"|\b(?:(?:you|we|i|that|this|one) (?:have|has|get|gets|obtain)|in total|altogether"
    r"|total (?:of|is)|so there|so the|that is,? in|comes? to|amounts? "
    r"to|adds? up to|equals?|which gives|gives us|we get|you get|leaves|that leaves|the "
    r"(?:answer|result|total|sum|number)(?: of [^.,;\d]{1,40})? (?:is|was|equals|comes to)"
    r"|the rest is"
    r"|insgesamt|ergibt|macht|beträgt|zusammen|au total|cela fait|en total|suman?|in totale|in "
    r"tutto|fanno|totaal|samen|no total|ao todo|soit|o sea|quindi|right, then|then)\b|合計|全部で",
)
VERB = _re(
    r"(?:=|'s\b|\b(?:is|are|was|were|be|has|have|had|need|needs|costs?|weighs?|takes?|leaves?"
    r"|makes?"
    r"|equals?|get|gives?|totals?|holds?|contains?|pays?|left with|ist|sind|hat|kostet|kosten"
    r"|beträgt|est|sont|es|son|è|sono|is|zijn|kost|é|são|hay|il y en a|be about)\b)"
)
MAYBE = _re(
    r"\b(?:if|unless|otherwise|either|depending|could be|might be|maybe|perhaps|vielleicht"
    r"|falls (?:der|die|das|es|sie|er|ich|man|du|ihr|wir|ein|kein|nicht|doch|dem|den)|wenn"
    r"|peut-être|talvez|quizás?|tal vez|forse|misschien)\b"
)
TRUST = _re(
    rf"\bif{IDLE_IF}|"
    r"\bif (?:the|you|i|my|that)\b[^,.]{0,40}(?:trusted|insist|right|ask|mistaken|must|had to"
    r"|correctly|correct|remember|recall|counted)"
    r"|\b(?:even|as) if\b"
)
ADJACENT = _re(
    r"\b(?:is|are|was|were|makes?|gives?|equals?|leaves?|yields?|has|have|had|costs?|weighs?"
    r"|takes?|pay|holds?|contains?|counts?"
    r"|there are|lasts?|home to|in|hat|kostet|beträgt|liegt bei|est|compte|tiene|hay|ha|costa"
    r"|telt|heeft|tem|custa|há)"
    r"\s+(?:about|roughly|around|exactly|some|only|just|nearly|almost|etwa|rund|genau|environ"
    r"|unos|unas|circa|ongeveer|cerca de)?\s*[$€£¥]?$"
)

UNIT = r"[\s$€£¥₹%°]*(?:[^\W\d]{1,20}\.?(?:/[^\W\d]{1,6})?[²³]?)?(?:\s+[^\W\d]{1,15}){0,2}"
