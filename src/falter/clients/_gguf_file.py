"""Where a GGUF file lies, which one it is, and whether it holds a chat template."""

from __future__ import annotations

import importlib.util
import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falter.clients._quantize import content_hash
from falter.core.errors import InvalidValue, MissingExtra, PreflightError
from falter.weights import cache_dir

__all__ = ["GgufFile", "check_gguf", "find_gguf"]

HUB = re.compile(r"hub/(?P<repository>[\w.-]+/[\w.-]+)/(?P<file>[\w./ -]+\.gguf)")
TEMPLATE = b"tokenizer.chat_template"
FRONT = 1 << 26
"""Bytes within which the names of a file's metadata stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    """A file here (`path`), or one that the hub named and that is not fetched yet.

    `weights` is the hash of its bytes. `chats` says whether it has a chat template.
    """

    name: str
    weights: str
    chats: bool
    path: Path | None = None
    repository: str = ""
    member: str = ""

    def fetched(self) -> Path:
        """The file on this machine, fetched from the hub where it is not; its hash is checked."""
        if self.path is not None:
            return self.path
        from huggingface_hub import hf_hub_download

        try:
            path = Path(hf_hub_download(self.repository, self.member)).resolve()
        except Exception as error:
            raise _away(self.name, error) from error
        if content_hash(path) != self.weights:
            raise PreflightError(
                f"{self.name} is not the file that the hub named",
                hint="it may have changed in between; run the same command again",
            )
        return path


def find_gguf(name: str) -> GgufFile:
    """What `gguf:NAME` means: a file here or in the cache, or `hub/ORG/REPO/FILE.gguf`."""
    fetched = cache_dir() / "models" / name
    path = Path(name).expanduser()
    if not path.is_file() and path.name == name and fetched.is_file():
        path = fetched
    if path.is_file():
        path = path.resolve()
        return GgufFile(
            name=path.name, weights=content_hash(path), chats=check_gguf(path), path=path
        )
    found = HUB.fullmatch(name)
    if found is None:
        raise InvalidValue(
            "model",
            f"gguf:{name}",
            "gguf:PATH of a file, or gguf:hub/ORG/REPO/FILE.gguf of the hub",
            hint="there is no such file here, nor among the models that falter fetched",
        )
    if importlib.util.find_spec("huggingface_hub") is None:
        raise MissingExtra(f"The hub's file {name}", "hf", "huggingface_hub")
    return _of_hub(name, found["repository"], found["file"])


def check_gguf(path: Path) -> bool:
    """Whether the file holds a chat template; `PreflightError` where it is no GGUF file."""
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise PreflightError(f"{path} is not a GGUF file", hint="the download may be broken")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            # The names of the metadata stand at the front as they are.
            return view.find(TEMPLATE, 0, FRONT) >= 0


def _of_hub(name: str, repository: str, member: str) -> GgufFile:
    """The file in the hub's cache, else what the hub says of it without sending it."""
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(repository, member)
    if isinstance(cached, str):
        path = Path(cached).resolve()
        return GgufFile(name=name, weights=content_hash(path), chats=check_gguf(path), path=path)
    info = _ask_hub(name, repository, member)
    template = (getattr(info, "gguf", None) or {}).get("chat_template")
    file = next((f for f in info.siblings or () if f.rfilename == member), None)
    if file is None or file.lfs is None:
        raise PreflightError(
            f"{repository} has no file {member}", hint="the hub's page lists its files"
        )
    return GgufFile(
        name=name,
        weights=f"sha256:{file.lfs.sha256}",
        chats=bool(template),
        repository=repository,
        member=member,
    )


def _ask_hub(name: str, repository: str, member: str) -> Any:
    from huggingface_hub import HfApi

    try:
        return HfApi().model_info(repository, files_metadata=True, timeout=20)
    except Exception as error:
        raise _away(name, error) from error


def _away(name: str, error: Exception) -> PreflightError:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    return PreflightError(
        f"gguf:{name} is not in the local cache, and the hub did not give it: {reason[:300]}",
        hint="check the name and the network, or give a file that is here",
    )
