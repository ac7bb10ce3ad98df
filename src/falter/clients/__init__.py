"""Model clients. Each client handles its own waiting, retries and rate limits."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from falter.clients.answers import Answer, RequestRefused, UnusableAnswer, failed
from falter.clients.settings import ClientSettings, OptionTable, clients, costs_nothing

if TYPE_CHECKING:
    from falter.clients.base import BaseClient, BatchClient, Batcher, HttpClient
    from falter.clients.transport import Transport
else:
    # These names load asyncio and aiohttp, which most commands do without, so they load on use.
    _MODULES = {
        **dict.fromkeys(("BaseClient", "BatchClient", "Batcher", "HttpClient"), "base"),
        "Transport": "transport",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "Answer",
    "BaseClient",
    "BatchClient",
    "Batcher",
    "ClientSettings",
    "HttpClient",
    "OptionTable",
    "RequestRefused",
    "Transport",
    "UnusableAnswer",
    "clients",
    "costs_nothing",
    "failed",
]
