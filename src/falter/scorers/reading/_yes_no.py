"""Yes or no out of a reply, by its meaning in any of the bundled languages."""

from __future__ import annotations

import re
from typing import Literal

from falter.scorers.reading._candidates import read_candidate
from falter.scorers.reading._cleaning import LONGEST, answer_part, is_cut, plain
from falter.scorers.reading._mentions import token
from falter.scorers.reading._refusals import refusal_in
from falter.scorers.reading._words import OPEN, SOFT

__all__ = ["read_yes_no"]

_YES = (
    r"yes|yep|yeah|yup|affirmative|correct|true|right|indeed|absolutely|of course|sure thing|it "
    r"does|it is|it did|they do|they are|it can|it will|it has|i (?:think|believe|guess) so"
    r"|ja|jawohl|jep|genau|richtig|stimmt|das stimmt|sí|claro(?: que sí)?|correcto|oui"
    r"|exact(?:ement)?|vrai|tout à fait|sì|certo|vero|esatto|certamente"
    r"|dat klopt|klopt|inderdaad|zeker|sim|verdade|verdadeiro|certeza"
)
_NO = (
    r"no|nope|nah|negative|false|incorrect|wrong|not yet|not quite|not really|not at all|it "
    r"does not|it doesn't|it is not|it isn't|it did not|it didn't|it cannot|it can't|they do "
    r"not|they don't|they are not|they aren't"
    r"|it has not|it hasn't|it will not|it won't|i (?:don't|do not) (?:think|believe) so"
    r"|certainly not|absolutely not|of course not|definitely not|i'm afraid not"
    r"|nein|nö|falsch|stimmt nicht|noch nicht|leider nicht|falso|incorrecto|todavía no|aún no"
    r"|non|faux|pas encore|pas du tout|falso|non ancora|nee|nog niet|niet waar|onjuist"
    r"|não|ainda não|errado"
)
_JAPANESE = (
    ("はい", 0),
    ("いいえ", 1),
    ("違います", 1),
    ("正しいです", 0),
    ("そうです", 0),
    ("その通り", 0),
)
_WORD = re.compile(rf"(?<![\w'-])(?:(?P<no>{_NO})|(?P<yes>{_YES}))(?![\w'-])", re.IGNORECASE)
_BEFORE = re.compile(
    r"(?:^|[\n\"'“„«(\[*_:：=>→,.!?;、。|{…✅❌✗✓☑✔—–]|\b(?:that's|it's|so|is|be|as|therefore|hence"
    r"|thus|also|donc|so it's|answer|say|then|probably|and|but|i'd say|clear|resounding|a|dus"
    r"|logo|quindi|luego|portanto))\s*$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"\s*(?:$|[\n\"'”»)\]*_.,!?;:。、」|}…—–(=]|(?:it|they|he|she|that|this|the|there|every|all) )",
    re.IGNORECASE,
)
_IDLE = re.compile(
    r"\s*[,.!]?\s*(?:i (?:know|understand|see|can|could|will|get|realise|realize|am aware)"
    r"|that(?:'s| is) (?:a|an|the|one|what)\b[^.]{0,20}(?:question|point|topic)|this is a"
    r"|problem|worries|and no\b|or no\b|ich (?:weiß|verstehe)|je (?:sais|comprends)"
    r"|what|let me|of course i|happy to|sure|matter|doubt)",
    re.IGNORECASE,
)


_BOTH = re.compile(
    r"\b(?:yes and no|yes or no|ja und nein|jein|oui et non|sí y no|sì e no|ja en nee|sim e "
    r"não)\b|はいでもいいえでも"
    r"|^\W*(?:yes|no|ja|nein|oui|non|sí|sì|nee|sim|não)\b[ ,]*(?:but )?(?:only )?(?:if|unless"
    r"|provided|as long as|assuming|wenn|falls|si|se|als|mits|à condition)\b",
    re.IGNORECASE,
)


def read_yes_no(reply: str) -> Literal["yes", "no"] | None:
    """Whether a reply says yes or no; None if it says neither, both, or that it depends."""
    if _BOTH.search(reply[:LONGEST]):
        return None
    index = read_candidate(reply, _mark, 2)
    if index is None:
        index = _by_predicate(reply)
    return None if index is None else ("yes", "no")[index]


def _mark(text: str) -> str:
    """Tokens in the place of words that say yes or no by themselves."""

    def swap(match: re.Match[str]) -> str:
        before = match.string[max(0, match.start() - 30) : match.start()]
        idle = _IDLE.match(match.string, match.end())
        if idle or not _BEFORE.search(before) or not _AFTER.match(match.string, match.end()):
            return match[0]
        opening = not match.string[: match.start()].strip(" \n*_\"'“#>-❌✅✗✓")
        dot = (
            ". " if opening and re.match(r"\s*[,;:—–-]|\s*\(", match.string[match.end() :]) else ""
        )
        return token(1 if match["no"] else 0) + dot

    text = _WORD.sub(swap, text)
    for word, index in _JAPANESE:
        text = text.replace(word, token(index))
    return text


_CONCLUDED = re.compile(
    r"(?:\b(?:so|thus|hence|therefore|conclusion|verdict|answer|result|also|daher|donc|luego"
    r"|por tanto|quindi|dunque|dus|logo|portanto)\b|よって|したがって)[\s,:*]*([^.!?\n]*)",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:is|are|was|were|does|do|did|can|could|has|have|will|would|should)(?: \w+)? not\b"
    r"|n't\b|\bnot \w+\W*$|\bno (?:es|está|hay|puede)\b|\bnão (?:é|está|há|pode)\b|\bnon (?:è"
    r"|può)\b|\bn'est pas\b|\bist (?:\w+ )?(?:nicht|kein)|\bis (?:geen|niet)\b",
    re.IGNORECASE,
)
_AFFIRMED = re.compile(
    r"^\s*(?:it|they|he|she|that|this) (?:does|do|did|is|are|was|can|has|will)\W*$", re.IGNORECASE
)


def _by_predicate(reply: str) -> int | None:
    """From what the last conclusion says of the question's own words: "so it is not prime"."""
    text = answer_part(reply)
    if text is None or re.search(SOFT + "|" + OPEN, text, re.IGNORECASE):
        return None
    text = plain(re.sub(r"^[ \t]*\|[^\n]*\|[ \t]*$", "", text, flags=re.MULTILINE))
    if is_cut(text) or refusal_in(text) is not None or re.search("[\ue000-\uefff]", _mark(text)):
        return None
    found = list(_CONCLUDED.finditer(text))
    if not found or text[found[-1].end() :].strip(" .!*\n"):
        return None
    said = found[-1][1]
    if _NEGATED.search(said):
        return 1
    return 0 if _AFFIRMED.search(said) else None
