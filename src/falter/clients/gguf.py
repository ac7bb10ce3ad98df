"""`gguf:PATH` and `gguf:hub/ORG/REPO/FILE.gguf`: any GGUF file, by llama.cpp, in this process."""

from __future__ import annotations

from pathlib import Path

from falter.clients._gguf_file import find_gguf
from falter.clients._llama_client import LlamaClient
from falter.clients._options import OptionTable
from falter.clients._quantize import require_engine
from falter.clients._settings import ClientSettings, clients, costs_nothing
from falter.core.interfaces import Client
from falter.core.records import Model

__all__ = ["Gguf", "connect"]

NAME = "a file, as in 'gguf:PATH' or 'gguf:hub/ORG/REPO/FILE.gguf'"


class Gguf(LlamaClient):
    """One file, whose hash is part of the model record; where it lies is not.

    Chats go through the template in the file, as far as llama.cpp knows it; a file without one
    gets the plain prompt, as does any file with `api: completions`.
    """

    def __init__(self, settings: ClientSettings) -> None:
        OptionTable(client="gguf", name=NAME).read(settings)
        require_engine("A GGUF model")
        self._file = find_gguf(settings.name)
        chats = self._file.chats and settings.api == "chat"
        model = Model(
            client="gguf",
            name=self._file.name,
            weights=self._file.weights,
            options={"api": "chat" if chats else "completions"},
        )
        super().__init__(settings, model, chats=chats)

    def locate(self) -> Path:
        """The file, fetched from the hub where it is not here."""
        return self._file.fetched()


@clients.registers("gguf")
@costs_nothing
def connect(settings: ClientSettings) -> Client:
    """A GGUF file in this process: gguf:PATH, or gguf:hub/ORG/REPO/FILE.gguf."""
    return Gguf(settings)
