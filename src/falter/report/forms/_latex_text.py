"""Text from outside made safe for LaTeX, as plain ASCII."""

from __future__ import annotations

import re
import unicodedata

from falter.report._escape import line

__all__ = ["latex", "words"]

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "^": r"\textasciicircum{}", "_": r"\_", "%": r"\%", "~": r"\textasciitilde{}",
    "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "{''}", "`": r"{\char18}", "'": "{'}",
    "-": "{-}", ",": "{,}", "?": "{?}", "!": "{!}", "[": "{[}", "]": "{]}", "\xa0": "~",
    "\u2013": "{--}", "\u2014": "{---}", "\u2212": "$-$", "\u00b1": r"$\pm$", "\u00d7": r"$\times$",
    "\u00b7": r"$\cdot$", "\u2026": r"\ldots{}", "\u2018": "{`}", "\u2019": "{'}",
    "\u201c": "{``}", "\u201d": "{''}", "\u2192": r"$\rightarrow$", "\u2190": r"$\leftarrow$",
    "\u2191": r"$\uparrow$", "\u2193": r"$\downarrow$", "\u2264": r"$\leq$", "\u2265": r"$\geq$",
    "\u221e": r"$\infty$", "\u23ce": r"$\hookleftarrow$", "\u21e5": r"$\mapsto$",
    "\u27e8": r"$\langle$", "\u27e9": r"$\rangle$", "\u00df": r"\ss{}", "\u00e6": r"\ae{}",
    "\u00c6": r"\AE{}", "\u0153": r"\oe{}", "\u0152": r"\OE{}", "\u00f8": r"\o{}",
    "\u00d8": r"\O{}", "\u0142": r"\l{}", "\u0141": r"\L{}", "\u0131": r"\i{}",
    "\u00a7": r"\S{}", "\u00b6": r"\P{}", "\u00a9": r"\copyright{}", "\u00b0": r"$^\circ$",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u0304": "=",
    "\u0307": ".", "\u0306": "u", "\u030c": "v", "\u030b": "H", "\u0327": "c", "\u0323": "d",
    "\u0331": "b", "\u030a": "r",
}  # fmt: skip
_GREEK = {
    character: unicodedata.name(character).split()[-1].lower()
    for character in "αβγδεζηθικμνξπρστυφχψωΓΔΘΞΠΣΦΨΩ"
} | {"λ": "lambda", "Λ": "lambda"}
_LONG = re.compile(r"\S{25,}")
_EVERY = 8


def latex(text: str, limit: int = 160) -> str:
    """Text on one line, bounded, that LaTeX only prints. A long word may break anywhere."""
    safe = line(text, limit)
    return "".join(
        _long(part) if _LONG.fullmatch(part) else _printed(part)
        for part in re.split(r"(\S{25,})", safe)
    )


def words(text: str) -> str:
    """The project's own text, escaped and never cut."""
    return latex(text, 10_000)


def _long(word: str) -> str:
    """A long word with a possible break after every few characters."""
    pieces = [word[at : at + _EVERY] for at in range(0, len(word), _EVERY)]
    return r"\allowbreak{}".join(map(_printed, pieces))


def _printed(text: str) -> str:
    return "".join(map(_character, unicodedata.normalize("NFC", text)))


def _character(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "\x7e":
        return character
    if character in _GREEK:
        name = _GREEK[character]
        return f"$\\{name.capitalize() if character.isupper() else name}$"
    base, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and marks[0] in _ACCENTS and base.isascii() and base.isalpha():
        dotless = {"i": r"\i{}", "j": r"\j{}"}.get(base, base)
        over = dotless if marks[0] not in ("\u0327", "\u0323", "\u0331") else base
        return f"{{\\{_ACCENTS[marks[0]]}{{{over}}}}}"
    plain = unicodedata.normalize("NFKC", character)
    if plain != character and all(" " <= c <= "\x7e" for c in plain):
        return "".join(map(_character, plain))
    return f"{{\\tiny U+{ord(character):04X}}}"
