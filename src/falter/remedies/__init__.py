"""Remedies: texts set right, words around them, reasoning, examples."""

from __future__ import annotations

from falter.remedies.prompts import remedies, remedy, remedy_from

__all__ = ["remedies", "remedy", "remedy_from"]
