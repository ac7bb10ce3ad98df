"""Floor 5: resolves names to objects once; what `falter.run` and the command line share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.core.lazy_room import door

if TYPE_CHECKING:
    from falter.experiment._analyze import analyze_files
    from falter.experiment._answers import Answers, PickedAnswers, answers_study, pick_answers
    from falter.experiment._api import Result, open_result, run, stored_result, with_names
    from falter.experiment._compare import ComparedRun, Comparison, compare, compared_study
    from falter.experiment._config import (
        DATA,
        EXPERIMENT,
        STUDY,
        Experiment,
        ModelSpec,
        identity_settings,
        overlay,
        override,
        read_experiment,
        read_file,
        read_settings,
        read_study_settings,
    )
    from falter.experiment._connect import connect, connect_all
    from falter.experiment._d_study import DesignError, components_in, components_of, design_errors
    from falter.experiment._demonstrations import demonstration_changes
    from falter.experiment._execute import (
        Watch,
        carry_out_together,
        check_scorers,
        opened,
        planned_cost,
        record_run,
        run_async,
    )
    from falter.experiment._findings import check_published, shown_analysis
    from falter.experiment._keywords import ExperimentSettings
    from falter.experiment._labels import run_scorers
    from falter.experiment._manifest import manifest_lines, verify_manifest
    from falter.experiment._meaning import meaning_of
    from falter.experiment._mend import NothingToApply, mended_settings, with_mending
    from falter.experiment._permits import check_permits
    from falter.experiment._plan import Plan, plan, plan_of
    from falter.experiment._plan_text import panel_row, panel_text, plan_lines, plan_remarks
    from falter.experiment._planned import planned_prompts, planned_study
    from falter.experiment._power import (
        Assumptions,
        PlannedGoal,
        assumptions_of,
        plan_goals,
        with_usual_discordance,
    )
    from falter.experiment._prices import (
        PriceList,
        price_lists,
        read_prices,
        with_prices,
    )
    from falter.experiment._probe import probe_text, probed
    from falter.experiment._recipes import DEFAULT_RECIPES, recipe_from
    from falter.experiment._recommend import TaskProposals, proposals
    from falter.experiment._requests import (
        ImportedResults,
        export_requests,
        import_results,
    )
    from falter.experiment._rescore import rescored_study
    from falter.experiment._resolve import PanelPlan, Resolved, load_tasks, resolve
    from falter.experiment._schema import EXAMPLE, SCHEMA_FILE, schema
    from falter.experiment._settings import Block, Option, Setting, options_of
    from falter.experiment._shown import FORMS, Shown, report_form, write_report
    from falter.experiment._stored import open_store
    from falter.experiment._study import (
        ResolvedStudy,
        StudySpec,
        carry_out_study,
        read_study,
        rewriting_experiments,
        study_in,
        study_of,
    )
    from falter.experiment._thrift import promise, refuse_with_gate
    from falter.experiment._variants import variant_sets
    from falter.experiment.gate_settings import GATE, GateSpec
    from falter.experiment.generation import (
        Generated,
        apply_sheet,
        generate_items,
        items_in,
        write_sheet,
    )
    from falter.experiment.ratings import (
        BUNDLED_RATINGS,
        JudgeCalibration,
        RatedTexts,
        calibrate_judge,
        summary_ratings,
        summary_sheet,
    )
    from falter.experiment.rewriting import (
        Judged,
        StatusRow,
        bank_for,
        bank_in,
        judge_rewrites,
        prepare,
        rewrite_status,
    )

__all__ = [
    "BUNDLED_RATINGS",
    "DATA",
    "DEFAULT_RECIPES",
    "EXAMPLE",
    "EXPERIMENT",
    "FORMS",
    "GATE",
    "SCHEMA_FILE",
    "STUDY",
    "Answers",
    "Assumptions",
    "Block",
    "ComparedRun",
    "Comparison",
    "DesignError",
    "Experiment",
    "ExperimentSettings",
    "GateSpec",
    "Generated",
    "ImportedResults",
    "JudgeCalibration",
    "Judged",
    "ModelSpec",
    "NothingToApply",
    "Option",
    "PanelPlan",
    "PickedAnswers",
    "Plan",
    "PlannedGoal",
    "PriceList",
    "RatedTexts",
    "Resolved",
    "ResolvedStudy",
    "Result",
    "Setting",
    "Shown",
    "StatusRow",
    "StudySpec",
    "TaskProposals",
    "Watch",
    "analyze_files",
    "answers_study",
    "apply_sheet",
    "assumptions_of",
    "bank_for",
    "bank_in",
    "calibrate_judge",
    "carry_out_study",
    "carry_out_together",
    "check_permits",
    "check_published",
    "check_scorers",
    "compare",
    "compared_study",
    "components_in",
    "components_of",
    "connect",
    "connect_all",
    "demonstration_changes",
    "design_errors",
    "export_requests",
    "generate_items",
    "identity_settings",
    "import_results",
    "items_in",
    "judge_rewrites",
    "load_tasks",
    "manifest_lines",
    "meaning_of",
    "mended_settings",
    "open_result",
    "open_store",
    "opened",
    "options_of",
    "overlay",
    "override",
    "panel_row",
    "panel_text",
    "pick_answers",
    "plan",
    "plan_goals",
    "plan_lines",
    "plan_of",
    "plan_remarks",
    "planned_cost",
    "planned_prompts",
    "planned_study",
    "prepare",
    "price_lists",
    "probe_text",
    "probed",
    "promise",
    "proposals",
    "read_experiment",
    "read_file",
    "read_prices",
    "read_settings",
    "read_study",
    "read_study_settings",
    "recipe_from",
    "record_run",
    "refuse_with_gate",
    "report_form",
    "rescored_study",
    "resolve",
    "rewrite_status",
    "rewriting_experiments",
    "run",
    "run_async",
    "run_scorers",
    "schema",
    "shown_analysis",
    "stored_result",
    "study_in",
    "study_of",
    "summary_ratings",
    "summary_sheet",
    "variant_sets",
    "verify_manifest",
    "with_mending",
    "with_names",
    "with_prices",
    "with_usual_discordance",
    "write_report",
    "write_sheet",
]

__getattr__ = door(__name__)
