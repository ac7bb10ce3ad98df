"""Test doubles, for users too: scripted and replay clients, sample prompts, the property suite."""

from __future__ import annotations

from falter.testing.doubles import Replay, Scripted

__all__ = ["Replay", "Scripted"]
