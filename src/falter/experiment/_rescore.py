"""The stored answers of a run read by another scorer. Calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from falter.analysis import ReadTwice, Settings, rescore_figures, rescored_panels
from falter.core.errors import StoreError, UsageError
from falter.core.ids import short
from falter.core.interfaces import Scorer
from falter.core.records import Item, Run
from falter.experiment._answers import part_of_study
from falter.experiment._labels import reads_labels, run_scorers, with_labels
from falter.experiment._remedies import with_reasoning
from falter.figures import Study
from falter.scorers import scorers
from falter.store import Store, StoredRun

__all__ = ["rescored_study"]


def rescored_study(
    path: Path | str,
    name: str | None,
    scorer: str,
    *,
    part: str | None = None,
    labels: Sequence[str] = (),
    incomplete: bool = False,
) -> Study:
    """The answers of a stored run as it was scored and as another scorer reads them.

    `labels` are those of a scorer that reads labels; without them, those of the run, else the
    different targets of its items.
    """
    path = Path(path)
    if not path.exists():
        raise UsageError(f"The store {path} does not exist", hint="start a run, or name another")
    with Store(path) as store:
        stored = part_of_study(store, name, part)
        run = stored.run
        other = with_reasoning(scorers.get(scorer), run.experiment)
        other.check()
        items = store.items(run)
        other = with_labels(other, _labels(run, items, labels))
        if labels and not reads_labels(other):
            raise UsageError(
                f"The scorer '{scorer}' reads no labels",
                hint="drop --labels, or name one that does",
            )
        places = _places(run, other, items)
        panels = rescored_panels(store, run, run_scorers(run), other, places, _settings(stored))
    if not incomplete:
        _require_finished(stored, panels)
    return _study(stored, other, panels)


def _require_finished(stored: StoredRun, panels: Sequence[ReadTwice]) -> None:
    missing = sum(panel.first.counts.missing for panel in panels)
    if missing or not stored.planned:
        raise StoreError(
            f"The run {short(stored.run.id)} is not finished",
            hint="run the same command again to finish it, or read it as it is with --partial",
        )


def _labels(run: Run, items: Sequence[Item], named: Sequence[str]) -> dict[str, list[str]]:
    """The labels of each task: named now, else when it was run, else its different targets."""
    tasks = {panel.task for panel in run.panels}
    recorded = run.experiment.get("labels") or {}
    targets: dict[str, set[str]] = {task: set() for task in tasks}
    for item in items:
        if isinstance(item.target, str):
            targets.setdefault(item.task, set()).add(item.target)
    return {
        task: list(named) or list(recorded.get(task) or sorted(targets[task])) for task in tasks
    }


def _places(run: Run, other: Scorer, items: Sequence[Item]) -> list[int]:
    """The panels whose answers the scorer can read and did not read already, or an error."""
    unfit = {place: _unfit(run, place, other, items) for place in range(len(run.panels))}
    fitting = [place for place, why in unfit.items() if not why]
    if not fitting:
        raise UsageError(
            f"The scorer '{other.name}' cannot read this run again: {unfit[0]}",
            hint="'falter list scorers' says what each of them reads",
        )
    return fitting


def _unfit(run: Run, place: int, other: Scorer, items: Sequence[Item]) -> str:
    panel = run.panels[place]
    used = scorers.get(panel.scorer)
    own = [item for item in items if item.task == panel.task]
    if panel.scorer == other.name:
        return f"'{panel.task}' was scored by it"
    if other.needs_scores and not used.needs_scores:
        return "it needs log-probabilities of the options, and replies were asked for"
    if used.needs_scores and not other.needs_scores:
        return "it reads written replies, and log-probabilities of the options were asked for"
    if other.needs_choices and not all(item.choices for item in own):
        return f"it needs choices, which '{panel.task}' does not have"
    targets = [
        item.choices[item.target] if isinstance(item.target, int) and item.choices else item.target
        for item in own
    ]
    faults = [other.fault(str(target)) for target in targets if target is not None]
    return str(faults[0]) if faults and all(faults) else ""


def _settings(stored: StoredRun) -> Settings:
    run = stored.run
    return Settings(
        run=run.id,
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
    )


def _study(stored: StoredRun, other: Scorer, panels: Sequence[ReadTwice]) -> Study:
    run = stored.run
    figures = rescore_figures(panels, run.experiment["level"])
    models = {panel.panel.model.label: panel.panel.model for panel in panels}
    left_out = len(run.panels) - len(panels)
    return Study(
        id=run.id,
        title=f"The run {short(run.id)} read by {other.name}",
        version=run.version,
        created_at=stored.created_at,
        seed=run.seed,
        level=run.experiment["level"],
        unparsed=run.experiment["unparsed"],
        models=tuple(models),
        simulated=tuple(label for label, model in models.items() if model.simulated),
        figures=figures,
        headline=tuple(figure.name for figure in figures),
        notes=(f"{left_out} panels of this run are left out: {other.name} read them already or "
               "cannot.",) if left_out else (),
    )  # fmt: skip
