"""`smollm2`: the embedded model, in this process."""

from __future__ import annotations

from pathlib import Path

from falter.clients._llama_client import LlamaClient
from falter.clients._options import OptionTable
from falter.clients._quantize import content_hash, quantised, require_engine
from falter.clients._settings import ClientSettings, clients, costs_nothing
from falter.core.interfaces import Client
from falter.core.records import Model
from falter.weights import SMOLLM2, find_weights, pull_weights

__all__ = ["SmolLM2", "connect"]


class SmolLM2(LlamaClient):
    """SmolLM2-135M-Instruct by llama.cpp.

    A name, as in `smollm2:q4_0`, is another quantisation of the same weights; its file is made
    where it is not there yet, since its hash belongs to the model.
    """

    def __init__(self, settings: ClientSettings) -> None:
        OptionTable(client="smollm2").read(settings)
        require_engine()
        self._path = quantised(settings.name) if settings.name else None
        weights = content_hash(self._path) if self._path else f"sha256:{SMOLLM2.sha256}"
        model = Model(client="smollm2", name=settings.name or "smollm2", weights=weights)
        super().__init__(settings, model)

    def locate(self) -> Path:
        """The quantisation made before, or the weights as they come."""
        return self._path or find_weights() or pull_weights()


@clients.registers("smollm2")
@costs_nothing
def connect(settings: ClientSettings) -> Client:
    """The embedded model; smollm2:q4_0 and the like, in another quantisation."""
    return SmolLM2(settings)
