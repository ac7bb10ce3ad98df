"""Other quantisations of the embedded weights: what is made, where, and who may use it."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import re
import shutil
from pathlib import Path

import pytest

import falter
from falter.cli.app import invoke
from falter.clients import quantize
from falter.clients.llama_engine import LlamaEngine
from falter.clients.quantize import QUANTISATIONS, quantised
from falter.engine.config import ModelSpec
from falter.engine.connections import connect
from falter.records.errors import UsageError, WeightsError
from falter.weights.downloads import SMOLLM2, content_hash, find_weights
from gguf_tensors import tensor_types

# Both releases of cyllama that the project is tested with, 0.2.18 and 0.7.0, make these bytes.
Q4_0 = "sha256:aa4256f3b46eb4add75ece1c0eeac1c6e4f1ec0c93e6fbe64fe1770f4ad09ae8"
X86 = platform.machine().lower() in ("x86_64", "amd64")
QUESTION = "Question: What is the capital of France?\nAnswer:"
CITIES = [" Paris", " London", " Rome", " The city of Paris"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, with a link to the real weights in it."""
    source = find_weights()
    assert source is not None, "falter models pull smollm2"
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path / "cache"))
    SMOLLM2.directory.mkdir(parents=True)
    (SMOLLM2.directory / SMOLLM2.file).symlink_to(source.resolve())
    return SMOLLM2.directory


@pytest.fixture(scope="module")
def q4_0(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights as Q4_0, made once for the tests that only read them."""
    path = tmp_path_factory.mktemp("q") / "q4_0.gguf"
    return quantised("q4_0", path, threads=1, say=lambda _: None)


def quiet(_: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("name", QUANTISATIONS)
def test_the_tensors_are_what_the_table_says(
    name: str, cache: Path, q4_0: Path, tmp_path: Path
) -> None:
    """The embedding stays Q8_0; the layers are of the listed types and no others."""
    path = q4_0 if name == "q4_0" else quantised(name, tmp_path / "made.gguf", say=quiet)
    embedding, layers = tensor_types(path)
    assert embedding == "Q8_0"
    assert sorted(layers) == sorted(QUANTISATIONS[name].layers.split(", "))
    assert path.read_bytes() != (cache / SMOLLM2.file).read_bytes()


def test_the_embedded_weights_are_q4_1() -> None:
    path = find_weights()
    assert path is not None
    embedding, layers = tensor_types(path)
    assert (embedding, set(layers)) == ("Q8_0", {"Q4_1"})


def test_the_documented_table_is_that_of_the_program() -> None:
    """docs/clients.md has a row for each quantisation, with its layers and its size."""
    text = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `smollm2:(\w+)` \| ([^|]+?) \|", text, re.MULTILINE))
    assert rows == {name: made.layers for name, made in QUANTISATIONS.items()}


@pytest.mark.skipif(not X86, reason="the documented bytes were made on x86-64")
def test_the_bytes_are_the_documented_ones(q4_0: Path) -> None:
    assert content_hash(q4_0) == Q4_0 == f"sha256:{hashlib.sha256(q4_0.read_bytes()).hexdigest()}"


def test_scores_are_near_those_of_the_embedded_file_and_not_the_same(q4_0: Path) -> None:
    """The same model: the city is still the likeliest answer. Other weights: other numbers."""
    source = find_weights()
    assert source is not None
    found = []
    for path in (source, q4_0):
        engine = LlamaEngine(path, n_ctx=512)
        found.append([score.logprob for score in engine.score(QUESTION, CITIES)])
        engine.close()
    assert all(scores.index(max(scores)) == 0 for scores in found)
    assert all(a != b for a, b in zip(*found, strict=True))
    assert all(abs(a - b) < 5 for a, b in zip(*found, strict=True))


def test_what_was_decoded_before_changes_no_score_of_a_quantised_model(q4_0: Path) -> None:
    """Warm or cold, shared context or none: the same numbers."""
    engine = LlamaEngine(q4_0, n_ctx=512)
    first = engine.score(QUESTION, CITIES)
    engine.score(QUESTION + " Paris. And of Spain?\nAnswer:", CITIES)
    engine.generate(QUESTION, max_tokens=5, temperature=0, seed=1)
    warm = engine.score(QUESTION, CITIES)
    alone = [engine.fork().score(QUESTION, [city])[0] for city in CITIES]
    engine.close()
    for a, b, c in zip(first, warm, alone, strict=True):
        assert math.isclose(a.logprob, b.logprob, rel_tol=0, abs_tol=0 if X86 else 1e-2)
        assert math.isclose(a.logprob, c.logprob, rel_tol=0, abs_tol=1e-6 if X86 else 1e-2)


def test_a_named_quantisation_is_made_on_first_use_and_found_on_the_second(
    cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The model's weights are the hash of the file that was made; nothing else is left behind.

    llama.cpp itself says nothing.
    """
    first = connect(ModelSpec(name="smollm2:q4_0")).model
    path = cache / "SmolLM2-135M-Instruct.Q4_0.gguf"
    assert (first.label, first.weights) == ("smollm2:q4_0", content_hash(path))
    assert first.id != connect(ModelSpec(name="smollm2")).model.id
    assert sorted(p.name for p in cache.iterdir()) == [path.name, SMOLLM2.file]
    out, err = capfd.readouterr()
    assert out == ""
    assert err == f"Making {path.name} from {SMOLLM2.file}\n"
    made = path.stat().st_mtime_ns
    assert connect(ModelSpec(name="smollm2:q4_0")).model == first
    assert path.stat().st_mtime_ns == made
    assert capfd.readouterr().err == ""


def test_two_quantisations_are_two_models_of_one_run(
    cache: Path, q4_0: Path, tmp_path: Path
) -> None:
    (cache / "SmolLM2-135M-Instruct.Q4_0.gguf").symlink_to(q4_0)
    result = falter.run(
        task="basics", models=["smollm2", "smollm2:q4_0"], recipes=["identity"], limit=2,
        store=tmp_path / "falter.db",
    )  # fmt: skip
    assert [p.panel.model.label for p in result.analysis.panels] == ["smollm2", "smollm2:q4_0"]
    for panel in result.analysis.panels:
        assert panel.counts.scored == 4
        assert panel.noise_floor is not None
        assert panel.noise_floor.value == 0.0


@pytest.mark.parametrize("name", ["q4_1", "Q4_0", "q7", "made.gguf", "../q4_0"])
def test_an_unknown_quantisation_is_answered_with_the_known_ones(cache: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(ModelSpec(name=f"smollm2:{name}"))
    assert caught.value.hint is not None
    assert all(known in caught.value.hint for known in QUANTISATIONS)
    assert [p.name for p in cache.iterdir()] == [SMOLLM2.file]


def test_a_file_of_the_users_is_replaced_only_by_force(
    cache: Path, q4_0: Path, tmp_path: Path
) -> None:
    """By the same bytes, made with another number of threads."""
    mine = tmp_path / "mine.gguf"
    mine.write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        quantised("q4_0", mine, say=quiet)
    assert mine.read_text() == "mine"
    made = quantised("q4_0", mine, force=True, threads=3, say=quiet)
    assert content_hash(made) == content_hash(q4_0)


def test_the_weights_to_start_from_are_never_replaced(cache: Path) -> None:
    with pytest.raises(UsageError, match="is the file to quantise"):
        quantised("q4_0", cache / SMOLLM2.file, force=True, say=quiet)


def test_a_folder_that_is_not_there(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"Could not write .*made\.gguf: No such file"):
        quantised("q4_0", tmp_path / "gone" / "made.gguf", say=quiet)


def test_broken_weights_leave_nothing_behind(cache: Path) -> None:
    """A file of the right size that is no GGUF: an error, and an empty folder."""
    (cache / SMOLLM2.file).unlink()
    with (cache / SMOLLM2.file).open("wb") as file:
        os.truncate(file.fileno(), SMOLLM2.size)
    with pytest.raises(WeightsError, match="have changed: they have"):
        quantised("q4_0", say=quiet)
    assert [p.name for p in cache.iterdir()] == [SMOLLM2.file]


def test_the_command_prints_the_path_and_says_the_hash(
    cache: Path, q4_0: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data on stdout, talk on stderr."""
    monkeypatch.setattr(quantize, "_quantize", lambda _, made, *__: shutil.copy(q4_0, made))
    assert invoke(["models", "quantize", "smollm2", "--to", "q4_0"]) == 0
    out, err = capfd.readouterr()
    path = cache / "SmolLM2-135M-Instruct.Q4_0.gguf"
    assert out == f"{path}\n"
    assert err == (
        f"Making {path.name} from {SMOLLM2.file}\n"
        f"{path.stat().st_size:,} bytes, {content_hash(path)}\n"
    )
    assert invoke(["models", "list"]) == 0
    assert f"smollm2:q4_0 {path}" in capfd.readouterr().out
