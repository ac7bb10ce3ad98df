"""Conditions: recipes with the functions that turn items into variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from falter.core.errors import UsageError
from falter.core.interfaces import RewriteBank, Scorer
from falter.core.records import Demonstration, Item, Prompt, Recipe, Variant
from falter.experiment._remedies import noisy_recipes
from falter.perturbations import (
    OTHER_TEMPLATE,
    Ledger,
    apply_recipe,
    perturb_demonstration,
    reaches_demonstrations,
)
from falter.planning import Condition
from falter.remedies import Remedy
from falter.tasks import Piece, Task, Template, hash_order

__all__ = ["conditions", "template_for"]

LABELS_ONLY = "letter"
LEAD = "Here is a task for you. Please do exactly what it says.\n\n"
CACHED_DRAWS = 64
Build = Callable[[Item], Prompt]
Make = Callable[[Item, int], Variant]
Show = Callable[[int], tuple[Demonstration, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Example:
    """A held-out item with its prompt, and as a demonstration."""

    key: str
    prompt: Prompt
    demonstration: Demonstration


def template_for(task: Task, scorer: Scorer) -> Template:
    """The task's template for the way the scorer asks."""
    style = scorer.style
    template = task.templates.get(style) or next(iter(task.templates.values()))
    if style == LABELS_ONLY and not template.lists_choices:
        raise UsageError(
            f"The scorer '{scorer.name}' needs a template that lists the options",
            hint="put {choices} into the template",
        )
    return template


def conditions(
    task: Task,
    scorer: Scorer,
    recipes: Sequence[Recipe],
    held_out: Sequence[Item],
    *,
    demonstrations: int,
    seed: int,
    bank: RewriteBank | None = None,
    perturb_demonstrations: bool = False,
    remedy: Remedy | None = None,
) -> tuple[Condition, ...]:
    """One condition for each recipe, with `demonstrations` of the `held_out` items by default.

    With `perturb_demonstrations`, a recipe changes the examples as it changes the item. A `remedy`
    is applied last, to clean prompts too; what a recipe does is the same with it and without.
    """
    if perturb_demonstrations and not held_out:
        raise UsageError(
            "There are no demonstrations to perturb",
            hint="show some, for example --demonstrations 5; or drop --perturb-demonstrations",
        )
    template = template_for(task, scorer)
    builders: dict[tuple[str | None, int, int], tuple[Build, list[_Example]]] = {}
    shown = demonstrations or (0 if remedy is None else remedy.examples)
    noise = noisy_recipes(recipes) if remedy is not None and remedy.noise else []

    def base(recipe: Recipe) -> tuple[Build, list[_Example]]:
        count = shown if recipe.demonstrations is None else recipe.demonstrations
        key = recipe.template, count, recipe.examples
        if key not in builders:
            own = template if key[0] is None else _other(template, key[0], task)
            items = _examples(held_out, count, recipe.examples, seed + 1)
            examples = _with_noise([_example(own, item) for item in items], noise, seed)
            builders[key] = _base_prompt(own, [e.demonstration for e in examples]), examples
        return builders[key]

    def condition(recipe: Recipe) -> Condition:
        build, examples = base(recipe)
        show = None
        if perturb_demonstrations and examples and reaches_demonstrations(recipe):
            show = _shower(examples, recipe, seed, bank)
        make = _maker(build, recipe, seed, bank, show)
        make = make if remedy is None else _remedied(make, remedy)
        return Condition(recipe=recipe, make=make, random=bool(recipe.steps))

    return tuple(map(condition, recipes))


def _examples(held_out: Sequence[Item], count: int, number: int, seed: int) -> Sequence[Item]:
    """A set of examples, in the order of the file; no two sets have one in common."""
    first = number * count
    chosen = {item.key for item in hash_order(held_out, seed)[first : first + count]}
    return [item for item in held_out if item.key in chosen]


def _other(template: Template, source: str, task: Task) -> Template:
    """Another template for the same items, asked in the same way."""
    if source == OTHER_TEMPLATE:
        return _second(template, task)
    other = Template.parse(source, answer_as=template.answer_as, delimiter=template.delimiter)
    other.check(list(task.items[0].fields), has_choices=task.has_choices)
    if template.lists_choices and not other.lists_choices:
        raise UsageError(
            "The other template does not list the options, but the task's own template does",
            hint="put {choices} into it",
        )
    return replace(other, choice_format=template.choice_format)


def _second(template: Template, task: Task) -> Template:
    """The task's second template; without one, its own below one more sentence."""
    for style, own in task.templates.items():
        if own == template and style in task.alternatives:
            return task.alternatives[style]
    system = [piece for piece in template.pieces if piece.kind == "system"]
    rest = [piece for piece in template.pieces if piece.kind != "system"]
    lead = Piece(kind="instruction", text=LEAD)
    return replace(template, pieces=(*system, lead, *rest))


def _example(template: Template, item: Item) -> _Example:
    prompt = template.build(item)
    target = item.target
    if target is None:
        raise UsageError(
            f"Item '{item.key}' of '{item.task}' cannot be shown as a solved example: "
            "it has no answer",
            hint="ask without examples, or name the answer's column with --target",
        )
    if isinstance(target, int) and item.choices:
        answer = prompt.labels[target] if template.answer_as == "label" else item.choices[target]
    else:
        answer = str(target)
    demonstration = Demonstration(sections=prompt.sections, answer=answer)
    return _Example(key=item.key, prompt=prompt, demonstration=demonstration)


def _with_noise(
    examples: Sequence[_Example], recipes: Sequence[Recipe], seed: int
) -> list[_Example]:
    """The examples, each perturbed by one of the recipes in turn, once and for every prompt."""
    if not recipes:
        return list(examples)
    return [
        replace(
            example,
            demonstration=replace(
                example.demonstration,
                sections=perturb_demonstration(
                    example.key, example.prompt, recipes[n % len(recipes)], seed, 0
                ),
            ),
        )
        for n, example in enumerate(examples)
    ]


def _shower(
    examples: Sequence[_Example], recipe: Recipe, seed: int, bank: RewriteBank | None
) -> Show:
    """The examples as a recipe leaves them in a draw, the same ahead of every item."""

    @lru_cache(maxsize=CACHED_DRAWS)
    def perturbed(draw: int, settled: bool) -> tuple[Demonstration, ...]:
        return tuple(
            replace(
                e.demonstration,
                sections=perturb_demonstration(e.key, e.prompt, recipe, seed, draw, bank),
            )
            for e in examples
        )

    # An open ledger gives stand-ins, which do not outlive it.
    return lambda draw: perturbed(draw, not (isinstance(bank, Ledger) and bank.open))


def _base_prompt(template: Template, demonstrations: Sequence[Demonstration]) -> Build:
    """Builds an item's clean prompt, once for all of its recipes, which follow each other."""
    last: list[tuple[Item, Prompt]] = []

    def build(item: Item) -> Prompt:
        if not last or last[0][0] is not item:
            prompt = template.build(item)
            if demonstrations:
                prompt = replace(prompt, demonstrations=tuple(demonstrations))
            last[:] = [(item, prompt)]
        return last[0][1]

    return build


def _maker(
    base: Build, recipe: Recipe, seed: int, bank: RewriteBank | None, show: Show | None
) -> Make:
    """Makes variants. Perturbed examples stand before an item only if its own prompt changed."""

    def make(item: Item, draw: int) -> Variant:
        prompt = clean = base(item)
        if show is not None:
            prompt = replace(clean, demonstrations=show(draw))
        applied = apply_recipe(item.key, prompt, recipe, seed, draw, bank)
        after, status = applied.prompt, applied.status
        if show is not None and status != "changed":
            after = clean
        if recipe.sets and status in ("baseline", "unchanged"):
            status = "changed"
        return Variant(item=item, recipe=recipe, draw=draw, prompt=after, status=status)

    return make


def _remedied(make: Make, remedy: Remedy) -> Make:
    """Variants as a recipe makes them, with the remedy applied to what it left of the prompt."""

    def make_and_mend(item: Item, draw: int) -> Variant:
        variant = make(item, draw)
        return replace(variant, prompt=remedy(variant.prompt))

    return make_and_mend
