"""Recipes: parsing, application and names; sets of recipes, and advice for a prompt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from falter.perturbations.additions import prose_at
from falter.perturbations.base import checked_parameters, perturbations
from falter.perturbations.configuration import settings_of
from falter.perturbations.position import placed_documents
from falter.perturbations.rewriting import NoRewrite, RewritePerturbation
from falter.perturbations.template_parts import template_units
from falter.perturbations.vocabulary import table
from falter.records.errors import InvalidValue, UnknownName
from falter.records.ids import digest, step_seed
from falter.records.interfaces import Parameter, Perturbation, RewriteBank
from falter.records.render import plain
from falter.records.rng import Rng
from falter.records.types import Effect, Prompt, Recipe, Section, SectionKind, Step, VariantStatus
from falter.text.words import sentences

_STEP_FORM = "name, or name:parameter=value,parameter=value"


def resolve_step(name: str, params: Mapping[str, Any] | None = None) -> Step:
    """Return the step with every parameter spelled out and checked.

    Raise `UnknownName` or `InvalidValue` for an unknown name or an invalid value, before anything
    is sent.
    """
    perturbation = perturbations.get(name)
    full = dict(checked_parameters(perturbation, params or {}))
    # Try it once, so that a bad pattern or file raises here.
    kind: SectionKind = next(iter(full.get("scope", ())), "input")
    probe = Prompt(sections=(Section(name="probe", kind=kind, text="probe"),))
    perturbation.applies(probe, **full)
    effect: Effect = getattr(perturbation, "effect", "keep")  # a user's perturbation may lack it
    return Step(
        name=name, version=perturbation.version, params=full, reasons=perturbation.reasons,
        effect=effect,
    )  # fmt: skip


def parse_step(text: str) -> Step:
    """Return a step as written on the command line: `typos:count=4,kind=keyboard`.

    An option that only one parameter has may be given without the parameter's name:
    `human_typos:light`.

    Lists are separated by `|`, as in `typos:scope=input|choices`. A pattern to protect is one
    value, in which `|` has its usual meaning.
    """
    name, colon, rest = text.strip().partition(":")
    if not name or (colon and not rest):
        raise InvalidValue("step", text, _STEP_FORM)
    perturbation = perturbations.get(name)
    params: dict[str, Any] = {}
    for part in rest.split(",") if rest else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            key, equals, value = _parameter_with(perturbation, key), "=", key
        if not key or not equals or key in params:
            raise InvalidValue("step", text, _STEP_FORM)
        declared = {parameter.name: parameter for parameter in perturbation.parameters}
        if key not in declared:
            raise UnknownName(f"parameter of {name}", key, declared)
        params[key] = _typed_value(declared[key], value)
    return resolve_step(name, params)


def _parameter_with(perturbation: Perturbation, value: str) -> str:
    """Return the name of the only parameter with this option, or an empty string.

    In `human_typos:light` it is the parameter `dose`.
    """
    fitting = [p.name for p in perturbation.parameters if p.type is str and value in p.options]
    return fitting[0] if len(fitting) == 1 else ""


def _typed_value(parameter: Parameter, value: str) -> Any:
    """Return the value in the parameter's type; unchanged if it cannot be converted."""
    if parameter.type is tuple:
        return tuple(value.split("|")) if parameter.options else (value,)
    if parameter.type is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    if parameter.type in (int, float):
        try:
            return parameter.type(value)
        except ValueError:
            return value
    return value


# Recipes applied


class Applied(NamedTuple):
    """A prompt after a recipe, its status, and the name of the step that failed.

    A step fails if it finds nothing to change, or if its rewrite is not available.
    """

    prompt: Prompt
    status: VariantStatus
    step: str | None = None


def apply_recipe(
    item_key: str,
    prompt: Prompt,
    recipe: Recipe,
    run_seed: int,
    draw: int,
    bank: RewriteBank | None = None,
) -> Applied:
    """Return the prompt after the recipe's steps, in their order, and its status.

    - `baseline`: the recipe has no steps.
    - `not_applicable`: the named step found nothing to change. The prompt is the original.
    - `no_rewrite`: a model gave no usable rewrite for the named step. The prompt is the original.
    - `unchanged`: the text is the same as before.
    - `changed`: all other cases.

    A later step never touches the edits of an earlier step.
    """
    if not recipe.steps:
        return Applied(prompt, "baseline")
    steps = [(step.name, step) for step in recipe.steps]
    return _apply_steps(item_key, prompt, steps, run_seed, draw, bank)


def _apply_steps(
    key: str,
    prompt: Prompt,
    steps: Sequence[tuple[str, Step | None]],
    run_seed: int,
    draw: int,
    bank: RewriteBank | None,
) -> Applied:
    """Apply the steps, each with its name.

    A step that is None is skipped, but counts for the seeds of later steps of its name.
    """
    occurrences: Counter[str] = Counter()
    after = prompt
    for name, step in steps:
        if step is not None:
            before, rng = after, _step_rng(step, key, run_seed, draw, occurrences[name])
            try:
                after = _after_step(before, step, rng, draw, bank)
            except NoRewrite:
                return Applied(prompt, "no_rewrite", name)
            applies = perturbations.get(name).applies
            if _same_prompt(after, before) and not applies(before, **step.params):
                return Applied(prompt, "not_applicable", name)
        occurrences[name] += 1
    return Applied(after, "unchanged" if _same_prompt(after, prompt) else "changed")


def _same_prompt(after: Prompt, before: Prompt) -> bool:
    """Return True if a model would see the same prompt; comparing the texts mostly suffices."""
    if after is before:
        return True
    if [section.text for section in after.sections] != [s.text for s in before.sections]:
        return False
    return after.identity() == before.identity()


def _step_rng(step: Step, item_key: str, run_seed: int, draw: int, occurrence: int) -> Rng:
    """Return the random generator of one step on one item."""
    return Rng(lambda: step_seed(run_seed, step.name, step.version, occurrence, item_key, draw))


def _after_step(
    prompt: Prompt, step: Step, rng: Rng, draw: int, bank: RewriteBank | None
) -> Prompt:
    """Return the prompt after one step.

    Raise `NoRewrite` if a rewrite is unavailable, and `InvalidValue` for another version.
    """
    perturbation = perturbations.get(step.name)
    if perturbation.version != step.version:
        raise InvalidValue(
            f"{step.name}.version", step.version, f"{perturbation.version}, the version installed",
            hint="install the version of falter that made this recipe, or plan the run again",
        )  # fmt: skip
    if isinstance(perturbation, RewritePerturbation) and bank is not None:
        return perturbation.bind(bank, draw)(prompt, rng, **step.params)
    return perturbation(prompt, rng, **step.params)


def perturb(text: str, *steps: str | Step, seed: int = 0, draw: int = 0) -> str:
    """Return a text after one or more perturbations, given by name, as `name:count=4`, or as steps.

    The text is the input of a prompt with nothing else in it. Perturbations of the whole prompt add
    text around it. If a step finds nothing to change, the original text is returned.
    """
    chain = tuple(step if isinstance(step, Step) else parse_step(step) for step in steps)
    prompt = Prompt(sections=(Section(name="input", kind="input", text=text),))
    recipe = Recipe(label="perturb", steps=chain)
    return plain(apply_recipe(text_key(text), prompt, recipe, seed, draw).prompt)


def text_key(text: str) -> str:
    """Return the key of a text that is used as an item: a hash of its content."""
    return digest("text", text)


# Demonstrations: each as a separate item, with its answer unchanged


def reaches_demonstrations(recipe: Recipe) -> bool:
    """Return True if the recipe's steps for an item's sections can be applied to demonstrations.

    That excludes recipes with a step that rewrites whole prompts together with their
    demonstrations: `translate`, `crosslingual`.
    """
    return any(map(_item_step, recipe.steps)) and not any(map(_rewrites_all, recipe.steps))


def perturb_demonstration(
    key: str,
    prompt: Prompt,
    recipe: Recipe,
    run_seed: int,
    draw: int,
    bank: RewriteBank | None = None,
) -> tuple[Section, ...]:
    """Return a demonstration's sections after the recipe's steps for the sections of an item.

    `prompt` is the demonstration as an item. `key` is its own key, so that its seeds are those that
    it would have as an item. Steps for the whole prompt, options, positions and formats are
    skipped, because they are applied to the whole prompt.

    The original sections are returned in three cases: a step finds nothing to change, a rewrite is
    unavailable, or the answer would have to change too.
    """
    steps = [(step.name, _item_step(step)) for step in recipe.steps]
    after = _apply_steps(key, prompt, steps, run_seed, draw, bank).prompt
    same_answer = (after.target, after.choices) == (prompt.target, prompt.choices)
    return after.sections if same_answer else prompt.sections


def _item_step(step: Step) -> Step | None:
    """Return the step restricted to the sections of an item; None if it concerns other sections."""
    kinds = _item_kinds(step.params.get("scope", ()))
    if not kinds or not _item_kinds(perturbations.get(step.name).scope):
        return None
    return replace(step, params={**step.params, "scope": kinds})


def _item_kinds(scope: Sequence[SectionKind]) -> tuple[SectionKind, ...]:
    return tuple(kind for kind in scope if kind in ("input", "document"))


def _rewrites_all(step: Step) -> bool:
    perturbation = perturbations.get(step.name)
    return isinstance(perturbation, RewritePerturbation) and not perturbation.scope


def everyday_name(recipe: Recipe) -> str:
    """Return the recipe's everyday name, as used after "under": `typos and changed letter case`.

    Empty for the baseline. A step whose perturbation is not installed keeps its own name.
    """
    names = [_perturbation_title(step.name) for step in recipe.steps]
    names += [setting.title for setting in settings_of(recipe)]
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def _perturbation_title(name: str) -> str:
    try:
        return getattr(perturbations.get(name), "title", name)
    except UnknownName:
        return name


# Perturbations that fit a prompt: the traits of the prompt, and the recipes for each trait


class Advice(NamedTuple):
    """The recipes to run on prompts with a trait, and the reason."""

    trait: str
    why: str
    recipes: tuple[str, ...]


_ADVICE_TABLE = table("advice.json")
RECIPE_SETS: dict[str, tuple[str, ...]] = {
    name: tuple(recipes.split()) for name, recipes in _ADVICE_TABLE["recipe_sets"].items()
}
"""Recipes by the name of a set. Alone in a list of recipes, that name stands for the whole set."""
DEFAULT_RECIPES = RECIPE_SETS["brittlebench"]
ADVICE = tuple(
    Advice(entry["trait"], entry["why"], tuple(entry["recipes"].split()))
    for entry in _ADVICE_TABLE["advice"]
)
"""Advice, in the order in which it is given."""

NOISE_FLOOR = "identity"
"""The recipe that every set needs as well: it repeats the clean prompt."""

_JSON = re.compile(r"\bJSON\b")
_TOOL = re.compile(r'"(?:parameters|input_schema|inputSchema)"\s*:\s*\{')
# A question with an expression to compute. "3 + 4", "$x$"; not "3 eggs", "-".
_EXPRESSION = re.compile(r"\d\s?[-+*/×÷−^=]\s?\(?[-−]?\d|\$[^$\n]+\$")
# The template's own name of a field. "Question: ", "Due date:"; not "question: ", "a b".
_FIELD = re.compile(r"[A-Z][a-z]+(?: [a-z]+)?:\s*\Z")


def traits_of(prompt: Prompt) -> frozenset[str]:
    """Return the traits of a prompt, by the names that the advice uses."""
    sections, at = prompt.sections, prose_at(prompt)
    listed = len(prompt.choices) > 1 and any(s.kind == "choices" for s in sections)
    text = "".join(s.text for s in sections)
    rules = [s.text for s in sections if s.kind == "output_format" and s.text.strip()]
    units = template_units(sections)
    inputs = [s.text for s in sections if s.kind in ("input", "document")]
    documents = placed_documents(sections) is not None
    has = {
        "prose": at is not None,
        "options": listed,
        "labels": listed and prompt.answer_as == "label",
        "fields": any(_FIELD.search(s.text) for s in sections if s.kind == "instruction"),
        "instruction": len(units) > 1 and units[0].role == "instruction",
        "sentences": at is not None and len(sentences(sections[at].text)) > 1,
        "documents": documents or any(s.kind == "document" for s in sections),
        "examples": len(prompt.demonstrations) > 0,
        "rules": bool(rules),
        "json": prompt.schema is not None or any(map(_JSON.search, rules)),
        "code": prompt.program is not None,
        "expressions": prompt.program is None and any(map(_EXPRESSION.search, inputs)),
        "tools": _TOOL.search(text) is not None,
    }
    return frozenset(trait for trait, there in has.items() if there)
