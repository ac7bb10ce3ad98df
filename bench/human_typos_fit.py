"""Fits the model of `human_typos` to misspellings that people made, and sets a part aside:

    python bench/human_typos_fit.py MISSPELLINGS.csv.gz AUGLY.json

Both lists are under the MIT licence (see `LICENSES.md` beside the table): `misspellings_en.csv.gz`
of crate-ci/typos, rows of a misspelling and its word, and `misspelling.json` of AugLy. What is
written to `perturbations/data/human_typos_en.json` are aggregate counts, as rates. A fifth of the
words, picked by a hash, is not fitted: `tests/data/human_typos_held_out.json` holds what these
misspellings look like, and a sample of the words for the test to misspell.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from falter.perturbations import spelling
from falter.perturbations.spelling import WORD_PLACES, band_of, misspelt_by_model, place_of
from falter.perturbations.vocabulary import keyboard
from falter.records.rng import Rng
from falter.text.names import common_words
from falter.text.words import edit_costs

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src" / "falter" / "perturbations" / "data" / "human_typos_en.json"
HELD_OUT = ROOT / "tests" / "data" / "human_typos_held_out.json"
MOST_EDITS, LEAST, ROUNDS = 3, 10, 4
SAMPLE = 1_500
VOWELS = frozenset("aeiouy")

Pair = tuple[str, str]  # right, wrong


LetterEditKind = Literal["replace", "add", "drop", "swap"]


class LetterEdit(NamedTuple):
    """One edit of a word: its place in the right spelling, the letters there and those instead.

    An added letter stands before its place; its `old` is empty.
    """

    kind: LetterEditKind
    at: int
    old: str
    new: str


def letter_edits(right: str, wrong: str) -> list[LetterEdit]:
    """One shortest way from the right spelling to the wrong one, in the order of the letters.

    Of two equal letters the second is the one that is left out or added.
    """
    costs = edit_costs(right, wrong)
    i, j = len(right), len(wrong)
    edits: list[LetterEdit] = []
    while i or j:
        here = costs[i][j]
        swaps = i > 1 and j > 1 and right[i - 1] == wrong[j - 2] and right[i - 2] == wrong[j - 1]
        if i and j and right[i - 1] == wrong[j - 1] and costs[i - 1][j - 1] == here:
            i, j = i - 1, j - 1
        elif swaps and costs[i - 2][j - 2] + 1 == here and right[i - 1] != right[i - 2]:
            edits.append(LetterEdit("swap", i - 2, right[i - 2 : i], wrong[j - 2 : j]))
            i, j = i - 2, j - 2
        elif i and j and costs[i - 1][j - 1] + 1 == here:
            edits.append(LetterEdit("replace", i - 1, right[i - 1], wrong[j - 1]))
            i, j = i - 1, j - 1
        elif i and costs[i - 1][j] + 1 == here:
            edits.append(LetterEdit("drop", i - 1, right[i - 1], ""))
            i -= 1
        else:
            edits.append(LetterEdit("add", i, "", wrong[j - 1]))
            j -= 1
    return edits[::-1]


def pairs(rows_file: str, table_file: str) -> list[Pair]:
    """The misspellings of both lists: ASCII letters alone, at most three edits."""
    with gzip.open(rows_file, "rt", encoding="utf-8") as file:
        found = {(row[1], row[0]) for row in csv.reader(file) if len(row) == 2}
    table = json.loads(Path(table_file).read_text(encoding="utf-8"))
    found |= {(right, wrong) for right, many in table.items() for wrong in many}
    return sorted(
        (right, wrong)
        for right, wrong in found
        if all(w.isascii() and w.isalpha() and w.islower() for w in (right, wrong))
        and len(right) > 2 and 0 < len(letter_edits(right, wrong)) <= MOST_EDITS
    )  # fmt: skip


def held_out(word: str) -> bool:
    return hashlib.sha256(word.encode()).digest()[0] % 5 == 0


def summary(found: Iterable[tuple[str, Sequence[LetterEdit]]]) -> dict[str, Any]:
    """Distances, kinds, places, and what letters are replaced and added, as shares."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    near = keyboard("en")
    for word, edits in found:
        counts["edits"][str(min(MOST_EDITS, len(edits)))] += 1
        counts[f"edits, {band_of(len(word))}"][str(min(MOST_EDITS, len(edits)))] += 1
        counts["length"][str(min(14, max(4, len(word) // 2 * 2)))] += 1
        for edit in edits:
            counts["kind"][edit.kind] += 1
            counts["place"][place_of(edit.at, len(word))] += 1
            if edit.kind == "replace":
                vowels = VOWELS.issuperset(edit.old + edit.new)
                counts["replace"]["vowel for vowel" if vowels else "other"] += 1
                counts["key"]["next" if edit.new in near.get(edit.old, "") else "other"] += 1
            if edit.kind == "add":
                after = word[edit.at : edit.at + 1]
                counts["add"]["doubled" if edit.new == after else "other"] += 1
            if edit.kind == "drop":
                double = word[edit.at + 1 : edit.at + 2] == edit.old
                counts["drop"]["of two" if double else "other"] += 1
    return {
        name: {key: round(n / count.total(), 4) for key, n in sorted(count.items())}
        for name, count in sorted(counts.items())
    }


def fitted(found: Sequence[Pair]) -> dict[str, Any]:
    """Rates of edits by letters, factors by place, shares of one to three edits and of lengths."""
    seen, made = Counter[str](), Counter[str]()
    places = {kind: Counter[str]() for kind in ("replace", "add", "drop", "swap")}
    edits = {"long": Counter[int](), "short": Counter[int]()}
    for right, wrong in found:
        for context in contexts(right):
            seen[context] += 1
        steps = letter_edits(right, wrong)
        edits[band_of(len(right))][len(steps)] += 1
        for step in steps:
            made[key_of(right, step)] += 1
            places[step.kind][place_of(step.at, len(right))] += 1
    rates = {
        key: round(count / seen[key.partition(">")[0]], 6)
        for key, count in sorted(made.items())
        if count >= LEAST and seen[key.partition(">")[0]]
    }
    words = Counter(min(16, len(word)) for word in common_words())
    lengths = Counter(min(16, len(right)) for right, _ in found)
    return {
        "edits": {
            band: [round(count[n] / count.total(), 4) for n in range(1, MOST_EDITS + 1)]
            for band, count in edits.items()
        },
        "lengths": {str(n): round(lengths[n] / words[n], 4) for n in range(2, 17)},
        "places": place_factors(found, rates, places),
        "rates": rates,
    }


def contexts(word: str) -> Iterable[str]:
    """Everything in a word that an edit may begin with."""
    padded = f"^{word}"
    for at, letter in enumerate(word):
        yield f"replace {letter}"
        yield f"double {letter}"
        yield f"drop {letter if word[at + 1 : at + 2] == letter else ''}{letter}"
        if at + 1 < len(word) and word[at + 1] != letter:
            yield f"swap {word[at : at + 2]}"
    for before in padded:
        yield f"add {before}"


def key_of(word: str, step: LetterEdit) -> str:
    before, after = word[step.at - 1] if step.at else "^", word[step.at : step.at + 1]
    if step.kind == "drop":
        double = word[step.at + 1 : step.at + 2] == step.old
        return f"drop {step.old if double else ''}{step.old}>"
    if step.kind == "add" and step.new == after:
        return f"double {after}>"
    if step.kind == "swap":
        return f"swap {step.old}>"
    return f"{step.kind} {before if step.kind == 'add' else step.old}>{step.new}"


def place_factors(
    found: Sequence[Pair], rates: dict[str, float], made: dict[str, Counter[str]]
) -> dict[str, list[float]]:
    """Return the factors by which an edit is likelier at a place than its letters alone say."""
    expected: dict[str, dict[str, float]] = {kind: defaultdict(float) for kind in made}
    by_context: dict[str, float] = defaultdict(float)
    for key, rate in rates.items():
        by_context[key.partition(">")[0]] += rate
    for right, _ in found:
        padded = f"^{right}"
        for at in range(len(right) + 1):
            place = place_of(at, len(right))
            expected["add"][place] += by_context[f"add {padded[at]}"]
            if at == len(right):
                continue
            letter = right[at]
            double = letter if right[at + 1 : at + 2] == letter else ""
            expected["add"][place] += by_context[f"double {letter}"]
            expected["replace"][place] += by_context[f"replace {letter}"]
            expected["drop"][place] += by_context[f"drop {double}{letter}"]
            expected["swap"][place] += by_context[f"swap {right[at : at + 2]}"]
    return {
        kind: [round(made[kind][p] / expected[kind][p], 4) if expected[kind][p] else 0.0
               for p in WORD_PLACES]
        for kind in made
    }  # fmt: skip


def balanced(model: dict[str, Any], found: Sequence[Pair]) -> dict[str, Any]:
    """The model with the kinds of edit as frequent as in the data.

    Rates are of letters, but an edit is drawn among those that one word allows.
    """
    for cached in (spelling._typo_model, spelling._edit_rates, spelling._weighted_misspellings):
        cached.cache_clear()
    rng, made = Rng(0), Counter[str]()
    real = Counter(step.kind for right, wrong in found for step in letter_edits(right, wrong))
    for right, _ in found[:: max(1, len(found) // 6_000)]:
        wrong = misspelt_by_model(right, rng)
        made.update(step.kind for step in letter_edits(right, wrong or right))
    for kind, factors in model["places"].items():
        scale = (real[kind] / real.total()) / (made[kind] / made.total())
        model["places"][kind] = [round(factor * scale, 4) for factor in factors]
    return model


def write(model: dict[str, Any]) -> None:
    TABLE.write_text(json.dumps(model, indent=0, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    found = pairs(*arguments)
    kept = [pair for pair in found if held_out(pair[0])]
    rest = [pair for pair in found if not held_out(pair[0])]
    model = fitted(rest)
    write(model)
    for _ in range(ROUNDS):
        write(balanced(model, rest))
    words = [right for right, _ in kept]
    sample = [words[n * len(words) // SAMPLE] for n in range(SAMPLE)]
    about = {
        "misspellings": len(kept),
        "summary": summary((right, letter_edits(right, wrong)) for right, wrong in kept),
        "words": " ".join(sample),
    }
    HELD_OUT.write_text(json.dumps(about, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{len(rest):,} misspellings fitted, {len(kept):,} held out")
    print(json.dumps(about["summary"], indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
