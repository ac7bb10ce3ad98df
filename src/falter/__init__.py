"""falter: how far a language model falters when its prompt changes and its meaning does not."""

from __future__ import annotations

__version__ = "0.1.0"
