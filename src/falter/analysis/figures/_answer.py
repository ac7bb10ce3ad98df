"""One panel in words: what falters, by how much, how sure, what was not read, what to do next.

Every sentence repeats what verdicts, intervals and counts say, with their number; none claims more.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

from falter.analysis._panel_notes import MUCH_UNREAD
from falter.analysis._results import Counts, PanelResult
from falter.analysis.figures._phrases import (
    drop_of,
    excluded,
    moved,
    moves_on_average,
    names_of,
    noun,
    of_verdict,
    on_average,
    recipes_counted,
    size,
    within,
)
from falter.figures import Verdict
from falter.figures import numbers as n

__all__ = ["doubts", "evidence", "items_for", "next_steps", "panel_answer", "verdicts_read"]

EXCLUDED = "excluded"


def panel_answer(panel: PanelResult, level: float, unread_are: str) -> tuple[str, ...]:
    """What one model's answers on one task say, sentence by sentence."""
    counts = panel.counts
    return (
        *doubts(counts, unread_are=unread_are),
        *_baseline(panel),
        *_verdicts(panel, level),
        *_not_the_wording(panel),
        f"{_asked(panel)} {evidence(counts, unread_are=unread_are)}",
        *next_steps([panel], counts),
    )


def doubts(counts: Counts, *, unread_are: str) -> Iterator[str]:
    """What has to be known before anything else is believed.

    `unread_are` is what replies count as that could not be read: "wrong", or "excluded".
    """
    if counts.missing:
        yield (
            f"Not every answer is in: {n.whole(counts.cells - counts.missing)} of "
            f"{n.whole(counts.cells)}, so all that follows may still change."
        )
    answers, unread = counts.answers, counts.unread
    if unread > MUCH_UNREAD * answers:
        rule = "are left out" if unread_are == EXCLUDED else f"count as {unread_are}"
        yield (
            f"{n.whole(unread)} of {noun(answers, 'answer')} ({n.percent(unread / answers)} %) "
            f"could not be read and {rule}: look at them before you believe any drop."
        )
    if counts.failed > MUCH_UNREAD * counts.cells:
        yield (
            f"{n.whole(counts.failed)} of {noun(counts.cells, 'request')} failed and are left out."
        )


def _baseline(panel: PanelResult) -> Iterator[str]:
    """A clean prompt that leaves nothing to lose, or nothing to gain."""
    value = panel.baseline.value
    if value == 0.0:
        yield "No answer to a clean prompt is right, so there is nothing to lose."
    elif value is not None and panel.at_chance:
        yield (
            "The answers to clean prompts cannot be told from guessing, so drops say little about "
            "robustness."
        )
    elif value == 1.0:
        yield "Every answer to a clean prompt is right, so nothing can be gained here."


def _verdicts(panel: PanelResult, level: float) -> Iterator[str]:
    """What is shown of the recipes, and what is not."""
    if panel.has_no_baseline:
        conditions = noun(len(panel.recipes), "condition")
        yield f"{panel.title}: none of {conditions} is the baseline, so there are no drops."
        return
    value = panel.baseline.value
    subject = panel.title if value is None else (
        f"{panel.title} ({n.percent(value)} of 100 as asked)"
    )  # fmt: skip
    if not panel.recipes:
        yield f"{subject}: no recipe that changes the prompt was run, so there are no drops."
        return
    lost, gained = of_verdict(panel, "degraded"), of_verdict(panel, "improved")
    if lost:
        yield f"{subject} {moved('loses', lost, panel)}"
    if gained:
        yield f"{'It' if lost else subject} {moved('gains', gained, panel)}"
    if lost or gained:
        yield _how_sure(panel, level)
    together = moves_on_average(panel)
    if together:
        yield f"{subject} {on_average(panel, level)}"
    named = bool(lost or gained or together)
    held = of_verdict(panel, "equivalent")
    yield from _held(panel, "it" if named else subject)
    yield from _open(panel, "" if named or held else subject)
    if not (lost or gained):
        yield from excluded(
            panel.recipes, level, f"over {recipes_counted(len(panel.recipes), panel)}"
        )


def _how_sure(panel: PanelResult, level: float) -> str:
    """The chance of a false alarm, and how small or large each shown change may be."""
    words: dict[Verdict, str] = {"degraded": "loss", "improved": "gain"}
    reach = []
    for verdict, name in words.items():
        shown = of_verdict(panel, verdict)
        bounds = [b for r in shown for b in (r.together.low, r.together.high) if b is not None]
        if bounds:
            low, high = (size(end(map(abs, bounds))) for end in (min, max))
            one = f"the {name}" if len(shown) == 1 else f"every {name}"
            reach.append(f"{one} lies between {low} and {high} points")
    over = recipes_counted(len(panel.recipes), panel)
    return (
        f"How sure: the chance of any false alarm is at most {100 * (1 - level):.3g} % over "
        f"{over}; {' and '.join(reach)}."
    )


def _held(panel: PanelResult, subject: str) -> Iterator[str]:
    """The recipes under which nothing worth noticing changes."""
    same = of_verdict(panel, "equivalent")
    if not same:
        return
    margin = within(panel.margin)
    if len(same) == len(panel.recipes):
        yield (
            f"Nothing falters: {subject} is shown to stay within {margin} under "
            f"{recipes_counted(len(same), panel)}."
        )
    else:
        start = "It" if subject == "it" else subject
        yield (
            f"{start} is shown to stay within {margin} under "
            f"{recipes_counted(len(same), panel)}: {names_of(same, panel)}."
        )


def _open(panel: PanelResult, subject: str) -> Iterator[str]:
    """The recipes of which the data show nothing."""
    undecided = of_verdict(panel, "undecided")
    if not undecided:
        return
    bounds = [r.together.high for r in undecided if r.together.high is not None]
    still = f"; a drop of {size(max(bounds))} points is still possible" if bounds else ""
    blank = len(undecided) - len(bounds)
    none = f"; {n.whole(blank)} without an interval" if blank and bounds else ""
    none = "; no interval can be had" if not bounds else none
    verb = "is" if len(undecided) == 1 else "are"
    count = recipes_counted(len(undecided), panel)
    names = names_of(undecided, panel)
    if moves_on_average(panel) and len(undecided) == len(panel.recipes):
        yield f"By itself no recipe is decided ({names}){still}{none}."
    elif subject:
        yield f"Nothing is decided: {subject}, {count} {verb} undecided ({names}){still}{none}."
    else:
        lead = count[0].upper() + count[1:]
        yield f"{lead} {verb} undecided ({names}), which does not mean robust{still}{none}."


def _not_the_wording(panel: PanelResult) -> Iterator[str]:
    """The losses that the wording is not shown to cause."""
    split = {parts.label for parts in panel.parts if parts.split.not_the_wording}
    lost = [r for r in of_verdict(panel, "degraded") if r.label in split]
    if lost:
        losses = "the loss is" if len(lost) == 1 else "the losses are"
        yield (
            f"Under {names_of(lost, panel)} {losses} not shown to come from the wording: look at "
            "the parts of the drop first."
        )


def _asked(panel: PanelResult) -> str:
    items = noun(panel.items, "item")
    floor = panel.noise_floor
    if floor is None or floor.value is None:
        return f"{items}."
    if floor.value == 0.0:
        return f"{items}; asking the same prompt again changed nothing."
    return f"{items}; asking the same prompt again changed {n.percent(floor.value)} % of them."


def evidence(counts: Counts, *, unread_are: str) -> str:
    """How many requests failed, and how many of the answers were read; what the others count as."""
    answers, unread = counts.answers, counts.unread
    failed = "No request failed" if not counts.failed else (
        f"{noun(counts.failed, 'request')} failed and {_left_out(counts.failed)}"
    )  # fmt: skip
    if not answers:
        return f"{failed}; there are no answers."
    if unread == 0:
        every = "the one answer was" if answers == 1 else f"all {n.whole(answers)} answers were"
        return f"{failed}; {every} read."
    read = f"{n.whole(answers - unread)} of {noun(answers, 'answer')}"
    rule = _left_out(unread)
    if unread_are != EXCLUDED:
        rule = f"{'counts' if unread == 1 else 'count'} as {unread_are}"
    verb = "was" if answers - unread == 1 else "were"
    return f"{failed}; {read} {verb} read, the other {n.whole(unread)} {rule}."


def verdicts_read(counts: Counts) -> Iterator[str]:
    """How often a judge was asked, and how many of its replies say nothing."""
    asked, lost = counts.cells - counts.missing, counts.unread + counts.failed
    if asked:
        read = "every reply held a verdict" if not lost else (
            f"{n.whole(lost)} of its replies held no verdict or never came"
        )  # fmt: skip
        yield f"The judge was asked {noun(asked, 'time')}, second tries included; {read}."


def _left_out(count: int) -> str:
    return "is left out" if count == 1 else "are left out"


def next_steps(panels: Sequence[PanelResult], counts: Counts) -> Iterator[str]:
    """What to do about it: one step, and the items that would narrow what is undecided, or all."""
    undecided = sum(len(of_verdict(panel, "undecided")) for panel in panels)
    wanted = items_for(panels)
    more = ""
    if wanted is not None:
        width, items = wanted
        drops = {0: "every drop", 1: "the undecided drop"}.get(undecided, "every undecided drop")
        more = f"for {within(width)} on {drops} ask about {noun(items, 'item')}"
        more += " of each task" if len({panel.panel.task for panel in panels}) > 1 else ""
        if not undecided and all(_holds(panel) for panel in panels):
            more = f"nothing needs doing for {within(panels[0].margin)}; {more}"
    steps = [part for part in (_step(panels, counts), more) if part]
    if steps:
        yield f"Next: {'; '.join(steps)}."


def _step(panels: Sequence[PanelResult], counts: Counts) -> str:
    if counts.missing:
        return "bring in the missing answers (the same command finishes a run that was cut off)"
    if counts.unread > MUCH_UNREAD * counts.answers:
        return (
            "'falter answers --unparsed' shows the replies that were not read, and what would "
            "read them"
        )
    if all(panel.baseline.value == 0.0 for panel in panels):
        return "'falter answers' shows whether the scorer reads what the model writes"
    if all(panel.at_chance for panel in panels):
        return "choose easier items"
    lost = [(drop_of(r), r.label) for panel in panels for r in of_verdict(panel, "degraded")]
    if lost and any(panel.parts for panel in panels):
        label = shlex.quote(max(lost)[1])
        return f"'falter answers --lost --recipe {label}' shows what turned wrong"
    if all(panel.baseline.value == 1.0 for panel in panels):
        return "choose harder items"
    return ""


def _holds(panel: PanelResult) -> bool:
    return bool(panel.recipes) and len(of_verdict(panel, "equivalent")) == len(panel.recipes)


def items_for(panels: Sequence[PanelResult]) -> tuple[float, int] | None:
    """A half-width for the undecided drops, and about how many items of a task it takes.

        items × (widest half-width / wanted half-width)²

    of the intervals that hold for all recipes together, rounded up to two digits. The wanted one is
    the margin, halved until it is clearly below what there is. Where all is shown to hold it is
    about every drop. None where something is decided and nothing undecided, or no interval is
    known.
    """
    all_hold = bool(panels) and all(_holds(panel) for panel in panels)
    widths = [
        (panel.items, (recipe.together.high - recipe.together.low) / 2.0)
        for panel in panels
        for recipe in (panel.recipes if all_hold else of_verdict(panel, "undecided"))
        if recipe.together.low is not None and recipe.together.high is not None
    ]
    widest = max((width for _, width in widths), default=0.0)
    if not 0.0 < widest < math.inf:
        return None
    wanted = panels[0].margin
    while wanted >= 0.9 * widest:
        wanted /= 2.0
    items = max(count * (width / wanted) ** 2 for count, width in widths)
    digit = 10.0 ** max(0, math.floor(math.log10(items)) - 1)
    return wanted, int(math.ceil(items / digit - 1e-9) * digit)
