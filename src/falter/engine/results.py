"""The Python interface: `falter.run`, `falter.open`, and the results that they return."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

from rich.console import Console

from falter.analysis.export import score_rows
from falter.analysis.results import Analysis
from falter.clients.function import register_callable
from falter.engine.answers import rescored_study
from falter.engine.config import Experiment, ModelSpec, spelled_flat
from falter.engine.execution import Watch
from falter.engine.extraction import stored_scorers
from falter.engine.findings import check_published, export_result, part_results, shown_study
from falter.engine.keywords import ExperimentSettings
from falter.engine.study import StudySpec, carry_out_study, read_study, study_in, study_of
from falter.engine.task_loading import prompt_of, task_of
from falter.protocols.protocol import PartResult
from falter.records.errors import InvalidValue, UnknownName, UsageError, refusal
from falter.records.figures import Figure, Study, estimates, figures_named
from falter.records.ids import short
from falter.records.types import Run
from falter.store.store import Store
from falter.store.studies import StoredStudy, find_study, require_store, studies
from falter.tasks.rows import is_rows, keep_rows

# Results that can be shown in every form: figures, tables, rows, reports.


FORMS: tuple[str, ...] = ("csv", "html", "json", "md", "parquet", "tex")
"""File endings of the forms of a report."""


class Shown:
    """Figures with their tables, rows and reports. Everything is computed; no model is called."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every table and chart, in reading order."""
        return self.study.figures

    def summary(self, *names: str, width: int = 100) -> str:
        """Return the terminal report as text: the named figures, or the main ones without names."""
        from falter.report.forms.terminal import terminal

        text = io.StringIO()
        terminal(self.study, Console(file=text, width=width, no_color=True), names)
        return text.getvalue()

    def figure(self, name: str) -> Figure:
        """Return a figure by its name, for example `drops`; raise `UnknownName` if none has it."""
        known = {figure.name: figure for figure in self.figures}
        if name not in known:
            raise UnknownName("figure", name, list(known))
        return known[name]

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return the table of a figure, one dictionary per row: `row["recipe"]`, `row["drop"]`.

        If each model and task has a figure of that name, the rows of all are returned. They then
        have the columns `model`, `task` and `template` too.
        """
        from falter.report.tables import figure_table

        found = figures_named(self.figures, name)
        if len(found) == 1 and found[0].name == name:
            return figure_table(found[0])
        if not found:
            return figure_table(self.figure(name))  # raises, and lists the figures that exist
        return [self._panel(one) | row for one in found for row in figure_table(one)]

    def _panel(self, figure: Figure) -> dict[str, Any]:
        """Return the model, task and template that the numbers of a figure are about."""
        group = next((found.group for found in estimates(figure)), {})
        return {"model": group.get("model", ""), "task": group.get("task", ""), "template": ""}

    def rows(self, *names: str) -> list[dict[str, Any]]:
        """Return a dictionary for each number of the named figures, or of all, as in the CSV."""
        from falter.report.tables import figure_rows

        chosen = [self.figure(name) for name in names] or self.figures
        return [row for figure in chosen for row in figure_rows(figure)]

    def to_pandas(self, figure: str | None = None) -> Any:
        """Return a figure's table as a pandas data frame; without a name, `rows` of all figures."""
        return _data_frame("pandas", self.rows() if figure is None else self.table(figure))

    def to_polars(self, figure: str | None = None) -> Any:
        """Return a figure's table as a polars data frame; without a name, `rows` of all figures."""
        return _data_frame("polars", self.rows() if figure is None else self.table(figure))

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the main figures, in a frame that runs no script."""
        from falter.report.page import frame

        names = self.study.headline
        shown = tuple(figure for figure in self.figures if figure.name in names) or self.figures
        return frame(replace(self.study, figures=shown))

    def report(self, path: Path | str) -> Path:
        """Write a report in the form of the file's ending: html, json, csv, md, tex or parquet."""
        path = given_path("path", path)
        write_report(self.study, path)
        return path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.study.title}: {len(self.figures)} figures>"


def _data_frame(library: Literal["pandas", "polars"], rows: list[dict[str, Any]]) -> Any:
    """Return rows as a data frame; raise `UsageError` if the library is not installed."""
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise refusal(UsageError, "engine.no_library", library=library) from error
    if library == "polars":
        return module.DataFrame(rows, infer_schema_length=None)
    return module.DataFrame(rows)


def given_path(argument: str, path: object) -> Path:
    """Return a path that was given in Python; raise `InvalidValue` if it is not a path."""
    if not isinstance(path, (str, Path)):
        raise InvalidValue(argument, path, "the path of a file")
    return Path(path)


def report_form(path: Path) -> str:
    """Return the form of a report that a file's ending names."""
    form = path.suffix.removeprefix(".").lower()
    if form not in FORMS:
        raise InvalidValue("path", str(path), f"a file ending in .{', .'.join(FORMS)}")
    return form


def write_report(study: Study, path: Path) -> None:
    """Write a study as a file, in the form that its ending names."""
    form = report_form(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "parquet":
        from falter.report.forms.data import write_parquet

        write_parquet(study, path)
    else:
        path.write_text(report_text(study, form), "utf-8")


def report_text(study: Study, form: str) -> str:
    """Return a study as text: csv, html, json, md or tex."""
    from falter.report.forms.data import as_csv, as_json
    from falter.report.forms.latex import as_latex
    from falter.report.forms.markdown import as_markdown
    from falter.report.page import html

    forms = {"csv": as_csv, "html": html, "json": as_json, "md": as_markdown, "tex": as_latex}
    return forms[form](study)


class Result(Shown):
    """The results of a run, or of all runs of a protocol: figures, tables, scores, reports.

    Everything is computed from the store; no model is called.
    """

    def __init__(self, study: Study, parts: Sequence[PartResult], store: Path) -> None:
        super().__init__(study)
        self.parts = tuple(parts)
        self.store = store

    @property
    def runs(self) -> dict[str, Run]:
        """The run of every part, by the part's name."""
        return {result.part.name: result.run for result in self.parts}

    @property
    def analyses(self) -> dict[str, Analysis]:
        """The analysis of every part, by the part's name."""
        return {result.part.name: result.analysis for result in self.parts}

    @property
    def no_answers(self) -> bool:
        """Return True if responses arrived but none contains an answer, so nothing is measured."""
        panels = [panel for each in self.analyses.values() for panel in each.panels]
        return bool(panels) and all(panel.counts.hold_no_answer for panel in panels)

    @property
    def run(self) -> Run:
        """The run, if there is only one; otherwise `UsageError`."""
        return self._only_part().run

    @property
    def analysis(self) -> Analysis:
        """The analysis of the run, if there is only one; otherwise `UsageError`."""
        return self._only_part().analysis

    def _only_part(self) -> PartResult:
        """Return the only part; raise if there are several."""
        if len(self.parts) != 1:
            names = ", ".join(result.part.name for result in self.parts)
            raise UsageError(
                f"{self.study.title} has {len(self.parts)} parts: {names}",
                hint="choose one from 'runs' or 'analyses'",
            )
        return self.parts[0]

    def _panel(self, figure: Figure) -> dict[str, Any]:
        columns = super()._panel(figure)
        if len(self.parts) == 1:
            task = columns["task"]
            columns |= {"task": task_of(self.run, task), "template": prompt_of(self.run, task)}
        return columns

    def show(self, *names: str) -> Result:
        """Return a result with the named figures only, for display in a notebook's cell."""
        chosen = tuple(
            one for n in names for one in (figures_named(self.figures, n) or (self.figure(n),))
        )
        headline = tuple(figure.name for figure in chosen)
        study = replace(self.study, figures=chosen, headline=headline)
        return Result(study, self.parts, self.store)

    def rescored(
        self,
        scorer: str | None = None,
        *,
        labels: Sequence[str] = (),
        reader: str | None = None,
        marks: Path | str | None = None,
    ) -> Result:
        """Return the result with the responses read again: by another scorer, a model or people.

        The figures compare both readings. Only a `reader`, a model, sends requests. `marks` is a
        file that `falter view` exported.
        """
        study = rescored_study(
            self.store,
            self.run.id,
            scorer,
            labels=labels,
            reader=None if reader is None else ModelSpec(name=reader),
            marks=None if marks is None else Path(marks),
        )
        return Result(study, self.parts, self.store)

    def export(self, form: str, folder: Path | str) -> list[Path]:
        """Write the responses for another tool to a new folder: `inspect`, `hf` or `otel`.

        >>> result.export("hf", "answers")
        """
        return export_result(form, self.study, self.parts, self.store, Path(folder))

    def scores(self) -> list[dict[str, Any]]:
        """Return one row for each score: item, recipe, model, outcome, value, extracted answer."""
        rows: list[dict[str, Any]] = []
        with Store(self.store, writes=False) as store:
            for name, run in self.runs.items():
                chosen = stored_scorers(store, run)
                part = {"part": name} if len(self.parts) > 1 else {}
                rows += [part | row for row in score_rows(store, run, chosen)]
        return rows


def run(
    experiment: Experiment | Mapping[str, Any] | None = None,
    /,
    *,
    store: Path | str = "falter.db",
    watch: Watch | None = None,
    **settings: Unpack[ExperimentSettings],
) -> Result:
    """Run an experiment to its end and analyse it; stored responses are not requested again.

    >>> result = falter.run(task="basics", models=["smollm2"], recipes=["typos"], limit=50)

    The experiment is given as keywords with the names of an experiment file, as a mapping of them,
    or as an `Experiment`. A model may be any callable, async too, from a prompt to a text or
    `falter.Scored`. `data` may be rows in memory: a list of dictionaries or a data frame. With the
    settings of a data file, it is `{"rows": rows, "target": "answer"}`. `protocol="brittlebench"`
    runs all parts of that protocol.

    The function also works inside a running event loop, as in a notebook.
    """
    spec, path = given_study(experiment, settings, store)
    with study_in(spec, path) as study, Store(path) as opened:
        stored = carry_out_study(study, opened, watch, command="falter.run in Python")
        return stored_result(opened, stored, path)


def given_study(
    experiment: Experiment | Mapping[str, Any] | None,
    settings: Mapping[str, Any],
    store: Path | str,
) -> tuple[StudySpec, Path]:
    """Return the study that was given in Python, and the path of its store."""
    if experiment is not None and settings:
        raise refusal(UsageError, "engine.settings_twice")
    path = given_path("store", store)
    if isinstance(experiment, Experiment):
        spec = study_of(experiment)
    elif experiment is not None and not isinstance(experiment, Mapping):
        raise _no_experiment(experiment)
    else:
        spec = read_study(with_names(settings if experiment is None else experiment))
    return spec, path


def _no_experiment(given: object) -> InvalidValue:
    """Return the error for an experiment that is neither settings nor an `Experiment`."""
    hint = "give them as keywords: task='basics', models=['smollm2'], recipes=['typos']"
    if isinstance(given, (str, Path)):
        read = f"falter.engine.experiment_file.read_file({str(given)!r})"
        hint = f"a file is read by {read}, or run by 'falter run'"
    return InvalidValue("experiment", given, "a mapping of settings, or an Experiment", hint=hint)


def with_names(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings in their blocks, with names for functions and for rows in memory."""
    settings = _nested_settings(settings)
    data = settings.get("data")
    if is_rows(data):
        settings = {**settings, "data": keep_rows(data)}
    elif isinstance(data, Mapping) and "rows" in data:
        of_file = {name: value for name, value in data.items() if name != "rows"}
        settings = {**settings, "data": {"path": keep_rows(data["rows"]), **of_file}}
    return _with_models(settings)


def _nested_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with command-line spellings moved into the blocks that they belong to."""
    nested, flat = dict(settings), spelled_flat()
    if "model" in nested and "models" not in nested:
        nested["models"] = nested.pop("model")
    own: dict[str, dict[str, Any]] = {}
    for name in [name for name in nested if name in flat]:
        own.setdefault(flat[name][0], {})[name] = nested.pop(name)
    for block, values in own.items():
        before = nested.get(block)
        if before is None and block != "sampling":
            raise refusal(
                UsageError, "engine.missing_block", values=next(iter(values)), block=block
            )
        several = before if block == "models" and isinstance(before, (list, tuple)) else None
        entries = [_as_block(block, one) | values for one in several or [before]]
        nested[block] = entries if several else entries[0]
    return nested


def _as_block(block: str, value: Any) -> dict[str, Any]:
    """Return a block of settings; a single value becomes the block's first setting."""
    if isinstance(value, Mapping):
        return dict(value)
    if value is None:
        return {}
    if is_rows(value):
        return {"rows": value}
    return {"name" if block == "models" else "path": value if callable(value) else str(value)}


def _with_models(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with a name in place of each function that is given as a model."""
    models = settings.get("models")
    if not isinstance(models, (list, tuple)):
        is_function = callable(models) or (
            isinstance(models, Mapping) and callable(models.get("name"))
        )
        models = [models] if is_function else []
    functions: dict[str, Any] = {}

    def named(model: Any) -> Any:
        if isinstance(model, Mapping) and callable(model.get("name")):
            return {**model, "name": named(model["name"])}
        if not callable(model):
            return model
        name = register_callable(model)
        if functions.setdefault(name, model) is not model:
            raise InvalidValue(
                "models", name, "functions of different names", hint="use def instead of lambda"
            )
        return name

    return {**settings, "models": [named(model) for model in models]} if models else settings


def open_result(
    store: Path | str,
    name: str | None = None,
    *,
    incomplete: bool = False,
    published: bool = False,
    cosines: bool = True,
) -> Result:
    """Return the result of a stored run or study, by the first digits of its id or the newest.

    Unless `incomplete`, a run that is not finished is refused. With `published`, the tables of the
    protocol's paper are at the end of the report. With `cosines=False`, the table of a single run's
    prompts has no cosines; the terminal does not show them.
    """
    path = given_path("store", store)
    require_store(path)
    with Store(path, writes=False) as opened:
        stored = find_study(opened, name)
        shown = {"published": published, "cosines": cosines}
        return stored_result(opened, stored, path, incomplete=incomplete, **shown)


def stored_result(
    store: Store,
    stored: StoredStudy,
    path: Path,
    *,
    incomplete: bool = False,
    published: bool = False,
    cosines: bool = True,
) -> Result:
    """Return the result of a study in an open store; see `open_result`."""
    if published:
        check_published(stored.protocol)
    results = part_results(store, stored, incomplete=incomplete, cosines=cosines)
    study = shown_study(store, stored, results, published=published)
    return Result(study, results, path)


# A store that is opened in Python: its runs and studies by name.


class StoredResults(Mapping[str, Result]):
    """The results in a store, newest first; calls no model.

    >>> results = falter.open("falter.db")
    >>> results.newest.table("drops")
    >>> results["937e30"].report("report.html")

    Names are the first digits of an id. A run that is not finished is listed, but refused when it
    is opened. `open_result(path, name, incomplete=True)` opens it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def newest(self) -> Result:
        """The result of the newest run or study."""
        return open_result(self.path)

    def __getitem__(self, name: str) -> Result:
        return open_result(self.path, name)

    def __iter__(self) -> Iterator[str]:
        with Store(self.path) as store:
            whole = studies(store)
            of_studies = {part.run for study in whole for part in study.parts}
            dated = [(study.created_at, study.id) for study in whole]
            dated += [(r.created_at, r.run.id) for r in store.runs() if r.run.id not in of_studies]
        return iter([short(name) for _, name in sorted(dated, reverse=True)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} stored results in {self.path}>"


def open_store(path: Path | str = "falter.db") -> StoredResults:
    """Return the results in a store; raise if the store does not exist."""
    path = given_path("path", path)
    require_store(path)
    return StoredResults(path)
