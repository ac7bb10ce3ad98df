"""The one place that recognises a refusal in prose.

A phrase is a regular expression that stands for one manner of declining, asking back or saying
that the answer is not known, in the bundled languages: en, de, es, fr (fr-CA), it, ja, nl, pt-BR.
"""

from __future__ import annotations

import re

from falter.records.lazy_regex import late_regex

REFUSALS: dict[str, tuple[str, ...]] = {
    "en": (
        r"\A\W*(?:error|exception|failed|timeout)\b\s*[:\d]",
        r"\bI(?:'m| am)(?: really| very| so| truly)? sorry\b,?(?: but)?",
        r"\bas an? (?:\w+ )?(?:AI|language model|assistant)\b",
        r"\bI(?:'m| am)? ?(?:can(?:'t|not| not)|won't|will not|unable to|not able to|not going "
        r"to|not allowed to|not comfortable"
        r"|couldn't|could not|do(?:n't| not) (?:have|know|see|feel comfortable)|have (?:no "
        r"(?:way|access|information|data)|to decline)|must decline"
        r"|would(?: first)? need|'d need|need (?:more|to see|the)|was unable)\b",
        r"\b(?:cannot|can't|can not|could not|couldn't) be (?:determined|answered|given|said"
        r"|known|judged|established|decided|named|classified)",
        r"\b(?:against|violates?|breaks) (?:my|our|the) (?:polic|guideline|rule)",
        r"\brequest (?:was )?(?:blocked|denied|refused|rejected)\b|\bcontent filter\b",
        r"\b(?:no|not enough|insufficient|more) (?:information|data|context|text|details?)\b(?: "
        r"\w+){0,4} (?:given|provided|available|needed|required|was|is|about)",
        r"\bwithout (?:the|a|any|more|that|this|seeing)\b[^.]{0,80}(?:can't|cannot|unable"
        r"|misleading|impossible|not possible|be a guess)",
        r"\b(?:not|nothing) (?:stated|mentioned|specified|given|attached) (?:in|to|about)\b",
        r"\b(?:isn't|is not|aren't|are not|wasn't|weren't|doesn't say|does not say|don't say"
        r"|not) (?:given|stated|mentioned|specified|provided|known|listed|shown|readable"
        r"|legible|in the (?:text|table|message|listing|mail|list|log|data))\b|\b(?:text"
        r"|message|mail|table|listing|note|question) (?:doesn't|does not) (?:say|tell|state"
        r"|mention)",
        r"\bI(?:'d| would)? (?:rather not|prefer not|must refuse|refuse|have to (?:pass|refuse"
        r"|decline)|decline|hesitate)\b|\bI'm (?:afraid (?:I|we|that I|there)\b|not in a position"
        r"|not the right)\b",
        r"\b(?:not something I|inappropriate|it (?:is|'s) (?:not possible|impossible)|not "
        r"possible to|impossible to|outside (?:of )?(?:my|the) (?:scope|remit)|beyond my"
        r"|nothing to (?:classify|read|label|go on)|more context)\b",
        r"\b(?:text|message|input|file|image|attachment|question|passage|mail|e-?mail|ticket"
        r"|review|document|prompt|paste|link|content|it|this|that|one)(?: \w+){0,3} (?:is|seems"
        r"|appears|looks) (?:to be )?(?:empty|missing|cut off|incomplete|truncated|garbled"
        r"|blank)\b|\bthere(?:'s| is| was) no (?:text|image|attachment|message|content"
        r"|way|file|data|information)\b",
        r"\b(?:do(?:es)?n't|do(?:es)? not|did(?:n't| not)) (?:say|state|mention|specify|tell|reveal"
        r"|indicate|give|record|note) (?:how|which|whether|what|who|when|where|why|the (?:exact"
        r"|number))\b",
        r"\ball I can say\b|\b(?:making it up|(?:only|just|pure) guess(?:ing|work)|be guessing)\b"
        r"|\b(?:is|are) missing\b|\bno (?:number|answer|value|figure) can be\b"
        r"|\b(?:remains|is|stays) (?:open|unclear|unknown)\b"
        r"|[:–—-] (?:unknown|unclear|undecided|open)\W*\Z",
        r"\b(?:could|can|would) you (?:please )?(?:share|provide|paste|send|tell|clarify|give"
        r"|specify|attach|confirm|say|type)\b",
        r"\b(?:please|kindly) (?:share|provide|paste|send|tell me|clarify|give me|specify"
        r"|attach|type)\b",
        r"\b(?:let me know|tell me|which one would you like|would you like|do you want "
        r"me)\b[^.!]{0,60}(?:\?|first|which|and I)",
        r"\bnobody (?:else )?can (?:tell|say|know)|\bneither I nor\b|\bthere is no way (?:to|of)\b",
    ),
    "de": (
        r"\b(?:kann|darf|werde|möchte) (?:ich|dir|ihnen|dazu|das|hier|leider|da"
        r"|dabei)\b[^.]{0,60}\b(?:nicht|kein\w*)\b",
        r"\bich (?:kann|darf|werde|möchte)\b[^.]{0,60}\b(?:nicht|kein\w*)\b",
        r"\b(?:tut mir leid|leider (?:kann|ist|liegen|fehlen)|als (?:KI|Sprachmodell)|fehl(?:t"
        r"|en) mir|liegen mir keine|bräuchte ich"
        r"|nicht (?:beantworten|beurteilen|feststellen|sagen lässt)|lässt sich (?:[^.!?]{0,60} )?"
        r"nicht)\b",
    ),
    "es": (
        r"\b(?:lo siento|no puedo|no me es posible|no dispongo|no tengo (?:acceso|información"
        r"|datos)|como (?:modelo de lenguaje|IA)|no es posible"
        r"|no se puede (?:saber|determinar)|no (?:lo )?sé|necesitaría|me falta(?:n)?|podrías "
        r"(?:indicar|enviar|decir))",
    ),
    "fr": (
        r"\b(?:désolée?|je ne peux pas|je ne suis pas en mesure|je ne dispose pas|je ne (?:sais"
        r"|saurais)|je refuse|en tant que (?:modèle|qu'IA|qu'assistant)"
        r"|il (?:me )?(?:manque|faudrait)|manque(?:nt)?\b|impossible de (?:dire|savoir"
        r"|déterminer)|pourriez-vous|pouvez-vous|je n'ai pas (?:accès|les|d'))",
    ),
    "it": (
        r"\b(?:mi dispiace|spiacente|non posso|non sono in grado|non dispongo|non ho (?:accesso"
        r"|informazioni|dati)|come modello"
        r"|non è possibile|non (?:lo )?so\b|potresti (?:indicar|inviar|dir)|mi serve|mi "
        r"servirebbe)",
    ),
    "ja": (
        r"申し訳|お答えできません|回答できません|できかねます|判断できません|判断することができません|判断できない|わかりません|分かりません|お手伝いできません|お断り"
        r"|教えてください|対応できません|不明です|応じられません",
    ),
    "nl": (
        r"\b(?:het spijt me|sorry,? (?:maar|ik)|ik kan (?:\w+ ){0,5}(?:niet|geen)|ik mag (?:\w+ "
        r"){0,3}(?:niet"
        r"|geen)|als (?:taalmodel|AI)|helaas (?:kan|heb|is)"
        r"|niet mogelijk|ik weet (?:het )?niet|ik heb geen|kunt u|kun je|zou ik .{0,30} nodig "
        r"hebben|valt niet (?:te|op te)|niet (?:te|op te) (?:zeggen|maken))\b",
    ),
    "pt-BR": (
        r"\b(?:desculpe|lamento|sinto muito|não posso|não consigo|não tenho (?:acesso|informaç"
        r"|dados|como)|como (?:modelo|IA)|não é possível"
        r"|não (?:dá|há como) (?:para )?(?:dizer|saber)|não sei\b|não há (?:dados|informaç)"
        r"|poderia (?:enviar|informar|dizer)|preciso d)",
    ),
}

_ANY = late_regex("|".join(p for phrases in REFUSALS.values() for p in phrases), re.IGNORECASE)
_UNSURE = late_regex(
    r"I(?:'m| am)? (?:can't|cannot|not|do not|don't) (?:be )?(?:\w+ )?(?:sure|certain|help but"
    r"|fault|go wrong|imagine|decide|settle|choose between|make up)",
    re.IGNORECASE,
)


_BUT_CAN = late_regex(
    r"[^.!?\n]{3,120}[,;] (?:but|however|aber|mais|pero|ma|maar|mas) (?:I can(?! only)(?:\b(?!'t))"
    r"|here(?:'s| is)|ich kann|je peux|puedo|posso|ik kan)\b",
    re.IGNORECASE,
)
"""A refusal of one thing that goes on to do another."""


def refusal_in(text: str) -> int | None:
    """Where the last refusal in a text begins, in characters; None if it refuses nothing."""
    text = text.replace("’", "'")
    ends = [
        m.start()
        for m in _ANY.finditer(text)
        if not _UNSURE.match(text, m.start()) and not _BUT_CAN.match(text, m.start())
    ]
    return ends[-1] if ends else None


def declines(text: str) -> bool:
    """Whether a text refuses, asks back or says that the answer is not known.

    It says nothing about an answer that may follow: a reading looks for that first.
    """
    return refusal_in(text) is not None


_POLITE = late_regex(
    r"(?:else|more (?:help|details|information)|any (?:other|more|further)|further|help you "
    r"with|sonst|noch etwas|autre chose|algo más|altro|nog iets|mais alguma|would you like "
    r"(?:to see|to know|me to explain)|do you want me to (?:open|explain"
    r"|show)|isn't it|right"
    r"|doesn't it|okay|ok)\b[^.!?]*\?\W*$",
    re.IGNORECASE,
)
_MEANT = late_regex(
    r"\b(?:do you mean|did you mean|are you (?:asking|referring|looking|interested)"
    r"|which [^.!?]{1,40}"
    r"(?:do|did|are|would) you|meinst du|meinen sie|voulez-vous dire|te refieres|intendi|bedoel je"
    r"|você quer dizer)\b[^.!?]{0,80}\?",
    re.IGNORECASE,
)
_TO_DO = late_regex(
    r"(?:^|[.!?:\n]\s*)[\W_]*(?:(?:ok(?:ay)?|so|now|first|then|next|hmm+|wait|well|and|but)[, ]+)*"
    r"(?:let me (?:check|see|look|think|verify|count|find|read|start|go|work|begin|analy[sz]e|first"
    r"|reconsider|consider|take|compare|examine)|let's (?:check|see|look|think|start|go|begin"
    r"|work|analy[sz]e|find|take|compare|examine|consider|break)|i(?:'ll| will| need to| have to|"
    r" should) (?:check|look|think|verify|count|find|read|start|go through|work|begin|analy[sz]e"
    r"|first|now|compare|examine|consider)|give me a (?:moment|second)|one moment|lass mich"
    r"|mal sehen|laissez-moi|voyons|déjame|veamos|vamos a ver|fammi|vediamo|laat me|even kijken"
    r"|deixe-me|vejamos)\b[^.!?\n]*[.!:…]*\W*$",
    re.IGNORECASE,
)
_RESTATED = late_regex(
    r"^\W*(?:(?:thanks|great question|sure|ok(?:ay)?|hi|hello)[^.!?]{0,40}[.!,] *)?(?:you(?:'re"
    r"| are) (?:asking|interested)|you(?:'d| would)? (?:asked|want(?:ed)?|like) (?:to know"
    r"|whether|if|me|about)|you asked|the (?:question|task) (?:is|asks|was)|your question)\b",
    re.IGNORECASE,
)


def asks_back(text: str) -> bool:
    """Whether a text ends in a question or a promise, or only says again what was asked."""
    text = text.strip()
    asked = text.endswith(("?", "？")) and not _POLITE.search(text)
    asked = asked or _MEANT.search(text) is not None
    return asked or _TO_DO.search(text[-300:]) is not None or _RESTATED.search(text) is not None
