"""Checks that a recipe kept its prompts' meaning: counts, strict checks, and a descriptive cosine.

A check fails if a change loses a protected span, a number, a negation, a quantifier, a name, a
symbol, or the actor of a passive. It also fails if a word became another word, or if the right
answer occurs more or less often than before. The cosine of two prompts is a description, not a
check. A small encoder hardly notices an inserted *not*, and takes heavy typos for another text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import get_args

from falter.analysis.cache import Cosine
from falter.analysis.examples import segments
from falter.analysis.results import Meaning
from falter.analysis.table import Table
from falter.records.figures import Segment
from falter.records.ids import digest
from falter.records.types import Prompt, Recipe, Run, VariantStatus
from falter.store.store import Store
from falter.text.meaning import MeaningCheck, MeaningFlag, meaning_flags
from falter.text.names import copied_words

MEANING_CHECKS: tuple[str, ...] = (*get_args(MeaningCheck), "target")
MAX_NAMED_LOSSES = 20
MAX_SAMPLES = 3
CONTEXT_CHARACTERS = 16  # characters that stayed, on each side of a change that is shown
EDIT_CHARACTERS = 48
MAX_CHECKED_ITEMS = 100  # items of a run
MAX_COMPARED_PROMPTS = 25  # of these, with a cosine: a long prompt takes 80 ms
COMPARED_CHARACTERS = 5_000  # of these, together
MIN_COMPARED_PROMPTS = 3
_WORD, _LETTER = re.compile(r"\w+"), re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewording:
    """An item's prompt before and after a recipe."""

    item: str
    before: Prompt
    after: Prompt
    status: VariantStatus


def meaning(
    rewordings: Sequence[Rewording],
    *,
    task: str,
    recipe: str,
    group: str,
    language: str = "en",
    encoder: Cosine | None = None,
    compare: int | None = None,
    same: Mapping[str, int] | None = None,
) -> Meaning:
    """Return the effect of one recipe on a task's prompts; cosines of at most `compare` items.

    `same` counts the prompts that earlier recipes made too, from `equal_prompts`.
    """
    status = Counter(rewording.status for rewording in rewordings)
    changed = [rewording for rewording in rewordings if rewording.status == "changed"]
    texts = [(body(rewording.before), body(rewording.after)) for rewording in changed]
    losses: list[tuple[str, str, str]] = [
        (rewording.item, flag.check, flag.lost)
        for rewording in changed
        for flag in _meaning_losses(rewording.before, rewording.after, language)
    ]
    losses += [
        (rewording.item, "target", lost)
        for rewording in changed
        for lost in _moved_answers(rewording.before, rewording.after)
    ]
    # An item that lost two numbers fails the check of numbers once.
    failed: Counter[str] = Counter(c for c, _ in {(check, item) for item, check, _ in losses})
    word_count = sum(len(_WORD.findall(before)) for before, _ in texts)
    edits = sum(len(section.edits) for rewording in changed for section in rewording.after.sections)
    cosines: list[float] = []
    if encoder is not None and texts:
        befores, afters = zip(
            *texts[: None if compare is None else _compared_count(texts, compare)], strict=True
        )
        cosines = [c for c in encoder.cosine(befores, afters) if c is not None]
    return Meaning(
        task=task,
        recipe=recipe,
        group=group,
        texts=len(rewordings),
        changed=len(changed),
        unchanged=status["unchanged"],
        not_applicable=status["not_applicable"],
        no_rewrite=status["no_rewrite"],
        edits_per_100_words=100.0 * edits / word_count if word_count else None,
        lost={check: failed[check] for check in MEANING_CHECKS},
        failing=tuple(losses[:MAX_NAMED_LOSSES]),
        samples=tuple(texts[:MAX_SAMPLES]),
        change=_shortest_change(changed),
        encoder=None if encoder is None else encoder.name,
        compared=len(cosines),
        cosine=sum(cosines) / len(cosines) if cosines else None,
        cosine_low=sorted(cosines)[len(cosines) // 10] if cosines else None,
        same=same or {},
    )


def _compared_count(texts: Sequence[tuple[str, str]], most: int) -> int:
    """Return the number of prompts to compare by cosine: fewer if they are long, at most `most`."""
    sizes = accumulate(len(before) for before, _ in texts)
    return min(most, max(MIN_COMPARED_PROMPTS, sum(size <= COMPARED_CHARACTERS for size in sizes)))


def equal_prompts(
    cases: Iterable[tuple[str, Sequence[Rewording]]],
) -> dict[str, dict[str, int]]:
    """Return, by recipe label, the number of prompts that each earlier recipe also produces.

    A prompt that several earlier recipes produce counts for the first of them.
    """
    first_recipe: dict[str, str] = {}
    same: dict[str, dict[str, int]] = {}
    for label, rewordings in cases:
        shared_counts = same.setdefault(label, {})
        for rewording in rewordings:
            if rewording.status != "changed":
                continue
            prompt = digest("prompt", rewording.item, rewording.after.identity())
            earlier = first_recipe.setdefault(prompt, label)
            if earlier != label:
                shared_counts[earlier] = shared_counts.get(earlier, 0) + 1
    return same


def _shortest_change(changed: Sequence[Rewording]) -> tuple[Segment, ...]:
    """Return a changed place with its surroundings, from the sample with the shortest edits."""
    compared = [segments(one.before, one.after) for one in changed[:MAX_SAMPLES]]
    if not compared:
        return ()

    def size(parts: Sequence[Segment]) -> int:
        return sum(len(p.before) + len(p.after) for p in parts if p.kind == "edit")

    return around_first_edit(min(compared, key=size))


def around_first_edit(parts: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the first edit, shortened if it is long, between a few unchanged words."""
    at = next((place for place, part in enumerate(parts) if part.kind == "edit"), None)
    if at is None:
        return ()
    edit = parts[at]
    shown = [Segment(kind="edit", before=_beginning(edit.before), after=_beginning(edit.after))]
    if at and parts[at - 1].kind == "same":
        tail = _line_end(parts[at - 1].after)
        shown.insert(0, Segment(kind="same", before=tail, after=tail))
    if at + 1 < len(parts) and parts[at + 1].kind == "same":
        head = _beginning(parts[at + 1].after, CONTEXT_CHARACTERS)
        if at + 2 < len(parts) and not head.endswith("…"):
            head += "…"
        shown.append(Segment(kind="same", before=head, after=head))
    return tuple(shown)


def _beginning(text: str, limit: int = EDIT_CHARACTERS) -> str:
    """Return the beginning of a text; a long text ends at a space, with an ellipsis."""
    if len(text) <= limit:
        return text
    return (text[:limit].rsplit(" ", 1)[0] or text[:limit]) + "…"


def _line_end(text: str) -> str:
    """Return the end of the text's last line; a long line begins at a space, with an ellipsis."""
    last = text.rsplit("\n", 1)[-1]
    return (
        last
        if len(last) <= CONTEXT_CHARACTERS
        else "…" + last[-CONTEXT_CHARACTERS:].split(" ", 1)[-1]
    )


def loses_meaning(before: Prompt, after: Prompt, language: str = "en") -> bool:
    """Return True if any check finds a loss between two prompts."""
    return bool(_meaning_losses(before, after, language)) or bool(_moved_answers(before, after))


def _meaning_losses(before: Prompt, after: Prompt, language: str) -> tuple[MeaningFlag, ...]:
    """Return the losses that the text checks find, ignoring changed labels of the same options."""
    flags = meaning_flags(_original_words(before), _original_words(after), language)
    if (before.labels, before.choice_format) == (after.labels, after.choice_format):
        return flags
    labels = {*before.labels, *after.labels}
    return tuple(
        flag
        for flag in flags
        if flag.check not in ("symbol", "number") or flag.lost.removeprefix("+") not in labels
    )


def answer_places(prompt: Prompt) -> int:
    """Count the right answer's occurrences in the prompt, without the list of options.

    Numbers and single letters count 0, because any text may contain them.
    """
    answer = _right_answer(prompt)
    if len(answer) < 2 or not _LETTER.search(answer):
        return 0
    texts = "\n".join(s.text for s in prompt.sections if s.kind != "choices")
    return len(copied_words(texts, (answer,), each_word=False))


def _right_answer(prompt: Prompt) -> str:
    if isinstance(prompt.target, int):
        return prompt.choices[prompt.target] if prompt.choices else ""
    return prompt.target or ""


def _moved_answers(before: Prompt, after: Prompt) -> list[str]:
    """Return the right answer, with `+` if it occurs more often, in a list; empty if unchanged."""
    if _right_answer(before) != _right_answer(after):
        return []  # a declared move of the target
    old, new = answer_places(before), answer_places(after)
    return [] if old == new else [f"{'+' if new > old else ''}{_right_answer(before)}"]


def body(prompt: Prompt) -> str:
    """Return the prompt's own text, without system words and demonstrations."""
    return "".join(section.text for section in prompt.sections if section.kind != "system")


def _original_words(prompt: Prompt) -> str:
    """Return the prompt's text without added texts, responses, calls and tools.

    These surround the text, so they cannot remove anything from it. Turns stand on separate lines:
    without the line break, "… software." and "Hello" would be read as an address.
    """
    others = ("added", "reply", "call", "tool")
    return "".join("\n" if s.kind in others else "\n" * s.opens + s.text for s in prompt.sections)


def meaning_of_run(
    store: Store, run: Run, tables: Sequence[Table], encoder: Cosine | None
) -> tuple[Meaning, ...]:
    """Return the meaning of every recipe of a stored run, on a sample of each task's items.

    A hash of the item picks the sample.
    """
    one_of_each_task: dict[str, Table] = {}
    for table in tables:
        if not table.rescored:
            one_of_each_task.setdefault(table.panel.task, table)
    meanings: list[Meaning] = []
    for table in one_of_each_task.values():
        meanings += _meanings_of_task(store, run, table, encoder)
    return tuple(meanings)


def _meanings_of_task(
    store: Store, run: Run, table: Table, encoder: Cosine | None
) -> Iterator[Meaning]:
    items = sorted(table.item_ids, key=lambda item: digest("meaning", item))[:MAX_CHECKED_ITEMS]
    variants = {
        (cell.variant.item.id, cell.variant.recipe.id): cell.variant
        for cell in store.cells(run, items=items, panel=table.place)
        if cell.variant.draw == 0
    }
    baseline = run.recipes[0].id
    cases: list[tuple[Recipe, list[Rewording]]] = []
    for recipe in run.recipes:
        if not recipe.steps or recipe.controls:
            continue
        pairs = [
            (variants[item, baseline], variants[item, recipe.id])
            for item in items
            if (item, recipe.id) in variants and (item, baseline) in variants
        ]
        rewordings = [
            Rewording(
                item=before.item.key,
                before=before.prompt,
                after=after.prompt,
                status=after.status,
            )
            for before, after in pairs
        ]
        cases.append((recipe, rewordings))
    same = equal_prompts((recipe.label, rewordings) for recipe, rewordings in cases)
    for recipe, rewordings in cases:
        yield meaning(
            rewordings,
            task=table.panel.task,
            recipe=recipe.label,
            group=recipe.group,
            language=run.experiment.get("language") or "en",
            encoder=encoder,
            compare=MAX_COMPARED_PROMPTS,
            same=same[recipe.label],
        )
