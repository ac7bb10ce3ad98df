"""The first thing that a report says: what falters, by how much, how sure, and what to do next.

Every sentence repeats what verdicts, intervals and counts say, with their number; none claims more.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from statistics import fmean

from falter.analysis.notes import MUCH_UNREAD
from falter.analysis.results import Analysis, Counts, PanelResult, RecipeResult
from falter.analysis.sentences import (
    are,
    drop_of,
    excluded,
    left_out,
    level_of,
    listed,
    listed_bounded,
    moved,
    moves_on_average,
    names_of,
    noun,
    of_verdict,
    on_average,
    recipes_counted,
    sentence,
    size,
    templates,
    within,
)
from falter.records import numbers as n
from falter.records.figures import Statement, Verdict
from falter.stats.goals import DropPrecision
from falter.stats.sample_size import sample_size

ANSWER = "answer"
EXCLUDED = "excluded"
MOST_PANELS = 6


def answer_figure(analyses: Sequence[tuple[str, Analysis]]) -> Statement:
    """What the analyses say, in words. Each comes with how it was asked, or an empty text."""
    panels = [
        (f"{panel.title}, {how}" if how else panel.title, panel)
        for how, analysis in analyses
        for panel in analysis.panels
    ]
    first = analyses[0][1]
    say = _panel if len(panels) == 1 else _several
    return _in_short(say(panels, first.level, first.unparsed))


def answer_of_panel(panel: PanelResult, analysis: Analysis) -> Statement:
    """One panel of several, in words."""
    return _in_short(_panel([(panel.title, panel)], analysis.level, analysis.unparsed))


def answer_of(
    sentences: Iterable[str], every: Sequence[Counts], judged: Sequence[Counts], *, unread_are: str
) -> Statement:
    """Findings that are not verdicts, with the doubts before them and what was asked after them.

    `judged` counts what judges were asked, whose verdicts are no answers of a model.
    """
    counts, read = _sum(every), _sum(judged)
    return _in_short(
        (
            *_doubts(counts, unread_are),
            *sentences,
            _evidence(counts, unread_are),
            *_verdicts_read(read),
        )
    )


def _in_short(text: Iterable[str]) -> Statement:
    return Statement(name=ANSWER, title="In short", text=tuple(text), kind="answer")


def _panel(
    named: Sequence[tuple[str, PanelResult]], level: float, unread_are: str
) -> Iterator[str]:
    """What one model's answers on one task say, sentence by sentence."""
    ((_, panel),) = named
    counts = panel.counts
    yield from _doubts(counts, unread_are)
    if counts.hold_no_answer:
        yield sentence("answer.none_read", answers=noun(counts.answers, "response"))
        return
    if panel.baseline.value == 0.0:
        yield sentence("answer.none_right")
    elif panel.baseline.value is not None and panel.at_chance:
        yield sentence("answer.at_chance")
    elif panel.baseline.value == 1.0:
        yield sentence("answer.all_right")
    yield from _verdicts(panel, level)
    yield from _not_the_wording(panel)
    yield f"{_noise(panel)} {_evidence(counts, unread_are)}"
    yield from _next_steps([panel], counts, level)


def _several(
    named: Sequence[tuple[str, PanelResult]], level: float, unread_are: str
) -> Iterator[str]:
    """How many panels falter, then each of them, then what was asked and what to do next."""
    panels = [panel for _, panel in named]
    counts = _sum(panel.counts for panel in panels)
    shown = [pair for pair in named if _kind(pair[1]) in ("loses", "gains", "moves", "holds")]
    ranked = sorted(shown, key=lambda pair: -_worst(pair[1]))
    yield from _doubts(counts, unread_are)
    if counts.hold_no_answer:
        yield sentence("answer.none_read", answers=noun(counts.answers, "response"))
        return
    yield _tally(panels)
    for title, panel in ranked[:MOST_PANELS]:
        yield _line(title, panel, level)
    left = len(ranked) - MOST_PANELS
    if left > 0:
        have = "has its" if left == 1 else "have their"
        yield sentence("panels.more", panels=noun(left, "more panel"), have=have)
    yield from _open_everywhere(panels)
    if any(_kind(panel) in ("loses", "gains") for panel in panels):
        yield sentence("panels.false_alarm", alpha=level_of(1 - level))
    else:
        recipes = [r for panel in panels if not panel.has_no_baseline for r in panel.recipes]
        yield from excluded(recipes, level, "in each panel")
    yield _evidence(counts, unread_are)
    yield from _next_steps(panels, counts, level)


def _doubts(counts: Counts, unread_are: str) -> Iterator[str]:
    """What has to be known before anything else is believed.

    `unread_are` is what replies count as that could not be read: "wrong", or "excluded".
    """
    answers, unread, cells = counts.answers, counts.unread, n.whole(counts.cells)
    if counts.missing:
        there = n.whole(counts.cells - counts.missing)
        yield sentence("answer.missing", there=there, planned=cells)
    if unread > MUCH_UNREAD * answers:
        yield sentence(
            "answer.unread",
            unread=n.whole(unread),
            answers=noun(answers, "answer"),
            share=n.percent(unread / answers),
            rule="are left out" if unread_are == EXCLUDED else f"count as {unread_are}",
        )
    if counts.failed > MUCH_UNREAD * counts.cells:
        requests = noun(counts.cells, "request")
        yield sentence("answer.failed", failed=n.whole(counts.failed), requests=requests)


def _verdicts(panel: PanelResult, level: float) -> Iterator[str]:
    """What is shown of the recipes, and what is not."""
    if panel.has_no_baseline:
        conditions = noun(len(panel.recipes), "condition")
        yield sentence("answer.no_baseline", panel=panel.title, conditions=conditions)
        return
    value, subject = panel.baseline.value, panel.title
    if value is not None:
        subject = sentence("answer.subject", panel=panel.title, correct=n.percent(value))
    if not panel.recipes:
        yield sentence("answer.no_recipe", subject=subject)
        return
    lost, gained = of_verdict(panel, "degraded"), of_verdict(panel, "improved")
    if lost:
        yield moved(subject, "loses", lost, panel)
    if gained:
        yield moved("It" if lost else subject, "gains", gained, panel)
    if lost or gained:
        yield _how_sure(panel, level)
    together = moves_on_average(panel)
    if together:
        yield on_average(subject, panel, level)
    named = bool(lost or gained or together)
    yield from _held(panel, "it" if named else subject)
    yield from _open(panel, "" if named or of_verdict(panel, "equivalent") else subject)
    if not (lost or gained):
        over = f"over {recipes_counted(len(panel.recipes), panel)}"
        yield from excluded(panel.recipes, level, over)


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
            reach.append(sentence("answer.between", change=one, low=low, high=high))
    return sentence(
        "answer.false_alarm",
        alpha=level_of(1 - level),
        recipes=recipes_counted(len(panel.recipes), panel),
        bounds=" and ".join(reach),
    )


def _held(panel: PanelResult, subject: str) -> Iterator[str]:
    """The recipes under which nothing worth noticing changes."""
    same = of_verdict(panel, "equivalent")
    if not same:
        return
    all_held = len(same) == len(panel.recipes)
    yield sentence(
        "answer.nothing_falters" if all_held else "answer.held",
        subject="It" if subject == "it" and not all_held else subject,
        margin=within(panel.margin),
        recipes=recipes_counted(len(same), panel),
        names=names_of(same, panel),
    )


def _open(panel: PanelResult, subject: str) -> Iterator[str]:
    """The recipes of which the data show nothing."""
    undecided = of_verdict(panel, "undecided")
    if not undecided:
        return
    known = _upper_bounds(undecided)
    blank = len(undecided) - len(known)
    bounds = sentence("answer.still_possible", points=size(max(known))) if known else ""
    if not known:
        bounds += sentence("answer.no_interval")
    elif blank:
        bounds += sentence("answer.without_interval", count=n.whole(blank))
    count = recipes_counted(len(undecided), panel)
    name = "answer.open_all" if subject else "answer.open_some"
    if moves_on_average(panel) and len(undecided) == len(panel.recipes):
        name = "answer.open_alone"
    yield sentence(
        name,
        subject=subject,
        recipes=count if subject else count[0].upper() + count[1:],
        are=are(len(undecided)),
        names=names_of(undecided, panel),
        bounds=bounds,
    )


def _upper_bounds(recipes: Sequence[RecipeResult]) -> list[float]:
    return [recipe.together.high for recipe in recipes if recipe.together.high is not None]


def _not_the_wording(panel: PanelResult) -> Iterator[str]:
    """The losses that the wording is not shown to cause."""
    split = {parts.label for parts in panel.parts if parts.split.not_the_wording}
    lost = [r for r in of_verdict(panel, "degraded") if r.label in split]
    if lost:
        losses = "the loss is" if len(lost) == 1 else "the losses are"
        yield sentence("answer.not_wording", names=names_of(lost, panel), losses=losses)


def _noise(panel: PanelResult) -> str:
    floor = panel.noise_floor
    value = None if floor is None else floor.value
    name = {None: "noise_unknown", 0.0: "noise_none"}.get(value, "noise")
    return sentence(f"answer.{name}", items=noun(panel.items, "item"), share=n.percent(value))


def _evidence(counts: Counts, unread_are: str) -> str:
    """How many requests failed, and how many of the answers were read; what the others count as."""
    answers, unread = counts.answers, counts.unread
    failed = "No request failed"
    if counts.failed:
        failed = f"{noun(counts.failed, 'request')} failed and {left_out(counts.failed)}"
    if not answers:
        return sentence("answer.no_answers", failed=failed)
    if unread == 0:
        every = "the one answer was" if answers == 1 else f"all {n.whole(answers)} answers were"
        return sentence("answer.every_read", failed=failed, every=every)
    rule = left_out(unread)
    if unread_are != EXCLUDED:
        rule = f"{'counts' if unread == 1 else 'count'} as {unread_are}"
    return sentence(
        "answer.some_read",
        failed=failed,
        read=f"{n.whole(answers - unread)} of {noun(answers, 'answer')}",
        were="was" if answers - unread == 1 else "were",
        unread=n.whole(unread),
        rule=rule,
    )


def _verdicts_read(counts: Counts) -> Iterator[str]:
    """How often a judge was asked, and how many of its replies say nothing."""
    asked, lost = counts.cells - counts.missing, counts.unread + counts.failed
    if asked:
        read = "every reply held a verdict"
        if lost:
            read = f"{n.whole(lost)} of its replies held no verdict or never came"
        yield sentence("answer.judge", times=noun(asked, "time"), read=read)


def _next_steps(panels: Sequence[PanelResult], counts: Counts, level: float) -> Iterator[str]:
    """What to do about it: one step, and the items that would narrow what is undecided, or all."""
    undecided = sum(len(of_verdict(panel, "undecided")) for panel in panels)
    wanted = _items_for(panels, level)
    more = ""
    if wanted is not None:
        width, count = wanted
        drops = {0: "every drop", 1: "the undecided drop"}.get(undecided, "every undecided drop")
        items = noun(count, "item")
        items += " of each task" if len({panel.panel.task for panel in panels}) > 1 else ""
        more = sentence("answer.next_items", margin=within(width), drops=drops, items=items)
        if not undecided and all(_holds(panel) for panel in panels):
            more = sentence("answer.next_holds", margin=within(panels[0].margin), more=more)
    steps = [part for part in (_step(panels, counts), more) if part]
    if steps:
        yield sentence("answer.next", steps="; ".join(steps))


def _step(panels: Sequence[PanelResult], counts: Counts) -> str:
    if counts.missing:
        return sentence("answer.next_missing")
    if counts.unread > MUCH_UNREAD * counts.answers:
        return sentence("answer.next_unread")
    if all(panel.baseline.value == 0.0 for panel in panels):
        return sentence("answer.next_none_right")
    if all(panel.at_chance for panel in panels):
        return sentence("answer.next_easier")
    lost = [(drop_of(r), r.label) for panel in panels for r in of_verdict(panel, "degraded")]
    if lost and any(panel.parts for panel in panels):
        return sentence("answer.next_lost", recipe=shlex.quote(max(lost)[1]))
    if all(panel.baseline.value == 1.0 for panel in panels):
        return sentence("answer.next_harder")
    return ""


def _holds(panel: PanelResult) -> bool:
    return bool(panel.recipes) and len(of_verdict(panel, "equivalent")) == len(panel.recipes)


def _items_for(panels: Sequence[PanelResult], level: float) -> tuple[float, int] | None:
    """A half-width for the undecided drops, and about how many items of a task it takes.

    The items are those of `falter power --drop`, for the share of answers that turned in these
    results; where none turned, items × (widest half-width / wanted half-width)². Rounded up to two
    digits. The wanted half-width is the margin, halved until it is clearly below what there is.
    Where all is shown to hold it is about every drop. None where something is decided and nothing
    undecided, or no interval is known.
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
    items = _planned(panels, wanted, level)
    if items is None or items <= max(panel.items for panel in panels):
        items = max(count * (width / wanted) ** 2 for count, width in widths)
    digit = 10.0 ** max(0, math.floor(math.log10(items)) - 1)
    return wanted, int(math.ceil(items / digit - 1e-9) * digit)


def _planned(panels: Sequence[PanelResult], half_width: float, level: float) -> float | None:
    """Return the items that `falter power --drop --from` plans; None where no answer turned."""
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


def _kind(panel: PanelResult) -> str:
    if panel.has_no_baseline or not panel.recipes:
        return "no_drops"
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
    words = templates()["kinds"]
    models = noun(len({panel.panel.model.id for panel in panels}), "model")
    tasks = noun(len({panel.panel.task for panel in panels}), "task")
    every = f"{noun(len(panels), 'panel')} ({models} on {tasks})"
    if counts["open"] == len(panels):
        return sentence("panels.none_decided", panels=every)
    if counts["holds"] == len(panels):
        return sentence("panels.all_hold", panels=every, hold=words["holds"][1])
    kinds = [
        f"{n.whole(counts[kind])} {one_or_more[counts[kind] > 1]}"
        for kind, one_or_more in words.items()
        if counts[kind]
    ]
    return sentence("panels.kinds", panels=every, kinds=listed(kinds))


def _line(title: str, panel: PanelResult, level: float) -> str:
    """One panel in one sentence."""
    lost, gained = of_verdict(panel, "degraded"), of_verdict(panel, "improved")
    if lost:
        return moved(title, "loses", lost, panel)
    if gained:
        return moved(title, "gains", gained, panel)
    if moves_on_average(panel):
        return on_average(title, panel, level)
    every = recipes_counted(len(panel.recipes), panel)
    return sentence("panels.held", panel=title, margin=within(panel.margin), recipes=every)


def _open_everywhere(panels: Sequence[PanelResult]) -> Iterator[str]:
    """How much is undecided, over all panels, and how large it may still be."""
    panels = [panel for panel in panels if not panel.has_no_baseline]
    undecided = [recipe for panel in panels for recipe in of_verdict(panel, "undecided")]
    if not undecided:
        return
    total = sum(len(panel.recipes) for panel in panels)
    drops = f"{n.whole(len(undecided))} of {noun(total, 'drop')}"
    if len(undecided) == total:
        drops = f"All {noun(total, 'drop')}"
    known = _upper_bounds(undecided)
    often = Counter(recipe.everyday or recipe.name for recipe in undecided)
    yield sentence(
        "panels.open",
        drops=drops,
        are=are(len(undecided)),
        names=listed_bounded([name for name, _ in often.most_common()]),
        bounds=sentence("panels.still_possible", points=size(max(known))) if known else "",
    )


def _sum(every: Iterable[Counts]) -> Counts:
    counts = list(every)
    return Counts(**{f.name: sum(getattr(c, f.name) for c in counts) for f in fields(Counts)})


def _worst(panel: PanelResult) -> float:
    return max((drop_of(recipe) for recipe in of_verdict(panel, "degraded")), default=-1.0)
