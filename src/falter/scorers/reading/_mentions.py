"""The mentions of candidates in a text, each with how firmly it is made.

Every mention of a candidate has been replaced by one character (`token`), so that the words around
it can be looked at in any language.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._clause_words import CARRIER
from falter.scorers.reading._clauses import Clause, Part, clauses, is_question, sentences
from falter.scorers.reading._words import (
    ADVERSATIVE,
    COMMIT,
    CONCLUSION,
    CONFIRMED,
    EARLIER,
    FINAL,
    JOINED,
    NEGATION,
    NEGATION_AFTER,
    SOFT,
    SOFT_AFTER,
)

WINDOW = 120  # characters around a mention that are looked at
_BASE, _INFLECTED = 0xE000, 0xF000
MOST = _INFLECTED - _BASE - 1
CLASH = chr(_INFLECTED - 1)
"""Stands for a letter followed by another option's text."""
ANY = "[\ue000-\uf8ff]"
_QUOTE = "[\"'“”„«»‘’(\\[*_「」『』]"
DRESS = "[\\s\"'“”„«»‘’()\\[\\]*_.,:;!`{}<>「」『』。、✅✓✔☑👉🎉•–—-]"


def token(index: int, *, inflected: bool = False) -> str:
    """The character for a mention of the candidate with this index."""
    return chr((_INFLECTED if inflected else _BASE) + index)


def who(char: str) -> int:
    """The candidate that a character stands for; -1 for a clash."""
    if char == CLASH:
        return -1
    code = ord(char)
    return code - (_INFLECTED if code >= _INFLECTED else _BASE)


@dataclass(frozen=True, slots=True)
class Mention:
    """A candidate in a text.

    Levels: 4 marked as the answer, 3 concluded, 2 stated, 1 merely there, 0 weighed, -1 denied.
    """

    at: int
    who: int
    level: int
    firm: bool = False
    """Whether words of conclusion give it."""
    part: Part = Part.SAID


def _re(*parts: str) -> re.Pattern[str]:
    return late_regex("".join(parts), re.IGNORECASE)


# Whole words and possessive: a reply of a hundred *a* can be cut up in one way only.
_FILLERS = (
    r"(?:\s|l'|\b(?:nur|noch|seulement|sólo|solo|soltanto|alleen|só|apenas|lettre|letra|buchstabe"
    r"|the|an?|my|of|one|option|answer|choice|label|category|class|tag|letter|queue|number"
    r"|called|itself|simply|just|quite|rather|very|only|probably|likely|most likely|definitely"
    r"|clearly|therefore|really|still|indeed"
    r"|die|der|das|dem|den|ein|eine|einer|wohl|la|le|les|un|une|el|los|il|lo|uno|una"
    r"|de|het|een|o|um|uma|opción|opzione|optie|opção|alternativa|alternative|réponse|antwort|respuesta|risposta"
    r"|antwoord|resposta|type)\b)*+"
)
_LEADING = rf"(?:{_FILLERS}{_QUOTE}*\s*)"
_MARKED = _re(r"(?:^|\n|[.!?…] )[\W_]*(?:\d+[.)]\s*)?(?:", FINAL, rf"){_LEADING}$")
_CONCLUDED = _re(
    CONCLUSION,
    rf"[\s,:：*_-]*(?:(?:{COMMIT}|it|this|this one|them|him|her|that|(?:this|that|the"
    rf"|your) [^\W\d]+|to|in|into|under|as|for|with|ticket|case|message"
    rf"|one)[\s:,]*){{0,3}}{_LEADING}$",
)
_STATED = _re(COMMIT, rf"[\s:：*_]*{_LEADING}$")
_TICK = late_regex(r"^[\s*_•-]*[✅✔☑👉][\s*_]*$")
_DENIED, _DENIED_AFTER = _re(NEGATION), _re(NEGATION_AFTER)
_BUT = _re(ADVERSATIVE)
_WEIGHED, _WEIGHED_AFTER, _EARLIER = _re(SOFT), _re(SOFT_AFTER), _re(EARLIER)
_CONFIRMED = _re(CONFIRMED)
_PREFERRED = _re(
    r"\b(?:eher|more|better|sooner|mehr|besser|plutôt|mieux|plus|más|mejor|più|meglio|piuttosto"
    r"|eerder|beter|meer|mais|melhor)\b[^.;]{0,60}\b(?:than|als|que|qu'|che|dan)"
    rf"{_LEADING}$"
)
_UNBEATEN = _re(
    r"(?:\b(?:no|not|none|nothing|never|cannot|nobody|kein\w*|nicht|rien|nada|niente|niets)\b"
    r"|n't\b)[^.;,]{0,40}\b(?:better|closer|more|best|besser|mieux|mejor|meglio|beter|melhor)\b"
    rf"[^.;,]{{0,30}}\b(?:than|als|que|che|dan){_LEADING}$|\bnothing beats{_LEADING}$"
)
_LIKEWISE = _re(
    r"\b(?:likewise|as (?:is|are|does|do|was|were)|so (?:is|are|does|do)|(?:the )?same (?:is true"
    r" |goes |holds )?(?:for|of)|ebenso|genauso|ebensowenig|desgleichen|de même(?: que| pour)?"
    r"|tampoco|igualmente|lo mismo|lo stesso|nemmeno|neanche|neppure|net als|evenmin|nor (?:is|are"
    r"|does|do)|neither (?:is|are|does|do)|and so)[\s,]*"
    rf"{_LEADING}$"
)
_PREDICATE = late_regex(r"\s+[a-z]{2,}s\s")
"""A verb behind a mention that is its subject: ": cd changes the directory"."""
_OWN_LINE = _re(
    r"[\W_]*(?!confiden|reason|note|score|urgency of|question|text|explan)[^\W\d][\w -]{0,25}[:：]"
    rf"{_LEADING}$"
)
_LINE_END = rf"{DRESS}*[^\w\s]*\s*"
"""What surrounds a mention in a first line that is a key and its value."""
_SO = _re(
    r"[\W_]*(?:and |und |et |y |e |en )?(?:so|thus|hence|therefore|consequently|accordingly"
    r"|on balance|on the whole|all things considered|taken together|in summary|to sum up"
    r"|to summari[sz]e"
    r"|summing up|in sum|ultimately|at the end of the day|unterm strich|im großen und ganzen"
    r"|alles in"
    r" allem|dans l'ensemble|en somme|tout compte fait|au final|en general|en definitiva|en resumen"
    r"|nel complesso|tutto sommato|al met al|no geral|no fim das contas|em suma"
    r"|(?:i|we)(?: \w+ly)? conclude(?: that)?|it follows that|this means(?: that)?|je conclus"
    r"|concluyo"
    r"|concludo|concluo|ik concludeer|overall|in (?:short|sum|conclusion)|all in all"
    r"|also(?= (?:ist|sind|bleibt|hat|gehört|gilt|lautet|die|der|das|ich|wir|es))|daher|deshalb"
    r"|somit|folglich|insgesamt"
    r"|donc|ainsi|par conséquent|por (?:lo )?tanto|así que|entonces|en conclusión|quindi|dunque"
    r"|perciò|pertanto|in conclusione|dus|daarom|kortom|portanto|logo|assim|então)(?!\w)"
)
_ALL_BUT = _re(
    r"\b(?:everything|all|every\w+|nothing|none|no (?:one|other)|nobody|alles|alle|nichts"
    r"|tout(?:es)?|rien"
    r"|todo|todas|nada|tutto|tutte|niente|niets)(?: \w+)? (?:but|except|besides|save|außer|sauf"
    r"|hormis"
    rf"|excepto|menos|salvo|tranne|behalve|exceto)(?: for)?{_LEADING}$"
)
_NOT_EVEN = _re(rf"\b(?:anything|everyone|anyone|all) but{_LEADING}$")
_YOURS = _re(
    rf"\b(?:your|deine?\w*|ihre?[mnrs]?|votre|vos|tus?|uw|jouw|seus?|suas?|vostr[aoi]){_LEADING}$"
)
_GENERAL_AFTER = _re(
    r"\s+(?:is|are) (?:only |just |really )?(?:for|about)\b(?! (?:this|that|it)\b)"
)
_TO_SAY = _re(r"\s+to (?:say|claim|assume|think|conclude)\b")
_GRANTED = _re(
    r"\W*(?:yes|that's (?:it|right|correct|the one)|exactly|correct|ja|genau|oui|sí|sì|sim)\b"
)
_LESS = _re(
    r"\b(?:less|weniger|moins|menos|meno|minder|not so much)\b[^.;]{0,60}\b(?:than|as|als|que|che"
    r"|dan)"
    rf"{_LEADING}$"
)
_LESS_OF = _re(rf"\b(?:less|weniger|moins|menos|meno|minder|not so much){_LEADING}$")
_RANGE = _re(rf"\bfrom{_LEADING}$|\bfrom\b[^.;]{{0,30}}\b(?:to|through){_LEADING}$")
_MOVED = _re(
    r"\b(?:(?:down|up)grad\w+|escalat\w+|bump\w*|demot\w+|promot\w+|mov\w+|chang\w+|switch\w*"
    r"|re-?rout\w+|reassign\w*|transfer\w*|reclassif\w+|rais\w+"
    r"|lower\w*|turn\w*)\b"
)
_TO = _re(rf"\bfrom\b[^.;]{{0,30}}\bto{_LEADING}$")
_FROM_HERE = _re(rf"\bfrom{_LEADING}$")
_GAPPED = _re(r"[\W_]*(?:and|or|und|oder|et|ou|y|o|e|en|of)(?: also)?\s+$")
_REASONED = _re(
    r"\s*(?:because|since|as|due to|for|weil|da|denn|car|parce|porque|perché|omdat|pois)\b"
)
_EXISTS = _re(rf"\bthere(?:'s| is| are| was| were) (?:some |also |even )*{_LEADING}$")
_NAMED = _re(
    r"\s+(?:\w+ )?(?:mentioned|named|quoted|referred to|brought up|erwähnt|genannt|mentionné"
    r"|citad[ao]"
    r"|mencionad[ao]|menzionat[ao]|genoemd)"
)
_PRONOUN = _re(r"\b(?:i|we|you|it|he|she|they|ich|wir|je|ik|yo)\b")
_NARROW = _re(r"(?:without|ohne|sans|sin|senza|zonder|sem|no|kein\w*|geen|none)\Z")
JOIN = late_regex(rf"(?<={ANY}){JOINED}(?={ANY})", re.IGNORECASE)
_GOES_ON = _re(
    rf"\s+{CARRIER}\s*[.!,;:—–]|"
    r"['\"”»)*_]*\s*(?:[,;:—–-]\s*\w|\(|(?:because|since|as|given|weil|denn|parce que|car|porque"
    r"|perché|omdat|pois)\b)"
)
_OTHER_NOUN = late_regex(r"['\"”»)*_]{0,3}[ -]([^\W\d_A-Z\ue000-\uf8ff]{3,})(?!\w)")
_NO_NOUN = _re(
    rf"(?:{CARRIER}|is|was|are|were|has|have|had|and|but|for|because|since|with|from|here|about"
    r"|this|that|these|it|then|too|either|again|now|over|under|than|rather|when|where|which|who"
    r"|due|by|without|within|after|before|during|despite|although|though|while|if|unless|per"
    r"|only|just|alone|overall|instead|based|given|not|all|into|onto|near|between|through|the"
    r"|also|still|most|more|very|so|as|at|in|on|of|to|or|\w+ed|\w+ing|\w+ly|does|did|do|will"
    r"|can|must|should|und|oder|weil|denn|aber|mit|für|von|aus|bei|nach|ist|wurde|wird|car|mais"
    r"|pour|dans|avec|sur|est|puisque|qui|que|por|para|con|pero|porque|como|del|per|perché|dal"
    r"|nel|zur|zum|im|am|vom|beim|du|des|de|la|le|les|al|della|dello|di|da|sobre|pro|no|na"
    r"|want|omdat|voor|met|van|aan|bij|pois|com|mas|\w*(?:ment|mente))"
)


def mentions_in(text: str, *, attributive: bool = False) -> list[Mention]:
    """The mentions of a text in order, each with its level.

    With `attributive`, one that qualifies another noun (a login page) is not even there.
    """
    if re.search(ANY, text) is None:
        return []
    spans, parts = sentences(text), clauses(re.sub(ANY, "x", text))
    attributive = attributive and len(text.split()) > 3  # "Technical support" is the whole reply
    found: list[Mention] = []
    asked, clause = False, 0
    interim = _several_questions(text, spans)
    for start, end in spans:
        sentence = text[start:end]
        places = [m.start() for m in re.finditer(ANY, sentence)]
        for n, at in enumerate(places):
            while parts[clause].end <= start + at and clause + 1 < len(parts):
                clause += 1
            around = _Around(text, start, end, start + at, parts[clause], asked, not found)
            around.strict = attributive
            joined = JOIN.match(sentence, places[n - 1] + 1) if n else None
            if joined and (joined.end() != at or _across(joined[0], found[-1], around.part)):
                joined = None
            own = joined and _DENIED.search(joined[0])
            firm = False
            if joined and not own and found and found[-1].level <= 0:
                level = found[-1].level
            elif (
                (found and found[-1].level < 0 and _LIKEWISE.search(around.left))
                or (found and found[-1].level < 0 and found[-1].at >= start and around.gapped())
                or (around.part is not Part.ASKED and around.denied())
            ):
                level = -1
            else:
                level, firm = around.level()
            if interim and asked and level == 2 and not firm:
                level = 0
            inflected = ord(sentence[at]) >= _INFLECTED
            if inflected and 0 < level < 3:
                level = 0 if attributive and around.begins() else 1
            found.append(Mention(start + at, who(sentence[at]), level, firm, around.part))
        asked = is_question(sentence)
    return found


def _across(joint: str, before: Mention, part: Part) -> bool:
    """Whether two mentions side by side only have a comma between their clauses."""
    return not joint.strip(" ,、") and before.part is not part


def _several_questions(text: str, spans: list[tuple[int, int]]) -> bool:
    """Whether a text asks itself several questions, each answered on the way."""
    pairs = itertools.pairwise(spans)
    answered = [
        1
        for (a, b), (c, d) in pairs
        if text[a:b].rstrip().endswith(("?", "？")) and re.match(rf"{DRESS}*{ANY}", text[c:d])
    ]
    return len(answered) > 1


class _Around:
    """The words around a mention."""

    def __init__(
        self, text: str, start: int, end: int, at: int, clause: Clause, asked: bool, first: bool
    ) -> None:
        line = text.rfind("\n", 0, start) + 1
        self.part = clause.part
        self.left = re.sub(ANY, "x", text[max(start, at - WINDOW) : at])
        self.line = re.sub(ANY, "x", text[max(line, at - WINDOW) : at])
        self.right = text[at + 1 : min(end, at + WINDOW)].rstrip("\n")
        self.rest = text[at + 1 : at + WINDOW].partition("\n")[0]
        self.own = re.sub(ANY, "x", text[max(clause.start, at - WINDOW) : at])
        self.question = is_question(text[start:end])
        self.answer = text[end : end + 30]
        self.after_question = asked
        self.strict = False
        self.opening = first and not text[:start].strip()

    def begins(self) -> bool:
        """Whether the mention is the first word of its sentence, with a predicate behind it."""
        return not self.left.strip() and re.match(r"\s+[^\W\d_A-Z]", self.right) is not None

    def gapped(self) -> bool:
        """Whether a clause leaves out the verb of the one before it: "and C because …"."""
        return _GAPPED.fullmatch(self.own) is not None and _REASONED.match(self.right) is not None

    def denied(self) -> bool:
        """Whether the words around the mention deny it."""
        if _UNBEATEN.search(self.left) or _ALL_BUT.search(self.left):
            return False
        if _LESS.search(self.left):
            return False
        if _NOT_EVEN.search(self.left) or _LESS_OF.search(self.left):
            return True
        if _PREFERRED.search(self.left):
            return True
        clause = self.left[-60:]
        clause = clause[max((m.end() for m in _BUT.finditer(clause)), default=0) :]
        hits = list(_DENIED.finditer(clause))
        if hits:
            between = clause[hits[-1].end() :]
            narrow = _NARROW.search(hits[-1][0]) and _PRONOUN.search(between)
            if (
                len(between) < 45
                and not narrow
                and not re.search(
                    r"[;:。—–→⇒]|->|=>|[,、](?!\s*(?:or|nor|oder|ni|né)\s*$)|\bbecause\b|\bso\b",
                    between,
                )
            ):
                return True
        return _DENIED_AFTER.match(self.right) is not None

    def level(self) -> tuple[int, bool]:
        """How firmly the mention is made, and whether by words of conclusion."""
        if _MARKED.search(self.line):
            return 4, True
        if _TICK.search(self.line):
            return 3, True
        lead = self.left.strip(" \t\"'“„«*_([-•>=→👉✅❌✔☑✓✗")
        if re.fullmatch(_FILLERS, lead, re.IGNORECASE) and re.fullmatch(
            rf"{DRESS}*", self.right.strip(" ?？" if self.question else None)
        ):
            if self.question and _GRANTED.match(self.answer):
                return 3, False
            return (1 if self.question else 2 if self.after_question else 3), False
        if self.part is Part.ASKED:
            return 0, False
        if self.opening and _OWN_LINE.match(self.line) and re.fullmatch(_LINE_END, self.rest):
            return 4, True
        if (
            self.opening
            and re.fullmatch(_FILLERS, lead, re.IGNORECASE)
            and _GOES_ON.match(self.right)
        ):
            return 3, False
        if self.part not in (Part.SAID, Part.ASIDE) or _EARLIER.search(self.own):
            return 0, False
        if _TO_SAY.match(self.right):
            return 0, False
        concluded = _CONCLUDED.search(self.left) is not None
        if concluded or self._superlative() or _CONFIRMED.match(self.right):
            return (3 if self.part is Part.SAID else 1), concluded
        level = self._stated()
        if self.part is Part.ASIDE:
            return (1 if level == 2 else 0), False
        if level == 2 and _SO.match(self.own):
            return 3, True
        return level, False

    def _superlative(self) -> bool:
        return bool(
            _UNBEATEN.search(self.left) or _ALL_BUT.search(self.left) or _LESS.search(self.left)
        )

    def _stated(self) -> int:
        if _RANGE.search(self.left) and not _MOVED.search(self.left):
            return 0
        if _MOVED.search(self.own) and _TO.search(self.left):
            return 2
        if _MOVED.search(self.own) and _FROM_HERE.search(self.left):
            return 0
        if _YOURS.search(self.left) or _GENERAL_AFTER.match(self.right):
            return 0
        if _WEIGHED_AFTER.match(self.right) or _WEIGHED.search(self.own):
            return 0
        bare = re.fullmatch(rf"{DRESS}*", self.right) is not None
        if self.own != self.left and not self.own.strip(" \"'“„«*_([") and bare:
            return 3
        if _EXISTS.search(self.left) or _NAMED.match(self.right):
            return 0 if _NAMED.match(self.right) else 2 if _SO.match(self.own) else 1
        if _STATED.search(self.left) and not re.match(
            r"\s+(?:has|have|had|is|was|would|will|can)\b", self.right
        ):
            subject = self.left.rstrip(" *_`\"'").endswith(":") and _PREDICATE.match(self.right)
            return 1 if subject else 2
        noun = _OTHER_NOUN.match(self.right) if self.strict else None
        return 0 if noun and not _NO_NOUN.fullmatch(noun[1]) else 1
