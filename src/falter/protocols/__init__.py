"""Protocols: complete experiments, each with its parts and figures.

Four follow published papers, one package per paper. `mend` compares remedies.
"""

from __future__ import annotations

from falter.protocols.protocol import Part, Protocol, protocols

__all__ = ["Part", "Protocol", "protocols"]
