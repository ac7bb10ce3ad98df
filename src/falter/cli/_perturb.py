"""`falter perturb`: text or JSONL in, perturbed text or JSONL out."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import click

from falter.core.errors import TaskError
from falter.core.records import Prompt, Recipe, Section, VariantStatus
from falter.core.render import plain
from falter.experiment import recipe_from
from falter.perturbations import apply_recipe, text_key

__all__ = ["perturb"]


@click.command()
@click.argument("text", nargs=-1)
@click.option(
    "-p", "--perturbation", "names", multiple=True, required=True,
    help="A perturbation, e.g. typos or typos:count=4; several are chained in this order.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, help="The seed.")
@click.option("--draw", default=0, show_default=True, help="Another draw, other changes.")
@click.option("--field", help="Read JSONL, and change this field of every object.")
@click.option("--protect", multiple=True, help="A regular expression no change may touch.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print an object a text: text, status, edits."
)
def perturb(
    text: tuple[str, ...],
    names: tuple[str, ...],
    seed: int,
    draw: int,
    field: str | None,
    protect: tuple[str, ...],
    as_json: bool,
) -> None:
    """Perturb TEXT, or every line of standard input.

    A text's changes depend on the text and the seed, not on the lines around it.
    """
    recipe = recipe_from([(part, {}) for name in names for part in name.split("+")], protect)
    if field is not None:
        for row in _objects():
            if not isinstance(row.get(field), str):
                raise TaskError(
                    f"standard input: a row has no text in '{field}'",
                    hint=f"fields: {', '.join(row)}",
                )
            changed, status, edits = _apply(row[field], recipe, seed, draw)
            row[field] = changed
            if as_json:
                row |= {"status": status, "edits": edits}
            click.echo(json.dumps(row, ensure_ascii=False))
        return
    for line in text or _lines():
        changed, status, edits = _apply(line, recipe, seed, draw)
        if as_json:
            row = {"text": line, "perturbed": changed, "status": status, "edits": edits}
            click.echo(json.dumps(row, ensure_ascii=False))
        else:
            click.echo(changed)


def _apply(
    text: str, recipe: Recipe, seed: int, draw: int
) -> tuple[str, VariantStatus, list[dict[str, Any]]]:
    prompt = Prompt(sections=(Section(name="text", kind="input", text=text),))
    changed, status, _ = apply_recipe(text_key(text), prompt, recipe, seed, draw)
    edits = [
        {
            "section": section.name,
            "before": [edit.start, edit.end],
            "after": [edit.new_start, edit.new_end],
        }
        for section in changed.sections
        for edit in section.edits
    ]
    return plain(changed), status, edits


def _lines() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\r\n")


def _objects() -> Iterator[dict[str, Any]]:
    for number, line in enumerate(sys.stdin, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TaskError(f"standard input, line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise TaskError(f"standard input, line {number} is not an object")
        yield row
