"""Remedies (mitigations): corrected text, words around the prompt, reasoning, examples."""

from __future__ import annotations

from falter.remedies.prompts import remedies, remedy, remedy_from

__all__ = ["remedies", "remedy", "remedy_from"]
