"""`falter perturb`: texts or JSONL in, perturbed ones out; or what became of their meaning."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from falter.analysis import Rewording
from falter.cli._options import store_option
from falter.core.codec import to_json
from falter.core.errors import TaskError, UsageError
from falter.core.records import Prompt, Recipe, Section
from falter.core.render import plain
from falter.experiment import (
    bank_in,
    meaning_of,
    read_experiment,
    read_file,
    recipe_from,
    variant_sets,
)
from falter.perturbations import Applied, SettingPerturbation, apply_recipe, perturbations, text_key
from falter.report import meaning_table

__all__ = ["perturb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """The recipes to apply to every text, and the seed."""

    recipes: tuple[Recipe, ...]
    seed: int
    draw: int

    def __call__(self, text: str) -> Iterator[tuple[Recipe, Prompt, Applied]]:
        prompt = Prompt(sections=(Section(name="text", kind="input", text=text),))
        for recipe in self.recipes:
            done = apply_recipe(text_key(text), prompt, recipe, self.seed, self.draw)
            yield recipe, prompt, done


@click.command()
@click.argument("text", nargs=-1)
@click.option(
    "-p", "--perturbation", "names", multiple=True,
    help="A perturbation, e.g. typos or typos:count=4; several are chained in this order.",
)  # fmt: skip
@click.option("--grid", is_flag=True, help="Every ordered pair of the perturbations named instead.")
@click.option("--check", is_flag=True, help="Print what became of the meaning, not the texts.")
@click.option("-t", "--task", help="With --check: the prompts of a task instead of texts.")
@click.option("--experiment", type=click.Path(), help="With --check: those of an experiment file.")
@click.option("--limit", type=int, help="With --check: so many items of the task.")
@click.option("--scorer", help="With --check: asked as for this scorer, e.g. choice_letter.")
@click.option("--seed", default=0, show_default=True, help="The seed.")
@click.option("--draw", default=0, show_default=True, help="Another draw, other changes.")
@click.option("--language", help="The language of the text  [default: en]")
@click.option("--field", help="Read JSONL, and change this field of every object.")
@click.option("--protect", multiple=True, help="A regular expression no change may touch.")
@store_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print an object a text: text, status, edits."
)
def perturb(
    text: tuple[str, ...],
    names: tuple[str, ...],
    grid: bool,
    check: bool,
    task: str | None,
    experiment: str | None,
    limit: int | None,
    scorer: str | None,
    seed: int,
    draw: int,
    language: str | None,
    field: str | None,
    protect: tuple[str, ...],
    store_path: Path,
    as_json: bool,
) -> None:
    """Perturb TEXT, or every line of standard input.

    A text's changes depend on the text and the seed, not on the lines around it.

    \b
    falter perturb -p typos "What is the capital of France?"
    falter perturb -p typos -p persona --field question < items.jsonl
    falter perturb --grid -p typos -p casing -p pad_quotes < texts.txt
    falter perturb --check -p typos < texts.txt
    falter perturb --check --task basics
    """
    chosen: dict[str, Any] = {"task": task, "limit": limit, "scorer": scorer}
    if (experiment or any(chosen.values())) and not check:
        raise UsageError(
            "--task, --experiment, --limit and --scorer go with --check", hint="add --check"
        )
    if not names and not check:
        raise UsageError("No perturbation is named", hint="for example: -p typos")
    specs = _pairs(names) if grid else _chains(names, check)
    if task or experiment:
        chosen |= {"seed": seed, "language": language, "protect": list(protect)}
        _check_prompts(specs, chosen, experiment, store_path, as_json)
        return
    how = How(
        recipes=tuple(recipe_from(spec, protect, language) for spec in specs), seed=seed, draw=draw
    )
    for recipe in how.recipes:
        if not recipe.steps:
            raise UsageError(
                f"'{recipe.label}' changes how a model is asked, not the text",
                hint="use it in the recipes of an experiment",
            )
    if check:
        texts = (row[field] for row in _rows(field)) if field else iter(text or _lines())
        _check_texts(how, texts, language or "en", as_json)
    elif field is not None:
        _change_rows(how, field, grid, as_json)
    else:
        _change_texts(how, text or _lines(), grid, as_json)


Spec = list[tuple[str, dict[str, Any]]]


def _chain(*names: str) -> Spec:
    return [(part, {}) for name in names for part in name.split("+")]


def _chains(names: Sequence[str], check: bool) -> list[Spec]:
    """One chain of all; for a check without names, every perturbation by itself."""
    if names or not check:
        return [_chain(*names)]
    plain_ones = (
        p.name
        for p in perturbations
        if not isinstance(p, SettingPerturbation) and not p.needs_model
    )
    return [_chain(name) for name in plain_ones]


def _pairs(names: Sequence[str]) -> list[Spec]:
    if len(names) < 2:
        raise UsageError("--grid needs two perturbations or more", hint="-p typos -p casing")
    return [_chain(first, second) for first, second in permutations(names, 2)]


def _change_texts(how: How, texts: Sequence[str] | Iterator[str], grid: bool, json_: bool) -> None:
    for line in texts:
        for recipe, _, done in how(line):
            if json_:
                row = {"text": line, **_told(recipe, done, grid), "edits": _edits(done.prompt)}
                click.echo(json.dumps(row, ensure_ascii=False))
            else:
                _warn(recipe, done)
                click.echo(f"{recipe.label}\t{plain(done.prompt)}" if grid else plain(done.prompt))


def _change_rows(how: How, field: str, grid: bool, json_: bool) -> None:
    for row in _rows(field):
        for recipe, _, done in how(row[field]):
            told = _told(recipe, done, grid)
            made = {**row, field: told.pop("perturbed")}
            if grid:
                made["recipe"] = recipe.label
            if json_:
                made |= {**told, "edits": _edits(done.prompt)}
            click.echo(json.dumps(made, ensure_ascii=False))


def _told(recipe: Recipe, done: Applied, grid: bool) -> dict[str, Any]:
    """The outcome in words; a step of a chain that found nothing left is named."""
    row: dict[str, Any] = {"recipe": recipe.label} if grid else {}
    row |= {"perturbed": plain(done.prompt), "status": done.status}
    if done.step is not None:
        row["step"] = done.step
    return row


def _warn(recipe: Recipe, done: Applied) -> None:
    """In a chain, say on standard error which step found nothing that was left to change."""
    if done.step is not None and len(recipe.steps) > 1:
        click.echo(
            f"{recipe.label}: '{done.step}' found nothing left to change; the text stays as it was",
            err=True,
        )


def _edits(changed: Prompt) -> list[dict[str, Any]]:
    return [
        {
            "section": section.name,
            "before": [edit.start, edit.end],
            "after": [edit.new_start, edit.new_end],
        }
        for section in changed.sections
        for edit in section.edits
    ]


# Checks


def _check_texts(how: How, texts: Iterator[str], language: str, as_json: bool) -> None:
    found: dict[str, list[Rewording]] = {recipe.label: [] for recipe in how.recipes}
    for number, text in enumerate(texts, start=1):
        for recipe, before, done in how(text):
            found[recipe.label].append(
                Rewording(
                    item=f"line {number}", before=before, after=done.prompt, status=done.status
                )
            )
    groups = {recipe.label: recipe.group for recipe in how.recipes}
    _show(
        [
            meaning_of(cases, task="texts", recipe=label, group=groups[label], language=language)
            for label, cases in found.items()
        ],
        as_json,
    )


def _check_prompts(
    specs: Sequence[Spec],
    chosen: dict[str, Any],
    file: str | None,
    store_path: Path,
    as_json: bool,
) -> None:
    """The prompts of a task, or an experiment's own items and recipes."""
    if chosen["task"] and file:
        raise UsageError("--task and --experiment exclude each other", hint="keep one of the two")
    if file is not None:
        experiment = read_file(Path(file), needs_models=False)
    else:
        given = {key: value for key, value in chosen.items() if value is not None}
        recipes = ["+".join(name for name, _ in spec) for spec in specs]
        experiment = read_experiment({**given, "recipes": recipes}, needs_models=False)
    found = []
    with bank_in(experiment, store_path) as bank:
        for one in variant_sets(experiment, bank):
            for recipe, cases in one.rewordings():
                found.append(
                    meaning_of(
                        cases,
                        task=one.task.name,
                        recipe=recipe.label,
                        group=recipe.group,
                        language=experiment.language or "en",
                    )
                )
    _show(found, as_json)


def _show(found: Sequence[Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([to_json(one) for one in found], indent=2, ensure_ascii=False))
    else:
        meaning_table(found, Console())


# Input


def _lines() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\r\n")


def _rows(field: str) -> Iterator[dict[str, Any]]:
    """The objects of standard input, each with a text in the field."""
    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TaskError(f"standard input, line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise TaskError(f"standard input, line {number} is not an object")
        if not isinstance(row.get(field), str):
            raise TaskError(
                f"standard input: a row has no text in '{field}'", hint=f"fields: {', '.join(row)}"
            )
        yield row
