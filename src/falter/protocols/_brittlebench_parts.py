"""The experiments of brittlebench: which tasks, asked in which ways, how many items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from falter.core.errors import UsageError
from falter.protocols._protocol import Choices, Part, TaskKind, Unavailable

__all__ = ["FOURTEEN", "PRESETS", "Preset", "parts_of"]

WORDS = (
    "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split", "word_merge",
)  # fmt: skip
AUGMENTATION = ("persona", "emotion")
PADDING = ("pad_quotes", "pad_spaces", "pad_newlines")
PARAPHRASES = ("paraphrase_lexical", "paraphrase_syntactic", "paraphrase_free")
FOURTEEN = (*WORDS, *AUGMENTATION, *PADDING, *PARAPHRASES)
MATHS = ("symmetric_addition", "symmetric_multiplication", "latexify")
CODE = ("camel_case", "to_class", "remove_type_hints")
OPTIONS = (
    "shuffle_choice_texts",
    "shuffle_choice_order",
    "relabel_choices",
    "ignore_above:answer=incorrect",
    "ignore_above:answer=correct",
    "elimination_control",
    "elimination",
)
REASONED = ("typos", "drop_stop_words", "space_sequences")
TYPO_DOSES = (1, 2, 4, 8, 16)
PAD_DOSES = (1, 2, 4, 8, 16, 32)
UNLISTED = "the template does not list the options (put {choices} into it)"
COMPARED = ("zero-shot", "maths", "code")
THOUGHT = "chain_of_thought"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The tasks of each kind, the steps of the pairs, and how many items a part takes (None: all).

    `reasoning` names the tasks on which a chain of thought is asked for.
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


_EXAMS = ("mmlu", "truthfulqa", "arc_easy", "arc_challenge", "mathqa", "logiqa", "gpqa")

PRESETS: Mapping[str, Preset] = {
    "quick": Preset(
        choices=("basics:core",),
        maths=("sums",),
        code=("functions",),
        reasoning=(("sums", "numeric"),),
        demonstrations=3,
        pairs=("typos", "drop_stop_words", "pad_quotes", "pad_newlines"),
        pads=(1, 4, 16),
        typos=(1, 2, 4),
        limits={
            "zero-shot": 32, "few-shot": 12, "options": 10, "maths": 12, "code": 6,
            "intensity": 20, "pairs": 20, "reasoning": 6,
        },
    ),
    "paper": Preset(
        choices=_EXAMS,
        maths=("gsm8k",),
        code=("humaneval",),
        reasoning=tuple((name, "choices") for name in _EXAMS),
        demonstrations=5,
        pairs=(*WORDS, *AUGMENTATION, *PADDING),
        pads=PAD_DOSES,
        typos=TYPO_DOSES,
        limits={},
    ),
}  # fmt: skip


def parts_of(choices: Choices) -> tuple[tuple[Part, ...], tuple[Unavailable, ...]]:
    """The parts that these choices allow, and what they leave out."""
    made = _Parts(choices)
    made.main()
    made.options()
    made.generated("maths", "Maths", "numeric", MATHS)
    made.generated("code", "Code", "code", CODE)
    made.intensity()
    made.pairs()
    made.reasoning()
    return tuple(made.found), tuple(made.absent)


class _Parts:
    """Collects the parts in the order in which they run."""

    def __init__(self, choices: Choices) -> None:
        self.choices, self.preset = choices, PRESETS[choices.preset]
        self.found: list[Part] = []
        self.absent: list[Unavailable] = []
        self.exams = self._tasks("choices", self.preset.choices)
        self.shots = self.preset.demonstrations
        if choices.demonstrations is not None:
            if not choices.demonstrations:
                raise UsageError(
                    "The protocol asks with and without demonstrations, and their number is 0",
                    hint="leave --demonstrations out, or give 1 or more",
                )
            self.shots = choices.demonstrations

    def main(self) -> None:
        """The fourteen, without and with demonstrations."""
        if not self.exams:
            self._without("The tables of the fourteen perturbations", "no task with options")
            return
        recipes, own = [*FOURTEEN, "identity"], self.choices.scorer
        title = "The fourteen perturbations, zero-shot"
        self._add("zero-shot", title, self.exams, recipes, scorer=own)
        title, shots = f"The fourteen perturbations, {self.shots}-shot", self.shots
        self._add("few-shot", title, self.exams, recipes, scorer=own, demonstrations=shots)

    def options(self) -> None:
        """Options listed under letters, because that is where their order can matter."""
        title = "Options and distraction"
        if not self.exams:
            self._without(title, "no task with options")
        elif not self.choices.lists:
            self._without(title, UNLISTED)
        else:
            scorer = "choice_letter_likelihood" if self.choices.scores else "choice_letter"
            self._add("options", title, self.exams, [*OPTIONS, "identity"], scorer=scorer)

    def generated(self, name: str, title: str, kind: TaskKind, recipes: Sequence[str]) -> None:
        named = {"numeric": self.preset.maths, "code": self.preset.code}[kind]
        tasks = self._tasks(kind, named)
        if not tasks:
            self._without(title, f"no task of this kind among {self._named()}")
        elif not self.choices.generates:
            self._without(title, "a model among those named gives no text")
        else:
            self._add(name, f"{title} perturbations", tasks, [*recipes, "identity"])

    def intensity(self) -> None:
        """More and more of the same."""
        if self.exams:
            doses = [("typos", self.preset.typos), *((pad, self.preset.pads) for pad in PADDING)]
            recipes = [f"{name}:count={dose}" for name, counts in doses for dose in counts]
            title = "More and more of the same"
            self._add("intensity", title, self.exams, recipes, scorer=self.choices.scorer)

    def pairs(self) -> None:
        """One after another, in either order, on the first task."""
        if self.exams:
            pairs = ["+".join(pair) for pair in permutations(self.preset.pairs, 2)]
            recipes = [*self.preset.pairs, *pairs]
            title = "One perturbation after another"
            self._add("pairs", title, self.exams[:1], recipes, scorer=self.choices.scorer)

    def reasoning(self) -> None:
        """With and without a chain of thought; where options are asked, by a written letter."""
        title = "Chain of thought"
        given = self.choices.tasks or self.preset.reasoning
        tasks = [(name, kind) for name, kind in given if kind in ("choices", "numeric")]
        lettered = any(kind == "choices" for _, kind in tasks)
        if not tasks:
            self._without(title, "no task with options or numbers")
        elif not self.choices.generates:
            self._without(title, "a model among those named gives no text")
        elif lettered and not self.choices.lists:
            self._without(title, UNLISTED)
        else:
            self._reasoned(title, tasks)

    def _reasoned(self, title: str, tasks: Sequence[tuple[str, TaskKind]]) -> None:
        recipes = [*REASONED, "identity", THOUGHT, *(f"{THOUGHT}+{name}" for name in REASONED)]
        kinds = list(dict.fromkeys(kind for _, kind in tasks))
        for kind in kinds:
            names = [name for name, one in tasks if one == kind]
            part = "reasoning" if len(kinds) == 1 else f"reasoning-{kind}"
            scorer = "choice_letter" if kind == "choices" else None
            self._add(part, title, names, recipes, scorer=scorer, size="reasoning")
            if self.choices.judge:
                self._judged(part)

    def _judged(self, part: str) -> None:
        self.found.append(
            Part(
                name=part.replace("reasoning", "quality", 1),
                title="The quality of the reasoning",
                experiment={"scorer": "reasoning_quality"},
                judges=part,
            )
        )

    def _tasks(self, kind: TaskKind, named: Sequence[str]) -> list[str]:
        if not self.choices.tasks:
            return list(named)
        return [name for name, one in self.choices.tasks if one == kind]

    def _named(self) -> str:
        return ", ".join(name or "your data" for name, _ in self.choices.tasks)

    def _without(self, title: str, reason: str) -> None:
        self.absent.append(Unavailable(title=title, reason=reason))

    def _add(
        self,
        name: str,
        title: str,
        tasks: Sequence[str],
        recipes: Sequence[str],
        *,
        size: str | None = None,
        **more: Any,
    ) -> None:
        """Another part; as many items as the user says, or the preset for parts of this `size`."""
        experiment: dict[str, Any] = {"recipes": list(recipes)}
        if any(tasks):
            experiment["tasks"] = list(tasks)
        limit = self.choices.limit or self.preset.limits.get(size or name)
        if limit is not None:
            experiment["limit"] = limit
        experiment |= {key: value for key, value in more.items() if value is not None}
        compares = name in COMPARED
        self.found.append(Part(name=name, title=title, experiment=experiment, compares=compares))
