"""Whole experiments, one room a paper: the parts they are made of, and their figures."""

from __future__ import annotations

from falter.protocols.protocol import Part, Protocol, protocols

__all__ = ["Part", "Protocol", "protocols"]
