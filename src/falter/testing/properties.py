"""The property suite that every perturbation has to pass, built-in or your own.

from falter.testing.properties import check_perturbation

def test_mine():
    check_perturbation(my_perturbation)
"""

from __future__ import annotations

import copy
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from falter.perturbations.rewriting import RewritePerturbation
from falter.records.codec import from_json, to_json
from falter.records.ids import step_seed
from falter.records.interfaces import Perturbation
from falter.records.render import plain
from falter.records.rng import Rng
from falter.records.types import Prompt, Section
from falter.testing.doubles import MadeUpRewrites
from falter.testing.samples import SAMPLES, Sample

Outputs = Sequence[Prompt]
Check = Callable[[Perturbation, Sample, Outputs], None]
_SEEDS = (0, 1, 2)
_NEGATIONS = re.compile(
    r"\b(?:no|not|never|none|nor|without|cannot|all|any|every|each|few|many|most|some|only"
    r"|one|two|three|four|five|six|seven|eight|nine|ten)\b",
    re.IGNORECASE,
)

_SHORT_NOT = re.compile(r"(?<=n)['’]t\b|(?<=\bcan)not\b", re.IGNORECASE)


def check_perturbation(
    perturbation: Perturbation,
    samples: Sequence[Sample] = SAMPLES,
    others: Iterable[Perturbation] = (),
) -> None:
    """Raise `AssertionError` if the perturbation breaks a promise; the message names the promise.

    `others` are chained after it and must leave its edits alone. The perturbation is also chained
    after itself.
    """
    before = random.getstate()
    perturbation = _with_made_up_rewrites(perturbation)
    for sample in samples:
        _check_sample(perturbation, sample)
        for second in (perturbation, *others):
            _check_chain(perturbation, second, sample)
    _check_draws(perturbation, samples)
    _require(random.getstate() == before, perturbation, "leaves the global generator alone", "any")


def check_prompt(perturbation: Perturbation, prompt: Prompt) -> None:
    """Check a perturbation on one prompt, such as one from a generator of prompts.

    Chains of perturbations are not checked. Raise `AssertionError` if a promise is broken.
    """
    sample = Sample(name=repr(plain(prompt))[:60], prompt=prompt)
    _check_sample(_with_made_up_rewrites(perturbation), sample)


def _check_sample(perturbation: Perturbation, sample: Sample) -> None:
    """Check a perturbation on one sample.

    The same seed must give the same output, the input must stay untouched, and every output must
    pass `CHECKS`.
    """
    before = copy.deepcopy(sample.prompt)
    outputs, again = (_outputs(perturbation, sample) for _ in range(2))
    _require(outputs == again, perturbation, "same seed, same output", sample.name)
    _require(sample.prompt == before, perturbation, "the input stays untouched", sample.name)
    distinct = [after for n, after in enumerate(outputs) if after not in outputs[:n]]
    for check in CHECKS:
        check(perturbation, sample, distinct)


def _with_made_up_rewrites(perturbation: Perturbation) -> Perturbation:
    """Return a perturbation that needs rewrites with made-up ones; any other unchanged."""
    if not isinstance(perturbation, RewritePerturbation):
        return perturbation
    return perturbation.bind(MadeUpRewrites(), 0)


def _require(holds: bool, perturbation: Perturbation, promise: str, sample: str) -> None:
    if not holds:
        raise AssertionError(f"{perturbation.name}: {promise} (sample: {sample})")


def _rng(perturbation: Perturbation, seed: int, key: str = "item", occurrence: int = 0) -> Rng:
    return Rng(step_seed(seed, perturbation.name, perturbation.version, occurrence, key, 0))


def _parameters(perturbation: Perturbation) -> dict[str, Any]:
    return {parameter.name: parameter for parameter in perturbation.parameters}


def _strengths(perturbation: Perturbation) -> list[dict[str, Any]]:
    """Return the parameters of the default strength, and of the greatest rate if there is one."""
    return [{}, {"rate": 1.0}] if "rate" in _parameters(perturbation) else [{}]


def _outputs(perturbation: Perturbation, sample: Sample) -> Outputs:
    return [
        perturbation(sample.prompt, _rng(perturbation, seed), **params)
        for params in _strengths(perturbation)
        for seed in _SEEDS
    ]


def check_identity(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that strength 0 changes nothing."""
    for name in {"rate", "count"} & _parameters(perturbation).keys():
        after = perturbation(sample.prompt, _rng(perturbation, 0), **{name: 0})
        _require(after == sample.prompt, perturbation, f"{name} 0 is the identity", sample.name)


def check_applies(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that nothing changes if `applies` is false."""
    if not perturbation.applies(sample.prompt):
        same = all(after == sample.prompt for after in outputs)
        _require(same, perturbation, "no change where it does not apply", sample.name)


_INVARIANTS: dict[str, Callable[[Prompt], Any]] = {
    "target": lambda prompt: prompt.target,
    "choices": lambda prompt: (prompt.choices, prompt.labels),
    "choice set": lambda prompt: sorted(prompt.choices),
    "target text": lambda prompt: _target_text(prompt),
    "sections": lambda prompt: sorted(s.text.strip() for s in prompt.sections if s.text.strip()),
    "numbers": lambda prompt: re.findall(r"\d+(?:[.,:/]\d+)*", plain(prompt)),
    "lines": lambda prompt: plain(prompt).count("\n"),
    "words": lambda prompt: Counter(plain(prompt).split()),
    "code": lambda prompt: re.findall(r"```.*?```|`[^`\n]+`", plain(prompt), re.DOTALL),
    "negations": lambda prompt: Counter(_NEGATIONS.findall(_spelled_out(prompt).lower())),
}


def _target_text(prompt: Prompt) -> str | None:
    """Return the correct answer in words, whatever its place among the choices."""
    if isinstance(prompt.target, int) and prompt.choices:
        return prompt.choices[prompt.target]
    return None if prompt.target is None else str(prompt.target)


def _spelled_out(prompt: Prompt) -> str:
    """Return the whole text, with *not* in place of every *n't* and *cannot*.

    So a contraction loses no negation.
    """
    return _SHORT_NOT.sub(" not", plain(prompt))


def check_invariants(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that declared invariants are known and hold."""
    for name in perturbation.invariants:
        _require(name in _INVARIANTS, perturbation, f"invariant {name!r} is known", sample.name)
        value_of = _INVARIANTS[name]
        was = value_of(sample.prompt)
        for after in outputs:
            now = value_of(after)
            holds = was <= now if name == "negations" else was == now  # none may be lost
            _require(holds, perturbation, f"keeps {name}", sample.name)


def check_protected(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that untouchable texts occur as often as before, and protected sections stay."""
    must_stay = [text for text in sample.untouchable if _must_stay(perturbation, text)]
    before = _spelled_out(sample.prompt) if must_stay else ""
    for after in outputs if must_stay else ():
        text_after = _spelled_out(after)
        for text in must_stay:
            enough = text_after.count(text) >= before.count(text)
            _require(enough, perturbation, f"keeps {text!r}", sample.name)
    protected = _fully_protected(sample.prompt)
    for params in _strengths(perturbation):
        after = perturbation(protected, _rng(perturbation, 0), **params)
        texts = {section.name: section.text for section in after.sections if _is_original(section)}
        is_unchanged = texts == {section.name: section.text for section in protected.sections}
        _require(is_unchanged, perturbation, "leaves protected sections alone", sample.name)


def _must_stay(perturbation: Perturbation, text: str) -> bool:
    """Return True if the text has to stay: the perturbation may not change its numbers or code."""
    invariants = perturbation.invariants
    return not (
        ("numbers" not in invariants and any(map(str.isdigit, text)))
        or ("code" not in invariants and "`" in text)
    )


def _fully_protected(prompt: Prompt) -> Prompt:
    sections = tuple(replace(s, protected=((0, len(s.text)),)) for s in prompt.sections)
    return Prompt(sections=sections, choices=prompt.choices, labels=prompt.labels)


def check_edits(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that the edits describe the change exactly."""
    for after in outputs:
        _require_edits(perturbation, sample, after)


def _require_edits(perturbation: Perturbation, sample: Sample, after: Prompt) -> None:
    sections = {section.name: section for section in after.sections if _is_original(section)}
    before = {section.name: section.text for section in sample.prompt.sections}
    _require(sections.keys() == before.keys(), perturbation, "no section is lost", sample.name)
    for name, section in sections.items():
        rebuilt = _rebuilt(before[name], section)
        _require(rebuilt == section.text, perturbation, "edits rebuild the text", sample.name)
    for section in after.sections:
        if not _is_original(section):
            is_one_edit = _rebuilt("", section) == section.text
            _require(is_one_edit, perturbation, "added text is one edit", sample.name)


def _is_original(section: Section) -> bool:
    """Return True if the section is one of the prompt's own, which are matched by name."""
    return section.kind != "added" and not _is_new(section)


def _is_new(section: Section) -> bool:
    """Return True if the section's whole text was added by one edit."""
    edits = [(e.start, e.end, e.new_start, e.new_end) for e in section.edits]
    return bool(section.text) and edits == [(0, 0, 0, len(section.text))]


def _rebuilt(original: str, section: Section) -> str:
    """Return the section's text, rebuilt from the original text and the edits alone."""
    parts: list[str] = []
    at = length = 0
    for edit in section.edits:
        same = original[at : edit.start]
        length += len(same)
        if edit.start < at or edit.new_start != length:
            return "the edits are out of order"
        parts += [same, section.text[edit.new_start : edit.new_end]]
        length += edit.new_end - edit.new_start
        at = edit.end
    return "".join([*parts, original[at:]])


def check_nested(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that a weaker dose is part of a stronger one."""
    if not {"rate", "count"} <= _parameters(perturbation).keys():
        return
    weaker: set[tuple[int, int, int, str]] = set()
    for count in (1, 2, 3, 5, 8):
        after = perturbation(sample.prompt, _rng(perturbation, 0), count=count)
        stronger = set(_changes(sample.prompt, after))
        _require(weaker <= stronger, perturbation, "doses are nested", sample.name)
        weaker = stronger


def _changes(before: Prompt, after: Prompt) -> Iterator[tuple[int, int, int, str]]:
    """Yield each edit as section index, start, end and new text.

    A deletion is yielded character by character, because neighbouring deletions share a space.
    """
    for at, section in enumerate(after.sections):
        for edit in section.edits:
            new = section.text[edit.new_start : edit.new_end]
            if new:
                yield at, edit.start, edit.end, new
            else:
                for place in range(edit.start, edit.end):
                    yield at, place, place + 1, ""


def check_round_trip(perturbation: Perturbation, sample: Sample, outputs: Outputs) -> None:
    """Check that the output survives JSON."""
    for after in outputs:
        back = from_json(Prompt, to_json(after))
        _require(back == after, perturbation, "round trip through JSON", sample.name)


def _check_chain(first: Perturbation, second: Perturbation, sample: Sample) -> None:
    """Check that a second step leaves the first one's edits alone, and that edits stay exact."""
    once = first(sample.prompt, _rng(first, 0))
    twice = second(once, _rng(second, 0, occurrence=1))
    _require_edits(first, sample, twice)
    sections_after = {section.name: section for section in twice.sections if _is_original(section)}
    for section in filter(_is_original, once.sections):
        untouched = set(_edited_texts(section)) <= set(_edited_texts(sections_after[section.name]))
        _require(untouched, first, f"{second.name} leaves its edits alone", sample.name)


def _edited_texts(section: Section) -> Iterator[tuple[int, int, str]]:
    for edit in section.edits:
        yield edit.start, edit.end, section.text[edit.new_start : edit.new_end]


def _check_draws(perturbation: Perturbation, samples: Sequence[Sample]) -> None:
    """Check that a perturbation that draws gives different items different draws."""
    if not samples or not perturbation.applies(samples[0].prompt):
        return
    params = {"rate": 0.3} if "rate" in _parameters(perturbation) else {}
    outputs = {
        plain(perturbation(samples[0].prompt, _rng(perturbation, 0, key=str(i)), **params))
        for i in range(12)
    }
    draws = "file" in _parameters(perturbation)
    if params:  # if even the weak dose edits every place, there is nothing to draw
        every = perturbation(samples[0].prompt, _rng(perturbation, 0), rate=1.0)
        draws = plain(every) not in outputs
    _require(not draws or len(outputs) > 1, perturbation, "items draw for themselves", "first")


CHECKS: tuple[Check, ...] = (
    check_identity,
    check_applies,
    check_invariants,
    check_protected,
    check_edits,
    check_nested,
    check_round_trip,
)
