"""Floor ½: sentences as vectors, from a small encoder that runs offline."""

from falter.embedding._minilm import Encoder, minilm

__all__ = ["Encoder", "minilm"]
