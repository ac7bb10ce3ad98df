"""Conditions: recipes with the functions that turn items into variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from falter.engine.config import Experiment
from falter.engine.recipes import examples_of, remedy_of, shown_from
from falter.engine.scoring import noisy_recipes, template_for
from falter.perturbations import apply_recipe
from falter.perturbations.configuration import OTHER_TEMPLATE
from falter.perturbations.recipes import perturb_demonstration, reaches_demonstrations
from falter.perturbations.rewriting import Ledger
from falter.records.errors import InvalidValue, UsageError, refusal
from falter.records.interfaces import RewriteBank, Scorer
from falter.records.planning import Condition
from falter.records.types import Demonstration, Item, Prompt, Recipe, Variant
from falter.remedies.prompts import Remedy
from falter.tasks import Template
from falter.tasks.task import Piece, Task, hash_order, pick

SECOND_TEMPLATE_LEAD = "Here is a task for you. Please do exactly what it says.\n\n"
"""Instruction at the start of the second template of a task that has only one."""
CACHED_DRAWS = 64
"""Number of draws whose perturbed demonstrations are cached."""
PromptBuilder = Callable[[Item], Prompt]
"""Function from an item to its clean prompt."""
VariantMaker = Callable[[Item, int], Variant]
"""Function from an item and a draw to a variant."""
DemonstrationSource = Callable[[int], tuple[Demonstration, ...]]
"""Function from a draw to the demonstrations that it shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Example:
    """A held-out item with its prompt and its demonstration."""

    key: str
    prompt: Prompt
    demonstration: Demonstration


def conditions(
    experiment: Experiment,
    task: Task,
    scorer: Scorer,
    recipes: Sequence[Recipe],
    held_out: Sequence[Item],
    bank: RewriteBank | None,
) -> tuple[Condition, ...]:
    """Return one condition for each recipe, with demonstrations from the `held_out` items.

    A remedy is applied last, to clean prompts too. So a recipe has the same effect with a remedy
    and without. Raises if demonstrations are to be perturbed and there are none.
    """
    perturbs_examples = experiment.perturb_demonstrations
    if perturbs_examples and not held_out:
        raise refusal(UsageError, "engine.no_demonstrations")
    template, remedy, seed = template_for(task, scorer), remedy_of(experiment), experiment.seed
    builders: dict[tuple[str | None, int, int], tuple[PromptBuilder, list[_Example]]] = {}
    noisy = noisy_recipes(recipes) if remedy is not None and remedy.noise else []

    def base(recipe: Recipe) -> tuple[PromptBuilder, list[_Example]]:
        usual = examples_of(experiment)
        count = usual if recipe.demonstrations is None else recipe.demonstrations
        key = recipe.template, count, recipe.examples
        if key not in builders:
            own = template if key[0] is None else _other_template(template, key[0], task)
            items = _example_set(held_out, count, recipe.examples, seed + 1)
            examples = _with_noise([_as_example(own, item) for item in items], noisy, seed)
            builders[key] = _prompt_builder(own, [e.demonstration for e in examples]), examples
        return builders[key]

    def condition(recipe: Recipe) -> Condition:
        build, examples = base(recipe)
        show = None
        if perturbs_examples and examples and reaches_demonstrations(recipe):
            show = _demonstration_source(examples, recipe, seed, bank)
        make = _variant_maker(build, recipe, seed, bank, show, remedy)
        return Condition(recipe=recipe, make=make, random=bool(recipe.steps))

    return tuple(map(condition, recipes))


def _example_set(held_out: Sequence[Item], count: int, number: int, seed: int) -> Sequence[Item]:
    """Return demonstration set `number` of `count` items, in the order of the file.

    Different sets have no item in common.
    """
    first = number * count
    chosen = {item.key for item in hash_order(held_out, seed)[first : first + count]}
    return [item for item in held_out if item.key in chosen]


def _other_template(template: Template, source: str, task: Task) -> Template:
    """Return another template for the same items, in the same style.

    `source` is a template's text, or the marker for the task's second template.
    """
    if source == OTHER_TEMPLATE:
        return _task_second_template(template, task)
    other = Template.parse(source, answer_as=template.answer_as, delimiter=template.delimiter)
    other.check(list(task.items[0].fields), has_choices=task.has_choices)
    if template.lists_choices and not other.lists_choices:
        raise refusal(UsageError, "engine.other_without_choices")
    return replace(other, choice_format=template.choice_format)


def _task_second_template(template: Template, task: Task) -> Template:
    """Return the task's second template; without one, its own below an additional sentence."""
    for style, own in task.templates.items():
        if own == template and style in task.alternatives:
            return task.alternatives[style]
    system = [piece for piece in template.pieces if piece.kind == "system"]
    rest = [piece for piece in template.pieces if piece.kind != "system"]
    lead = Piece(kind="instruction", text=SECOND_TEMPLATE_LEAD)
    return replace(template, pieces=(*system, lead, *rest))


def _as_example(template: Template, item: Item) -> _Example:
    """Return a held-out item as an example; raise if it has no answer."""
    prompt = template.build(item)
    target = item.target
    if target is None:
        raise refusal(UsageError, "engine.example_without_answer", key=item.key, task=item.task)
    if isinstance(target, int) and item.choices:
        answer = prompt.labels[target] if template.answer_as == "label" else item.choices[target]
    else:
        answer = str(target)
    demonstration = Demonstration(sections=prompt.sections, answer=answer)
    return _Example(key=item.key, prompt=prompt, demonstration=demonstration)


def _perturb(
    example: _Example, recipe: Recipe, seed: int, draw: int, bank: RewriteBank | None = None
) -> Demonstration:
    """Return an example's demonstration, perturbed by a recipe."""
    sections = perturb_demonstration(example.key, example.prompt, recipe, seed, draw, bank)
    return replace(example.demonstration, sections=sections)


def _with_noise(
    examples: Sequence[_Example], recipes: Sequence[Recipe], seed: int
) -> list[_Example]:
    """Return the examples, each perturbed by the next recipe in turn, once for all prompts."""
    if not recipes:
        return list(examples)
    return [
        replace(example, demonstration=_perturb(example, recipes[n % len(recipes)], seed, 0))
        for n, example in enumerate(examples)
    ]


def _demonstration_source(
    examples: Sequence[_Example], recipe: Recipe, seed: int, bank: RewriteBank | None
) -> DemonstrationSource:
    """Return a function from a draw to the perturbed demonstrations, which all items share."""

    @lru_cache(maxsize=CACHED_DRAWS)
    def perturbed(draw: int, settled: bool) -> tuple[Demonstration, ...]:
        return tuple(_perturb(example, recipe, seed, draw, bank) for example in examples)

    # An open ledger gives stand-ins, which must not stay in the cache once it is closed.
    return lambda draw: perturbed(draw, not (isinstance(bank, Ledger) and bank.open))


def _prompt_builder(template: Template, demonstrations: Sequence[Demonstration]) -> PromptBuilder:
    """Return a function that builds an item's clean prompt.

    The last prompt is cached, because an item's recipes follow each other.
    """
    cached: list[tuple[Item, Prompt]] = []

    def build(item: Item) -> Prompt:
        if not cached or cached[0][0] is not item:
            prompt = template.build(item)
            if demonstrations:
                prompt = replace(prompt, demonstrations=tuple(demonstrations))
            cached[:] = [(item, prompt)]
        return cached[0][1]

    return build


def _variant_maker(
    build_clean: PromptBuilder,
    recipe: Recipe,
    seed: int,
    bank: RewriteBank | None,
    show: DemonstrationSource | None,
    remedy: Remedy | None,
) -> VariantMaker:
    """Return a function from an item and a draw to a variant, with the remedy applied last.

    Perturbed examples precede an item only if the recipe changed the item's own prompt.
    """

    def make(item: Item, draw: int) -> Variant:
        prompt = clean = build_clean(item)
        if show is not None:
            prompt = replace(clean, demonstrations=show(draw))
        applied = apply_recipe(item.key, prompt, recipe, seed, draw, bank)
        final_prompt, status = applied.prompt, applied.status
        if show is not None and status != "changed":
            final_prompt = clean
        if recipe.sets and status in ("baseline", "unchanged"):
            status = "changed"
        if remedy is not None:
            final_prompt = remedy(final_prompt)
        return Variant(item=item, recipe=recipe, draw=draw, prompt=final_prompt, status=status)

    return make


def hold_out(
    task: Task, experiment: Experiment, recipes: Sequence[Recipe]
) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the items held out as demonstrations, and the items to be evaluated.

    The held-out items are the same for all recipes and models. Raises `InvalidValue` if no other
    items would be left.
    """
    count = max(shown_from(recipe, examples_of(experiment)) for recipe in recipes)
    if count >= len(task.items):
        raise InvalidValue(
            "demonstrations", count, f"fewer than the {len(task.items)} items of '{task.name}'"
        )
    held_out = pick(task.items, count, experiment.seed + 1) if count else ()
    keys = {item.key for item in held_out}
    others = tuple(item for item in task.items if item.key not in keys)
    return held_out, pick(others, experiment.limit, experiment.seed)
