"""Yes or no out of a reply, by its meaning in any of the bundled languages."""

from __future__ import annotations

import re
from typing import Literal

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._asked import Asked, asked_for
from falter.scorers.reading._candidates import read_candidate
from falter.scorers.reading._clauses import Clause, Part, clauses, sentences
from falter.scorers.reading._cleaning import LONGEST, answer_part, is_cut, plain
from falter.scorers.reading._closed import sole
from falter.scorers.reading._mentions import ANY, mentions_in, token
from falter.scorers.reading._refusals import asks_back, refusal_in
from falter.scorers.reading._restated import restated
from falter.scorers.reading._withdrawn import taken_back_at
from falter.scorers.reading._words import CORRECTION, NEGATION, OPEN, SOFT
from falter.scorers.reading._wrapped import leaves, objects

_YES = (
    r"yes indeed|by all means|ja hoor|ja zeker|ja klar|ja natürlich|jawel|oui bien sûr|sí claro"
    r"|sim claro|sì certo|claro que sim|bien sûr que oui|ich (?:glaube|denke) (?:schon|ja)|das "
    r"ist (?:richtig|wahr|korrekt"
    r"|so)|je (?:crois|pense)"
    r" que oui|c'est (?:exact|vrai|juste|correct)|creo que sí|es (?:cierto|correcto|verdad)"
    r"|(?:penso"
    r"|credo) di sì|è (?:vero|corretto|esatto)|ik (?:denk|geloof) (?:het |van )?wel|dat is (?:waar"
    r"|juist)"
    r"|acho que sim|é (?:verdade|correto)|yes|yep|yeah|yup|affirmative|correct|true|right|indeed"
    r"|absolutely|of course|sure thing|it "
    r"does|it is|it did|they do|they are|it can|it will|it has|i (?:think|believe|guess) so"
    r"|ja|jawohl|jep|genau|richtig|stimmt|das stimmt|sí|claro(?: que sí)?|correcto|oui"
    r"|definitely|certainly|sure|surely|exactly|agreed|yes indeed|most (?:certainly|likely)"
    r"|you (?:can|may|sure can)|that(?:'s| is) (?:right|correct|true|so)|it sure (?:is|does)"
    r"|ja sicher|auf jeden fall|natürlich|sicher|doch|selbstverständlich|por supuesto|así es"
    r"|efectivamente|verdadero|cierto|bien sûr|en effet|certainement|effectivement|absolument"
    r"|(?<!to be )exact(?:ement)?|vrai|tout à fait|sì|certo|vero|esatto|certamente|proprio così"
    r"|assolutamente"
    r"|natuurlijk|jazeker|waar|juist|claro|com certeza|exato|correto|isso mesmo"
    r"|dat klopt|klopt|inderdaad|zeker|sim|verdade|verdadeiro|certeza"
)
_NO = (
    r"no way|not this time|not any ?more|nope|nah|negative|false|incorrect|wrong|not yet|not "
    r"quite|not really|not at all|it "
    r"does not|it doesn't|it is not|it isn't|it did not|it didn't|it cannot|it can't|they do "
    r"not|they don't|they are not|they aren't"
    r"|it has not|it hasn't|it will not|it won't|i (?:don't|do not) (?:think|believe) so"
    r"|that(?:'s| is) (?:not|wrong|false|incorrect)(?: right| correct| true| so)?"
    r"|that isn't (?:right"
    r"|correct|true|so)|not (?:true|correct|right|so)|by no means|no way|not in the least"
    r"|not (?:as|so) far as \w+ (?:know|can see)|you (?:can't|cannot|may not)|auf keinen fall"
    r"|keineswegs|natürlich nicht|das stimmt nicht|das ist falsch|de ninguna manera|en absoluto"
    r"|no es (?:cierto|verdad|así|correcto)|ce n'est pas (?:vrai|le cas|exact|correct)|aucunement"
    r"|pas vraiment|assolutamente no|non è (?:vero|così|corretto)|per niente|absoluut niet"
    r"|zeker niet|dat klopt niet|helaas niet|de jeito nenhum|não é (?:verdade|o caso)|incorreto"
    r"|(?:unfortunately|probably|apparently|presumably|most likely|likely|evidently|clearly"
    r"|obviously"
    r"|sadly|i (?:guess|think|suppose)) not|(?:eher|wohl|leider|wahrscheinlich|sicher|bestimmt"
    r"|vermutlich)"
    r" nicht|(?:sans doute|probablement|certainement|malheureusement) (?:pas|que non)"
    r"|(?:probablemente"
    r"|seguramente|claro que|desgraciadamente) no|(?:probabilmente|sicuramente|certo che) no"
    r"|(?:waarschijnlijk|helaas|zeker) niet|(?:provavelmente|claro que|infelizmente) não"
    r"|certainly not|absolutely not|of course not|definitely not|i'm afraid not"
    r"|nein|nö|falsch|stimmt nicht|noch nicht|leider nicht|falso|incorrecto|todavía no|aún no"
    r"|non|faux|pas encore|pas du tout|falso|non ancora|nee|nog niet|niet waar|onjuist"
    r"|i doubt (?:it|that)|i(?:'d| would) say not|i think not|i(?:'m| am) afraid not|ich (?:glaube"
    r"|denke) nicht"
    r"|das ist nicht (?:richtig|wahr|korrekt|so)|je ne (?:crois|pense) pas|c'est faux|no creo"
    r"|(?:penso|credo) di no|è falso|ik (?:denk|geloof) (?:het |van )?niet|dat is niet (?:waar"
    r"|juist)"
    r"|acho que não|não creio|é falso|es falso|das ist falsch|não|ainda não|errado|no"
)
_JAPANESE = (
    ("はい", 0),
    ("いいえ", 1),
    ("違います", 1),
    ("正しいです", 0),
    ("そうです", 0),
    ("その通り", 0),
)
_WORD = late_regex(rf"(?<![\w'-])(?:(?P<no>{_NO})|(?P<yes>{_YES}))(?![\w'-])", re.IGNORECASE)
_BEFORE = late_regex(
    r"(?:^|[\n\"'“„«(\[*_:：=>→,.!?;、。|{…☀-➿\U0001f300-\U0001faff—–]|\b(?:that's|it's|so|is|be|as"
    r"|therefore|hence"
    r"|thus|also|donc|so it's|answer|say|then|probably|and|but|i'd say|clear|resounding|a|dus|oh"
    r"|ah|hm+|well|why|afraid|think|believe|fear|guess|sure|leider|natürlich|aber|sicher|klar|que"
    r"|che|hélas|desgraciadamente|purtroppo|helaas"
    r"|infelizmente|unfortunately|sadly|sorry|clearly|obviously|probably|definitely|simply|rather"
    r"|still"
    r"|logo|quindi|luego|portanto|respuesta es|réponse est|antwort ist|antwort lautet|risposta è"
    r"|antwoord is|resposta é))\s*$",
    re.IGNORECASE,
)
_AFTER = late_regex(
    r"\s*(?:$|[\n\"'”»)\]*_.,!?;:。、」|}…—–(=]|\s-\s|-\s|(?:it|they|he|she|that|this|the|there|every"
    r"|all|from|yes|no) )",
    re.IGNORECASE,
)
_IDLE = late_regex(
    r"\s*[,.!]?\s*(?:i (?:know|understand|see|can|could|will|get|realise|realize|am aware)"
    r"|that(?:'s| is) (?:a|an|the|one|what)\b[^.]{0,20}(?:question|point|topic)|this is a"
    r"|there(?:'s| is| are)\b[^.!?]{0,80}\bbut\b|problem|worries|and no\b|or no\b"
    r"|ich (?:weiß|verstehe)"
    r"|je (?:sais|comprends)"
    r"|i(?:'d| would) (?:be|love|like)|i'll|i'm happy|happy|you(?:'re| are) (?:right|welcome"
    r"|not wrong)|thanks|thank you|what|let me|of course i|happy to|sure|matter|doubt)",
    re.IGNORECASE,
)


_BOTH = late_regex(
    r"\b(?:yes and no|yes or no|ja und nein|jein|oui et non|sí y no|sì e no|ja en nee|sim e "
    r"não)\b|はいでもいいえでも"
    r"|^\W*(?:yes|no|ja|nein|oui|non|sí|sì|nee|sim|não|it (?:does|is|can|will|has)|they (?:do|are"
    r"|can|will)|you (?:can|may))\b[ ,—–-]*(?:(?:but|aber|mais|pero|ma|maar|mas) )?(?:(?:only|nur"
    r"|seulement|uniquement|sólo|solo|alleen|apenas|só) )?(?:if(?! (?:you (?:ask|look|read|want)|i"
    r"|we|memory)\b)|unless|provided|as long as|so long as|assuming|subject to|under certain"
    r"|wenn(?! man)|falls|sofern|si|se|als|mits|à condition|sous réserve|siempre que|purché"
    r"|a patto|desde que)\b"
    r"|^\W*(?:yes|ja|oui|sí|sì|sim)\b[ ,—–-]*(?:but|aber|mais|pero|ma|maar|mas) (?:only|nur"
    r"|seulement|uniquement|sólo|solo|alleen|apenas|só) (?:with|under|in|mit|unter|bei|avec|sous"
    r"|con|bajo|met|onder|com|sob)\b",
    re.IGNORECASE,
)


def read_yes_no(reply: str, question: str = "") -> Literal["yes", "no"] | None:
    """Whether a reply says yes or no; None if it says neither, both, or that it depends.

    A reply that says what the question asks as a statement says yes.
    """
    if _BOTH.search((answer_part(reply) or "")[:LONGEST]):
        return None
    if initial := _INITIAL.fullmatch(reply):
        return "yes" if initial[1] in "yY" else "no"
    index = _at_once(reply)
    if index is None:
        index = read_candidate(reply, _mark, 2)
    if index is None:
        index = _by_flag(reply, asked_for(question))
    if index is None and question:
        index = _by_statement(reply, question)
    if index is None:
        index = _by_verb(reply, question)
    if index is None:
        index = _by_predicate(reply)
    return None if index is None else ("yes", "no")[index]


_INITIAL = late_regex(r"[\s\"'*_(]*([yn])[\s\"'*_).]*", re.IGNORECASE)


def _at_once(reply: str) -> int | None:
    """From a first sentence that is yes or no, where nothing behind it takes it back.

    What is said later, with a yes or no of its own, answers other questions.
    """
    text = _mark(plain(answer_part(reply) or "")).strip()
    spans = [text[a:b] for a, b in sentences(text)]
    spoken = [span for span in spans if re.search(rf"\w|{ANY}", span)]
    index = sole(spoken[0]) if len(spoken) > 2 else None
    if index is None or sole(spoken[1]) not in (None, index) or is_cut(text):
        return None
    rest = text[len(spans[0]) :]
    opened = _CHANGED.search(rest) or taken_back_at(rest, 0) is not None
    return None if opened or re.search(OPEN, rest, re.IGNORECASE) else index


_CHANGED = late_regex(CORRECTION, re.IGNORECASE)
_INTERIM = late_regex(
    r"^(?![\W_]*(?:so|thus|therefore|hence|answer|final|overall|result|verdict|conclusion)\b)"
    r"[^\w\n\ue000-\uf8ff]*\w[^\n\ue000-\uf8ff]*[:.?)–—-]\s*[\ue000-\uefff](?=\W*$)",
    re.MULTILINE | re.IGNORECASE,
)
"""Lines that each end in a yes or no of their own."""


def _mark(text: str) -> str:
    """Tokens in the place of words that say yes or no by themselves."""

    def swap(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 30) : match.start()]
        idle = _IDLE.match(match.string, match.end())
        led = _SO_YES.search(before) or _AFTER.match(match.string, match.end())
        if idle or not _BEFORE.search(before) or not led:
            return match[0]
        if before.rstrip(" ").endswith(",") and _GRANTS.match(match.string, match.end()):
            return match[0]
        head = match.string[max(0, match.start() - 40) : match.start()].rstrip(" \"'*_\n")
        ended = head.endswith((".", "!", "?", "？", "…"))
        opening = ended or not head.strip(" \n*_\"'“#>-❌✅✗✓")
        dot = (
            ". "
            if opening
            and re.match(r"\s*[,;:—–-]|\s*\(", match.string[match.end() : match.end() + 9])
            else ""
        )
        return token(1 if match["no"] else 0) + dot

    text = _WORD.sub(swap, text)
    if len(_INTERIM.findall(text)) > 1:
        text = _INTERIM.sub(r"\g<0> x", text)
    for word, index in _JAPANESE:
        text = text.replace(word, token(index))
    return text


_SO_YES = late_regex(r"\b(?:so|therefore|thus|hence) $", re.IGNORECASE)
_GRANTS = late_regex(r",? (?:but|aber|mais|pero|ma|maar|mas)\b", re.IGNORECASE)
"""What follows a yes that only grants something: it has wings, yes, but …"""
_NEGATED = late_regex(
    r"\b(?:is|are|was|were|does|do|did|can|could|has|have|had|will|would|should|may|must)"
    r"(?: \w+)? not\b|n't\b|\bcannot\b|\bnot \w+\W*$|\bno (?:es|está|hay|puede)\b"
    r"|\bnão (?:é|está|há|pode)\b|\bnon (?:è|può)\b|\bn'est pas\b|\bist (?:\w+ )?(?:nicht|kein)"
    r"|\bis (?:geen|niet)\b",
    re.IGNORECASE,
)
_SO = (
    r"(?:so|thus|hence|therefore|conclusion|verdict|answer|result|daher|donc|luego"
    r"|por tanto|quindi|dunque|dus|logo|portanto|よって|したがって)"
)
_LED = late_regex(rf"[\W_]*(?:and )?{_SO}[\s,:*]+(?=\S)|[\W_]*(?:よって|したがって)", re.IGNORECASE)
_SUBJECT = late_regex(r"[\W_]*(?:it|they|he|she|that|this|you|there)(?: |')", re.IGNORECASE)
_AFFIRMED = late_regex(
    r"[\W_]*(?:it|they|he|she|that|this|you|we) (?:(?:does|do|did|is|are|was|can|has|will)\W*$"
    r"|(?:\w+ly |indeed )?(?:can|may|will|does|did|do|could) (?:indeed |\w+ly )?\w+)",
    re.IGNORECASE,
)
_INDEED = late_regex(
    r"\b(?:indeed|in (?:actual )?fact|sure enough|tatsächlich|in der tat|wirklich|efectivamente"
    r"|en efecto|en effet|effectivement|effettivamente|in effetti|inderdaad|de fato|realmente)\b"
    r"|確かに",
    re.IGNORECASE,
)


_REVERSED = late_regex(r"^(?:no|not|un|in|im|is_?not|missing|without|lacks|error)|n't")


_VERB = r"do|does|did|is|are|was|were|has|have|had|can|could|will|should|must|may"
_VERB_ALONE = late_regex(
    rf"\W*(?:it|he|she|they|we|that|you) (?:{_VERB})(?P<no>n't| not)?\W*", re.IGNORECASE
)
_VERB_FIRST = late_regex(
    r"[\W_]*(?:(?:short|quick|brief) answer\W+)?(?:\w+ly,? )?"
    rf"(?:it|he|she|they|we|that|you) (?P<verb>{_VERB})(?P<no>n't| not)?[.!]",
    re.IGNORECASE,
)


def _by_verb(reply: str, question: str) -> int | None:
    """From a reply, or a first sentence, that is only the question's verb: he did, they don't."""
    text = plain(answer_part(reply) or "")
    match = _VERB_ALONE.fullmatch(text)
    if match is None and (match := _VERB_FIRST.match(text)):
        asked = re.search(rf"\b{match['verb']}\b", question, re.IGNORECASE)
        match = match if asked else None
    return None if match is None else int(match["no"] is not None)


def _by_flag(reply: str, asked: Asked) -> int | None:
    """From an object whose only truth value, or the only one asked for, is the answer."""
    found = objects(answer_part(reply) or "")
    flags = [(p, v) for p, v in leaves(found[-1].value) if isinstance(v, bool)] if found else []
    if len(flags) > 1:
        named = [(p, v) for p, v in flags if p and asked.names(p[-1].replace("_", " "))]
        flags = [(p, v) for p, v in named if not _REVERSED.search(p[-1].casefold())]
    if len(flags) != 1 or not flags[0][0] or _REVERSED.search(flags[0][0][-1].casefold()):
        return None
    return 0 if flags[0][1] else 1


def _by_statement(reply: str, question: str) -> int | None:
    """From a reply without yes or no that says what was asked, or the opposite."""
    text = plain(answer_part(reply) or "")
    if not text or re.search(OPEN, text, re.IGNORECASE) or is_cut(text) or asks_back(text):
        return None
    if any(m.level > 1 for m in mentions_in(_mark(text))):
        return None
    holds = restated(text, question)
    return None if holds is None else int(not holds)


def _by_predicate(reply: str) -> int | None:
    """From what a reply without yes or no says of the question's own words: "so it is not prime".

    It has to end in a conclusion about "it", or to say one thing and affirm it with "indeed".
    """
    text = answer_part(reply)
    if text is None or re.search(OPEN, text, re.IGNORECASE):
        return None
    text = plain(re.sub(r"^[ \t]*\|[^\n]*\|[ \t]*$", "", text, flags=re.MULTILINE))
    text = re.sub(r"\$(?=not\$)|(?<=\$not)\$", "", text)
    if is_cut(text) or asks_back(text) or refusal_in(text) is not None:
        return None
    if any(m.level > 1 for m in mentions_in(_mark(text))):
        return None
    said = [c for c in clauses(text) if c.part in (Part.SAID, Part.ASIDE)]
    if not said or said[-1].part is not Part.SAID or said[-1].end < len(text.rstrip()):
        return None
    return _last_word(text, said)


def _last_word(text: str, said: list[Clause]) -> int | None:
    last = said[-1]
    words = text[last.start : last.end]
    here = [c.start for c in said if c.sentence == last.sentence]
    led = next((m for at in reversed(here) if (m := _LED.match(text, at))), None)
    words = text[max(last.start, led.end() if led else 0) : last.end]
    if re.search(SOFT, words, re.IGNORECASE):
        return None
    if _NEGATED.search(words) and (led or _SUBJECT.match(words)):
        return 1
    if led and _AFFIRMED.match(words):
        return 0
    only = len({c.sentence for c in clauses(text)}) == 1
    return 0 if only and _INDEED.search(text) and not _NO_WORD.search(text) else None


_NO_WORD = late_regex(NEGATION, re.IGNORECASE)
