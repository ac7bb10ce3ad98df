"""`falter doctor` and `falter init`: installed parts, reachable models, and a first file."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
from pathlib import Path
from typing import Any

import click

from falter import __version__
from falter.cli.listing import EMBEDDED, not_downloaded, weights_here
from falter.cli.options import takes
from falter.engine.config import ModelSpec
from falter.engine.connections import connect, probe_text, probed, probed_tools, tools_text
from falter.engine.execution import run_async
from falter.records.errors import FalterError, UsageError, refusal

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


@click.command()
@takes("doctor")
def doctor(
    names: tuple[str, ...], probe: bool, tools: bool, as_json: bool, **connection: Any
) -> int:
    """Show what is installed, which models can be reached, and what they support.

    --probe sends one request of 16 tokens and one for log-probabilities. It reports how the request
    had to be adapted to the server, how the server counts tokens, and the tokens used. --tools
    sends one request that offers a tool, and reports whether the model calls it as a tool call, in
    the text, or not at all.

    Exit code 2 if one of the models cannot be used.
    """
    findings: dict[str, Any] = {
        "falter": __version__,
        "python": platform.python_version(),
        "extras": {extra: _installed_version(module) for extra, module in EXTRAS.items()},
        **weights_here(),
        "models": [_diagnose(ModelSpec(name=name, **connection), probe, tools) for name in names],
    }
    if as_json:
        click.echo(json.dumps(findings, indent=2))
    else:
        _print_findings(findings)
    return 2 if any(not m["ok"] for m in findings["models"]) else 0


def _installed_version(module: str) -> str | None:
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _diagnose(spec: ModelSpec, probe: bool, tools: bool) -> dict[str, Any]:
    """Return the result of connecting to a model; `probe` and `tools` also send prompts."""
    asked = {"probe": probed} if probe else {}
    asked |= {"tools": probed_tools} if tools else {}
    try:
        client = connect(spec)

        async def check() -> dict[str, Any]:
            try:
                await client.check()
                return {what: await ask(client) for what, ask in asked.items()}
            finally:
                await client.close()

        result = run_async(check)
    except FalterError as error:
        return {"name": spec.name, "ok": False, "problem": error.message, "hint": error.hint}
    able = client.capabilities
    return {
        "name": spec.name,
        "ok": True,
        "generates": able.generates,
        "log_probabilities": able.scores,
        **result,
    }


def _print_findings(findings: dict[str, Any]) -> None:
    click.echo(f"falter   {findings['falter']} on Python {findings['python']}")
    for extra, version in findings["extras"].items():
        state = version or f"not installed: pip install 'falter[{extra}]'"
        click.echo(f"{extra:8} {state}")
    for name in EMBEDDED:
        click.echo(f"{name:8} {findings[name] or not_downloaded(name)}")
    for model in findings["models"]:
        if model["ok"]:
            outputs = {"text": "generates", "log-probabilities": "log_probabilities"}
            asked = " and ".join(what for what, able in outputs.items() if model[able])
            click.echo(f"{model['name']}: reachable; can be asked for {asked}")
            for line in probe_text(model["probe"]) if "probe" in model else ():
                click.echo(f"  {line}")
            if "tools" in model:
                click.echo(f"  {tools_text(model['tools'])}")
        else:
            click.echo(f"{model['name']}: {model['problem']}")
            if model["hint"]:
                click.echo(f"  hint: {model['hint']}")


# `falter init`: a commented experiment file, and its schema for completion in editors.


@click.command()
@takes("init")
def init(path: Path, force: bool) -> None:
    """Write a commented experiment file to PATH, and its JSON Schema next to it."""
    from falter.engine.file_schema import EXAMPLE, SCHEMA_FILE, schema

    schema_path = path.with_name(SCHEMA_FILE)
    if path.exists() and not force:
        raise refusal(UsageError, "cli.file_exists", path=path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EXAMPLE, "utf-8")
    schema_path.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    click.echo(f"wrote {path} and {schema_path}; next: falter plan {path}", err=True)
