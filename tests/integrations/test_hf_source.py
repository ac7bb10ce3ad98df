"""`hf:` before anything is loaded: what a name means, and what is wrong with it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from falter.clients import ClientSettings
from falter.integrations.hf_client import Source, connect, find_source
from falter.records.errors import InvalidValue, MissingExtra, PreflightError, UnknownName


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says which libraries are there; at first all of them."""
    found = importlib.util.find_spec

    def there(*missing: str) -> None:
        def find_spec(name: str, package: str | None = None) -> object:
            ours = ("torch", "transformers", "gguf", "accelerate")
            return None if name in missing else object() if name in ours else found(name, package)

        monkeypatch.setattr(importlib.util, "find_spec", find_spec)

    there()
    return there


def folder(path: Path, **files: str) -> Path:
    """A folder as `save_pretrained` writes it, in outline."""
    path.mkdir()
    for name, text in {"config.json": "{}", "model.safetensors": "w", **files}.items():
        (path / name).write_text(text)
    return path


def found(path: Path) -> Source:
    return find_source(str(path), None)


@pytest.mark.parametrize("module", ["torch", "transformers", "gguf", "accelerate"])
def test_a_missing_library_names_the_extra(module: str, installed: Callable[..., None]) -> None:
    """The hint is the command that installs it."""
    installed(module)
    with pytest.raises(MissingExtra, match=rf"'{module}'") as caught:
        connect(ClientSettings(name="smollm2"))
    assert caught.value.hint == "pip install 'falter[hf]'"


def test_importing_the_client_loads_no_library() -> None:
    """torch and transformers are imported when a model is loaded."""
    script = (
        "import sys, falter.integrations.hf_client, falter.integrations.hf_writing; "
        "assert not {'torch', 'transformers', 'huggingface_hub'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_weights_are_known_by_their_content(tmp_path: Path, installed: Callable[..., None]) -> None:
    """A copy elsewhere is the same model; other weights or another tokenizer are another."""
    first = found(folder(tmp_path / "one"))
    (tmp_path / "sub").mkdir()
    assert found(folder(tmp_path / "sub" / "one")).weights == first.weights
    assert first.name == "one"
    other = found(folder(tmp_path / "two", **{"model.safetensors": "v"}))
    wider = found(folder(tmp_path / "three", **{"tokenizer.json": "{}"}))
    assert len({first.weights, other.weights, wider.weights}) == 3
    (tmp_path / "one" / "README.md").write_text("hello")
    assert found(tmp_path / "one") == first


def test_a_chat_template_is_found_where_it_lies(
    tmp_path: Path, installed: Callable[..., None]
) -> None:
    """In a file of its own, in the tokenizer's configuration, or in a GGUF file's front."""
    config = json.dumps({"chat_template": "{{ messages }}"})
    assert found(folder(tmp_path / "a", **{"chat_template.jinja": "x"})).chats
    assert found(folder(tmp_path / "b", **{"tokenizer_config.json": config})).chats
    assert not found(folder(tmp_path / "c", **{"tokenizer_config.json": "{}"})).chats
    (tmp_path / "d.gguf").write_bytes(b"GGUF tokenizer.chat_template")
    (tmp_path / "e.gguf").write_bytes(b"GGUF")
    assert found(tmp_path / "d.gguf").chats
    assert not found(tmp_path / "e.gguf").chats
    assert (found(tmp_path / "d.gguf").path, found(tmp_path / "d.gguf").gguf) == (
        str(tmp_path), "d.gguf",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("", {}, "name is ''"),
        ("/no/such/folder", {}, r"model is 'hf:/no/such/folder'"),
        ("missing.gguf", {}, r"there is no such file or folder here"),
        ("smollm2", {"dtype": "int8"}, r"options\.dtype is 'int8'; expected one of: float32"),
        ("smollm2", {"batch_tokens": 3}, r"options\.batch_tokens is 3"),
        ("smollm2", {"threads": 0}, r"options\.threads is 0"),
        ("smollm2", {"cache_mb": -1}, r"options\.cache_mb is -1"),
        ("smollm2", {"device": ""}, r"options\.device is ''"),
        ("smollm2", {"trust_remote_code": "yes"}, "expected true or false"),
        ("smollm2", {"revision": "main"}, "only the hub has revisions"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_loaded(
    name: str, options: dict[str, object], message: str, installed: Callable[..., None]
) -> None:
    """The error names the setting and shows its value."""
    with pytest.raises(InvalidValue) as caught:
        connect(ClientSettings(name=name, options=options))
    caught.match(message)


def test_a_folder_or_file_that_is_no_model(tmp_path: Path, installed: Callable[..., None]) -> None:
    """The message says what is not there."""
    with pytest.raises(PreflightError, match=r"has no config\.json"):
        found(tmp_path)
    (tmp_path / "x.gguf").write_text("no model")
    with pytest.raises(PreflightError, match=r"x\.gguf is not a GGUF file"):
        found(tmp_path / "x.gguf")


def test_the_model_record_holds_what_changes_answers(installed: Callable[..., None]) -> None:
    """Precision and the way of asking, not the device, the batch or the threads."""
    plain = {"device": "cpu", "batch_tokens": 512, "threads": 1, "cache_mb": 1}
    first = connect(ClientSettings(name="smollm2", options={"device": "cpu"}))
    assert first.model.options == {"dtype": "float32", "api": "chat"}
    assert connect(ClientSettings(name="smollm2", options=plain)).model.id == first.model.id
    others = [
        ClientSettings(name="smollm2", options={"device": "cpu", "dtype": "bfloat16"}),
        ClientSettings(name="smollm2", options={"device": "cpu", "system": ""}),
        ClientSettings(name="smollm2", options={"device": "cpu"}, api="completions"),
    ]
    assert len({first.model.id, *(connect(one).model.id for one in others)}) == 4
    assert not connect(others[2]).capabilities.chats


def test_an_unknown_option_is_met_with_the_nearest(installed: Callable[..., None]) -> None:
    """As for every other client."""
    with pytest.raises(UnknownName, match=r"Unknown option of hf 'dtyp'") as caught:
        connect(ClientSettings(name="smollm2", options={"dtyp": "float32"}))
    assert caught.value.hint == "did you mean 'dtype'?"
