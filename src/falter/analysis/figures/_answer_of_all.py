"""The first thing that a report says, over all models and tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from falter.analysis._results import Analysis, Counts, PanelResult
from falter.analysis.figures._answer import (
    doubts,
    evidence,
    next_steps,
    panel_answer,
    verdicts_read,
)
from falter.analysis.figures._phrases import (
    drop_of,
    excluded,
    listed,
    listed_bounded,
    moved,
    moves_on_average,
    noun,
    of_verdict,
    on_average,
    recipes_counted,
    size,
    within,
)
from falter.figures import Statement
from falter.figures import numbers as n

__all__ = ["ANSWER", "answer_figure", "answer_of", "answer_of_panel"]

ANSWER = "answer"
MOST_PANELS = 6
_KINDS = {
    "loses": ("loses points beyond chance", "lose points beyond chance"),
    "gains": ("only gains beyond chance", "only gain beyond chance"),
    "moves": (
        "moves only as an average over the recipes",
        "move only as averages over the recipes",
    ),
    "holds": ("is shown to hold under every recipe", "are shown to hold under every recipe"),
    "open": ("is undecided", "are undecided"),
    "floor": (
        "has no right answer to a clean prompt, so nothing to lose",
        "have no right answer to a clean prompt, so nothing to lose",
    ),
    "no drops": ("has no drops", "have no drops"),
}


def answer_figure(analyses: Sequence[tuple[str, Analysis]]) -> Statement:
    """What the analyses say, in words. Each comes with how it was asked, or an empty text."""
    panels = [
        (f"{panel.title}, {how}" if how else panel.title, panel)
        for how, analysis in analyses
        for panel in analysis.panels
    ]
    first = analyses[0][1]
    unread_are = first.unparsed
    if len(panels) == 1:
        text = panel_answer(panels[0][1], first.level, unread_are=unread_are)
    else:
        text = _several(panels, first.level, unread_are=unread_are)
    return Statement(name=ANSWER, title="In short", text=text, kind="answer")


def answer_of(
    sentences: Iterable[str], every: Sequence[Counts], judged: Sequence[Counts], *, unread_are: str
) -> Statement:
    """Findings that are not verdicts, with the doubts before them and what was asked after them.

    `judged` counts what judges were asked, whose verdicts are no answers of a model.
    """
    counts = _sum(every)
    text = (
        *doubts(counts, unread_are=unread_are),
        *sentences,
        evidence(counts, unread_are=unread_are),
        *verdicts_read(_sum(judged)),
    )
    return Statement(name=ANSWER, title="In short", text=text, kind="answer")


def answer_of_panel(panel: PanelResult, analysis: Analysis) -> Statement:
    """One panel of several, in words."""
    text = panel_answer(panel, analysis.level, unread_are=analysis.unparsed)
    return Statement(name=ANSWER, title="In short", text=text, kind="answer")


def _several(
    named: Sequence[tuple[str, PanelResult]], level: float, *, unread_are: str
) -> tuple[str, ...]:
    """How many falter, then each of them, then what was asked and what to do next."""
    panels = [panel for _, panel in named]
    counts = _sum(panel.counts for panel in panels)
    shown = [
        (title, panel)
        for title, panel in named
        if _kind(panel) in ("loses", "gains", "moves", "holds")
    ]
    ranked = sorted(shown, key=lambda pair: -_worst(pair[1]))
    left = len(ranked) - MOST_PANELS
    have = "has its" if left == 1 else "have their"
    more = f"{noun(left, 'more panel')} {have} own words below." if left > 0 else ""
    return (
        *doubts(counts, unread_are=unread_are),
        _tally(panels),
        *(_line(title, panel, level) for title, panel in ranked[:MOST_PANELS]),
        *([more] if more else []),
        *_open(panels),
        *_how_sure(panels, level),
        evidence(counts, unread_are=unread_are),
        *next_steps(panels, counts),
    )


def _kind(panel: PanelResult) -> str:
    if panel.has_no_baseline or not panel.recipes:
        return "no drops"
    counts = panel.verdicts
    if counts["degraded"]:
        return "loses"
    if counts["improved"]:
        return "gains"
    if panel.baseline.value == 0.0:
        return "floor"
    if moves_on_average(panel):
        return "moves"
    return "holds" if counts["equivalent"] == len(panel.recipes) else "open"


def _tally(panels: Sequence[PanelResult]) -> str:
    """`Of 6 panels (3 models on 2 tasks): 4 lose points beyond chance and 2 are undecided.`"""
    counts = Counter(map(_kind, panels))
    kinds = [
        f"{n.whole(counts[kind])} {words[counts[kind] > 1]}"
        for kind, words in _KINDS.items()
        if counts[kind]
    ]
    models = noun(len({panel.panel.model.id for panel in panels}), "model")
    tasks = noun(len({panel.panel.task for panel in panels}), "task")
    every = f"{noun(len(panels), 'panel')} ({models} on {tasks})"
    if counts["open"] == len(panels):
        return f"Nothing is decided in any of {every}."
    if counts["holds"] == len(panels):
        return f"Nothing falters in any of {every}: all {kinds[0].split(' ', 1)[1]}."
    return f"Of {every}: {listed(kinds)}."


def _line(title: str, panel: PanelResult, level: float) -> str:
    """One panel in one sentence."""
    lost, gained = of_verdict(panel, "degraded"), of_verdict(panel, "improved")
    if lost:
        return f"{title} {moved('loses', lost, panel)}"
    if gained:
        return f"{title} {moved('gains', gained, panel)}"
    if moves_on_average(panel):
        return f"{title} {on_average(panel, level)}"
    every = recipes_counted(len(panel.recipes), panel)
    return f"{title} is shown to stay within {within(panel.margin)} under {every}."


def _open(panels: Sequence[PanelResult]) -> Iterator[str]:
    """How much is undecided, over all panels, and how large it may still be."""
    panels = [panel for panel in panels if not panel.has_no_baseline]
    undecided = [recipe for panel in panels for recipe in of_verdict(panel, "undecided")]
    bounds = [r.together.high for r in undecided if r.together.high is not None]
    if undecided:
        total = sum(len(panel.recipes) for panel in panels)
        verb = "is" if len(undecided) == 1 else "are"
        count = f"{n.whole(len(undecided))} of {noun(total, 'drop')}"
        if len(undecided) == total:
            count = f"All {noun(total, 'drop')}"
        still = f"; one of {size(max(bounds))} points is still possible" if bounds else ""
        often = Counter(recipe.everyday or recipe.label for recipe in undecided)
        names = listed_bounded([name for name, _ in often.most_common()])
        yield f"{count} {verb} undecided ({names}), which does not mean robust{still}."


def _how_sure(panels: Sequence[PanelResult], level: float) -> Iterator[str]:
    if any(_kind(panel) in ("loses", "gains") for panel in panels):
        yield (
            f"How sure: the chance of any false alarm is at most {100 * (1 - level):.3g} % in each "
            "panel."
        )
        return
    recipes = [r for panel in panels if not panel.has_no_baseline for r in panel.recipes]
    yield from excluded(recipes, level, "in each panel")


def _sum(every: Iterable[Counts]) -> Counts:
    counts = list(every)
    return Counts(**{f.name: sum(getattr(c, f.name) for c in counts) for f in fields(Counts)})


def _worst(panel: PanelResult) -> float:
    return max((drop_of(recipe) for recipe in of_verdict(panel, "degraded")), default=-1.0)
