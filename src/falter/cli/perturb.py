"""`falter perturb`: perturbed texts or JSONL rows, or a check of their meaning."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from falter.cli.options import takes
from falter.engine.config import read_experiment
from falter.engine.experiment_file import check_permits, read_settings
from falter.engine.recipes import recipe_from
from falter.engine.rewriting import bank_in
from falter.engine.variants import meaning_of, variant_sets
from falter.perturbations import apply_recipe, perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.perturbations.recipes import Applied, text_key
from falter.records.codec import json_text, to_json
from falter.records.errors import TaskError, UsageError, refusal
from falter.records.render import plain
from falter.records.types import Prompt, Recipe, Section

if TYPE_CHECKING:
    from falter.analysis.results import Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturber:
    """Recipes with a seed; a call yields each recipe, the text as a prompt, and its change."""

    recipes: tuple[Recipe, ...]
    seed: int
    draw: int

    def __call__(self, text: str) -> Iterator[tuple[Recipe, Prompt, Applied]]:
        prompt = Prompt(sections=(Section(name="text", kind="input", text=text),))
        for recipe in self.recipes:
            yield recipe, prompt, apply_recipe(text_key(text), prompt, recipe, self.seed, self.draw)


@click.command()
@takes("perturb")
def perturb(
    text: tuple[str, ...],
    names: tuple[str, ...],
    grid: bool,
    check: bool,
    task: str | None,
    experiment: str | None,
    allow_code: bool | None,
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

    The changes depend on the text and the seed only, not on other lines.

    \b
    falter perturb -p typos "What is the capital of France?"
    falter perturb -p typos -p persona --field question < items.jsonl
    falter perturb --grid -p typos -p casing -p pad_quotes < texts.txt
    falter perturb --check -p typos < texts.txt
    falter perturb --check --task basics
    """
    chosen: dict[str, Any] = {"task": task, "limit": limit, "scorer": scorer}
    if (experiment or any(chosen.values())) and not check:
        raise refusal(UsageError, "cli.only_with_check")
    if not names and not check:
        raise UsageError("No perturbation is named", hint="for example: -p typos")
    specs = _specs(names, grid=grid)
    if task or experiment:
        chosen |= {"seed": seed, "language": language, "protect": list(protect)}
        _check_prompts(specs, chosen, experiment, bool(allow_code), store_path, as_json)
        return
    perturber = Perturber(
        recipes=tuple(recipe_from(spec, protect, language) for spec in specs), seed=seed, draw=draw
    )
    for recipe in perturber.recipes:
        if not recipe.steps:
            raise refusal(UsageError, "cli.setting_recipe", recipe=recipe.label)
    if check:
        texts = (row[field] for row in _rows(field)) if field else iter(text or _input_lines())
        _check_texts(perturber, texts, language or "en", as_json)
    elif field is not None:
        _change_rows(perturber, field, grid, as_json)
    else:
        _change_texts(perturber, text or _input_lines(), grid, as_json)


Spec = list[tuple[str, dict[str, Any]]]


def _chain_of(*names: str) -> Spec:
    return [(part, {}) for name in names for part in name.split("+")]


def _specs(names: Sequence[str], *, grid: bool) -> list[Spec]:
    """Return a chain of all names, ordered pairs for a grid, or all perturbations without names."""
    if grid and len(names) < 2:
        raise UsageError("--grid needs two perturbations or more", hint="-p typos -p casing")
    if grid:
        return [_chain_of(first, second) for first, second in permutations(names, 2)]
    if names:
        return [_chain_of(*names)]
    return [
        _chain_of(p.name)
        for p in perturbations
        if not isinstance(p, SettingPerturbation) and not p.needs_model
    ]


def _change_texts(
    perturber: Perturber, texts: Sequence[str] | Iterator[str], grid: bool, as_json: bool
) -> None:
    for line in texts:
        for recipe, _, applied in perturber(line):
            changed = plain(applied.prompt)
            if as_json:
                edits = _edit_records(applied.prompt)
                row = {"text": line, **_outcome_record(recipe, applied, grid), "edits": edits}
                click.echo(json_text(row))
                continue
            if applied.step is not None and len(recipe.steps) > 1:
                click.echo(
                    f"{recipe.label}: '{applied.step}' found nothing left to change, so the text "
                    "is unchanged",
                    err=True,
                )
            click.echo(f"{recipe.label}\t{changed}" if grid else changed)


def _change_rows(perturber: Perturber, field: str, grid: bool, as_json: bool) -> None:
    for row in _rows(field):
        for recipe, _, applied in perturber(row[field]):
            outcome = _outcome_record(recipe, applied, grid)
            changed = {**row, field: outcome.pop("perturbed")}
            if grid:
                changed["recipe"] = recipe.label
            if as_json:
                changed |= {**outcome, "edits": _edit_records(applied.prompt)}
            click.echo(json_text(changed))


def _outcome_record(recipe: Recipe, applied: Applied, grid: bool) -> dict[str, Any]:
    """Return the perturbed text and its status; `step` names a chain's step without an effect."""
    row: dict[str, Any] = {"recipe": recipe.label} if grid else {}
    row |= {"perturbed": plain(applied.prompt), "status": applied.status}
    if applied.step is not None:
        row["step"] = applied.step
    return row


def _edit_records(changed: Prompt) -> list[dict[str, Any]]:
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


def _check_texts(perturber: Perturber, texts: Iterator[str], language: str, as_json: bool) -> None:
    from falter.analysis.meaning_checks import Rewording, equal_prompts

    rewordings: dict[str, list[Rewording]] = {recipe.label: [] for recipe in perturber.recipes}
    for number, text in enumerate(texts, start=1):
        for recipe, before, applied in perturber(text):
            rewordings[recipe.label].append(
                Rewording(
                    item=f"line {number}",
                    before=before,
                    after=applied.prompt,
                    status=applied.status,
                )
            )
    groups = {recipe.label: recipe.group for recipe in perturber.recipes}
    shared_prompts = equal_prompts(rewordings.items())
    _print_meanings(
        [
            meaning_of(
                cases,
                task="texts",
                recipe=label,
                group=groups[label],
                language=language,
                same=shared_prompts[label],
            )
            for label, cases in rewordings.items()
        ],
        as_json,
    )


def _check_prompts(
    specs: Sequence[Spec],
    chosen: dict[str, Any],
    file: str | None,
    allow_code: bool,
    store_path: Path,
    as_json: bool,
) -> None:
    """Check the prompts of a task, or of an experiment's items and recipes."""
    from falter.analysis.meaning_checks import equal_prompts

    if chosen["task"] and file:
        raise refusal(UsageError, "cli.task_and_experiment")
    if file is not None:
        settings = dict(read_settings(file))
        # No model is asked here, but tasks are loaded.
        loaded: dict[str, Any] = {k: v for k, v in settings.items() if k in ("task", "tasks")}
        check_permits(loaded, Path(file), code=allow_code)
        experiment = read_experiment(settings, folder=Path(file).parent, needs_models=False)
    else:
        settings = {key: value for key, value in chosen.items() if value is not None}
        recipes = ["+".join(name for name, _ in spec) for spec in specs]
        experiment = read_experiment({**settings, "recipes": recipes}, needs_models=False)
    meanings = []
    with bank_in(experiment, store_path) as bank:
        for variant_set in variant_sets(experiment, bank):
            rewordings = [(recipe, tuple(cases)) for recipe, cases in variant_set.rewordings()]
            shared_prompts = equal_prompts((recipe.label, cases) for recipe, cases in rewordings)
            for recipe, cases in rewordings:
                meanings.append(
                    meaning_of(
                        cases,
                        task=variant_set.task.name,
                        recipe=recipe.label,
                        group=recipe.group,
                        language=experiment.language or "en",
                        same=shared_prompts[recipe.label],
                    )
                )
    _print_meanings(meanings, as_json)


def _print_meanings(meanings: Sequence[Meaning], as_json: bool) -> None:
    from falter.analysis.figures.details import meaning_grid, meaning_losses
    from falter.report.forms.terminal import terminal_figures

    if as_json:
        click.echo(json.dumps([to_json(m) for m in meanings], indent=2, ensure_ascii=False))
        return
    terminal_figures((*meaning_losses(meanings), *meaning_grid(meanings)), Console())
    if len(meanings) == 1:
        from falter.report.escape import line

        for before, after in meanings[0].samples:
            click.echo(f"\n  {line(before, 300)}\n  {line(after, 300)}")


# Input


def _input_lines() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\r\n")


def _rows(field: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of standard input; raise TaskError unless each has a text in `field`."""
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
                f"standard input: a row has no text in '{field}'",
                hint=f"its fields are: {', '.join(row)}",
            )
        yield row
