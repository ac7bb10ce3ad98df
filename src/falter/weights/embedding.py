"""Sentence and token vectors, offline: all-MiniLM-L6-v2 (int8 ONNX) or an encoder in a folder."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.records.errors import MissingExtra, WeightsError, printable
from falter.weights.downloads import MINILM, find_weights

Floats = NDArray[np.float64]
MAX_TOKENS = 256  # tokens; the model was not trained with more
MAX_CACHED_VECTORS = 4096  # maximum number of cached vectors, 3 kB each
STATES = ("last_hidden_state", "token_embeddings")  # the names of hidden states in exports
SPECIAL_TOKENS = ("[CLS]", "[SEP]")
ENCODER_HINT = "name minilm, or a folder with model.onnx (or onnx/model.onnx) and tokenizer.json"


class Encoder:
    """An encoder of texts and of their tokens as vectors: an ONNX model with its tokenizer."""

    name = "all-MiniLM-L6-v2 (int8)"

    def __init__(self, session: Any, tokenizer: Any, name: str = name) -> None:
        self._session, self._tokenizer, self.name = session, tokenizer, name
        self._cached_states: dict[tuple[int, ...], Floats] = {}

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, shape (texts, 384): means over a text's tokens, 0 for a blank text.

        Vectors are cached by a text's tokens. Only encoders with 384 dimensions, as MiniLM has,
        fit.
        """
        out = np.zeros((len(texts), 384))
        for row, text in enumerate(texts):
            if text.strip():
                encoded = self._tokenizer.encode(text)
                tokens = tuple(encoded.ids)
                if tokens not in self._cached_states:
                    if len(self._cached_states) == MAX_CACHED_VECTORS:
                        self._cached_states.clear()
                    mean = self._token_states(encoded).mean(axis=0)
                    self._cached_states[tokens] = mean / np.linalg.norm(mean)
                out[row] = self._cached_states[tokens]
        return out

    def tokens(self, texts: Sequence[str]) -> list[tuple[tuple[str, ...], Floats]]:
        """Return each text's tokens with their unit vectors, shape (tokens, dimensions).

        Special tokens are left out. A blank text has no tokens.
        """
        out: list[tuple[tuple[str, ...], Floats]] = [((), np.zeros((0, 384)))] * len(texts)
        for row, text in enumerate(texts):
            if text.strip():
                encoded = self._tokenizer.encode(text)
                inside = [n for n, special in enumerate(encoded.special_tokens_mask) if not special]
                inner = self._token_states(encoded)[inside]
                unit = inner / np.linalg.norm(inner, axis=1, keepdims=True)
                out[row] = tuple(encoded.tokens[n] for n in inside), unit
        return out

    def cosine(self, first: Sequence[str], second: Sequence[str]) -> list[float | None]:
        """Return the cosine of each pair of texts; None if one of the two texts is blank."""
        a, b = self.encode(first), self.encode(second)
        values = np.einsum("ij,ij->i", a, b)
        return [float(values[n]) if a[n].any() and b[n].any() else None for n in range(len(values))]

    def _token_states(self, encoded: Any) -> Floats:
        """Return the hidden states of a text's tokens, shape (tokens, dimensions).

        Texts are encoded one at a time: eight together took longer and 150 MB more.
        """
        ids = np.array([encoded.ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        taken = {each.name: inputs[each.name] for each in self._session.get_inputs()}
        hidden, *_ = self._session.run(None, taken)
        states: Floats = hidden[0].astype(np.float64)
        return states


@cache
def minilm(threads: int = 1) -> Encoder:
    """Return the bundled encoder, which is loaded once.

    Raise `MissingExtra` without the extra `embed`, and `WeightsError` without the weights.
    """
    path = find_weights(MINILM)
    onnxruntime, tokenizers = _libraries()
    if path is None:
        raise WeightsError(
            "The weights of the sentence encoder are not on this machine",
            hint="fetch them with: falter models pull minilm",
        )
    return Encoder(_session(onnxruntime, path, threads), _tokenizer(tokenizers))


@cache
def encoder_named(name: str) -> Encoder:
    """Return the bundled encoder, or an encoder from a folder with an ONNX export and tokenizer.

    The export's first output must be the hidden states. Texts are truncated to 256 tokens, as for
    MiniLM. Raise `WeightsError` if there is no encoder of this name, or if it cannot be loaded.
    """
    if name == "minilm":
        return minilm()
    places = [Path(name, "model.onnx"), Path(name, "onnx", "model.onnx")]
    found, words = [path for path in places if path.is_file()], Path(name, "tokenizer.json")
    if not found or not words.is_file():
        raise WeightsError(f"There is no encoder '{printable(name)}'", hint=ENCODER_HINT)
    onnxruntime, tokenizers = _libraries()
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(words))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        session = _session(onnxruntime, found[0], 1)
        if (first := session.get_outputs()[0].name) not in STATES:
            raise ValueError(f"the first output is '{first}', not one of {', '.join(STATES)}")
        encoder = Encoder(session, tokenizer, Path(name).name)
        encoder.tokens(["a text"])
        return encoder
    except Exception as error:  # the libraries raise various exceptions
        raise WeightsError(
            f"The encoder cannot be loaded: {printable(str(error))[:300]}"
        ) from error


def _libraries() -> tuple[Any, Any]:
    try:
        import onnxruntime
        import tokenizers
    except ImportError as error:
        raise MissingExtra("An embedding", "embed", error.name or "onnxruntime") from error
    return onnxruntime, tokenizers


def _session(onnxruntime: Any, path: Path, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _tokenizer(tokenizers: Any) -> Any:
    """Return BERT's uncased WordPiece tokenizer."""
    packed = files("falter.weights").joinpath("data", "bert_uncased_vocab.txt.gz")
    words = gzip.decompress(packed.read_bytes()).decode("utf-8").splitlines()
    vocabulary = {word: n for n, word in enumerate(words)}
    tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary, lowercase=True)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer
