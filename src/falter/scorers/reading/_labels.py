"""One label of a closed set out of a reply."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._answering import by_question, plain_answer
from falter.scorers.reading._candidates import read_candidate
from falter.scorers.reading._clause_words import CARRIER
from falter.scorers.reading._edges import NO_WORD_AFTER, NO_WORD_BEFORE, either
from falter.scorers.reading._mentions import MOST, token
from falter.scorers.reading._text_words import same_noun
from falter.scorers.reading._wrapped import folded_key

_EVERYDAY = (
    "yes no other for against open same more less even odd on off true false neither none both all"
    " any maybe unknown like will can may question request answer up down in out free new high low"
    " good fast normal null sí si ja nein nee non oui não sim"
)
_ROLES = frozenset(_EVERYDAY.split())
"""Labels that are everyday words, too: they count only where nothing else can be meant."""

_SUFFIXES = (
    "s es e en er em n ed d ing ly al ally ful 's ' é ée és ées a o as os i ive ively ion ions y"
    " ies ied ier ation ations ment t te ten ment mente heit keit r ts able ness an ä"
)
_ENDINGS = frozenset({"", *_SUFFIXES.split()})
_IRREGULAR = {
    "goose": "geese", "mouse": "mice", "man": "men", "woman": "women", "child": "children",
    "person": "people", "foot": "feet", "tooth": "teeth", "leaf": "leaves", "knife": "knives",
    "wolf": "wolves", "life": "lives", "good": "well", "anger": "angry", "joy": "joyful",
}  # fmt: skip
_CHANGES = frozenset(
    {("f", "ve"), ("f", "ves"), ("f", "ven"), ("s", "ze"), ("s", "zen"), ("y", "ied")}
)
"""What the end of a word turns into: positief, positieve; négatif, négative."""
_EDGES = rf"{NO_WORD_BEFORE}(?<!\w-)", rf"{NO_WORD_AFTER}(?!-\w|\.\w)"


def read_label(reply: str, labels: Sequence[str], question: str = "") -> str | None:
    """The label that a reply settles on, as it is written in `labels`; None for none or several.

    The question says which clause of a reply answers it, where no words of conclusion do.
    """
    if len(labels) > MOST:
        return None
    bare = [label for label in labels if folded_key(label) == folded_key(reply[:200])]
    if len(bare) == 1 and len(reply) < 200 and bare[0].casefold() not in _ROLES:
        return bare[0]
    if (stem := _ONE_WORD.fullmatch(reply)) is not None:
        begun = [x for x in labels if x.casefold() == stem[1].casefold() + "ness"]
        if len(begun) == 1:
            return begun[0]  # sad, of sadness
    if _two_numbered(reply, labels):
        return None
    marker = _marker(tuple(labels))
    index = read_candidate(reply, marker, len(labels), attributive=True)
    if index is None and question and (text := plain_answer(reply, marker)) is not None:
        index = by_question(text, marker, question)
    return None if index is None else labels[index]


def _two_numbered(reply: str, labels: Sequence[str]) -> bool:
    """Whether a reply leaves open which of two numbered labels: 3 or 4 stars."""
    nouns = {m[1].casefold() for x in labels if (m := re.fullmatch(r"\d+ ([^\W\d]+)", x))}
    found = _NUMBERED.search(reply)
    if found is not None and re.search(r"\d", reply[found.end() :]):
        return False
    return found is not None and any(same_noun(found[1].casefold(), noun) for noun in nouns)


_NUMBERED = late_regex(
    r"\b\d+ ?(?:or|to|oder|bis|ou|à|o|of|tot|a|[-–/]) ?\d+ ([^\W\d]+)", re.IGNORECASE
)
_ONE_WORD = late_regex(r"[\W_]*([^\W\d_]{3,20})[\W_]*")


def _spelled(label: str) -> str:
    """A pattern for a label in any case, with any separators."""
    words = [w for w in re.split(r"[\s_\-/]+", label.strip()) if w]
    parts = [
        r"(?:&|and|und|et|y|e|en)" if w.lower() in ("&", "and") else _unaccented(w) for w in words
    ]
    return r"[\s_\-/]*".join(parts) if len(parts) > 1 else "".join(parts)


def _unaccented(word: str) -> str:
    """A pattern for a word whose accents may be missing."""
    bare = [unicodedata.normalize("NFD", c)[0] for c in word]
    return "".join(re.escape(c) if c == b else f"[{c}{b}]" for c, b in zip(word, bare, strict=True))


@lru_cache(maxsize=64)
def _marker(labels: tuple[str, ...]):  # type: ignore[no-untyped-def]
    """A function that puts tokens in the place of mentions of labels."""
    order = sorted(range(len(labels)), key=lambda i: -len(labels[i]))
    parts = [_part(i, labels[i]) for i in order]
    exact = re.compile(either(parts, *_EDGES), re.IGNORECASE)
    digits = all(label.strip().isdigit() for label in labels)
    stems = [(i, labels[i].casefold()) for i in order if re.fullmatch(r"[^\W\d_]{3,}", labels[i])]

    def swap(match: re.Match[str]) -> str:
        index = int(str(match.lastgroup)[1:])
        if labels[index].casefold() in _ROLES and not _isolated(match):
            return match[0]
        return token(index)

    def inflected(match: re.Match[str]) -> str:
        word = match[0].casefold()
        hits = [i for i, stem in stems if word != stem and _same_word(word, stem)]
        return token(hits[0], inflected=True) if len(hits) == 1 else match[0]

    def marked(text: str) -> str:
        if not any("$" in label for label in labels):
            text = text.replace("$", "")
        if digits:  # 2 / 5 is the 2 of a scale
            text = re.sub(r"(?<![\d.])(\d+)\s*(?:/|out of)\s*\d+(?![\d/])", r"\1", text)
        text = exact.sub(swap, text)
        return re.sub(r"[^\W\d_\ue000-\uf8ff]{3,40}", inflected, text)

    return marked


def _part(index: int, label: str) -> tuple[bool, str]:
    """The pattern of a label, and whether it stands between the edges of words; not Japanese."""
    if re.search(r"[\u3040-\u9fff]", label):
        return False, f"(?P<l{index}>{re.escape(label)})"
    ending = "(?:s|n)?" if re.search(r"\w[\s_/-]+[^\W\d_]{4,}$", label) else ""
    return True, f"(?P<l{index}>{_spelled(label)}{ending}(?:-?ish)?)"


_BEFORE = late_regex(
    r"(?:^|[\n\"'“„«(\[*_:：=>→,.!?;、。「]|\b(?:has|have|(?:it|as|is|be|'s) an?|that's|(?:it|this|he|she) is"  # noqa: E501
    r"|so|is|be|as|to|are|was|leaves?|leaving|bleibt|reste|queda|resta|blijft|sobra"
    r"|therefore|hence|thus|ist|est|es|è|é|also|donc|label|answer|say|with|under|it's|remains?"
    r"|definitely|probably|clearly|likely|simply|just|towards?|deserves|warrants|in|into|under|for"
    r"|this|it|call|choose|pick|set|tag|rate|mark|really|rather|very|only|still|a|an|the|of|not"
    r"|or|and|than|but|aber|mais|pero|sondern|sino|ma|maar|mas|was|were|priority|level|urgency"
    r"|severity|priorité|priorität|prioridad"
    r"|priorità|prioriteit|prioridade|wohl|eher|als|auf|sehr|plutôt|de|en|muy|molto|di|in|op|em))"
    r"\s*$",
    re.IGNORECASE,
)
_AFTER = late_regex(
    r"\s*(?:$|[\n\"'”»)\]*_.,!?;:。、」|—–(]|-\s|(?:であ|です)|(?:to|for|here|now|then|since|because|as"
    r"|given|until|in (?:this|my|the)|rather|instead|overall|weil|denn|hier|car|parce|ici|porque"
    rf"|aquí|perché|qui|omdat|hier|pois|aqui|{CARRIER})\b)",
    re.IGNORECASE,
)


_STANDS = late_regex(r"\b(?:is|are|was|were|clearly|strongly|firmly|stance|argues|speaks)\s$")


def _isolated(match: re.Match[str]) -> bool:
    """Whether an everyday word stands by itself, as an answer does."""
    text = match.string
    if match[0].casefold() == "against" and _STANDS.search(text, 0, match.start()):
        return True
    return bool(_BEFORE.search(text[max(0, match.start() - 30) : match.start()])) and bool(
        _AFTER.match(text, match.end())
    )


def _same_word(word: str, stem: str) -> bool:
    """Whether two words are forms of one: a common beginning, and endings of inflection."""
    if word == stem:
        return True
    if _IRREGULAR.get(stem) == word or _IRREGULAR.get(word) == stem:
        return True
    if len(stem) == 3 and word in (stem + "ness", stem + "ly", stem + stem[-1] + "er"):
        return True
    shared = 0
    for a, b in zip(word, stem, strict=False):
        if a != b:
            break
        shared += 1
    derived = stem[shared:] in ("ment", "ation", "ness") and shared >= 5
    if shared < max(4, len(stem) - 3) and not derived and not (shared == len(stem) and shared >= 4):
        return False
    rest, own = word[shared:], stem[shared:]
    if (own, rest) in _CHANGES:
        return True
    doubled = rest[1:] if rest and shared and rest[0] == stem[shared - 1] else None
    return own in _ENDINGS and (
        rest in _ENDINGS or doubled in ("ed", "ing", "er", "y", "ation", "ations")
    )
