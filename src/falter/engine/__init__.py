"""Floor 5: resolves names to objects once; what `falter.run` and the command line share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.engine.analyze import analyze_files
    from falter.engine.answers import (
        Answers,
        PickedAnswers,
        answers_study,
        pick_answers,
        rescored_study,
    )
    from falter.engine.budgets import (
        PriceList,
        price_lists,
        read_prices,
        refuse_with_gate,
        with_prices,
    )
    from falter.engine.comparison import ComparedRun, Comparison, compare, compared_study
    from falter.engine.config import (
        DATA,
        EXPERIMENT,
        STUDY,
        Experiment,
        ModelSpec,
        identity_settings,
        overlay,
        override,
        read_experiment,
        read_study_settings,
    )
    from falter.engine.connections import connect, connect_all, probe_text, probed
    from falter.engine.execution import (
        Watch,
        carry_out_together,
        check_scorers,
        opened,
        planned_cost,
        record_run,
        run_async,
    )
    from falter.engine.experiment_file import check_permits, read_file, read_settings
    from falter.engine.file_schema import EXAMPLE, SCHEMA_FILE, schema
    from falter.engine.findings import check_published, shown_analysis
    from falter.engine.gate_settings import GATE, GateSpec
    from falter.engine.generation import (
        Generated,
        apply_sheet,
        generate_items,
        items_in,
        write_sheet,
    )
    from falter.engine.keywords import ExperimentSettings
    from falter.engine.mending import NothingToApply, mended_settings, with_mending
    from falter.engine.plans import (
        Plan,
        panel_row,
        panel_text,
        plan,
        plan_lines,
        plan_of,
        plan_remarks,
        planned_prompts,
        planned_study,
    )
    from falter.engine.power import (
        Assumptions,
        DesignError,
        PlannedGoal,
        assumptions_of,
        components_in,
        components_of,
        design_errors,
        plan_goals,
        with_usual_discordance,
    )
    from falter.engine.ratings import (
        BUNDLED_RATINGS,
        JudgeCalibration,
        RatedTexts,
        calibrate_judge,
        summary_ratings,
        summary_sheet,
    )
    from falter.engine.recipes import recipe_from
    from falter.engine.remarks import demonstration_changes
    from falter.engine.requests import ImportedResults, export_requests, import_results
    from falter.engine.resolving import PanelPlan, Resolved, resolve
    from falter.engine.results import (
        FORMS,
        Result,
        Shown,
        open_result,
        open_store,
        report_form,
        run,
        stored_result,
        with_names,
        write_report,
    )
    from falter.engine.rewriting import (
        Judged,
        StatusRow,
        bank_for,
        bank_in,
        judge_rewrites,
        prepare,
        rewrite_status,
    )
    from falter.engine.scoring import run_scorers
    from falter.engine.settings import Block, Option, Setting, options_of
    from falter.engine.study import (
        ResolvedStudy,
        StudySpec,
        carry_out_study,
        read_study,
        rewriting_experiments,
        study_in,
        study_of,
    )
    from falter.engine.task_loading import load_tasks
    from falter.engine.variants import (
        TaskProposals,
        manifest_lines,
        meaning_of,
        proposals,
        variant_sets,
        verify_manifest,
    )

__all__ = [
    "BUNDLED_RATINGS",
    "DATA",
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
