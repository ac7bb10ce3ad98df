"""Floor 5: resolves names to objects once; what `falter.run` and the command line share."""

from __future__ import annotations

from falter.experiment._api import Result, analyse_run, export_scores, run
from falter.experiment._config import Experiment, ModelSpec, read_experiment, read_file
from falter.experiment._execute import Watch, execute, planned_cost, run_async
from falter.experiment._manifest import manifest_lines, verify_manifest
from falter.experiment._meaning import encoder_if_there, meaning_of
from falter.experiment._recipes import DEFAULT_RECIPES, recipe_from
from falter.experiment._resolve import PanelPlan, Resolved, connect, resolve
from falter.experiment._schema import EXAMPLE, SCHEMA_FILE, schema
from falter.experiment._variants import VariantSet, variant_sets

__all__ = [
    "DEFAULT_RECIPES",
    "EXAMPLE",
    "SCHEMA_FILE",
    "Experiment",
    "ModelSpec",
    "PanelPlan",
    "Resolved",
    "Result",
    "VariantSet",
    "Watch",
    "analyse_run",
    "connect",
    "encoder_if_there",
    "execute",
    "export_scores",
    "manifest_lines",
    "meaning_of",
    "planned_cost",
    "read_experiment",
    "read_file",
    "recipe_from",
    "resolve",
    "run",
    "run_async",
    "schema",
    "variant_sets",
    "verify_manifest",
]
