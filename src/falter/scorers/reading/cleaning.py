"""Conversion of a response to plain text, without reasoning, markup and appended items.

A response may be hostile or endless. If it exceeds `MAX_CHARACTERS`, only its end is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from falter.records.lazy_regex import lazy_regex, named_regex
from falter.text.code import fenced_blocks

# Dozens of expressions search a response. No answer takes 20,000 characters: a longer response
# loops or has reasoning without tags, and its answer is at the end.
MAX_CHARACTERS = 20_000  # characters after the reasoning; a longer text is not read whole
TAIL_CHARACTERS = 6_000  # characters at the end of a longer reply
MAX_BOXES = 20  # last boxes read in a response
THOUGHTS_ONLY = "the reply ends inside its thoughts"

_THOUGHT = r"(?:think|thinking|thoughts?|reasoning|scratchpad|analysis|reflection|rationale)"
_PREFIX = r"(?:\w{1,12}[:_])?"
# <think>, [THINK], <|begin_of_thought|>, <seed:think>, ◁think▷
_OPENED = lazy_regex(rf"[<\[◁]\|?{_PREFIX}(?:begin_of_)?{_THOUGHT}\|?[>\]▷]", re.IGNORECASE)
# </think>, <|/think|>, <|end_of_thought|>, [/THINK]
_CLOSED = lazy_regex(rf"[<\[◁](?:\|?/|\|?end_of_){_PREFIX}{_THOUGHT}\|?[>\]▷]", re.IGNORECASE)
_CHANNEL = lazy_regex(r"<\|channel\|>\s{0,9}(\w{1,20})[^<]{0,80}<\|message\|>", re.IGNORECASE)
_FINAL_LINE = named_regex("scorers/reading", "final_line")
_CHAT_TOKEN = named_regex("scorers/reading", "chat_token")
_NEXT_TURN = named_regex("scorers/reading", "turn")
_TURN_END = named_regex("scorers/reading", "turn_end")
_NEXT_QUESTION = named_regex("scorers/reading", "sequel")
"""Start of a further question that the model appended."""
_INPUT_HEADING = named_regex("scorers/reading", "input")
# Digits, letters and signs of full width, and hyphens of other code points, as plain ones.
_HALF_WIDTH = {
    **{ord("０") + n: str(n) for n in range(10)},
    **{ord("Ａ") + n: chr(ord("A") + n) for n in range(26)},
    **{ord("ａ") + n: chr(ord("a") + n) for n in range(26)},
    **dict.fromkeys(map(ord, "‐‑‒﹣－"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u202f\u2009"), " "),
    **dict.fromkeys(map(ord, "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad"), None),
    ord("％"): "%", ord("＋"): "+", ord("＝"): "=", ord("．"): ".", ord("’"): "'",
}  # fmt: skip
_BLANKS = lazy_regex(r"\s{13,}")
_REPEATED_MARK = lazy_regex(r"([^\w\s])\1{12,}")


@dataclass(slots=True)
class Cleaned:
    """The answering part of a response: as written (`raw`), as plain `text`, and its marked spans.

    `is_whole` is False if only the end of a long response was kept. `reason` is set if there is no
    text.
    """

    raw: str = ""
    text: str = ""
    bold: tuple[str, ...] = ()
    boxed: tuple[str, ...] = ()
    tagged: tuple[str, ...] = ()
    is_whole: bool = True
    reason: str = ""


def clean(reply: str, *, keeps_tags: bool = False) -> Cleaned:
    """Return the plain text of a response after its reasoning, with its marked spans."""
    raw, is_whole, reason = answer_part(reply)
    if reason:
        return Cleaned(reason=reason)
    boxed = tuple(_boxed_texts(raw)) if "boxed" in raw else ()
    spans = _BOLD.finditer(raw) if "**" in raw or "__" in raw else ()
    bold = tuple((m[1] or m[2]).strip() for m in spans)
    tagged: tuple[str, ...] = ()
    if "<" in raw and not keeps_tags:
        tagged = tuple(m[2].strip() for m in _ANSWER_TAG.finditer(raw))
    text = plain(raw, keeps_tags=keeps_tags)
    return Cleaned(raw, text, bold, boxed, tagged, is_whole, "" if text else "the reply is empty")


def answer_part(reply: str) -> tuple[str, bool, str]:
    """Return the text after the reasoning, True if it is whole, and the reason if it is empty."""
    text, is_whole = reply, True
    behind = _after_reasoning(text[-MAX_CHARACTERS:])
    if behind is not None:
        text = behind
    # Opened and never closed: the token limit was reached inside the reasoning.
    elif _OPENED.search(text[:MAX_CHARACTERS]):
        return "", True, THOUGHTS_ONLY
    if not text.strip():
        return "", True, THOUGHTS_ONLY if reply.strip() else "the reply is empty"
    if len(text) > MAX_CHARACTERS:
        text, is_whole = (
            text[-TAIL_CHARACTERS:].partition("\n")[2] or text[-TAIL_CHARACTERS:],
            False,
        )
    text = text.replace("\r\n", "\n")
    if not text.isascii():
        text = text.translate(_HALF_WIDTH)
    # Long runs are shortened, so that no later expression goes back over them again and again.
    text = _BLANKS.sub(lambda m: "\n\n" if "\n" in m[0] else "    ", text)
    text = _REPEATED_MARK.sub(lambda m: m[1] * 12, text)
    text = _without_sequel(text).strip()
    return text, is_whole, "" if text else "the reply is empty"


def _after_reasoning(text: str) -> str | None:
    """Return the text after the last reasoning block or channel mark; None if there is none.

    The text is empty if the last channel is not `final`.
    """
    if "<|channel|>" in text and (channels := list(_CHANNEL.finditer(text))):
        return text[channels[-1].end() :] if channels[-1][1].casefold() == "final" else ""
    if not any(sign in text for sign in "<[◁"):
        return None
    end = 0
    for match in _CLOSED.finditer(text):
        end = match.end()
    return text[end:] if end else None


def _without_sequel(text: str) -> str:
    """Return the text without further turns, questions and items that the model appended."""
    text = text.strip()
    if "<" in text or "[" in text:
        text = _NEXT_TURN.sub("", text)
    if "\n" not in text and "<" not in text and "[" not in text:
        return text
    for end in (*([_CHAT_TOKEN] if "<" in text or "[" in text else ()), _TURN_END, _NEXT_QUESTION):
        found = end.search(text)
        if found and text[: found.start()].strip():
            text = text[: found.start()].strip()
    head = text.partition("\n")[0]
    if len(head.split()) <= 8 and not head.rstrip().endswith(("?", ":", ",")):
        found = _INPUT_HEADING.search(text)
        if found and (":" not in head or _FINAL_LINE.match(head) or head.startswith("{")):
            text = text[: found.start()]
    return text


_ANSWER_TAG = named_regex("scorers/reading", "answer_tag")
# "**Paris**", "__Paris__"; not "x ** 2 ** 3" or "snake__case__name".
_BOLD = lazy_regex(r"\*{2,3}(?=[^\s*])([^*\n]{1,300})\*{2,3}|(?<!\w)__(?=[^\s_])([^_\n]{1,300})__")
# "*Paris*"; not "2 * 3 * 4" or "a*b*c".
_ITALIC = lazy_regex(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,200})(?<=[^\s*])\*(?![\w*])")
_STRUCK = lazy_regex(r"~~([^~\n]{1,200})~~")
# "<b>", "</li>", '<a href="x">', "<br/>"; not "x < 5", "<3>" or "a <- b".
_TAG = lazy_regex(r"</?[a-zA-Z][\w-]{0,30}(?:\s[^<>]{0,200})?/?>")
# "## Answer", "> Paris"; not ">= 5" or "#1".
_HEADING = lazy_regex(r"^[ \t]{0,9}(?:#{1,6}|>{1,6}(?![\d=]))[ \t]+", re.MULTILINE)
_HASHES = lazy_regex(r"^[ \t]{0,9}####[ \t]*(?=\S)", re.MULTILINE)
_LATEX_WRAP = named_regex("scorers/reading", "latex_wrap")
_LATEX_ARROW = lazy_regex(r"\\(?:Rightarrow|rightarrow|implies|to|therefore|Longrightarrow)\b")
# "\begin{array}{cc}", "\end{align*}".
_ENVIRONMENT = lazy_regex(r"\\(?:begin|end)\{[\w*]{1,20}\}(?:\{[^{}]{0,20}\})?")
_LATEX_SPACE = lazy_regex(r"\\[,;:! ]|\\q?quad\b|\\left|\\right|\\[()\[\]]|\\\\")
_DISPLAYED = lazy_regex(r"\$\$([^$]{1,400})\$\$")
# "$x^2$"; not "$5 and $6", where a digit follows the second sign.
_IN_LINE = lazy_regex(r"(?<!\\)\$(?=\S)([^$\n]{1,200}?)(?<=[^\s\\])\$(?!\d)")
_ESCAPED = lazy_regex(r"\\([%$€£#&])")


def plain(text: str, *, keeps_tags: bool = False) -> str:
    """Return a text without markdown, LaTeX commands and HTML; struck words are negated."""
    if "```" in text or "~~~" in text:
        text = _unfenced(text)
    if "\\" in text or "$" in text:
        # Commands may be nested, as in \text{\mathbf{B}}, but hardly deeper than this.
        for _ in range(3):
            text, count = _LATEX_WRAP.subn(r" \1 ", text)
            if not count:
                break
        text = _ENVIRONMENT.sub("", _LATEX_ARROW.sub(" ⇒ ", text))
        text = _IN_LINE.sub(r" \1 ", _DISPLAYED.sub(r" \1 ", text))
        text = _LATEX_SPACE.sub(" ", _ESCAPED.sub(r"\1", text))
    if "~~" in text:
        text = _STRUCK.sub(r"not \1,", text)
    if "*" in text or "__" in text:
        text = _BOLD.sub(lambda m: m[1] or m[2], text)
        text = _ITALIC.sub(r"\1", text)
    if "<" in text and not keeps_tags:
        text = re.sub(r"<br\s{0,3}/?>", "\n", text)
        text = _TAG.sub(" ", text)
    if "#" in text or ">" in text:
        # "#### 42" is how the solutions of GSM8K mark their answer.
        text = _HASHES.sub("Answer: ", text)
        text = _HEADING.sub("", text)
    return text.replace("`", "").strip()


def _unfenced(text: str) -> str:
    """Return a text without the lines of its code fences."""
    out, at = list[str](), 0
    for block in fenced_blocks(text):
        out += (text[at : block.span[0]], text[slice(*block.inside)])
        at = block.span[1]
    return "".join([*out, text[at:]])


def _boxed_texts(text: str) -> list[str]:
    r"""Return the content of each `\boxed{…}` with balanced braces; an open box is left out."""
    found = []
    for match in list(re.finditer(r"\\f?boxed\s{0,3}\{", text))[-MAX_BOXES:]:
        depth, start = 1, match.end()
        for at in range(start, min(len(text), start + 300)):
            depth += (text[at] == "{") - (text[at] == "}")
            if depth == 0:
                found.append(plain(text[start:at]))
                break
    return found


_ENDED = lazy_regex(r"[.!?…。！？)\]}>”\"'»」*`$|~✓✔✅✗❌☺-⟿\U0001f000-\U0001faff]\s*\Z")
HANGING_WORDS = (
    "is are the a an of and or to that because in for with so be which by as at on from but "
    "if than was would its their ist der die das ein eine und oder weil dass den dem est le "
    "la les et ou que de des un une es el los y o è il che e di het een en dat é os um uma"
)
HANGING = frozenset(HANGING_WORDS.split())


def is_cut(text: str) -> bool:
    """Return True if a reply of several words ends in the middle of a sentence."""
    text = text.strip()
    if not text or _ENDED.search(text[-4:]):
        return False
    last = text.rpartition("\n")[2]
    words = last.split()
    hangs = len(words) > 2 and words[-1].lower() in HANGING and words[-2].lower() != "it"
    if hangs or text[-1] in ",:(=+×·*/-–—":
        return True
    tail = re.split(r"[.!?:]\s", last[-300:])[-1].split()
    return len(tail) > 9 or (len(tail) > 2 and re.search(r"[.!?]\s", text[-2000:]) is not None)
