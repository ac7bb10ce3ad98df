"""Floor 5: resolves names to objects once; what `falter.run` and the command line share."""

from __future__ import annotations

from falter.experiment._analyze import analyze_cells, analyze_files, tables_of
from falter.experiment._api import Result, StudyResult, analyse_run, export_scores, run
from falter.experiment._config import (
    Experiment,
    ModelSpec,
    read_experiment,
    read_file,
    read_settings,
)
from falter.experiment._execute import Watch, execute, planned_cost, run_async
from falter.experiment._findings import findings
from falter.experiment._manifest import manifest_lines, verify_manifest
from falter.experiment._meaning import encoder_if_there, meaning_of
from falter.experiment._power import (
    GOALS,
    Assumptions,
    PlannedGoal,
    assumptions_of,
    plan_goals,
)
from falter.experiment._prices import (
    PriceList,
    price_lists,
    price_settings,
    read_prices,
    with_prices,
)
from falter.experiment._recipes import DEFAULT_RECIPES, recipe_from
from falter.experiment._resolve import PanelPlan, Resolved, connect, resolve
from falter.experiment._reviews import (
    Imported,
    Judged,
    Opinions,
    export_sheet,
    import_bank,
    import_bundled,
    import_reviews,
    judge_rewrites,
    opinions,
    pick_rewrites,
)
from falter.experiment._rewrites import (
    Prepared,
    StatusRow,
    bank_for,
    bank_in,
    prepare,
    resolved_in,
    rewrite_status,
)
from falter.experiment._schema import EXAMPLE, SCHEMA_FILE, schema
from falter.experiment._shown import ShownChanges, shown_changes
from falter.experiment._study import (
    ResolvedStudy,
    StudySpec,
    carry_out_study,
    names_protocol,
    planned_study,
    read_study,
    rewriting_experiments,
    study_in,
)
from falter.experiment._variants import VariantSet, variant_sets

__all__ = [
    "DEFAULT_RECIPES",
    "EXAMPLE",
    "GOALS",
    "SCHEMA_FILE",
    "Assumptions",
    "Experiment",
    "Imported",
    "Judged",
    "ModelSpec",
    "Opinions",
    "PanelPlan",
    "PlannedGoal",
    "Prepared",
    "PriceList",
    "Resolved",
    "ResolvedStudy",
    "Result",
    "ShownChanges",
    "StatusRow",
    "StudyResult",
    "StudySpec",
    "VariantSet",
    "Watch",
    "analyse_run",
    "analyze_cells",
    "analyze_files",
    "assumptions_of",
    "bank_for",
    "bank_in",
    "carry_out_study",
    "connect",
    "encoder_if_there",
    "execute",
    "export_scores",
    "export_sheet",
    "findings",
    "import_bank",
    "import_bundled",
    "import_reviews",
    "judge_rewrites",
    "manifest_lines",
    "meaning_of",
    "names_protocol",
    "opinions",
    "pick_rewrites",
    "plan_goals",
    "planned_cost",
    "planned_study",
    "prepare",
    "price_lists",
    "price_settings",
    "read_experiment",
    "read_file",
    "read_prices",
    "read_settings",
    "read_study",
    "recipe_from",
    "resolve",
    "resolved_in",
    "rewrite_status",
    "rewriting_experiments",
    "run",
    "run_async",
    "schema",
    "shown_changes",
    "study_in",
    "tables_of",
    "variant_sets",
    "verify_manifest",
    "with_prices",
]
