"""Ends of sentences: falter's own splitter beside libraries made for it.

python bench/sentences.py [--scitldr FILE.jsonl] [--show 5]

Texts whose sentences are known: the abstracts of SciTLDR, which comes cut into sentences, and
paragraphs in German, French and Japanese written for this (`sentences.json`), with abbreviations,
numbers, initials, quotations and brackets. The sentences are joined again, every splitter cuts the
whole, and its boundaries are compared with the known ones. A library that is not installed is left
out by name.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from falter.text.words import sentences

Split = Callable[[str], list[str]]
TEXTS = Path(__file__).with_name("sentences.json")
TOGETHER = {"ja"}
"""Languages that put no space between sentences."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts in one language, each as its sentences."""

    name: str
    language: str
    texts: Sequence[Sequence[str]]

    def joined(self, text: Sequence[str]) -> str:
        return ("" if self.language in TOGETHER else " ").join(text)


@dataclass(frozen=True, slots=True)
class Result:
    """Boundaries found that are right, found in all, and known in all; whole texts cut right."""

    right: int
    found: int
    known: int
    whole: int
    seconds: float

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.found + self.known)


def compared(split: Split, corpus: Corpus) -> tuple[Result, list[str]]:
    """The counts, and the texts that were cut otherwise."""
    right = found = known = whole = 0
    seconds = 0.0
    others: list[str] = []
    for text in corpus.texts:
        joined = corpus.joined(text)
        started = time.process_time()
        pieces = split(joined)
        seconds += time.process_time() - started
        ours, gold = _ends(pieces), _ends(text)
        right, found, known = right + len(ours & gold), found + len(ours), known + len(gold)
        if ours == gold:
            whole += 1
        else:
            others.append(" | ".join(piece.strip() for piece in pieces))
    return Result(right, found, known, whole, seconds), others


def _ends(pieces: Sequence[str]) -> set[int]:
    """Return the ends of sentences, in characters but white space; the last one is no decision."""
    ends, at = set(), 0
    for piece in pieces:
        at += sum(not character.isspace() for character in piece)
        ends.add(at)
    return ends - {at, 0}


def corpora(scitldr: Path | None) -> Iterator[Corpus]:
    """SciTLDR, then the three languages."""
    if scitldr is None:
        with resources.as_file(resources.files("falter.tasks") / "data" / "summaries") as folder:
            yield _scitldr(folder / "scitldr.jsonl")
    else:
        yield _scitldr(scitldr)
    for language, texts in json.loads(TEXTS.read_text("utf-8")).items():
        yield Corpus(f"paragraphs, {language}", language[:2], texts)


def _scitldr(path: Path) -> Corpus:
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    texts = [[s.strip() for s in row["source"] if s.strip()] for row in rows]
    return Corpus(f"SciTLDR, {len(texts)} abstracts", "en", texts)


def splitters(language: str) -> Mapping[str, Split | str]:
    """By name: what cuts a text of this language, or why it does not."""

    def own(text: str) -> list[str]:
        return [text[start:end] for start, end in sentences(text)]

    makers: Mapping[str, Callable[[Any], Split]] = {
        "sentencex": lambda m: lambda text: list(m.segment(language, text)),
        "sentencex, not told the language": lambda m: lambda text: list(m.segment("en", text)),
        "pysbd": lambda m: m.Segmenter(language=language, clean=False).segment,
        "syntok": _syntok,
    }
    made: dict[str, Split | str] = {"falter": own}
    for name, make in makers.items():
        if "not told" in name and language == "en":
            continue
        if name == "syntok" and language not in ("en", "de", "es"):
            made[name] = "not its language"
            continue
        try:
            made[name] = make(importlib.import_module(name.partition(",")[0]))
        except ImportError:
            made[name] = "not installed"
    return made


def _syntok(_: Any) -> Split:
    segmenter = importlib.import_module("syntok.segmenter")

    def split(text: str) -> list[str]:
        return [
            text[sentence[0].offset : sentence[-1].offset + len(sentence[-1].value)]
            for paragraph in segmenter.analyze(text)
            for sentence in paragraph
        ]

    return split


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scitldr", type=Path, help="a file of SciTLDR  [default: the bundled 30]")
    parser.add_argument("--show", type=int, default=0, help="so many texts that were cut otherwise")
    given = parser.parse_args()
    print(
        "| texts | splitter | F1 of boundaries | missed | too many | texts cut right | ms a text |"
    )
    print("|---|---|---|---|---|---|---|")
    wrong: list[str] = []
    for corpus in corpora(given.scitldr):
        size = len(corpus.texts)
        for name, split in splitters(corpus.language).items():
            if isinstance(split, str):
                print(f"| {corpus.name} | {name} | {split} | | | | |")
                continue
            split("Warm. Up.")
            r, others = compared(split, corpus)
            wrong += [f"{corpus.name}, {name}: {text}" for text in others[: given.show]]
            print(
                f"| {corpus.name} | {name} | {100 * r.f1:.1f} | {r.known - r.right} of {r.known} | "
                f"{r.found - r.right} | {r.whole} of {size} | {1000 * r.seconds / size:.2f} |"
            )
    print(*wrong, sep="\n")


if __name__ == "__main__":
    main()
