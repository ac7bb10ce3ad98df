"""The parts of brittlebench: tasks, recipes, scorers and numbers of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from falter.protocols.protocol import Need, Part, TaskKind, UserSettings, presets_of
from falter.protocols.tables import figures_of
from falter.records.errors import UsageError

WORD_RECIPES = (
    "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split", "word_merge",
)  # fmt: skip
AUGMENTATION = ("persona", "emotion")
PADDING = ("pad_quotes", "pad_spaces", "pad_newlines")
PARAPHRASES = ("paraphrase_lexical", "paraphrase_syntactic", "paraphrase_free")
FOURTEEN_RECIPES = (*WORD_RECIPES, *AUGMENTATION, *PADDING, *PARAPHRASES)
REASONED_RECIPES = ("typos", "drop_stop_words", "space_sequences")
COMPARED_PARTS = ("zero-shot", "maths", "code")
CHAIN_OF_THOUGHT = "chain_of_thought"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The tasks, perturbations, edit counts and item limits of a preset of the protocol.

    `reasoning` names the tasks of the part with a chain of thought. `pairs` are steps that are
    applied in twos. `pads` and `typos` are doses: numbers of edits. A part without an entry in
    `limits` takes all items.
    """

    choices: tuple[str, ...]
    maths: tuple[str, ...]
    code: tuple[str, ...]
    reasoning: tuple[tuple[str, TaskKind], ...]
    demonstrations: int
    pairs: tuple[str, ...]
    pads: tuple[int, ...]
    typos: tuple[int, ...]
    limits: Mapping[str, int]


PRESETS = presets_of("brittlebench", Preset)
PARTS: Mapping[str, dict[str, Any]] = presets_of("brittlebench", dict, "parts.yaml")
declaration = figures_of("brittlebench")


def parts_of(settings: UserSettings) -> Iterator[Part]:
    """Yield the parts in the order in which they run.

    Raises UsageError for 0 demonstrations, because one part needs some.
    """
    preset = PRESETS[settings.preset]
    chosen = settings.demonstrations
    shots = preset.demonstrations if chosen is None else chosen
    if not shots:
        raise UsageError(
            "The protocol runs with and without demonstrations, so their number cannot be 0",
            hint="leave --demonstrations out, or set it to 1 or more",
        )
    recipes = _recipes_by_part(preset)
    letters = "choice_letter_likelihood" if settings.scores else "choice_letter"
    scorers = {**dict.fromkeys(recipes, settings.scorer), "options": letters}
    for name, about in PARTS.items():
        yield _limited_part(
            preset,
            name,
            about["title"].format(shots=shots),
            getattr(preset, about["tasks"]),
            about.get("recipes") or recipes[name],
            takes=tuple(about.get("takes", ("choices",))),
            needs=tuple(about.get("needs", ())),
            most_tasks=about.get("most_tasks"),
            scorer=scorers.get(name),
            demonstrations=shots if name == "few-shot" else None,
        )
    yield from _reasoning_parts(preset, settings)


def _recipes_by_part(preset: Preset) -> dict[str, list[str]]:
    """Return the recipes of the parts without a list in `parts.yaml`, by part name."""
    doses = [("typos", preset.typos), *((pad, preset.pads) for pad in PADDING)]
    pairs = ["+".join(pair) for pair in permutations(preset.pairs, 2)]
    return {
        "zero-shot": [*FOURTEEN_RECIPES, "identity"],
        "few-shot": [*FOURTEEN_RECIPES, "identity"],
        "intensity": [f"{name}:count={dose}" for name, counts in doses for dose in counts],
        "pairs": [*preset.pairs, *pairs],
    }


def _limited_part(
    preset: Preset,
    name: str,
    title: str,
    tasks: Sequence[str],
    recipes: Sequence[str],
    *,
    size: str | None = None,
    takes: tuple[TaskKind, ...] = ("choices",),
    needs: tuple[Need, ...] = (),
    most_tasks: int | None = None,
    **settings: Any,
) -> Part:
    """Return a part with the item limit that the preset has for `size`, or for its name."""
    experiment: dict[str, Any] = {"recipes": list(recipes), "tasks": list(tasks)}
    limit = preset.limits.get(size or name)
    if limit is not None:
        experiment["limit"] = limit
    experiment |= {key: value for key, value in settings.items() if value is not None}
    return Part(
        name=name,
        title=title,
        experiment=experiment,
        takes=takes,
        needs=needs,
        most_tasks=most_tasks,
        compares=name in COMPARED_PARTS,
    )


def _reasoning_parts(preset: Preset, settings: UserSettings) -> Iterator[Part]:
    """Yield the parts with and without a chain of thought: one for each kind of task.

    Tasks with options are answered with a letter. If the user has a judge, a judging part follows
    each part.
    """
    tasks = [
        task for task in settings.tasks or preset.reasoning if task[1] in ("choices", "numeric")
    ]
    kinds: list[TaskKind] = list(dict.fromkeys(kind for _, kind in tasks)) or ["numeric"]
    recipes = [
        *REASONED_RECIPES,
        "identity",
        CHAIN_OF_THOUGHT,
        *(f"{CHAIN_OF_THOUGHT}+{name}" for name in REASONED_RECIPES),
    ]
    for kind in kinds:
        title_suffix = "" if len(kinds) == 1 else f"-{kind}"
        lettered_tasks = kind == "choices"
        yield _limited_part(
            preset,
            f"reasoning{title_suffix}",
            "Chain of thought",
            [name for name, its_kind in tasks if its_kind == kind],
            recipes,
            size="reasoning",
            takes=(kind,),
            needs=("text", "listed options") if lettered_tasks else ("text",),
            scorer="choice_letter" if lettered_tasks else None,
        )
        if settings.judge:
            yield Part(
                name=f"quality{title_suffix}",
                title="The quality of the reasoning",
                experiment={"scorer": "reasoning_quality"},
                judges=f"reasoning{title_suffix}",
            )


def notes_of(preset: str) -> tuple[str, ...]:
    """Return sentences on the settings of the preset, for the plan and the report."""
    p = PRESETS[preset]
    notes: tuple[str, ...] = declaration(
        "notes",
        quick=preset == "quick",
        fourteen=len(FOURTEEN_RECIPES),
        shots=p.demonstrations,
        typos=", ".join(map(str, p.typos)),
        pads=", ".join(map(str, p.pads)),
        pairs=len(p.pairs),
    )["text"]
    return notes
