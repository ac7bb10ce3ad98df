"""Other projects that make noise, asked for the same work; and what noise loses of a text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import count
from typing import Any, NamedTuple

from falter.text.meaning import meaning_flags

__all__ = ["PEERS", "Damage", "Peer", "damage", "texts_of"]

Augment = Callable[[str], Any]
# A word made into another is counted by `perturbation_harm.py`; here, what is lost.
LOST = frozenset({"number", "span", "negation", "quantifier", "relation", "symbol", "name"})


class Peer(NamedTuple):
    """Whose work is like that of which perturbation, and what makes its steps."""

    perturbation: str
    whose: str
    makers: tuple[Callable[[], Augment], ...]


class Damage(NamedTuple):
    """Words changed in a text, and the share of changed texts that lost something."""

    words: float
    lost: float


def damage(pairs: Sequence[tuple[str, str]]) -> Damage | None:
    """Return the changes of the texts that changed; None if none did."""
    changed = [(before, after) for before, after in pairs if before != after]
    if not changed:
        return None
    words = sum(_words_changed(before.split(), after.split()) for before, after in changed)
    lost = sum(
        any(flag.check in LOST for flag in meaning_flags(before, after))
        for before, after in changed
    )
    return Damage(words / len(changed), lost / len(changed))


def _words_changed(before: Sequence[str], after: Sequence[str]) -> int:
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return len(before) - sum(block.size for block in blocks)


def texts_of(augmenters: Sequence[Augment], text: str) -> str:
    """One text after all steps of a peer."""
    for augment in augmenters:
        out = augment(text)
        text = out[0] if isinstance(out, list) and out else out
    return text


def nlpaug_maker(kind: str, name: str, **settings: Any) -> Callable[[], Augment]:
    def make() -> Augment:
        module = importlib.import_module(f"nlpaug.augmenter.{kind}")
        augment: Augment = getattr(module, name)(**settings).augment
        return augment

    return make


def textattack_typos() -> Augment:
    module = importlib.import_module("textattack.augmentation")
    augment: Augment = module.CharSwapAugmenter(pct_words_to_swap=0.5).augment
    return augment


def textnoisr_maker(level: float) -> Callable[[], Augment]:
    def make() -> Augment:
        module = importlib.import_module("textnoisr.noise")
        augment: Augment = module.CharNoiseAugmenter(noise_level=level, seed=0).add_noise
        return augment

    return make


def langtest_typos() -> Augment:
    module = importlib.import_module("langtest.transform.robustness")

    def augment(text: str) -> Any:
        return module.AddTypo.transform([text], prob=1.0)

    return augment


def promptsuite_typos() -> Augment:
    module = importlib.import_module("promptsuite.augmentations.text.noise")
    butter_finger = module.TextNoiseAugmenter().butter_finger
    seeds = count()

    def augment(text: str) -> Any:
        return butter_finger(text, prob=0.06, seed=next(seeds))

    return augment


_KEYS = nlpaug_maker("char", "KeyboardAug", aug_word_p=0.12, aug_word_max=None, aug_char_max=1)
_SPELLING = nlpaug_maker("word", "SpellingAug", aug_p=0.12, aug_max=None)
PEERS: tuple[Peer, ...] = (
    Peer("typos", "nlpaug", (_KEYS, _SPELLING)),
    Peer("typos", "textattack", (textattack_typos,)),
    Peer("typos", "textnoisr", (textnoisr_maker(0.06),)),
    Peer("typos", "langtest", (langtest_typos,) * 4),
    Peer("typos", "promptsuite", (promptsuite_typos,)),
    Peer("spelling", "nlpaug", (nlpaug_maker("word", "SpellingAug", aug_p=0.5, aug_max=None),)),
    Peer(
        "ocr",
        "nlpaug",
        (nlpaug_maker("char", "OcrAug", aug_word_p=0.2, aug_word_max=None, aug_char_max=1),),
    ),
    Peer(
        "word_split",
        "nlpaug",
        (nlpaug_maker("word", "SplitAug", aug_p=0.3, aug_max=None, min_char=4),),
    ),
)
"""The same work by others, set to change about as many words: steps that run after each other."""
