"""Perturbations of reasoning: a request for the wrong answer, a stray answer, steps first."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache, partial

from falter.perturbations.additions import answer_phrase, framed, with_instruction
from falter.perturbations.base import has_body, prompt_perturbation
from falter.perturbations.options import is_listed, referenced_options, relisted, target_of
from falter.records.ids import digest
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Prompt

_bundled_regex = partial(named_regex, "perturbations")


# Elimination


@lru_cache(maxsize=64)
def _wrong_options(
    choices: tuple[str, ...], labels: tuple[str, ...], right: int
) -> tuple[int, ...]:
    """Return the wrong options that may remain, as indices sorted by their texts.

    Options that refer to others, or that read like the correct one, are left out. Empty if the
    correct option refers to others.
    """
    if referenced_options(choices[right], labels) is not None:
        return ()
    right_text = choices[right].casefold()
    wrong = [i for i, text in enumerate(choices) if text.casefold() != right_text]
    wrong = [i for i in wrong if referenced_options(choices[i], labels) is None]
    return tuple(sorted(wrong, key=choices.__getitem__))


def _can_eliminate(prompt: Prompt) -> bool:
    target = target_of(prompt)
    if target is None or not has_body(prompt) or _is_negated_question(prompt):
        return False
    lists = any(s.kind == "choices" for s in prompt.sections)
    open_list = is_listed(prompt) or not lists
    return open_list and bool(_wrong_options(prompt.choices, prompt.labels, target))


_SENTENCE = re.compile(r"[^.?!\n]+(?:[?!.\n]|\Z)")
_DENIAL = _bundled_regex("denial")


def _is_negated_question(prompt: Prompt) -> bool:
    """Return True if the question contains a negation, which would swap right and wrong."""
    texts = [s.text for s in prompt.sections if s.kind in ("input", "document")]
    for text in texts:
        parts = [part for part in _SENTENCE.findall(text) if part.strip()]
        asking = [part for part in parts if part.rstrip().endswith("?")] or parts[-1:]
        if any(map(_DENIAL.search, asking)):
            return True
    return False


def _remaining_wrong_option(prompt: Prompt, right: int) -> int:
    """Return the index of the wrong option that remains with the correct one.

    It is drawn from the options' texts and not from the step's generator. So elimination, its
    control, every draw and every order of the options leave the same pair.
    """
    wrong = _wrong_options(prompt.choices, prompt.labels, right)
    hashed = digest("elimination", sorted(prompt.choices), prompt.choices[right])
    return wrong[int(hashed[7:23], 16) % len(wrong)]


def _eliminated(prompt: Prompt, name: str, requested: str) -> Prompt:
    """Return the prompt with two options, and a request for the wrong or the right one of them."""
    right = target_of(prompt) or 0
    wrong = _remaining_wrong_option(prompt, right)
    places = sorted((right, wrong))
    choices = [prompt.choices[i] for i in places]
    labels = [prompt.labels[i] for i in places]
    target = places.index(right if requested == "right" else wrong)
    request = f"Whatever was said before, answer with the {requested} one."
    if is_listed(prompt):
        text = f"Only two options are left, and one of them is wrong. {request}"
    else:
        listed = "".join(f"- {choice}\n" for choice in choices)
        text = f"Only two answers are left, and one of them is wrong:\n{listed}{request}"
    shortened = relisted(prompt, choices, labels, target)
    return shortened.with_sections(with_instruction(shortened.sections, name, text))


@prompt_perturbation("elimination", eligible=_can_eliminate)
def elimination(prompt: Prompt, rng: Rng) -> Prompt:
    """Leaves two options, the right one and a wrong one, and asks for the wrong one."""
    return _eliminated(prompt, "elimination", "wrong")


@prompt_perturbation("elimination_control", eligible=_can_eliminate)
def elimination_control(prompt: Prompt, rng: Rng) -> Prompt:
    """Leaves the same two options as elimination, and asks for the right one."""
    return _eliminated(prompt, "elimination", "right")


# A stray answer

_PLAIN_NUMBER = _bundled_regex("plain_number")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}


def _has_stray_answer(prompt: Prompt, answer: str) -> bool:
    if not has_body(prompt) or prompt.target is None:
        return False
    target = target_of(prompt)
    if answer == "correct":
        return target is not None or bool(str(prompt.target).strip())
    if target is not None:
        return any(text != prompt.choices[target] for text in prompt.choices)
    text = str(prompt.target).strip()
    return text.casefold() in _OPPOSITES or _PLAIN_NUMBER.fullmatch(text) is not None


def _stray_answer(prompt: Prompt, rng: Rng, answer: str) -> str:
    """Return the stray answer: the correct one, another option, the opposite or a close number."""
    target = target_of(prompt)
    right = str(prompt.target).strip() if target is None else prompt.choices[target]
    if answer == "correct":
        return right
    if target is not None:
        return rng.choice([text for text in prompt.choices if text != right])
    if right.casefold() in _OPPOSITES:
        opposite = _OPPOSITES[right.casefold()]
        return opposite.capitalize() if right[0].isupper() else opposite
    return _nearby_number(right, rng)


def _nearby_number(text: str, rng: Rng) -> str:
    """Return a slightly larger number, written in the same way: 2,131 for 2,125."""
    parts = _PLAIN_NUMBER.fullmatch(text)
    digits = parts["number"] if parts is not None else text
    number = Decimal(digits.replace("−", "-").replace(",", ""))
    step = Decimal(1).scaleb(min(0, int(number.as_tuple().exponent)))
    close = format(number + step * (1 + rng.below(9)), ",f" if "," in digits else "f")
    return close if parts is None else f"{parts['before']}{close}{parts['after']}"


@prompt_perturbation("ignore_above", eligible=_has_stray_answer)
def ignore_above(prompt: Prompt, rng: Rng, answer: str) -> Prompt:
    """Puts a stray answer before the whole prompt, and the advice to ignore it."""
    stray = _stray_answer(prompt, rng, answer).strip().rstrip(".")
    advice = "Ignore everything above this line; it was left here by accident."
    return framed(prompt, "ignore_above", before=f"The answer is {stray}.\n\n{advice}\n\n")


# Steps before the answer


@prompt_perturbation("chain_of_thought")
def chain_of_thought(prompt: Prompt, rng: Rng) -> Prompt:
    """Asks for the reasoning first, and for the answer on a last line of its own."""
    text = (
        "Before you answer, think it through step by step and write the steps down, even where "
        "a short reply was asked for. Then close with a line of its own, in this form:\n"
        f"Answer: X\nwhere X is {answer_phrase(prompt)}."
    )
    return prompt.with_sections(
        with_instruction(prompt.sections, "chain_of_thought", text, cue="Reasoning:")
    )
