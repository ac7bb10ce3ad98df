"""The Python front door: `falter.run`, and what it gives back."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

from rich.console import Console

from falter import report as reports
from falter.analysis import Analysis, analyse, score_rows, write_parquet
from falter.core.codec import to_json
from falter.core.errors import InvalidValue, UnknownName, UsageError
from falter.core.interfaces import Scorer
from falter.core.records import Run
from falter.experiment._config import Experiment, read_experiment
from falter.experiment._execute import Watch, execute
from falter.experiment._findings import findings
from falter.experiment._meaning import encoder_if_there
from falter.experiment._rewrites import resolved_in
from falter.experiment._study import carry_out_study, names_protocol, read_study, study_in
from falter.figures import Figure, Study
from falter.scorers import scorers
from falter.store import Store

__all__ = ["Result", "StudyResult", "analyse_run", "export_scores", "run"]

TableName = Literal["drops", "groups", "components", "counts", "scores"]
TABLES: tuple[str, ...] = ("components", "counts", "drops", "groups", "scores")
FORMATS: tuple[str, ...] = ("csv", "html", "json", "md", "parquet", "tex")


class Result:
    """A finished run: its analysis, and the ways to look at it.

    Everything here is computed from the store; no model is called.
    """

    def __init__(self, run: Run, analysis: Analysis, store: Path) -> None:
        self.run = run
        self.analysis = analysis
        self.store = store

    def summary(self, width: int = 100) -> str:
        """The terminal summary as text."""
        text = io.StringIO()
        reports.terminal(self.analysis, Console(file=text, width=width, no_color=True))
        return text.getvalue()

    def table(self, name: TableName) -> list[dict[str, Any]]:
        """A table as a list of rows: drops, groups, components, counts or scores."""
        if name not in TABLES:
            raise UnknownName("table", name, TABLES)
        if name == "scores":
            with Store(self.store) as store:
                return list(score_rows(store, self.run, _scorers(self.run)))
        rows: list[dict[str, Any]] = []
        for panel in self.analysis.panels:
            about = {"task": panel.panel.task, "model": panel.model}
            if name == "groups":
                rows += [
                    {**about, "group": g.group, "recipes": list(g.recipes), **_flat(g.drop)}
                    for g in panel.groups
                ]
            elif name == "components":
                rows += [
                    {**about, "method": method, "component": component, **_flat(estimate)}
                    for method, found in panel.components.items()
                    for component, estimate in found.items()
                ]
            else:
                for r in panel.recipes:
                    row: dict[str, Any] = {**about, "recipe": r.label, "group": r.group}
                    if name == "drops":
                        row |= {**_flat(r.drop), "p_holm": r.p_holm, "accuracy": r.accuracy.value}
                    else:
                        row |= to_json(r.counts)
                    rows.append(row)
        return rows

    def report(self, path: Path | str) -> Path:
        """Write a report; the file's ending says which: html, json, csv, md, tex or parquet."""
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise InvalidValue("path", str(path), f"a file ending in .{', .'.join(FORMATS)}")
        if kind == "parquet":
            with Store(self.store) as store:
                write_parquet(store, self.run, _scorers(self.run), path)
            return path
        render = {
            "csv": reports.as_csv,
            "html": reports.html,
            "json": reports.as_json,
            "md": reports.as_markdown,
            "tex": reports.run_latex,
        }[kind]
        path.write_text(render(self.analysis), "utf-8")
        return path

    def __repr__(self) -> str:
        return f"<Result of run {self.run.id[:17]}: {len(self.analysis.panels)} panels>"


class StudyResult:
    """A protocol that has run: its figures, and the ways to look at them.

    Everything here is computed from the store; no model is called.
    """

    def __init__(self, study: Study, store: Path) -> None:
        self.study = study
        self.store = store

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every table and chart, in reading order."""
        return self.study.figures

    def summary(self, *names: str, width: int = 100) -> str:
        """The terminal report as text: the figures with these names, or the main ones."""
        text = io.StringIO()
        reports.study_terminal(self.study, Console(file=text, width=width, no_color=True), names)
        return text.getvalue()

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a figure by its name, for example `drops`."""
        known = {figure.name: figure for figure in self.study.figures}
        if name not in known:
            raise UnknownName("figure", name, list(known))
        return reports.figure_table(known[name])

    def report(self, path: Path | str) -> Path:
        """Write a report; the file's ending says which: html, json, csv, md or tex."""
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        renders = {
            "csv": reports.study_csv,
            "html": reports.study_html,
            "json": reports.study_json,
            "md": reports.study_markdown,
            "tex": reports.study_latex,
        }
        if kind not in renders:
            raise InvalidValue("path", str(path), f"a file ending in .{', .'.join(renders)}")
        path.write_text(renders[kind](self.study), "utf-8")
        return path

    def __repr__(self) -> str:
        return f"<StudyResult of {self.study.protocol}: {len(self.study.figures)} figures>"


@overload
def run(
    *,
    protocol: str,
    store: Path | str = "falter.db",
    watch: Watch | None = None,
    **settings: Any,
) -> StudyResult: ...


@overload
def run(
    experiment: Experiment | Mapping[str, Any] | None = None,
    /,
    *,
    store: Path | str = "falter.db",
    watch: Watch | None = None,
    **settings: Any,
) -> Result: ...


def run(
    experiment: Experiment | Mapping[str, Any] | None = None,
    /,
    *,
    store: Path | str = "falter.db",
    watch: Watch | None = None,
    **settings: Any,
) -> Any:
    """Run an experiment to its end and analyse it; what is stored is not asked again.

    >>> result = falter.run(task="basics", models=["smollm2"], recipes=["typos"], limit=50)

    Takes the settings of an experiment file as keywords, or a mapping of them, or an `Experiment`.
    With `protocol="brittlebench"` it runs that protocol and gives a `StudyResult`. Works inside a
    running event loop too (a notebook).
    """
    if experiment is not None and settings:
        raise UsageError("Settings come as one experiment or as keywords", hint="not as both")
    path = Path(store)
    if not isinstance(experiment, Experiment):
        given = settings if experiment is None else experiment
        if names_protocol(given):
            return _run_study(given, path, watch)
        experiment = read_experiment(given)
    with resolved_in(experiment, path) as resolved, Store(path) as opened:
        execute(resolved, opened, watch)
        return Result(resolved.run, analyse_run(opened, resolved.run), path)


def _run_study(given: Mapping[str, Any], path: Path, watch: Watch | None) -> StudyResult:
    with study_in(read_study(given), path) as study, Store(path) as store:
        return StudyResult(findings(store, carry_out_study(study, store, watch)), path)


def analyse_run(store: Store, run: Run, *, partial: bool = False) -> Analysis:
    """The analysis of a stored run."""
    return analyse(
        store,
        store.find_run(run.id),
        _scorers(run),
        partial=partial,
        encoder=encoder_if_there(),
    )


def export_scores(store: Store, run: Run, path: Path) -> int:
    """Write one row per score as Parquet; how many there were."""
    return write_parquet(store, run, _scorers(run), path)


def _scorers(run: Run) -> dict[str, Scorer]:
    return {panel.scorer: scorers.get(panel.scorer) for panel in run.panels}


def _flat(estimate: Any) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "p_value": estimate.p_value,
        "status": estimate.status,
        "items": estimate.items,
    }
