"""Conditions: recipes with the functions that turn items into variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from falter.core.errors import UsageError
from falter.core.interfaces import RewriteBank, Scorer
from falter.core.records import Demonstration, Item, Prompt, Recipe, Variant
from falter.perturbations import apply_recipe
from falter.plan import Condition
from falter.tasks import Task, Template, pick

__all__ = ["conditions", "template_for"]

LABELS_ONLY = "letter"
Build = Callable[[Item], Prompt]


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
    shown: int,
    seed: int,
    bank: RewriteBank | None = None,
) -> tuple[Condition, ...]:
    """One condition a recipe. `held_out` are the solved examples; `shown` of them by default."""
    template = template_for(task, scorer)
    builders: dict[tuple[str | None, int], Build] = {}

    def base(recipe: Recipe) -> Build:
        count = shown if recipe.demonstrations is None else recipe.demonstrations
        key = recipe.template, count
        if key not in builders:
            asked = template if key[0] is None else _other(template, key[0], task)
            examples = pick(held_out, count, seed + 1) if count else ()
            builders[key] = _base_prompt(asked, [_demonstration(asked, i) for i in examples])
        return builders[key]

    return tuple(
        Condition(
            recipe=recipe,
            make=_maker(base(recipe), recipe, seed, bank),
            random=bool(recipe.steps),
        )
        for recipe in recipes
    )


def _other(template: Template, source: str, task: Task) -> Template:
    """Another template for the same items, asked in the same way."""
    other = Template.parse(source, answer_as=template.answer_as, delimiter=template.delimiter)
    other.check(list(task.items[0].fields), has_choices=task.has_choices)
    if template.lists_choices and not other.lists_choices:
        raise UsageError(
            "The other template does not list the options, and the task's own does",
            hint="put {choices} into it",
        )
    return replace(other, choice_format=template.choice_format)


def _demonstration(template: Template, item: Item) -> Demonstration:
    prompt = template.build(item)
    target = item.target
    if isinstance(target, int) and item.choices:
        answer = prompt.labels[target] if template.answer_as == "label" else item.choices[target]
    else:
        answer = str(target)
    return Demonstration(sections=prompt.sections, answer=answer)


def _base_prompt(template: Template, shown: Sequence[Demonstration]) -> Build:
    """Builds an item's clean prompt; the last one is kept, since all its recipes follow at once."""
    last: list[tuple[Item, Prompt]] = []

    def build(item: Item) -> Prompt:
        if not last or last[0][0] is not item:
            prompt = template.build(item)
            if shown:
                prompt = replace(prompt, demonstrations=tuple(shown))
            last[:] = [(item, prompt)]
        return last[0][1]

    return build


def _maker(
    base: Build, recipe: Recipe, seed: int, bank: RewriteBank | None
) -> Callable[[Item, int], Variant]:
    def make(item: Item, draw: int) -> Variant:
        done = apply_recipe(item.key, base(item), recipe, seed, draw, bank)
        status = done.status
        if recipe.sets and status in ("baseline", "unchanged"):
            status = "changed"
        return Variant(item=item, recipe=recipe, draw=draw, prompt=done.prompt, status=status)

    return make
