"""One option out of a reply: by its letter, its text or its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache, lru_cache, partial

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._answering import by_question, plain_answer
from falter.scorers.reading._candidates import read_candidate
from falter.scorers.reading._clauses import sentences
from falter.scorers.reading._cleaning import answer_part, boxed
from falter.scorers.reading._edges import NO_WORD_AFTER, NO_WORD_BEFORE, either
from falter.scorers.reading._mentions import CLASH, MOST, token
from falter.scorers.reading._numbers import read_number
from falter.scorers.reading._numerals import numbers
from falter.scorers.reading._restated import DENIAL, HEDGED, content_words
from falter.scorers.reading._text_words import same_noun

_ORDINALS: tuple[str, ...] = (
    "first|1st|number one|erste[nrs]?|premi[eè]re?|primer[ao]?|prim[ao]|eerste|primeir[ao]"
    "|1番目|一番目|最初",
    "second|2nd|number two|zweite[nrs]?|deuxième|seconde?|segund[ao]|second[ao]|tweede|2番目|二番目",  # noqa: E501
    "third|3rd|number three|dritte[nrs]?|troisième|tercer[ao]?|terz[ao]|derde|terceir[ao]|3番目|三番目",  # noqa: E501
    "fourth|4th|number four|vierte[nrs]?|quatrième|cuart[ao]|quart[ao]|vierde|4番目|四番目",
    "fifth|5th|number five|fünfte[nrs]?|cinquième|quint[ao]|vijfde|5番目|五番目",
)
_LAST = "last|letzte[nrs]?|dernière?|últim[ao]|ultim[ao]|laatste|最後"
_NOUN = (
    r"(?:option|choice|answer|one|alternative|item|possibility|entry|antwort|möglichkeit"
    r"|réponse|opción|respuesta|opzione|risposta"
    r"|optie|antwoord|keuze|opção|resposta|alternativa)"
)
_BEFORE_LETTER = (
    r"(?:^|[\n.!?:;,()\[\]{}*_\"'“”«»/|=>→–—#~☐☑✅❌👉-]|\b(?:option|answer|choice|letter|label|is"
    r"|was|be|with|say|choose|pick|picked|tick|select|chose|to|and|or|not|so|hence"
    r"|thus|therefore|than|as|between|of|neither|nor|are|the|only|but|from|like|say|it's|that's"
    r"|for|under|me|i'd|guess|probably|definitely|maybe|perhaps|would|then|makes|that|both"
    r"|either|actually|really|mark|means|follow|rule out|eliminate|exclude|discard|take|without"
    r"|before|first|wanted|down|leaves|case|on|at|b|a|c|d"
    r"|antwort|ist|und|oder|also|nicht|weder|noch|sondern|lösung|wähle|nehme|bleibt|zwischen"
    r"|die|daher|somit"
    r"|réponse|est|et|ou|ni|donc|pas|la|mais|l'option|soit|choisis|entre|c'est"
    r"|respuesta|es|y|o|ni|no|opción|entonces|elijo|por|pero|sino|entre|luego"
    r"|risposta|è|e|né|quindi|opzione|non|ma|scelgo|dunque|lettera|tra|fra"
    r"|antwoord|en|of|niet|dus|optie|kies|tussen|maar|noch"
    r"|resposta|é|ou|nem|opção|então|letra|portanto|logo|não|alternativa|mas|entre)"
    r"|[\u3040-\u9fff、。：「（])\s*[*_\"'“(\[]*$"
)
_BEFORE = late_regex(_BEFORE_LETTER, re.IGNORECASE)
_VERBS = (
    r"(?:is|was|and|or|are|nor|would|could|can|fits|follows|because|since|seems|looks|might|may"
    r"|has|does|doesn't|isn't|in|by|it|to|for|reverses|contradicts|as|then|wins|gives|says|but"
    r"|at|from|on|with|queue"
    r"|ist|und|oder|passt|scheidet|sein|noch|weil|nicht|est|et|ou|ni|n'est|ne|car|es|y|no"
    r"|porque|è|e|o|perché|non|is|en|of|want|omdat|niet|é|ou|nem|não|pois|ses|[(=+—–-])"
)


_COUNTED = late_regex(
    r"(?:\b(?:vitamine?s?|plan|point|team|section|group|class|type|grade|hepatitis|set|box|room"
    r"|line|figure|fig\.|table|appendix|annex|step|part|level|constant|variable|angle|side"
    r"|triangle|matrix|event|person|player|company|city|town|train|gate|platform|block|building"
    r"|exhibit|model|version|series|chapter|drive|key|size|cup|site|node|server|zone|area|unit"
    r"|factory|process|task|statement|sample|substance|liquid|solution|product|country|graph"
    r"|curve|circle|vertex|program|language|written in|code in|punkt|gruppe|klasse|typ|teil"
    r"|abschnitt|seite|groupe|classe|partie|section|punto|grupo|clase|parte|gruppo|tipo|punt"
    r"|groep|klas|deel|ponto|turma|mr\.?|mrs\.?|ms\.?|dr\.?)|[\d°]|(?-i:\b[A-Z]\.))\s$",
    re.IGNORECASE,
)
"""What counts with letters of its own: plan B, vitamin C."""
_COMPOUND = late_regex(
    r"\s(?:major|minor|sharp|flat|code|compiler|program|vitamins?|team|side|road|roads|drive"
    r"|programm\w*|[A-Z]\.)\b|\s?[=<>]\s?\d"
)


def read_letter(
    reply: str, letters: Sequence[str], texts: Sequence[str], question: str = ""
) -> int | None:
    """The index of the option that a reply settles on; None for none or several.

    Without letters, only the options' texts and places are read. The question says which clause
    of a reply answers it, where no words of conclusion do.
    """
    if not texts or (letters and len(letters) != len(texts)) or len(texts) > MOST:
        return None
    if _NONE_OF.match(reply) and not any(_NONE_OF.match(text) for text in texts):
        return None
    if any("<" in text for text in texts):  # an option that is a tag would be cleaned away
        for tagged in (text for text in texts if "<" in text):
            reply = reply.replace(tagged, tagged.translate(_TAGGED))
        texts = [text.translate(_TAGGED) for text in texts]
    whole = _in_last_box(reply, texts)
    if whole is not None:
        return whole
    marker = _marker(tuple(letters), tuple(texts))
    found = read_candidate(reply, marker, len(texts))
    if (text := plain_answer(reply, marker)) is None:
        return found
    if found is not None:
        said = _by_words(text, texts)
        return found if said is None else said
    asked = question[: question.rfind("?") + 1] or question  # without the options behind it
    by = by_question(text, marker, asked) if asked else None
    values = _values(tuple(texts))
    if by is not None or values is None:
        return _by_words(text, texts) if by is None else by
    named = {number.value for number in numbers(text)} & set(values)
    number = read_number(reply, question) if named else None
    return values.index(number) if number in values else None


_TAGGED = str.maketrans("<>", "‹›")
_NONE_OF = late_regex(
    r"[\W_]*(?:none of (?:the|these|them|those)|keine der|aucune? des|ningun[ao] de|nessun[ao] d"
    r"|geen van|nenhuma d)\b(?!.{0,300}\b(?:closest|nearest|best|most likely|if i had to)\b)",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(maxsize=1024)
def _values(texts: tuple[str, ...]) -> tuple[Decimal, ...] | None:
    """The values of options that are all different numbers, with a unit at most."""
    found = [numbers(text) for text in texts]
    short = all(len(f) == 1 and len(t.split()) < 3 for f, t in zip(found, texts, strict=True))
    values = tuple(f[0].value for f in found) if short else ()
    return values if len(set(values)) == len(texts) > 1 else None


def _by_words(text: str, texts: Sequence[str]) -> int | None:
    """The only option whose words, several and in any inflection and order, a short reply has.

    It is its first sentence that has them; what follows may only deny others.
    """
    first, *rest = [text[a:b] for a, b in sentences(text)] or [""]
    if DENIAL.search(first) or HEDGED.search(first):
        return None
    wanted = [content_words(option) for option in texts]

    def named(sentence: str) -> list[int]:
        said = content_words(sentence)
        several = [(i, words) for i, words in enumerate(wanted) if len(words) > 1]
        ordered = [i for i, words in several if _in_order(words, said)]
        return ordered or [i for i, words in several if _has_all(words, said)]

    found = named(first)
    others = [s for s in rest if not DENIAL.search(s) and set(named(s)) - set(found)]
    return found[0] if len(found) == 1 and not others else None


def _in_order(words: Sequence[str], said: Sequence[str]) -> bool:
    at = iter(said)
    return all(any(same_noun(word, other) for other in at) for word in words)


def _has_all(words: Sequence[str], said: Sequence[str]) -> bool:
    return all(any(same_noun(word, other) for other in said) for word in words)


def _in_last_box(reply: str, texts: Sequence[str]) -> int | None:
    """The option whose text, apart from spaces and LaTeX, is what the last box holds."""
    boxes = boxed(answer_part(reply) or "") if "boxed" in reply else []
    if not boxes:
        return None
    bodies = [_squeezed(text) for text in texts]
    body = _squeezed(boxes[-1])
    return bodies.index(body) if body and bodies.count(body) == 1 else None


_SYMBOLS = {"emptyset": "∅", "varnothing": "∅", "land": "and", "wedge": "and", "lor": "or",
            "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠", "ne": "≠", "cdot": "*",
            "times": "×", "pi": "π", "infty": "∞", "pm": "±", "in": "∈", "cup": "∪",
            "cap": "∩", "sqrt": "√"}  # fmt: skip


def _squeezed(text: str) -> str:
    """A formula without spaces, LaTeX's commands as the signs that they print."""
    text = re.sub(r"\\(?:text|mathrm|mathbf|left|right|,|;|!)(?![a-z])", "", text)
    text = re.sub(r"\\d?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda m: _SYMBOLS.get(m[1], m[1]), text)
    return re.sub(r"[\s$\\]|(?<=[\w√^])[{}]|[{}]$" if "{" not in text[:1] else r"[\s$\\]", "", text)


@lru_cache(maxsize=1024)
def _marker(letters: tuple[str, ...], texts: tuple[str, ...]) -> Callable[[str], str]:
    """A function that puts tokens in the place of an option's letter, text or place."""
    count = len(texts)
    parts, shortest = _text_parts(texts, least=2 if letters else 1)
    text_of = cache(partial(_text_pattern, parts))
    letter_of = _letter_pattern(letters)
    folded = {x.casefold(): i for i, x in enumerate(letters)}
    series = _series(texts)

    def letter(match: re.Match[str]) -> str:
        index = folded[match[0].casefold()]
        return token(index) if _is_letter(match, letters[index]) else match[0]

    def marked(text: str) -> str:
        text = _without_formulas(text, letters)
        if parts and len(text) >= shortest:  # a bare letter holds no text: nothing is compiled
            text = text_of().sub(lambda m: _OTHER[0] + token(int(str(m.lastgroup)[1:])), text)
        text = letter_of.sub(letter, text) if letters else text
        for pattern, index in _places(count, series | _of_a_pair(text)):
            text = pattern.sub(token(index), text)
        return _paired(text)

    return marked


_OTHER = "\uf8ff"


@lru_cache(maxsize=64)
def _letter_pattern(letters: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(re.escape(x) for x in sorted(letters, key=len, reverse=True))
    after = r"\^|['’](?!\s|$)|-\w|\.\w|\+"
    return re.compile(
        rf"{NO_WORD_BEFORE}(?<![.+&^\\\-])(?:{names}){NO_WORD_AFTER}(?!{after})", re.IGNORECASE
    )


def _text_parts(texts: Sequence[str], least: int) -> tuple[list[tuple[bool, str]], int]:
    """Patterns for the options' own texts, the longest first, and the length of the shortest text.

    Equal texts name nothing.
    """
    folded = [t.strip().casefold() for t in texts]
    order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
    parts, shortest = [], 0
    for i in order:
        words = re.sub(
            r"^(?:the|an?|der|die|das|le|la|el|il) ", "", texts[i].strip(), flags=re.IGNORECASE
        )
        if not words or folded.count(folded[i]) > 1 or not words.strip(" ."):
            continue
        plain = words.rstrip(".").split()
        body = r"\s+".join(re.escape(w) for w in plain)
        if re.fullmatch(r"[^\W\d_]{3,}", words.split()[-1]):
            body += r"(?:s|es|n|en)?"
        has_edges = not re.search(r"[\u3040-\u9fff]", words)
        if not has_edges or len(words) >= least or words.isdigit():
            parts.append((has_edges, f"(?P<o{i}>{'(?:[$€£])?' if has_edges else ''}{body})"))
            length = len(" ".join(plain))
            shortest = min(shortest or length, length)
    return parts, shortest


def _text_pattern(parts: Sequence[tuple[bool, str]]) -> re.Pattern[str]:
    between = rf"{NO_WORD_BEFORE}(?<![$€£.,^-])", rf"{NO_WORD_AFTER}(?![.,]\d|\^|%)"
    return re.compile(either(parts, *between), re.IGNORECASE)


def _is_letter(match: re.Match[str], letter: str) -> bool:
    """Whether a letter is one of the options, and no article, pronoun, unit or name."""
    text, written = match.string, match[0]
    before, after = (
        text[max(0, match.start() - 30) : match.start()],
        text[match.end() : match.end() + 60],
    )
    if letter.isdigit():
        marked = re.search(
            rf"(?:{_NOUN}|answer is|antwort|réponse)[\s:#(*]*$", before, re.IGNORECASE
        )
        alone = not text[: match.start()].strip(" (*[\"'") and re.match(r"[.):*\]\"']|\s*$", after)
        return bool(marked or alone)
    if written != letter and not re.fullmatch(r"[\W_]*", text[: match.start()][:60] + after):
        return bool(
            re.search(rf"(?:{_NOUN}|ans\.?|answer is)[\s:(*\[\"']*$", before, re.IGNORECASE)
            and re.match(r"\W|$", after)
        ) or bool(_CHOOSING.search(before) and re.fullmatch(r"\W*", after))
    inside = re.search(r"[^\W\d_],?\s$", before) is not None
    articles = "I" if inside else "AIOEYÀ"  # a capital letter inside a sentence is no article
    if letter.upper() in articles:
        return _BEFORE.search(before) is not None and _no_article(before, after)
    return _COUNTED.search(before) is None and _COMPOUND.match(after) is None


_CHOOSING = late_regex(
    r"\b(?:(?:go|going|went|stick) (?:with|for)|choose|pick|select|say|it's|nehme|wähle|choisis"
    r"|elijo|scelgo|kies|escolho)\s[(\"'*]*$",
    re.IGNORECASE,
)


def _no_article(before: str, after: str) -> bool:
    """Whether an A, I, O, E or Y is a letter by what follows it."""
    if not re.match(r"[ \t]+[^\W\d_]|['’]", after):
        return True
    if re.search(
        rf"(?:{_NOUN}|answer is|choose|pick|select|tick)\s*[(\"'*]*$", before, re.IGNORECASE
    ):
        return True
    return re.match(rf"\s+{_VERBS}(?:\s|$|\b)", after) is not None


def _series(texts: Sequence[str]) -> frozenset[str]:
    """The nouns that all options have in common, as in "rule one", "rule two"."""
    words = [set(re.findall(r"[^\W\d_]{3,}", text.casefold())) for text in texts]
    return frozenset(set.intersection(*words)) if len(words) > 1 else frozenset()


_PAIR = late_regex(
    r"\b(?:first|second|third) ([^\W\d_]{4,})\b.{1,120}\b(?:first|second|third|other) one\b",
    re.IGNORECASE | re.DOTALL,
)


def _of_a_pair(text: str) -> frozenset[str]:
    """The noun that a later "the second one" stands for."""
    match = _PAIR.search(text[:2000])
    return frozenset({match[1].casefold()}) if match else frozenset()


@lru_cache(maxsize=256)
def _places(count: int, nouns: frozenset[str]) -> list[tuple[re.Pattern[str], int]]:
    """Patterns for the place of an option among its fellows."""
    found = []
    noun = f"(?:{'|'.join([_NOUN, *map(re.escape, sorted(nouns))])})"
    for i, words in enumerate(_ORDINALS[:count]):
        names = words if i < count - 1 else f"{words}|{_LAST}"
        number = ("one", "two", "three", "four", "five")[i]
        found.append(
            (
                re.compile(
                    rf"(?<!\w)(?:option|choice)\s+(?:{i + 1}|{number})(?![\w.,]\d|\w)"
                    r"|(?<!\w)(?:namely|nämlich|à savoir|a saber|cioè|namelijk|answer is)\s+(?:the"
                    rf"|die|der|das|la|le|il|el|de|het|a|o)\s+(?:{names})(?=\W*$|[.,;!])"
                    rf"|(?<!\w)(?:{names})\s+{noun}(?!\s+(?:step|is out))"
                    rf"|(?<!\w){_NOUN}\s+(?:number|no\.?|#|nummer|numéro|número"
                    rf"|numero)\s*(?:{number}|{i + 1})(?!\w)"
                    rf"|^\W*(?:the |der |die |das |la |le |el |il |de |o |a )?(?:{names})\W*$"
                    rf"|(?:{names})の?(?:選択肢|もの)",
                    re.IGNORECASE,
                ),
                i,
            )
        )
    return found


_FORMULA = late_regex(
    r"\$\$?([^$\n]{1,400}?)\$\$?|\\\((.{1,400}?)\\\)|\\\[(.{1,400}?)\\\]", re.DOTALL
)


def _without_formulas(text: str, letters: Sequence[str]) -> str:
    """The text without formulas that hold more than a letter; an option's text may be one."""

    def short(match: re.Match[str]) -> str:
        body = next(g for g in match.groups() if g is not None).strip()
        bare = body.strip(" ().")
        if bare in letters and not re.match(
            r"\s+(?:is|be|the|show|has|and)\b", match.string[match.end() :]
        ):
            return f" {bare} "
        if bare in letters:
            return " … "
        return re.sub(rf"(?<![\w.])(?:{'|'.join(map(re.escape, letters))})(?![\w.])", "…", body)

    return _FORMULA.sub(short, text)


def _paired(text: str) -> str:
    """Letter and text side by side as one mention, or as a clash where they differ."""
    letter = f"(?<!{_OTHER})([\ue000-\uefff])"
    other = f"{_OTHER}([\ue000-\uefff])"
    dress = r"[\s\"'“”«»*_]*"

    def joined(match: re.Match[str]) -> str:
        return match[1] if match[1] == match[2] else CLASH

    text = re.sub(rf"(?:(?<=[(\[])|){letter}[)\].:]{dress}{other}", joined, text)
    text = re.sub(
        rf"{letter}{dress}[(\[,=—–:-]+{dress}(?:the |der |die |das |la |le |el |il |de "
        rf")?{other}[)\]]?",
        joined,
        text,
    )
    text = re.sub(
        rf"{other}{dress}[(\[]{dress}(?:option |answer |choice )?{letter}{dress}[)\]]", joined, text
    )
    return text.replace(_OTHER, "")
