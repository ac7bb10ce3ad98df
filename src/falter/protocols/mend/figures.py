"""What the report shows: the claim first, then every remedy, then the two halves."""

from __future__ import annotations

from collections.abc import Sequence

from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, Statement, Value
from falter.figures.numbers import points, whole
from falter.measures import ConfirmedRemedy
from falter.protocols.mend.scores import PanelRemedies
from falter.protocols.tables import figures_of

declared = figures_of("mend")

__all__ = ["mend_figures"]

PANEL = (Column(name="Model"), Column(name="Task"), Column(name="Remedy"))
EFFECTS = (Column(name="Gain", unit="gain"), Column(name="Clean prompts", unit="gain"))


def mend_figures(panels: Sequence[PanelRemedies]) -> tuple[Figure, ...]:
    """The answer, the table of all remedies, and how the claim came about."""
    if not panels:
        return ()
    return (_answer(panels), _table(panels), _halves(panels))


def _answer(panels: Sequence[PanelRemedies]) -> Statement:
    several = len(panels) > 1
    text: list[str] = []
    for panel in panels:
        first, *rest = _said(panel)
        text += [f"{panel.title}: {first}" if several else first, *rest]
    return Statement(text=tuple(text), **declared("remedies-answer"))


def _said(panel: PanelRemedies) -> list[str]:
    result = panel.result
    count, of = len(result.effects), " and ".join(panel.recipes)
    if result.helps and result.picked is not None and result.on_second is not None:
        effect = result.on_second
        return [
            f"{result.picked} helps: under {of} it gains {_shown(effect.gain)} points on items "
            "that it was not picked on.",
            f"On the clean prompts of these items it changes the score by {_shown(effect.clean)} "
            "points.",
            f"It was picked from {count} on {whole(result.halves[0])} items and confirmed on the "
            f"other {whole(result.halves[1])}.",
        ]
    none = f"None of {count} remedies is shown to help under {of}."
    if result.picked is None:
        return [
            none,
            f"On the {whole(result.halves[0])} items that pick, no remedy gains more than chance "
            f"and loses at most {100 * result.margin:g} points on clean prompts.",
        ]
    gain = "" if result.on_second is None else f": {_shown(result.on_second.gain)} points"
    return [
        none,
        f"{result.picked} was picked on {whole(result.halves[0])} items and not confirmed on the "
        f"other {whole(result.halves[1])}{gain}.",
    ]


def _shown(estimate: Estimate) -> str:
    value = points(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{points(estimate.low)}, {points(estimate.high)}]"


def _table(panels: Sequence[PanelRemedies]) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        result = panel.result
        for name, effect in result.effects.items():
            cost = panel.costs[name]
            rows.append(
                (panel.model, panel.task, name, effect.gain, effect.clean, cost.calls, cost.tokens,
                 cost.characters, _outcome(result, name))
            )  # fmt: skip
    lost = [
        f"{panel.title} loses {_shown(panel.loss)} points without a remedy."
        for panel in panels
        if panel.loss is not None and panel.loss.value is not None
    ]
    return Grid(rows=tuple(rows), **declared("remedies", text=lost))  # fmt: skip


def _together(panels: Sequence[PanelRemedies]) -> list[str]:
    picked = sum(panel.result.picked is not None for panel in panels)
    if picked < 2:
        return []
    return [
        f"The intervals on the second half hold for the {whole(picked)} remedies that were picked "
        "at once (Bonferroni), so that the bound is on any false claim among them."
    ]


def _outcome(result: ConfirmedRemedy, name: str) -> str:
    if name != result.picked:
        return "not picked"
    return "helps, confirmed" if result.helps else "picked, not confirmed"


def _halves(panels: Sequence[PanelRemedies]) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        result = panel.result
        for name, effect in result.on_first.items():
            use = "picked" if name == result.picked else ""
            rows.append((panel.model, panel.task, name, "first", effect.gain, effect.clean, use))
        if result.on_second is not None:
            gain, clean = result.on_second.gain, result.on_second.clean
            use = "confirmed" if result.helps else "not confirmed"
            rows.append((panel.model, panel.task, result.picked, "second", gain, clean, use))
    margin = 100 * panels[0].result.margin
    return Grid(
        rows=tuple(rows), **declared("remedies-halves", text=_together(panels), margin=margin)
    )
