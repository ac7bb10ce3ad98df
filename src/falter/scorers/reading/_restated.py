"""Whether a reply says again what a yes-or-no question asks, or denies it."""

from __future__ import annotations

import re

from falter.scorers.reading._clauses import Part, clauses, is_question, sentences
from falter.scorers.reading._text_words import folded_word, same_noun
from falter.scorers.reading._words import SOFT

_ASKING_WORDS = (
    "what which who whom whose when where why how wer wen wem wessen wie was wo wann warum"
    " welche welcher welches wieviel qui que quoi quel quelle quels quelles ou quand comment"
    " combien pourquoi cual quien donde cuando como cuanto cuantos cuanta cuantas che chi cosa"
    " quale quando dove come quanto quanti perche wat welk welke waar wanneer hoe waarom"
    " hoeveel qual quem onde por"
)
_ASKING = frozenset(_ASKING_WORDS.split())
_EMPTY_WORDS = (
    "a an the this that these those is are was were be been am do does did done can could has"
    " have had will would shall should may might must of in on at to for from by with and"
    " there it its der die das den dem des ein eine einen einem einer ist sind war waren hat"
    " haben hatte wird werden kann darf soll muss in im am an auf zu zum zur von vom mit und"
    " es sie er bereits le la les un une des du de est sont etait etaient a ont peut doit il"
    " elle ils elles au aux en dans sur et ce cet cette deja el los las una unos es son esta"
    " estan fue ha han puede debe del al y se ya lo gli i uno e sono era puo deve nel nella di"
    " da della dello il ai het een zijn heeft hebben kan mag moet van op te er al os as um uma"
    " sao foi tem pode dos das no na ja according text passage document indeed actually also so"
    " yes laut"
    " zufolge following below above given mentioned"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())
HEDGED = re.compile(
    rf"{SOFT}|\b(?:if|unless|until|till|only|except|but|however|almost|nearly|partly|partially"
    r"|usually|often|sometimes|mostly|mainly|once|used to|supposed|barely|hardly|wenn|falls|nur"
    r"|fast|teilweise|meist\w*|manchmal|bis|aber|außer|si|sauf|seulement|presque|parfois|souvent"
    r"|jusqu|mais|salvo|solo|sólo|casi|veces|pero|hasta|se|quasi|talvolta|spesso|ma|fino|als"
    r"|tenzij|alleen|bijna|soms|vaak|maar|tot|exceto|quase|vezes|mas|até|apenas)\b",
    re.IGNORECASE,
)
DENIAL = re.compile(
    r"\b(?:not|no|never|neither|nor|none|nobody|nothing|cannot|nicht|kein\w*|nie|niemals|pas|jamais"
    r"|aucune?|nunca|ningun[oa]?|ningún|non|mai|nessun\w*|niet|geen|nooit|não|nenhuma?|nem)\b|n't\b"
    r"|ません|ない",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\W*(?:it|they|he|she|this|that|es|sie|er|il|elle|het|hij|ze)\b", re.IGNORECASE
)
_OPPOSITES = """
open closed|open shut|true false|correct wrong|right wrong|safe dangerous|allowed forbidden
allowed prohibited|allowed banned|permitted prohibited|permitted forbidden|alive dead|same different
present absent|passed failed|pass fail|above below|before after|higher lower|larger smaller
bigger smaller|greater less|more less|longer shorter|taller shorter|older younger|faster slower
heavier lighter|earlier later|inside outside|even odd|prime composite|free paid|included excluded
increase decrease|increased decreased|rise fall|rose fell|accepted rejected|empty full|wet dry
offen geschlossen|geoffnet geschlossen|erlaubt verboten|wahr falsch|richtig falsch
gleich verschieden
ouvert ferme|ouverte fermee|permis interdit|vrai faux|abierto cerrado|abierta cerrada
permitido prohibido|verdadero falso|aperto chiuso|aperta chiusa|permesso vietato|vero falso
open gesloten|open dicht|toegestaan verboden|waar onwaar|aberto fechado|aberta fechada
permitido proibido|verdadeiro falso|lebendig tot|gerade ungerade
"""
_OPPOSITE = frozenset(
    pair
    for entry in re.split(r"[|\n]", _OPPOSITES.strip())
    for one, other in [entry.split()]
    for pair in ((one, other), (other, one))
)
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "non-", "on")
_LONGEST = 300  # characters of a sentence that is compared
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:-[^\W\d_]+)*")


def restated(text: str, question: str) -> bool | None:
    """Whether the first or last sentence of a text says what a question asks; None if unclear.

    >>> restated("The museum is closed on Mondays.", "Is the museum open on Mondays?")
    False
    >>> restated("Lake Sivo is deeper than Lake Orun.", "Is Lake Orun deeper than Lake Sivo?")
    """
    wanted = _statement(question)
    if not wanted:
        return None
    if (echoed := _echoed(text, wanted)) is not None:
        return echoed
    spans = sentences(text)
    said = {clause.start for clause in clauses(text) if clause.part is Part.SAID}
    verdicts = set()
    for start, end in dict.fromkeys((*spans[:1], *spans[-1:])):
        sentence = text[start:end]
        chief = (start, end) == spans[0] or len(spans) < 3 or _LINKING.match(sentence) is not None
        spoken = any(start <= s < end for s in said)
        verdict = _verdict(sentence, wanted, freely=chief) if spoken else None
        if verdict is not None:
            verdicts.add(verdict)
    return verdicts.pop() if len(verdicts) == 1 else None


def _echoed(text: str, wanted: list[str]) -> bool | None:
    """From a first sentence that is only what is asked of something: "Not supported." """
    match = _ECHO.match(text)
    if match is None or not any(_same(folded_word(match[2]), word) for word in wanted):
        return None
    return match[1] is None


_ECHO = re.compile(
    r"\W*(not |nicht |pas |no |non |niet |não )?"
    r"([^\W\d_]{2,}(?:ed|able|ible|ive)|legal|valid|safe|allowed|erlaubt|zulässig|autorisée?"
    r"|permis|permitid[oa]|incluid[oa]|permess[oa]|toegestaan)\W*(?:[.!:—–]|$)",
    re.IGNORECASE,
)


def content_words(text: str) -> list[str]:
    """The words and numbers of a text that carry its meaning, folded; the end of a long one."""
    words = [folded_word(w) for w in _WORD.findall(text[-1_000:])]
    return [w for w in words if w not in _EMPTY | _ASKING and (len(w) > 2 or w[0].isdigit())]


def _statement(question: str) -> list[str]:
    """The words of a yes-or-no question that carry its meaning; none of any other question."""
    text = question[-1_000:].strip()
    spans = [text[a:b].strip() for a, b in sentences(text)]
    asked = [s for s in spans if s.rstrip("\"'”»").endswith(("?", "？"))]
    asked = [_SOURCE.sub("?", s) for s in asked]
    if len(asked) != 1 or len(asked[0]) > _LONGEST:
        return []
    if DENIAL.search(asked[0]) or _WITHOUT.search(asked[0]):
        return []
    words = [folded_word(w) for w in _WORD.findall(asked[0])]
    if not words or words[0] in _ASKING or _alternatives(words):
        return []
    if re.match(r"\W*(?:in|at|on|by|for|to|from|according)\b", asked[0], re.IGNORECASE):
        return []
    carrying = [w for w in words if w not in _EMPTY and (len(w) > 1 or w.isdigit())]
    brief = len(carrying) == 1 and len(words) == 3 and _PRONOUN.match(words[1] + " ")
    return carrying if len(carrying) > 1 or brief else []


_SOURCE = re.compile(
    r",? (?:according to|laut|zufolge|gemäß|selon|d'après|según|secondo|volgens|segundo)"
    r"(?: (?:the|dem|der|den|le|la|l'|el|il|lo|de|het|o|a))? ?[^\W\d_]+\s*[?？]",
    re.IGNORECASE,
)
"""The end of a question that names who says so."""


def _alternatives(words: list[str]) -> bool:
    """Whether a question offers two things: "or" in its own language."""
    if {"or", "oder", "either"} & set(words):
        return True
    english = words[0] in _ENGLISH
    return not english and bool({"ou", "of"} & set(words) or ("o" in words[1:] and words[0] != "o"))


_ENGLISH_WORDS = (
    "is are was were do does did can could has have had will would shall should may might must am"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())


def _verdict(sentence: str, wanted: list[str], *, freely: bool) -> bool | None:
    """Whether a sentence holds what is wanted, in its order; False where it denies it.

    Words may be missing where it says nothing else and, if `freely`, where pronouns stand for them;
    a side remark at the end of a long reply is not read so.
    """
    sentence = _LINKING.sub("", sentence, count=1)
    if len(sentence) > _LONGEST or is_question(sentence):
        return None
    if HEDGED.search(sentence) or _WITHOUT.search(sentence):
        return None
    found = [(folded_word(m[0]), m.start()) for m in _WORD.finditer(sentence.replace("'s", "  "))]
    words = [word for word, _ in found]
    if len(wanted) == 1 and len(words) > 5:
        return None
    if (instead := _INSTEAD.search(sentence)) and _same(folded_word(instead[1]), wanted[-1]):
        return False
    at, missing, against = _places(words, wanted, turned=_BY.search(sentence) is not None)
    denials = len(DENIAL.findall(sentence)) + against
    if missing:
        first = _PRONOUN.match(sentence) or _NOT_FIRST.match(sentence)
        subject = missing == list(range(len(missing))) and 2 * len(missing) <= len(wanted)
        if not (subject and first):
            last = found[at - 1][1] if at else 0
            if not _stands_for(sentence, words, wanted, missing, freely=freely):
                return None
            if len(DENIAL.findall(sentence[:last])) + against != denials:
                return None  # what is denied comes later
    return None if denials > 1 else denials == 0


def _places(words: list[str], wanted: list[str], *, turned: bool) -> tuple[int, list[int], int]:
    """Up to where a sentence has the wanted words, those that it lacks, and opposites of them.

    With `turned`, what was the subject follows "by", so that the order says nothing.
    """
    at, missing, against = 0, list[int](), 0
    for n, word in enumerate(wanted):
        at = 0 if turned else at
        place = next((i for i in range(at, len(words)) if _same(words[i], word)), None)
        if place is None:
            place = next((i for i in range(at, len(words)) if _against(words[i], word)), None)
            if place is None:
                missing.append(n)
                continue
            against += 1
        at = place + 1
    return at, missing, against


def _stands_for(
    sentence: str, words: list[str], wanted: list[str], missing: list[int], *, freely: bool
) -> bool:
    """Whether a sentence says only what is wanted; if `freely`, with pronouns for the rest."""
    present = len(wanted) - len(missing)
    if present < 2 or 2 * present < len(wanted):
        return False
    if any(_same(word, wanted[n]) for n in missing for word in words):
        return False  # it is there, in another role: Rome is bigger than Paris
    gaps = sum(n == 0 or missing[n - 1] + 1 != m for n, m in enumerate(missing))
    if freely and gaps <= len(_STANDS_IN.findall(sentence)) and missing[-1] < len(wanted) - 1:
        return True
    own = [w for w in words if w not in _EMPTY and not DENIAL.fullmatch(w) and len(w) > 1]
    new = [w for w in own if not any(_same(w, x) or _against(w, x) for x in wanted)]
    return not new and missing[0] == present  # only what comes last is missing


_LINKING = re.compile(
    r"\A\W*(?:so|thus|hence|therefore|consequently|accordingly|overall|in short|then|daher|somit"
    r"|folglich|donc|ainsi|por (?:lo )?tanto|así que|quindi|dunque|dus|daarom|portanto|logo)\b"
    r"[\s,:]*",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:rather than|instead of|and not|anziché|plutôt que|en lugar de|em vez de|in plaats van"
    r"|statt) (?:(?:an?|the|einer?|une?|una?|een|uma?) )?([^\W\d_]+)",
    re.IGNORECASE,
)
_WITHOUT = re.compile(r"\b(?:without|ohne|sans|sin|senza|zonder|sem)\b", re.IGNORECASE)
_STANDS_IN = re.compile(
    r"\b(?:it|they|he|she|them|him|er|sie|es|ihn|il|elle|ils|elles|ella|ello|lui|lei|hij|zij|ze"
    r"|ele|ela)\b",
    re.IGNORECASE,
)


_NOT_FIRST = re.compile(
    r"\W*(?:still |noch |todavía |aún |ancora |ainda |nog )?(?:no|não|non)\b\s*[^\W\d_]",
    re.IGNORECASE,
)
"""A denial without its subject, as languages have it that may leave it out."""


_BY = re.compile(r"\b(?:by|von|par|por|da|dal|dalla|door|pel[oa])\b", re.IGNORECASE)


def _same(word: str, wanted: str) -> bool:
    if wanted[0].isdigit():
        return word == wanted
    return same_noun(_PRESENT.get(word, word), _PRESENT.get(wanted, wanted))


_TENSES = """
made make|bought buy|went go|gone go|got get|gave give|given give|took take|taken take|said say
paid pay|won win|lost lose|sold sell|left leave|met meet|kept keep|held hold|spoke speak
spoken speak|wrote write|written write|grew grow|grown grow|fell fall|fallen fall|rose rise
risen rise|began begin|begun begin|broke break|broken break|chose choose|chosen choose|drew draw
drove drive|driven drive|ate eat|eaten eat|felt feel|found find|flew fly|forgot forget|knew know
known know|led lead|ran run|saw see|seen see|sent send|stood stand|taught teach|thought think
told tell|understood understand|wore wear|built build|brought bring|caught catch|came come
became become|spent spend|meant mean|sang sing|swam swim|threw throw|thrown throw
"""
_PRESENT = dict(
    entry.split()[:2] for line in _TENSES.strip().splitlines() for entry in line.split("|")
)
"""English verbs whose past does not look like them."""


def _against(word: str, wanted: str) -> bool:
    """Whether a word says the opposite of another."""
    if (word, wanted) in _OPPOSITE:
        return True
    return (
        any(word == prefix + wanted or wanted == prefix + word for prefix in _PREFIXES)
        and min(len(word), len(wanted)) > 3
    )
