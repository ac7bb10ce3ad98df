"""The parts of the enterprise protocol: tasks, categories of recipes, and presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from falter.protocols.judging import RUBRICS
from falter.protocols.protocol import Part, UserSettings, presets_of
from falter.records.types import Recipe

TASKS = ("enterprise_case", "enterprise_chat", "enterprise_questions", "enterprise_slots")
BASELINE, GENERAL, POSITIONAL = "baseline", "general", "positional"
FORMAT, MULTILINGUAL, CROSSLINGUAL, COMPOUND = "format", "multilingual", "crosslingual", "compound"
CATEGORIES = (BASELINE, GENERAL, POSITIONAL, FORMAT, MULTILINGUAL, CROSSLINGUAL, COMPOUND)
REFERENCE_FORM = "format_text"
COMPARING, RATING, RETRY = "comparing", "rating", "-again"
POSITIONS = (
    "move_context", "move_output_instructions", "reorder_bullets", "reorder_documents",
    "mixed_positions",
)  # fmt: skip
FORMS = ("format_json", "format_yaml", "format_xml", "format_markdown", "format_html")
_CATEGORY = {
    **dict.fromkeys(POSITIONS, POSITIONAL),
    **dict.fromkeys((REFERENCE_FORM, *FORMS), FORMAT),
    "translate": MULTILINGUAL,
    "crosslingual": CROSSLINGUAL,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Names of the measures that rate a task's responses: `judged` by a judge, `counted` by rule.

    Measures in `beside` are shown and decide nothing.
    """

    name: str
    judged: tuple[str, ...]
    counted: tuple[str, ...]
    beside: tuple[str, ...] = ()


SUMMARY = Kind("summary", ("faithfulness", "completeness"), ("grounded", "covered"))
ANSWER = Kind(
    "answer",
    ("faithfulness", "completeness", "relevance", "citations", "conciseness"),
    ("facts", "sources", "grounded"),
)
# ROUGE-L depends on the length of the gold, which differs by language: leaving out the same slot
# costs more in one language than in another. So it decides nothing.
SLOTS = Kind("slots", (), ("entity_f1",), ("rouge_l",))
OTHER = Kind("reply", ("faithfulness", "completeness"), ("grounded", "covered"))
_KINDS = {
    "enterprise_case": SUMMARY,
    "enterprise_chat": SUMMARY,
    "enterprise_questions": ANSWER,
    "enterprise_slots": SLOTS,
}


def kind_of(task: str) -> Kind:
    """Return the measures for the responses of a task; `OTHER` for an unknown task."""
    return _KINDS.get(task.partition(":")[0], OTHER)


def name_of(task: str) -> str:
    """Return a task's name without the options of the languages part.

    Examples: `enterprise_case:it,translated` becomes `enterprise_case`, and `enterprise_case:hr`
    stays.
    """
    return task.replace(",translated", "").removesuffix(":it")


def category_of(recipe: Recipe) -> str | None:
    """Return the category of a recipe, None for the clean prompt.

    The repeated clean prompt is `baseline`, and several steps are `compound`. A step without an
    entry in `_CATEGORY` is `general`.
    """
    if not recipe.steps:
        return BASELINE if recipe.repeat else None
    return COMPOUND if len(recipe.steps) > 1 else _CATEGORY.get(recipe.steps[0].name, GENERAL)


def languages_of(recipe: Recipe) -> tuple[str, str]:
    """Return the languages of the input and of the requested answer, `en` unless translated."""
    step = recipe.steps[0] if recipe.steps else None
    category = category_of(recipe)
    if step is None or category not in (MULTILINGUAL, CROSSLINGUAL):
        return "en", "en"
    if category == MULTILINGUAL:
        return str(step.params["to"]), str(step.params["to"])
    return str(step.params["input"]), str(step.params["answer"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Recipes, languages, number of runs and items per task of one preset.

    `items` and `translated` limit the items per task in the main part and in the languages part;
    None means all. A cross-lingual pair holds the languages of input and answer. `max_tokens` holds
    two limits on a response: for models that answer at once, and if any model thinks first. None
    keeps the tasks' limits.
    """

    recipes: tuple[str, ...]
    items: int | None
    translated: int | None
    multilingual: tuple[str, ...]
    crosslingual: tuple[tuple[str, str], ...]
    runs: int
    max_tokens: tuple[int, int] | None = None


SEED = 1
"""Sampling seed, sent to servers that accept one. The paper fixes a seed but does not print it."""

PRESETS = presets_of("enterprise", Preset)


def parts_of(settings: UserSettings) -> Iterator[Part]:
    """Yield the parts in the order in which they run; the parts for a judge come last."""
    preset = PRESETS[settings.preset]
    runs = settings.repeats or preset.runs
    # Above temperature 0 a fixed seed would make all repeats identical.
    sampling: dict[str, Any] = {} if settings.sampling.get("temperature") else {"seed": SEED}
    if preset.max_tokens is not None:
        sampling["max_tokens"] = preset.max_tokens[settings.reasons]
    sampling |= settings.sampling
    recipes = ["identity", *preset.recipes]
    yield _limited_part(
        "main", "Wording, position and format", TASKS, recipes, preset.items, runs, sampling
    )
    recipes = [f"translate:to={language}" for language in preset.multilingual]
    recipes += [
        f"crosslingual:input={shown},answer={wanted}" for shown, wanted in preset.crosslingual
    ]
    tasks = [f"{name}:it,translated" for name in TASKS]
    yield _limited_part("languages", "Languages", tasks, recipes, preset.translated, runs, sampling)
    if settings.judge:
        alone = settings.parts and "main" not in settings.parts and "languages" in settings.parts
        yield from _judging_parts("languages" if alone else "main", settings.rubrics)


def _limited_part(
    name: str,
    title: str,
    tasks: Sequence[str],
    recipes: Sequence[str],
    limit: int | None,
    runs: int,
    sampling: Mapping[str, Any],
) -> Part:
    experiment: dict[str, Any] = {"recipes": list(recipes), "tasks": list(tasks), "repeats": runs}
    experiment["sampling"] = dict(sampling)
    if limit is not None:
        experiment["limit"] = limit
    return Part(name=name, title=title, experiment=experiment, takes=("open",), needs=("text",))


def _judging_parts(first: str, rubrics: Mapping[str, str]) -> Iterator[Part]:
    """Yield two stages of judging, each followed by a retry of its unparsed verdicts.

    The stages judge every main part that was run. `first` names one of them, because a part needs
    one name to judge.
    """
    again = "those that could not be read, once more"
    for name, judges, title in (
        (COMPARING, first, "Do two replies say the same?"),
        (COMPARING + RETRY, COMPARING, f"Do two replies say the same: {again}"),
        (RATING, first, "The quality of replies that differ"),
        (RATING + RETRY, RATING, f"The quality of replies that differ: {again}"),
    ):
        experiment = {"scorer": "rating_of_three", "repeats": 1}
        yield Part(
            name=name, title=title, experiment=experiment, judges=judges, rubrics=rubrics or RUBRICS
        )
