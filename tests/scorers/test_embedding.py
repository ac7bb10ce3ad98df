"""The sentence encoder: known neighbours, batches, edges."""

from __future__ import annotations

import numpy as np
import pytest

from falter.records.errors import WeightsError
from falter.weights.embedding import minilm

PAIRS = (
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("The invoice was paid on time.", "Penguins cannot fly."),
)


def test_alike_is_nearer_than_unlike() -> None:
    """A paraphrase is near, another subject far, the same text is 1."""
    near, far = minilm().cosine(*zip(*PAIRS, strict=True))
    assert near is not None and far is not None
    assert near > 0.6 > 0.2 > far
    assert minilm().cosine(["The same."], ["The same."]) == [pytest.approx(1.0)]


def test_the_company_of_a_batch_changes_nothing() -> None:
    """A text has the same vector alone and among others."""
    texts = [side for pair in PAIRS for side in pair] * 5
    together = minilm().encode(texts)
    alone = np.vstack([minilm().encode([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-6


def test_empty_text_has_no_direction() -> None:
    """Nothing is like nothing: None, and no tokens."""
    assert minilm().cosine(["", "a"], ["a", " \n"]) == [None, None]
    assert minilm().tokens([""])[0][0] == ()


def test_tokens_carry_unit_vectors() -> None:
    """One vector of length 1 a word piece, special ones left out; long text is cut."""
    tokens, vectors = minilm().tokens(["The unbelievable guitar"])[0]
    assert tokens == ("the", "unbelievable", "guitar")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0)
    assert len(minilm().tokens(["word " * 1000])[0][0]) == 254


def test_missing_weights_name_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Without weights the error says how to fetch them."""
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path))
    with pytest.raises(WeightsError, match="models pull minilm"):
        minilm.__wrapped__()
