"""The meaning check with the encoder, where it is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence

from falter.analysis import Cosine, KnownCosines, Meaning, Rewording, meaning
from falter.embedding import Encoder, minilm
from falter.weights import MINILM, find_weights

__all__ = ["encoder_if_there", "meaning_of"]


def encoder_if_there() -> Cosine | None:
    """The sentence encoder if the extra and its weights are installed; nothing is downloaded."""
    installed = all(importlib.util.find_spec(name) for name in ("onnxruntime", "tokenizers"))
    if not installed or find_weights(MINILM) is None:
        return None
    versions = [importlib.metadata.version(name) for name in ("onnxruntime", "tokenizers")]
    return KnownCosines(Encoder.name, " ".join([MINILM.sha256, *versions]), minilm)


def meaning_of(
    rewordings: Sequence[Rewording],
    *,
    task: str,
    recipe: str,
    group: str,
    language: str = "en",
    same: Mapping[str, int] | None = None,
) -> Meaning:
    """What a recipe did to prompts, with cosines if the encoder is installed."""
    return meaning(
        rewordings,
        task=task,
        recipe=recipe,
        group=group,
        language=language,
        encoder=encoder_if_there(),
        same=same,
    )
