"""Comparing replies without a judge: ROUGE-L, JSON-aware ROUGE-L, facts, sources, figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from falter.protocols.enterprise._pairs import Pair, Reply
from falter.scorers import entity_match, json_rouge, rouge
from falter.scorers.parts import gold_slots

__all__ = ["ALIKE", "TOLERANCE", "aligned_likeness", "counted", "likeness", "rated_likeness"]

ALIKE, NEARLY = 0.7, 0.4
TOLERANCE = 0.1
_DETAIL = re.compile(r"[^\W_]*\d[\w.:/-]*\w|\d|\b[A-Z]{2,}\b")
_CITED = re.compile(r"\[([^\[\]\n]{1,40})\]")


@lru_cache(maxsize=4096)
def _rouge(candidate: str, reference: str) -> float:
    if candidate.strip() == reference.strip():
        return 1.0
    return rouge(candidate, reference, ("rougeL",), tokens="unicode")["rougeL"].f1


def likeness(pair: Pair) -> float | None:
    """ROUGE-L's F1 of the two replies, markup left aside; None across languages."""
    if pair.missing or pair.crosses:
        return None
    assert pair.reference is not None and pair.candidate is not None
    return _rouge(_values(pair.candidate), _values(pair.reference))


def aligned_likeness(pair: Pair) -> float | None:
    """The mean over the parts of ROUGE-L's F1; None where a reply could not be read."""
    if pair.missing or pair.crosses:
        return None
    assert pair.reference is not None and pair.candidate is not None
    if pair.reference.parts is None or pair.candidate.parts is None:
        return None
    return json_rouge(
        dict(pair.candidate.parts), dict(pair.reference.parts), tokens="unicode"
    ).value


def rated_likeness(pair: Pair) -> float | None:
    """1, 2 or 3 from the aligned likeness, or from that of the texts where one is not read."""
    value = aligned_likeness(pair)
    value = likeness(pair) if value is None else value
    return None if value is None else 3.0 if value >= ALIKE else 2.0 if value >= NEARLY else 1.0


def _values(reply: Reply) -> str:
    return reply.text.strip() if reply.parts is None else "\n".join(reply.parts.values())


def counted(pair: Pair, measure: str, reply: Reply, *, reference: bool) -> float | None:
    """A measure of quality that needs no judge; None where it is not known."""
    target = pair.reference_target if reference else pair.target
    return _COUNTED[measure](pair, reply, target)


def _grounded(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """The share of the reply's numbers, codes and names in capitals that stand in the material."""
    details = _details(_values(reply))
    return len(details & _details(pair.material)) / len(details) if details else 1.0


def _covered(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """The share of the material's numbers, codes and names in capitals that stand in the reply."""
    details = _details(pair.material)
    return len(details & _details(_values(reply))) / len(details) if details else None


def _details(text: str) -> frozenset[str]:
    return frozenset(match.casefold().strip(".:/-") for match in _DETAIL.findall(text))


def _facts(pair: Pair, reply: Reply, target: str | None) -> float | None:
    facts = [_plain(line) for line in (target or "").splitlines() if line.strip()]
    text = _plain(_values(reply))
    return sum(fact in text for fact in facts) / len(facts) if facts else None


def _sources(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """F1 of the documents named in brackets, or among the references, against those that answer."""
    if not pair.sources:
        return None
    parts = reply.parts or {}
    listed = parts.get("references", "") if parts else ""
    named = {name.strip() for name in _CITED.findall(_values(reply))}
    named |= {piece.strip(" []") for piece in re.split(r"[,\n;]", listed) if piece.strip(" []")}
    hits = len(named & set(pair.sources))
    return 2 * hits / (len(named) + len(pair.sources))


def _entities(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """F1 of the slots; where the languages are mixed, against the gold of whichever fits better."""
    if target is None or reply.parts is None:
        return None
    golds = {target, pair.reference_target or target} if pair.crosses else {target}
    found = [
        entity_match(
            dict(reply.parts), gold_slots(gold), choice_keys=pair.choices, tokens="unicode"
        ).value
        for gold in golds
    ]
    return max((value for value in found if value is not None), default=None)


def _rouge_l(pair: Pair, reply: Reply, target: str | None) -> float | None:
    """ROUGE-L's F1 of the slots with values, one a line, against the gold."""
    if target is None or reply.parts is None:
        return None
    return _rouge("\n".join(f"{name}: {text}" for name, text in reply.parts.items()), target)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


_COUNTED: Mapping[str, Callable[[Pair, Reply, str | None], float | None]] = {
    "grounded": _grounded,
    "covered": _covered,
    "facts": _facts,
    "sources": _sources,
    "entity_f1": _entities,
    "rouge_l": _rouge_l,
}
