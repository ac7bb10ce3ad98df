"""The experiments of brittlebench: which tasks, asked in which ways, how many items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from falter.protocols.protocol import Need, Part, TaskKind, UserSettings, presets_of
from falter.protocols.tables import figures_of
from falter.records.errors import UsageError

WORDS = (
    "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split", "word_merge",
)  # fmt: skip
AUGMENTATION = ("persona", "emotion")
PADDING = ("pad_quotes", "pad_spaces", "pad_newlines")
PARAPHRASES = ("paraphrase_lexical", "paraphrase_syntactic", "paraphrase_free")
FOURTEEN = (*WORDS, *AUGMENTATION, *PADDING, *PARAPHRASES)
REASONED = ("typos", "drop_stop_words", "space_sequences")
COMPARED = ("zero-shot", "maths", "code")
THOUGHT = "chain_of_thought"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The tasks of each kind, the steps of the pairs, and how many items a part takes.

    `reasoning` names the tasks on which a chain of thought is asked for; a part without an entry
    in `limits` takes all items.
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
declared = figures_of("brittlebench")


def parts_of(settings: UserSettings) -> Iterator[Part]:
    """The parts in the order in which they run."""
    preset = PRESETS[settings.preset]
    chosen = settings.demonstrations
    shots = preset.demonstrations if chosen is None else chosen
    if not shots:
        raise UsageError(
            "The protocol runs with and without demonstrations, so their number cannot be 0",
            hint="leave --demonstrations out, or set it to 1 or more",
        )
    recipes = _recipes(preset)
    letters = "choice_letter_likelihood" if settings.scores else "choice_letter"
    scorers = {**dict.fromkeys(recipes, settings.scorer), "options": letters}
    for name, about in PARTS.items():
        yield _part(
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
    yield from _reasoning(preset, settings)


def _recipes(preset: Preset) -> dict[str, list[str]]:
    """The recipes of the parts that do not list theirs."""
    doses = [("typos", preset.typos), *((pad, preset.pads) for pad in PADDING)]
    pairs = ["+".join(pair) for pair in permutations(preset.pairs, 2)]
    return {
        "zero-shot": [*FOURTEEN, "identity"],
        "few-shot": [*FOURTEEN, "identity"],
        "intensity": [f"{name}:count={dose}" for name, counts in doses for dose in counts],
        "pairs": [*preset.pairs, *pairs],
    }


def _part(
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
    """A part with as many items as the preset says for parts of this `size`."""
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
        compares=name in COMPARED,
    )


def _reasoning(preset: Preset, settings: UserSettings) -> Iterator[Part]:
    """With and without a chain of thought; tasks with options are answered with a letter.

    One part for each kind of task, each with its judge where there is one.
    """
    tasks = [
        task for task in settings.tasks or preset.reasoning if task[1] in ("choices", "numeric")
    ]
    kinds: list[TaskKind] = list(dict.fromkeys(kind for _, kind in tasks)) or ["numeric"]
    recipes = [*REASONED, "identity", THOUGHT, *(f"{THOUGHT}+{name}" for name in REASONED)]
    for kind in kinds:
        tail = "" if len(kinds) == 1 else f"-{kind}"
        lettered = kind == "choices"
        yield _part(
            preset,
            f"reasoning{tail}",
            "Chain of thought",
            [name for name, its_kind in tasks if its_kind == kind],
            recipes,
            size="reasoning",
            takes=(kind,),
            needs=("text", "listed options") if lettered else ("text",),
            scorer="choice_letter" if lettered else None,
        )
        if settings.judge:
            yield Part(
                name=f"quality{tail}",
                title="The quality of the reasoning",
                experiment={"scorer": "reasoning_quality"},
                judges=f"reasoning{tail}",
            )


def notes_of(preset: str) -> tuple[str, ...]:
    """In sentences, for the plan and the report."""
    p = PRESETS[preset]
    notes: tuple[str, ...] = declared(
        "notes",
        quick=preset == "quick",
        fourteen=len(FOURTEEN),
        shots=p.demonstrations,
        typos=", ".join(map(str, p.typos)),
        pads=", ".join(map(str, p.pads)),
        pairs=len(p.pairs),
    )["text"]
    return notes
