"""Other quantisations of the embedded weights, made on this machine by llama.cpp's quantiser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from falter.clients.settings import require
from falter.records.errors import UsageError, WeightsError, refusal
from falter.weights.downloads import SMOLLM2, find_weights, pull_weights, workspace

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantisation:
    """A quantisation that llama.cpp can make of the embedded weights.

    `ftype` is llama.cpp's number for it. `layers` says what the layers' matrices are then: those
    whose rows have 576 numbers cannot take a type that wants blocks of 256, and get another one.
    """

    name: str
    ftype: int
    layers: str

    @property
    def path(self) -> Path:
        """Path of its file in the cache. A file made from another release has another path."""
        stem = SMOLLM2.file.rsplit(".", 2)[0]
        return SMOLLM2.directory / f"{stem}.{self.name.upper()}.gguf"


QUANTISATIONS = {
    name: Quantisation(name=name, ftype=ftype, layers=layers)
    for name, ftype, layers in (
        ("q8_0", 7, "Q8_0"),
        ("q5_1", 9, "Q5_1"),
        ("q5_0", 8, "Q5_0"),
        ("q4_0", 2, "Q4_0"),
        ("q3_k_m", 12, "Q4_0, Q4_K, Q5_0, Q5_1, Q5_K"),
        ("q2_k", 10, "Q4_0, Q3_K"),
    )
}


def quantised(
    name: str,
    out: Path | None = None,
    *,
    force: bool = False,
    threads: int | None = None,
    say: Say = lambda line: print(line, file=sys.stderr),
) -> Path:
    """The embedded weights in another quantisation, made where they are not there yet.

    They are made from the embedded file, which is Q4_1 already, so that no type brings back what
    it has lost. The bytes are the same each time, whatever the number of threads. The file
    appears whole or not at all. `out` is a file of the user's own, which is replaced only by
    `force`; without it the file lies in the cache.
    UsageError: a type that is not in `QUANTISATIONS`, or a file that is there already.
    WeightsError: the weights cannot be fetched, or the file cannot be written.
    """
    if name not in QUANTISATIONS:
        raise refusal(UsageError, "clients.quantisation", name=name, known=", ".join(QUANTISATIONS))
    wanted = QUANTISATIONS[name]
    target = wanted.path if out is None else out
    if target.exists() and not force:
        if out is None:
            return target
        raise UsageError(f"The file {out} already exists", hint="add --force to replace it")
    require("The embedded model smollm2", "local", "cyllama")
    source = find_weights() or pull_weights(say=say)
    if target.exists() and target.samefile(source):
        raise refusal(UsageError, "clients.own_source", target=target)
    say(f"Making {target.name} from {source.name}")
    with _os_errors(target), workspace(target.parent, make=out is None) as folder:
        _quantize(source, folder / "made.gguf", wanted.ftype, threads or os.cpu_count() or 1)
        with (folder / "made.gguf").open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(folder / "made.gguf", target)
    return target


@contextmanager
def _os_errors(target: Path) -> Iterator[None]:
    """A folder that is missing or cannot be written, in our own words."""
    try:
        yield
    except OSError as error:
        raise WeightsError(
            f"Could not write {target}: {error.strerror or error}",
            hint="name another file with --out, or set FALTER_CACHE to another folder",
        ) from error


def _quantize(source: Path, target: Path, ftype: int, threads: int) -> None:
    from cyllama.llama import llama_cpp

    llama_cpp.disable_logging()
    llama_cpp.llama_backend_init()
    params = llama_cpp.LlamaModelQuantizeParams()
    params.ftype = ftype
    params.nthread = threads
    params.allow_requantize = True
    try:
        llama_cpp.model_quantize(str(source), str(target), params)
    except RuntimeError as error:
        raise WeightsError(
            f"llama.cpp could not write the quantised file in {target.parent.parent}: {error}",
            hint="free 200 MB there; 'falter models pull smollm2 --force' downloads the weights "
            "again",
        ) from error
