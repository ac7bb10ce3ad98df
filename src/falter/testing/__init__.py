"""Test doubles, also for users: a scripted client, sample prompts, the property suite."""

from __future__ import annotations

from falter.testing.doubles import Scripted

__all__ = ["Scripted"]
