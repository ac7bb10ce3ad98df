"""Text around the request: parts of a mail, earlier turns, documents that do not answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, pairwise
from typing import Any

from falter.perturbations.additions import prose_at
from falter.perturbations.augmentation import about_the_text, contains_answer, stems
from falter.perturbations.base import prompt_perturbation, with_section
from falter.perturbations.vocabulary import stop_words, table
from falter.records.chats import is_chat
from falter.records.rng import Rng
from falter.records.types import Prompt, Section, SectionKind
from falter.text.spans import Replacement, added, replace_spans

_COMPARED_KINDS: tuple[SectionKind, ...] = (
    "input",
    "choices",
    "earlier",
    "reply",
    "result",
    "system",
)


PIECE_KINDS = ("chunks", "disclaimer", "exchanges", "header", "quoted", "signature")


@cache
def pool(kind: str) -> Sequence[Any]:
    """Return the pieces of a kind: texts, or pairs of a question and its answer."""
    pieces: Sequence[Any] = table("surroundings_en.json")[kind]
    return pieces


@cache
def _common_stems() -> frozenset[str]:
    return stems(" ".join(stop_words("en")))


def _unrelated(kind: str, prompt: Prompt) -> list[Any]:
    """Return the pieces of a kind that share no stem with the prompt and contain no answer.

    Stems of function words do not count.
    """
    said = (
        stems("\n".join(s.text for s in prompt.sections if s.kind in _COMPARED_KINDS))
        - _common_stems()
    )
    return [
        piece
        for piece in pool(kind)
        if said.isdisjoint(stems(text := piece if isinstance(piece, str) else "\n".join(piece)))
        and not contains_answer(text, prompt)
    ]


# A mail around the request

_MAIL_PARTS = ("disclaimer", "header", "quoted", "signature")


def _mail_texts(prompt: Prompt, part: str) -> tuple[int, dict[str, list[str]]]:
    """Return the index of the request's section, and by part the texts that may be put around it.

    There are no texts if the prompt has options, or if the request does not end as a sentence. Each
    part needs a line break between the request and the neighbouring text.
    """
    at = prose_at(prompt)
    if at is None or prompt.choices:
        return 0, {}
    body = [s.text if s.kind != "system" else "" for s in prompt.sections]
    before, after = "".join(body[:at]), "".join(body[at + 1 :])
    places = {name: not after or after.startswith("\n") for name in _MAIL_PARTS}
    places["header"] = not before or before.endswith("\n")
    if not body[at].rstrip().endswith((".", "?", "!")):
        return 0, {}
    wanted = _MAIL_PARTS if part == "any" else (part,)
    pieces = {name: _unrelated(name, prompt) for name in wanted if places[name]}
    return at, {name: found for name, found in pieces.items() if found}


@prompt_perturbation(
    "email_noise",
    eligible=lambda prompt, part, language: bool(_mail_texts(prompt, part)[1]),
    unless=about_the_text,
)
def email_noise(prompt: Prompt, rng: Rng, part: str, language: str) -> Prompt:
    """Puts a part of a mail around the request: a subject, a signature, an older mail below it."""
    at, pieces = _mail_texts(prompt, part)
    name = rng.choice(tuple(pieces))
    piece, text = rng.choice(pieces[name]), prompt.sections[at].text
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    change: Replacement = (end, end, f"\n\n{piece}")
    if name == "header":
        change = (start, start, f"Subject: {piece}\n\n")
    return with_section(prompt, at, replace_spans(prompt.sections[at], [change]))


# Earlier turns


def _can_talk(prompt: Prompt, turns: int, language: str) -> bool:
    """Return True if the prompt is a conversation without documents, and an exchange fits it.

    An assistant that answers from documents alone would not have answered the earlier questions.
    """
    documents = any(section.kind == "document" for section in prompt.sections)
    return is_chat(prompt.sections) and not documents and bool(_unrelated("exchanges", prompt))


@prompt_perturbation("earlier_turns", eligible=_can_talk, unless=about_the_text)
def earlier_turns(prompt: Prompt, rng: Rng, turns: int, language: str) -> Prompt:
    """Lets the user ask about something else first, and the assistant answer."""
    talks, sections = _unrelated("exchanges", prompt), prompt.sections
    kinds: tuple[SectionKind, SectionKind] = ("earlier", "reply")
    talk = [
        replace(added(f"earlier_turns_{n}_{kind}", text, kind), opens=True)
        for n in islice(rng.order(len(talks)), turns)
        for kind, text in zip(kinds, talks[n], strict=True)
    ]
    at = next(n for n, s in enumerate(sections) if s.kind not in ("system", "tool"))
    return prompt.with_sections((*sections[:at], *talk, *sections[at:]))


# More documents


def _document_sections(prompt: Prompt) -> tuple[list[int], str]:
    """Return the indices of the documents' sections, and the white space between two of them.

    Both are empty if other text is between documents, such as their numbers.
    """
    at = [n for n, s in enumerate(prompt.sections) if s.kind == "document" and s.text.strip()]
    gaps = {"".join(s.text for s in prompt.sections[a + 1 : b]) for a, b in pairwise(at)}
    gap = next(iter(gaps)) if len(gaps) == 1 else ""
    return (at, gap) if "\n" in gap and not gap.strip() else ([], "")


def _can_add(prompt: Prompt, count: int, place: str, language: str) -> bool:
    return bool(_document_sections(prompt)[0]) and bool(_unrelated("chunks", prompt))


@prompt_perturbation("document_noise", eligible=_can_add, unless=about_the_text)
def document_noise(prompt: Prompt, rng: Rng, count: int, place: str, language: str) -> Prompt:
    """Puts documents among the others that have nothing to do with the question."""
    (own, gap), chunks = _document_sections(prompt), _unrelated("chunks", prompt)
    places = {"begin": own[:1], "end": [own[-1] + 1], "between": own[1:]}[place]
    new: dict[int, list[Section]] = {}
    for n in islice(rng.order(len(chunks)), count):
        text = gap + chunks[n] if place == "end" else chunks[n] + gap
        section = added(f"document_noise_{n}", text, "document")
        new.setdefault(rng.choice(places), []).append(section)
    out: list[Section] = []
    for at in range(len(prompt.sections) + 1):
        out += [*new.get(at, ()), *prompt.sections[at : at + 1]]
    return prompt.with_sections(tuple(out))
