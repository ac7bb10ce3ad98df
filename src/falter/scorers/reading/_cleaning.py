"""A reply without what only dresses it: thoughts, fences, bold type, LaTeX, a further question."""

from __future__ import annotations

import re

from falter.records.lazy_regex import late_regex
from falter.scorers.reading._words import FINAL, QUESTION_LINE
from falter.scorers.reading._wrapped import objects

LONGEST = 20_000  # characters behind the thoughts; longer replies are not read
_LONG = 400  # what is shorter is read as it is

_TAG = r"(?:think|thinking|thoughts?|reasoning|scratchpad|analysis|reflection|rationale)"
_OPENED = late_regex(rf"[<\[◁]\|?(?:\w{{1,12}}[:_])?(?:begin_of_)?{_TAG}\|?[>\]▷]", re.IGNORECASE)
_CLOSED = late_regex(rf"[<\[◁](?:\|?/|\|?end_of_)(?:\w{{1,12}}[:_])?{_TAG}\|?[>\]▷]", re.IGNORECASE)
_CHANNEL = late_regex(r"<\|channel\|>\s*(\w+)[^<]{0,80}<\|message\|>", re.IGNORECASE)
"""Where a model that writes in channels begins one: its analysis, its final answer."""
_WIDE = {
    **{ord("０") + n: str(n) for n in range(10)},
    **{ord("Ａ") + n: chr(ord("A") + n) for n in range(26)},
    **{ord("ａ") + n: chr(ord("a") + n) for n in range(26)},
    **dict.fromkeys(map(ord, "‐‑‒﹣－"), "-"),
    ord("％"): "%", ord("＋"): "+", ord("＝"): "=", ord("．"): ".",
}  # fmt: skip
"""Digits, letters and signs of full width, and hyphens of other code points, as plain ones."""
_PRIVATE = late_regex("[\ue000-\uf8ff\u200b-\u200f\u2060\ufeff]")
# A model that has lost its way repeats a sign or a few words by the thousand; a dozen say as much.
_BLANKS = late_regex(r"\s{13,}")
_SAME = late_regex(r"([^\w\s])\1{12,}")
_LOOP = late_regex(r"(\D{1,24}?)\1{24,}")
_SEQUEL = late_regex(rf"\n\s*{QUESTION_LINE}\s*[:：]", re.IGNORECASE)
_FINAL_LINE = late_regex(rf"^[\W_]*(?:{FINAL})", re.IGNORECASE)


def answer_part(text: str) -> str | None:
    """What stands behind a model's thoughts, without a further question that it asks itself.

    Thoughts that never end hold no answer, unless their last lines are marked as the final one.
    """
    if channels := list(_CHANNEL.finditer(text)):
        if channels[-1][1].casefold() != "final":
            return None
        text = text[channels[-1].end() :]
    closings = list(_CLOSED.finditer(text))
    if closings:
        text = text[closings[-1].end() :]
    if len(text) > LONGEST:
        return None
    text = (
        _PRIVATE.sub("", text).replace("\r\n", "\n").replace("\u00a0", " ").replace("\u202f", " ")
    )
    text = text if text.isascii() else text.translate(_WIDE)
    text = _BLANKS.sub(lambda m: "\n\n" if "\n" in m[0] else "    ", text)
    text = _SAME.sub(lambda m: m[1] * 12, text)
    if len(text) > _LONG:
        text = _LOOP.sub(lambda m: m[1] * 12, text)
    if not closings and (opening := _OPENED.search(text)):
        text = text[opening.end() :]
        lines = [line for line in text.strip().split("\n") if line.strip()]
        marked = [n for n, line in enumerate(lines) if _FINAL_LINE.match(line)]
        if not marked or marked[-1] < len(lines) - 2:
            return None
        text = "\n".join(lines[marked[-1] :])
    text = _TURN.sub("", text.strip())
    turn = _TURN_END.search(text)
    text = text[: turn.start()].strip() if turn and turn.start() else text
    sequel = _SEQUEL.search(text)
    return _without_items(text[: sequel.start()] if sequel else text).strip() or None


_SPECIAL = (
    r"(?:</?s>|<\|[\w-]{2,30}\|>|\[/?INST\]|<(?:start|end)_of_turn>|<eos>|<bos>|<\|?endoftext\|?>)"
)
_TURN = late_regex(rf"\A(?:\s*{_SPECIAL}\s*(?:assistant\s*\n)?)+", re.IGNORECASE)
_TURN_END = late_regex(
    rf"{_SPECIAL}|\n\s*(?:#+\s*)?(?:human|user|assistant|instruction|system)\s*:", re.IGNORECASE
)
"""Where another turn of a chat begins, by its tokens or its name."""
_INPUT = late_regex(
    r"\n[ \t>*#]*(?:input|text|review|ticket|passage|sentence|message|premise|hypothesis|context"
    r"|document|instructions?|problem|exercise|task|example|comment|tweet|e-?mail|statement|title"
    r"|subject|article|customer|post|snippet|word|item|case|prompt|eingabe|aufgabe|beispiel|texte"
    r"|exemple|entrada|texto|ejemplo|testo|esempio|invoer|voorbeeld|exemplo)\b[ \w]{0,20}?[ \t*]*"
    r"(?:[:：]|#?\d+\b|(?<=[a-z])[ \t*]*\n(?=.))",
    re.IGNORECASE,
)
_OUTPUT = late_regex(
    rf"\n[\W_]*(?:{FINAL}|(?:[^\W\d_]+ ){{0,2}}[^\W\d_]+[ \t*]*[:：])", re.IGNORECASE
)


_REPEATED = late_regex(
    r"\n\n([A-Z][a-z]{3,14}: ?)[^\n]{3,300}\n[A-Z][^\n:]{2,20}:[^\n]{1,80}\n\n\1[^\n]{3,300}(?=\n"
    r"|\Z)"
)
"""Two further items with one name of their input, and an answer each."""
_ASKED = late_regex(r"\n\n[^\n]{8,300}\?[ \t]*\n")


def _without_items(text: str) -> str:
    """The text without the further items that a model writes on, with their answers.

    They begin with the name of an input behind a first line that is short enough for an answer.
    """
    if text.startswith(("{", "[", "```")) and (first := next(iter(objects(text)), None)):
        item = _INPUT.search(text, first.end) if first.whole else None
        return text[: item.start()] if item and text.find("{", item.end()) > 0 else text
    if again := _REPEATED.search(text):
        return text[: again.start()]
    head = text.partition("\n")[0]
    named = _INPUT.search(text)
    item = named or (_ASKED.search(text) if len(head.split()) < 5 else None)
    keyed = re.search(r"[:：]", head) and not _FINAL_LINE.match(head)
    if item is None or len(head.split()) > 8 or keyed or head.rstrip()[-1:] in "?:,":
        return text
    asked = named is None and len(head.split()) < 4
    return text[: item.start()] if asked or _OUTPUT.search(text, item.end()) else text


def boxed(text: str) -> list[str]:
    r"""What stands in each `\boxed{…}`, braces balanced; a box that never closes is left out."""
    found = []
    for match in re.finditer(r"\\f?boxed\s*\{", text):
        depth, start = 1, match.end()
        for at in range(start, min(len(text), start + 500)):
            depth += (text[at] == "{") - (text[at] == "}")
            if depth == 0:
                found.append(text[start:at])
                break
    return found


_WRAPPING = late_regex(
    r"\\(?:text(?:bf|it|rm|tt|sf|sc)?|math(?:rm|bf|it|sf|tt|bb|cal)|mbox|operatorname|emph"
    r"|underline"
    r"|f?boxed|color\{\w+\})\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
)
_LATEX_ARROW = late_regex(r"\\(?:Rightarrow|rightarrow|implies|to|therefore|Longrightarrow)\b")
_ENVIRONMENT = late_regex(r"\\(?:begin|end)\{[\w*]+\}")
_LATEX_SPACE = late_regex(r"\\[,;:! ]|\\q?quad\b|~(?=\\)")
_FENCE = late_regex(r"^[ \t]*```[\w+-]*[ \t]*$", re.MULTILINE)
_BOLD = late_regex(r"\*{1,3}(?=\S)([^*\n]{1,400}?)(?<=\S)\*{1,3}|__(?=\S)([^_\n]{1,400}?)(?<=\S)__")


def plain(text: str) -> str:
    """The text without bold type, fences and LaTeX's text commands; struck words are negated."""
    for _ in range(3):
        text = _WRAPPING.sub(r"\1", text)
    text = _ENVIRONMENT.sub("", _LATEX_ARROW.sub(" ⇒ ", text))
    text = _LATEX_SPACE.sub(" ", text)
    text = _FENCE.sub("", text)
    text = re.sub(r"~~([^~\n]{1,200})~~", r"not \1,", text)
    for _ in range(2):
        text = _BOLD.sub(lambda m: m[1] or m[2], text)
    text = re.sub(r"<br\s*/?>", "\n", text)
    text = re.sub(r"</?[a-z][\w-]{0,30}(?:\s[^<>]{0,100})?/?>", " ", text, flags=re.IGNORECASE)
    text = text.replace("’", "'").replace("`", "")
    text = re.sub(
        r"^[ \t]*####[ \t]+(?=[-−$€£]?\d|\S+(?:[ \t]\S+)?[ \t]*$)",
        "Answer: ",
        text,
        flags=re.MULTILINE,
    )
    text = _CONCLUDING.sub("\nSo ", text)
    return re.sub(r"^[ \t]*(?:#{1,6}|>+(?![\d=]))[ \t]*", "", text, flags=re.MULTILINE)


_CONCLUDING = late_regex(
    r"^[ \t]*#{1,6}[ \t*_]+(?:\d+\.[ \t]+)?(?:final |my |the )?(?:conclusion|answer|verdict|fazit"
    r"|antwort|ergebnis|réponse|résultat|conclusión|respuesta|conclusione|risposta|conclusie"
    r"|antwoord|conclusão|resposta|結論|答え)[ \t*_:：]*\n+(?=\s*[^\W_#|])",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading below which the answer stands, in a sentence or by itself."""


_PROSE_END = late_regex(r"[.!?…。！？)\]}>”\"'»」*`$|~✓✔✅✗❌☺-⟿\U0001f000-\U0001faff-]\s*$")


_HANGING = late_regex(
    r"(?<![\w'])(?:is|are|the|an?|of|and|or|to|that|because|in|for|with|so|be|it|i|which|by|as"
    r"|at|on|from|but|if|than|was|would|its|their|his|her"
    r"|ist|der|die|das|ein|eine|und|oder|weil|dass|also|den|dem|est|le|la|les|et|ou|que|de|des"
    r"|un|une|es|el|los|y|o|è|il|che|e|di|het|een|en|of|dat|é|os|um|uma)$",
    re.IGNORECASE,
)


_ARROW = late_regex(r"[ \t*_]*(?:→|⇒|=>|->)[ \t*_]*\S")
_ITEM = late_regex(r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+[^\n]*[^\s.,;:(!?]$", re.MULTILINE)


def is_cut(text: str) -> bool:
    """Whether a reply of several words ends in the middle of a sentence."""
    text = text.strip()
    if not text or _PROSE_END.search(text):
        return False
    if text[-1] in ",:(=+×·*/-–—" or (len(text.split()) > 2 and _HANGING.search(text)):
        return True
    last = text.rpartition("\n")[2]
    if len(_ITEM.findall(text)) > 1 and _ITEM.match(last):
        return False
    if re.search(r"[\u3040-\u9fff]", text):
        return len(last) > 25 and not last.endswith("です")
    tail = re.split(r"(?<=[.!?:])\s", last)[-1]
    if _ARROW.match(tail):
        return False
    ended = re.search(r"[.!?]\s", text) is not None
    inside = re.search(r"[.!?]\s+[^.!?:]*$", last) is not None
    begun = inside and len(tail.split()) == 2 and not _FINAL_LINE.match(tail)
    return len(tail.split()) > 9 or (ended and (begun or len(tail.split()) > (2 if inside else 3)))
