"""Floor 1: what answers. Each client waits, retries and limits by itself."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from falter.clients._answers import Answer, RequestRefused, UnusableAnswer, failed
from falter.clients._options import OptionTable
from falter.clients._quantize import QUANTISATIONS, content_hash, quantised
from falter.clients._settings import (
    FORMS,
    ClientSettings,
    Connector,
    clients,
    costs_nothing,
    is_code,
    is_free,
    runs_code,
)

if TYPE_CHECKING:
    from falter.clients._batching import Batcher
    from falter.clients._client import BaseClient, BatchClient, HttpClient
    from falter.clients._forms import (
        ResultLine,
        is_named,
        read_result,
        request_line,
        usual_form,
    )
    from falter.clients._ray import with_ray
    from falter.clients._transport import Transport
    from falter.clients.function import offer
else:
    # What loads asyncio and aiohttp, which most commands can do without, waits until it is used.
    _HOMES = {
        "BaseClient": "_client",
        "BatchClient": "_client",
        "Batcher": "_batching",
        "HttpClient": "_client",
        "ResultLine": "_forms",
        "Transport": "_transport",
        "is_named": "_forms",
        "offer": "function",
        "read_result": "_forms",
        "request_line": "_forms",
        "usual_form": "_forms",
        "with_ray": "_ray",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


__all__ = [
    "FORMS",
    "QUANTISATIONS",
    "Answer",
    "BaseClient",
    "BatchClient",
    "Batcher",
    "ClientSettings",
    "Connector",
    "HttpClient",
    "OptionTable",
    "RequestRefused",
    "ResultLine",
    "Transport",
    "UnusableAnswer",
    "clients",
    "content_hash",
    "costs_nothing",
    "failed",
    "is_code",
    "is_free",
    "is_named",
    "offer",
    "quantised",
    "read_result",
    "request_line",
    "runs_code",
    "usual_form",
    "with_ray",
]
