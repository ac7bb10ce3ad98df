"""Misspellings as people make them, in doses as people make them."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log
from typing import Any

from falter.core.interfaces import Parameter
from falter.core.records import Prompt, Span
from falter.core.rng import Rng
from falter.perturbations._base import SitePerturbation, perturbations
from falter.perturbations._human import length_weights, misspelt
from falter.perturbations._parameters import COUNT, PROTECT, checked_parameters, scope_parameter
from falter.perturbations._wording import FAMILY, MEANING, NOISE, long_words
from falter.text import Replacement

__all__ = ["DOSES", "human_typos"]

DOSES = {"heavy": 0.15, "light": 0.02, "medium": 0.05}
"""Shares of all words: as on a phone on a bus, in an e-mail, in a chat."""
_DOSE = Parameter(
    name="dose",
    type=str,
    default="medium",
    help="misspelt words among all: light 2 %, medium 5 %, heavy 15 %",
    options=tuple(DOSES),
)
_KIND = Parameter(
    name="kind",
    type=str,
    default="all",
    help="slip: of the hand, letters swapped or of a key beside; spelling: all others",
    options=("all", "slip", "spelling"),
)


class _HumanTypos(SitePerturbation):
    """Misspells a share of all words, long ones more often than short ones.

    The dose is a share of all words of the sections in scope; what it leaves of an edit is made
    by chance, so that a short question often has none. A weaker dose is part of a stronger one.
    """

    def __init__(self, name: str, **described: Any) -> None:
        super().__init__(name, _sites, _edit, default_rate=0.0, **described)
        own = (_DOSE, COUNT, _KIND, PROTECT, scope_parameter(self.scope))
        self.parameters = (*own, *(p for p in self.parameters if p.name == "language"))
        self._own = ("kind", "language")

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        chance, edits_left = rng.random(), full["count"]
        if edits_left is None:
            texts = (s.text for s in prompt.sections if s.kind in full["scope"])
            words = sum(text.count(" ") + 1 for text in texts)
            edits_left = floor(DOSES[full["dose"]] * words + chance)
        if not edits_left:
            return prompt
        own = {name: full[name] for name in self._own}
        found = self._find_sites(prompt, full, own)
        places = [(at, site) for at, sites in found for site in sites]
        weights, draw = length_weights(), rng.random
        keys = [-log(1.0 - draw()) / weights[min(16, b - a)] for _, (a, b) in places]
        edits: dict[int, list[Replacement]] = {}
        for n in sorted(range(len(places)), key=keys.__getitem__):
            at, site = places[n]
            change = _edit(prompt.sections[at].text, site, rng, **own)
            if change is not None:
                edits.setdefault(at, []).append(change)
                edits_left -= 1
                if not edits_left:
                    break
        return self.edited(prompt, edits)


def _sites(text: str, blocked: Sequence[Span], kind: str, language: str) -> list[Span]:
    return long_words(text, blocked, language)


def _edit(text: str, site: Span, rng: Rng, kind: str, language: str) -> Replacement | None:
    start, end = site
    wrong = misspelt(text[start:end], kind, rng)
    return None if wrong is None else (start, end, wrong)


human_typos = _HumanTypos(
    "human_typos",
    title="mistakes as people type them",
    family=FAMILY,
    group=NOISE,
    version=2,
    summary="Misspells words as people do: which words, which letters, how many.",
    parameters=(),
    scope=("input",),
    invariants=MEANING,
    languages=("en",),
)
perturbations.register("human_typos", human_typos)
