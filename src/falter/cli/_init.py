"""`falter init`: a commented experiment file, and the schema that lets editors complete it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from falter.records.errors import UsageError


@click.command()
@click.argument(
    "path", type=click.Path(dir_okay=False, path_type=Path), default=Path("experiment.yaml")
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def init(path: Path, force: bool) -> None:
    """Write a commented experiment file to PATH, with its JSON Schema beside it."""
    from falter.engine.file_schema import EXAMPLE, SCHEMA_FILE, schema

    schema_path = path.with_name(SCHEMA_FILE)
    if path.exists() and not force:
        raise UsageError(f"{path} exists already", hint="give another name, or --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EXAMPLE, "utf-8")
    schema_path.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", "utf-8")
    click.echo(f"wrote {path} and {schema_path}; next: falter plan {path}", err=True)
