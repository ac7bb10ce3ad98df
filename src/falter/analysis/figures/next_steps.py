"""Sentence on the next step after a report, and the items needed to narrow undecided drops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from falter.analysis.notes import MAX_UNREAD_SHARE
from falter.analysis.results import Analysis, Counts, PanelResult
from falter.analysis.sentences import command, drop_of, noun, of_verdict, sentence, within_points
from falter.stats.goals import DropPrecision
from falter.stats.sample_size import sample_size


def next_steps(panels: Sequence[PanelResult], counts: Counts, analysis: Analysis) -> Iterator[str]:
    """Yield one sentence, or none: the next step, and the items that would narrow the drops."""
    narrowing = ""
    if (
        counts.scored
        and not counts.mostly_failed
        and not all(panel.baseline.value == 0.0 for panel in panels)
        and (plan := _half_width_and_items(panels, analysis.level))
    ):
        width, count = plan
        undecided = sum(len(of_verdict(panel, "undecided")) for panel in panels)
        drops = {0: "every drop", 1: "the undecided drop"}.get(undecided, "every undecided drop")
        items = noun(count, "item")
        items += " of each task" if len({panel.panel.task for panel in panels}) > 1 else ""
        narrowing = sentence(
            "answer.next_items", margin=within_points(width), drops=drops, items=items
        )
    steps = [part for part in (_most_urgent_step(panels, counts, analysis), narrowing) if part]
    if steps:
        yield sentence("answer.next", steps="; ".join(steps))


def _most_urgent_step(panels: Sequence[PanelResult], counts: Counts, analysis: Analysis) -> str:
    """Return the most urgent step, or an empty text; commands appear only for stored runs."""
    stored = analysis.store is not None

    def command_line(name: str, *options: str) -> str:
        return sentence(name, command=command(analysis, "answers", *options)) if stored else ""

    lost = [(drop_of(r), r.label) for panel in panels for r in of_verdict(panel, "degraded")]
    if counts.missing or counts.mostly_failed or _missing_matters(panels):
        return sentence("answer.next_missing" if stored else "answer.next_missing_elsewhere")
    if counts.hold_no_answer and counts.empty == counts.answers:
        return sentence("answer.next_empty")
    if counts.unreadable > MAX_UNREAD_SHARE * counts.answers and stored:
        return command_line("answer.next_unread", "--unparsed")
    if all(panel.baseline.value == 0.0 for panel in panels):
        return command_line("answer.next_none_right")
    if all(panel.at_chance for panel in panels):
        return sentence("answer.next_easier")
    if not any(r.together.low is not None for panel in panels for r in panel.recipes):
        few_clusters = any(panel.baseline.clusters for panel in panels)
        return sentence("answer.next_clusters" if few_clusters else "answer.next_more")
    if lost:
        _, worst = max(lost, key=lambda pair: pair[0])  # of equal drops the one named first
        return command_line("answer.next_lost", "--lost", "--recipe", worst)
    if all(panel.baseline.value == 1.0 for panel in panels):
        return sentence("answer.next_harder")
    return ""


def _missing_matters(panels: Sequence[PanelResult]) -> bool:
    return any(recipe.bounds for panel in panels for recipe in panel.recipes)


def _all_equivalent(panel: PanelResult) -> bool:
    return bool(panel.recipes) and len(of_verdict(panel, "equivalent")) == len(panel.recipes)


def _half_width_and_items(panels: Sequence[PanelResult], level: float) -> tuple[float, int] | None:
    """Return a half-width for the undecided drops, and the items of a task that it needs.

    If every recipe of every panel is equivalent, all drops count instead of the undecided ones.
    None if no such drop has a finite interval.

    The half-width is the margin, halved until it is below 0.9 of the widest half-width. The items
    are those of `falter power --drop`, for the share of answers that flipped in these results. If
    none flipped, or this number is not larger than the present one, it is items × (widest / wanted
    half-width)². It is rounded up to two digits.
    """
    every_panel_equivalent = bool(panels) and all(_all_equivalent(panel) for panel in panels)
    widths = [
        (panel.items, (recipe.together.high - recipe.together.low) / 2.0)
        for panel in panels
        for recipe in (panel.recipes if every_panel_equivalent else of_verdict(panel, "undecided"))
        if recipe.together.low is not None and recipe.together.high is not None
    ]
    widest = max((width for _, width in widths), default=0.0)
    if not 0.0 < widest < math.inf:
        return None
    half_width = panels[0].margin
    while half_width >= 0.9 * widest:
        half_width /= 2.0
    items = _planned_items(panels, half_width, level)
    if items is None or items <= max(panel.items for panel in panels):
        items = max(count * (width / half_width) ** 2 for count, width in widths)
    digit = 10.0 ** max(0, math.floor(math.log10(items)) - 1)
    return half_width, int(math.ceil(items / digit - 1e-9) * digit)


def _planned_items(panels: Sequence[PanelResult], half_width: float, level: float) -> float | None:
    """Return the items that `falter power --drop --from` plans; None if no answer flipped."""
    shares = [panel.discordance for panel in panels if panel.discordance is not None]
    if not sum(shares):
        return None
    goal = DropPrecision(
        half_width=half_width,
        discordance=fmean(shares),
        conditions=max(len(panel.recipes) for panel in panels),
    )
    effect = fmean(panel.design_effect for panel in panels)
    return sample_size(goal, level=level, design_effect=effect).needed
