"""Where a Hugging Face model lies, and what exactly it is: found without loading it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from dataclasses import dataclass
from pathlib import Path

from falter.clients._gguf_file import check_gguf
from falter.core.errors import InvalidValue, MissingExtra, PreflightError
from falter.weights import SMOLLM2, find_weights

__all__ = ["Source", "find_source", "require"]

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
PARTS = (".safetensors", ".bin", ".json", ".jinja", ".model", ".tiktoken", ".txt", ".py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is loaded: a folder or hub id with a revision, or a GGUF file (`gguf`) in a folder.

    `weights` is the hash or commit that says which weights they are; None for `path` means the
    embedded model, not fetched yet.
    """

    name: str
    path: str | None
    weights: str
    chats: bool
    gguf: str | None = None
    revision: str | None = None


def require(gguf: bool) -> None:
    """Raise `MissingExtra` when a library is not installed."""
    modules = ("torch", "transformers") + (("gguf", "accelerate") if gguf else ())
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra("A Hugging Face model in this process", "hf", module)


def find_source(name: str, revision: str | None) -> Source:
    """What `hf:NAME` means: `smollm2`, a folder, a `.gguf` file, or a model of the hub."""
    if name == "smollm2":
        _no_revision(revision)
        return _embedded()
    path = Path(name).expanduser()
    if path.is_file() and path.suffix == ".gguf":
        _no_revision(revision)
        return _file(path)
    if path.is_dir():
        _no_revision(revision)
        return _folder(path)
    if HUB_ID.fullmatch(name) and not name.endswith(".gguf"):
        return _hub(name, revision)
    raise InvalidValue(
        "model",
        f"hf:{name}",
        "hf:smollm2, hf:FOLDER, hf:FILE.gguf or hf:OWNER/NAME of the hub",
        hint="there is no such file or folder here",
    )


def _no_revision(revision: str | None) -> None:
    if revision is not None:
        raise InvalidValue("options.revision", revision, "nothing: only the hub has revisions")


def _embedded() -> Source:
    require(gguf=True)
    weights = find_weights()
    return Source(
        name="smollm2",
        path=None if weights is None else str(weights.parent),
        gguf=SMOLLM2.file,
        weights=f"sha256:{SMOLLM2.sha256}",
        chats=True,
    )


def _file(path: Path) -> Source:
    require(gguf=True)
    path = path.resolve()
    chats = check_gguf(path)
    return Source(
        name=path.name,
        path=str(path.parent),
        gguf=path.name,
        weights=f"sha256:{_hash(path)}",
        chats=chats,
    )


def _folder(path: Path) -> Source:
    require(gguf=False)
    path = path.resolve()
    if not (path / "config.json").is_file():
        raise PreflightError(
            f"The folder {path} holds no config.json",
            hint="give the folder that save_pretrained wrote, or the .gguf file itself",
        )
    lines = [
        f"{file.name} {_hash(file)}\n"
        for file in sorted(path.iterdir())
        if file.is_file() and file.suffix in PARTS
    ]
    return Source(
        name=path.name,
        path=str(path),
        weights=f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}",
        chats=_has_template(path),
    )


def _hub(name: str, revision: str | None) -> Source:
    """A model of the hub at one commit: the one in the cache, else the one the hub names."""
    require(gguf=False)
    from huggingface_hub import try_to_load_from_cache

    asked = revision or "main"
    config = try_to_load_from_cache(name, "config.json", revision=asked)
    if isinstance(config, str):
        folder = Path(config).parent
        commit, chats = folder.name, _has_template(folder)
    else:
        commit, files = _ask_hub(name, asked)
        chats = "chat_template.jinja" in files or _hub_template(name, commit)
    return Source(name=name, path=name, weights=f"revision:{commit}", revision=commit, chats=chats)


def _ask_hub(name: str, revision: str) -> tuple[str, set[str]]:
    """The commit behind a revision, and its files; nothing but their names is fetched."""
    from huggingface_hub import HfApi

    try:
        info = HfApi().model_info(name, revision=revision, timeout=20)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise PreflightError(
            f"hf:{name} is not in the local cache, and the hub did not name it: {reason[:300]}",
            hint="check the name and the network, or give a folder or .gguf file that is here",
        ) from error
    return str(info.sha), {file.rfilename for file in info.siblings or ()}


def _hub_template(name: str, commit: str) -> bool:
    """Whether the tokenizer's small configuration file holds a template."""
    from huggingface_hub import hf_hub_download

    try:
        config = hf_hub_download(name, "tokenizer_config.json", revision=commit)
    except Exception:
        return False
    return _has_template(Path(config).parent)


def _has_template(folder: Path) -> bool:
    """Whether a tokenizer's files hold a chat template."""
    if (folder / "chat_template.jinja").is_file():
        return True
    try:
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return bool(isinstance(config, dict) and config.get("chat_template"))


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
