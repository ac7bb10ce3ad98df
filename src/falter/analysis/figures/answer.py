"""The answer at the top of a report: the finding, the limit of the claim, and the next step.

Every sentence repeats verdicts, intervals and counts with their numbers. No sentence claims more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from falter.analysis.figures.next_steps import next_steps
from falter.analysis.notes import MAX_UNREAD_SHARE
from falter.analysis.results import Analysis, Counts, PanelResult, RecipeParts, RecipeResult
from falter.analysis.sentences import (
    any_recipe,
    are,
    at_most,
    command,
    drop_of,
    left_out,
    level_of,
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
    unusable,
    within_points,
)
from falter.measures.keeps_and_reads import RESTLESS, Condition, KeepsAndReads
from falter.records import numbers as n
from falter.records.figures import Statement, Verdict
from falter.records.types import Estimate
from falter.scorers.calls import compares_with_clean
from falter.stats.multiplicity import panels_rejected

ANSWER = "answer"
EXCLUDED = "excluded"
MAX_UNREAD_BEFORE_FINDING = 0.2
"""Share of responses without a usable answer above which a warning precedes the finding."""
MAX_NAMED_PANELS = 3
"""Number of panels that the first sentence names. The overview has all panels."""

Named = Sequence[tuple[str, PanelResult]]


def answer_figure(analyses: Sequence[tuple[str, Analysis]]) -> Statement:
    """Return the result of analyses in words.

    Each analysis comes with a name for its prompts, such as `5-shot`, or an empty text.
    """
    panels = [
        (f"{panel.title}, {prompting}" if prompting else panel.title, panel)
        for prompting, analysis in analyses
        for panel in analysis.panels
    ]
    return _short_statement(_answer_lines(panels, analyses[0][1]))


def answer_of_panel(panel: PanelResult, analysis: Analysis) -> Statement:
    """Return the result of one of several panels in words."""
    return _short_statement(_answer_lines([(panel.title, panel)], analysis))


def answer_of(
    sentences: Iterable[str],
    every: Sequence[Counts],
    judged: Sequence[Counts],
    *,
    unparsed_count_as: str,
) -> Statement:
    """Return findings that are not verdicts, with warnings before and evidence after them.

    `judged` counts the requests to judges, whose verdicts are no answers of a model.
    """
    counts, read = _sum_of_counts(every), _sum_of_counts(judged)
    return _short_statement(
        (
            *_unfinished_warning(counts),
            *_unread_warning(counts, unparsed_count_as),
            *sentences,
            _evidence_sentence(counts, unparsed_count_as),
            *_judge_sentence(read),
        )
    )


def _short_statement(text: Iterable[str]) -> Statement:
    return Statement(name=ANSWER, title="In short", text=tuple(filter(None, text)), kind="answer")


def _answer_lines(named: Named, analysis: Analysis) -> Iterator[str]:
    """Yield the finding, its limits, and the evidence with the next step."""
    panels = [panel for _, panel in named]
    counts = _sum_of_counts(panel.counts for panel in panels)
    evidence = f"{_noise_sentence(panels)} {_evidence_sentence(counts, analysis.unparsed)}"
    if counts.hold_no_answer or counts.mostly_failed:
        yield _nothing_to_conclude(counts)
        about = (evidence,) if counts.mostly_failed else ()
        yield " ".join((*about, *next_steps(panels, counts, analysis)))
        return
    finding = _finding_of(panels[0], analysis.level) if len(panels) == 1 else _panel_changes(named)
    if all(p.keeping is not None and _drops_add_nothing(p) for p in panels):
        finding = iter(())
    kept = [
        keeping_sentence(title, p) for title, p in named[:MAX_NAMED_PANELS] if p.keeping is not None
    ]
    yield " ".join(
        (*_unfinished_warning(counts), *kept, *_reader_doubts(panels, analysis), *finding)
    )
    limits = _limit_sentences if len(panels) == 1 else _limit_sentences_of_several
    yield " ".join(limits(panels, analysis.level))
    yield " ".join((evidence, *next_steps(panels, counts, analysis)))


def _drops_add_nothing(panel: PanelResult) -> bool:
    """Return True if the drops add nothing to the answers kept and the meanings noticed."""
    return compares_with_clean(panel.panel.scorer) or _overall_change(panel) == "open"


def _nothing_to_conclude(counts: Counts) -> str:
    if counts.mostly_failed:
        requests = noun(counts.cells, "request")
        return sentence("answer.failed", failed=n.whole(counts.failed), requests=requests)
    answers = noun(counts.answers, "response")
    return sentence("answer.no_answer", answers=answers, kinds=unusable(counts))


def _unfinished_warning(counts: Counts) -> Iterator[str]:
    if counts.missing:
        stored = n.whole(counts.cells - counts.missing)
        yield sentence("answer.missing", there=stored, planned=n.whole(counts.cells))


def _unread_warning(
    counts: Counts, unparsed_count_as: str, most: float = MAX_UNREAD_SHARE
) -> Iterator[str]:
    """Yield a warning if more than this share of the responses holds no usable answer."""
    if counts.unread > most * counts.answers:
        yield sentence(
            "answer.unread",
            evidence=_unusable_text(counts),
            rule=_rule_text(counts, unparsed_count_as),
        )


def _reader_doubts(panels: Sequence[PanelResult], analysis: Analysis) -> Iterator[str]:
    """Yield warnings if another answer extraction would change a verdict or many scores."""
    seconds = [panel.second_reading for panel in panels if panel.second_reading is not None]
    doubted = [second for second in seconds if second.matters]
    if doubted:
        answers, different = (
            sum(getattr(second, name) for second in seconds) for name in ("answers", "different")
        )
        names = list(dict.fromkeys(name for second in doubted for name in second.recipes))
        reader = doubted[0].reader
        yield sentence(
            "answer.reread",
            reader=reader,
            different=n.whole(different),
            answers=noun(answers, "response"),
            share=n.percent(different / answers),
            verdicts=f", with another verdict on {listed_bounded(names)}" if names else "",
            command=command(analysis, "rescore", "--scorer", reader),
        )
    counts = _sum_of_counts(panel.counts for panel in panels)
    if not doubted:
        yield from _unread_warning(counts, analysis.unparsed, MAX_UNREAD_BEFORE_FINDING)
    other = "counted as wrong" if analysis.unparsed == EXCLUDED else "left out"
    readings = {
        "stated": f"Without the {noun(counts.inferred, 'answer')} taken out of sentences",
        "read": f"With the {noun(counts.unreadable, 'response')} that could not be read {other}",
    }
    for name, reading in readings.items():
        recipes = dict.fromkeys(label for panel in panels for label in getattr(panel, name))
        if recipes and not (doubted and name == "read"):  # the second extractor covers them already
            yield sentence("answer.doubt", reading=reading, names=listed_bounded(list(recipes)))


def _finding_of(panel: PanelResult, level: float) -> Iterator[str]:
    """Yield the finding about one model on one task."""
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
    if value == 0.0:
        yield sentence("answer.none_right", subject=subject)
        if not lost and not gained:
            return
    elif value is not None and panel.at_chance:
        yield sentence("answer.at_chance")
    if lost:
        yield moved(subject, "loses", lost, panel)
    if gained:
        yield moved("It" if lost else subject, "gains", gained, panel)
    if lost or gained:
        return
    equivalent = of_verdict(panel, "equivalent")
    if moves_on_average(panel):
        yield on_average(subject, panel, level)
    elif equivalent:
        whole = len(equivalent) == len(panel.recipes)
        yield sentence(
            "answer.nothing_falters" if whole else "answer.held",
            subject=subject,
            margin=within_points(panel.margin),
            recipes=recipes_counted(len(equivalent), panel),
            names=names_of(equivalent, panel),
        )
    else:
        bound = _bound_sentence(panel, level)
        yield sentence(
            "answer.nothing",
            subject=subject,
            recipes=any_recipe(len(panel.recipes)),
            bound=f" {bound}" if bound else "",
        )


def _bound_sentence(panel: PanelResult, level: float) -> str:
    over = f"over {recipes_counted(len(panel.recipes), panel)}"
    return "".join(at_most(panel.recipes, level, over))


def _limit_sentences(panels: Sequence[PanelResult], level: float) -> Iterator[str]:
    """Yield the confidence in the finding, the undecided recipes, and the causes of the loss."""
    (panel,) = panels
    if panel.has_no_baseline or not panel.recipes:
        return
    decided = of_verdict(panel, "degraded") or of_verdict(panel, "improved")
    if panel.baseline.value == 0.0 and not decided:
        return
    if decided:
        yield _bounds_sentence(panel, level)
    elif of_verdict(panel, "equivalent") or moves_on_average(panel):
        yield _bound_sentence(panel, level)
    yield from _undecided_sentence(panel)
    yield from _causes_of_largest_losses(panel)


def _bounds_sentence(panel: PanelResult, level: float) -> str:
    """Return the sentence with the bounds of the shown changes."""
    words: dict[Verdict, str] = {"degraded": "loss", "improved": "gain"}
    phrases = []
    for verdict, name in words.items():
        decided = of_verdict(panel, verdict)
        bounds = [b for r in decided for b in (r.least, r.most) if b is not None]
        if bounds:
            low, high = size(min(map(abs, bounds))), size(max(map(abs, bounds)))
            one = (
                f"the {name} under {names_of(decided, panel)}"
                if len(decided) == 1
                else f"every {name}"
            )
            phrases.append(sentence("answer.between", change=one, low=low, high=high))
    average = " and their average" if len(panel.recipes) > 1 else ""
    return sentence(
        "answer.sure",
        level=level_of(level),
        recipes=f"{recipes_counted(len(panel.recipes), panel)}{average}",
        bounds=" and ".join(phrases),
    )


def _undecided_sentence(panel: PanelResult) -> Iterator[str]:
    """Yield the sentence on the undecided recipes."""
    undecided = of_verdict(panel, "undecided")
    if not undecided:
        return
    limits = [recipe.most for recipe in undecided if recipe.most is not None]
    all_undecided = len(undecided) == len(panel.recipes) and not moves_on_average(panel)
    if not limits:
        bounds = sentence("answer.no_interval")
    elif all_undecided and len(limits) == len(undecided):
        bounds = ""  # the finding contains the bound
    else:
        bounds = _still_possible(undecided)
    count = recipes_counted(len(undecided), panel)
    yield sentence(
        "answer.open",
        recipes=count[0].upper() + count[1:],
        are=are(len(undecided)),
        names=names_of(undecided, panel),
        bounds=bounds,
    )


def _still_possible(undecided: Sequence[RecipeResult]) -> str:
    """Return the largest possible drop, and the number of recipes without an interval.

    A recipe that changed no item costs nothing, so it does not prevent a bound.
    """
    known = [recipe.most for recipe in undecided if recipe.most is not None]
    blank = [recipe for recipe in undecided if recipe.most is None]
    if not known or any(recipe.changed for recipe in blank):
        return sentence("answer.without_interval", count=n.whole(len(blank)))
    bound = sentence("answer.still_possible", points=size(max(0.0, *known)))
    idle = sentence("answer.idle", count=n.whole(len(blank))) if blank else ""
    return f"{bound}{idle}"


_BLAME_WORDS = {
    "reading": "misread answers",
    "meaning": "changed meaning",
    "serving": "answers of another server",
}
_UNREAD_VERBS = {"refused": "refuses", "truncated": "is cut off", "unparsed": "cannot be read"}


def _causes_of_largest_losses(panel: PanelResult) -> Iterator[str]:
    """Yield the causes of the largest loss, and of the largest loss that the test itself causes."""
    parts_of = {parts.label: parts for parts in panel.parts}
    lost = sorted(of_verdict(panel, "degraded"), key=lambda recipe: -drop_of(recipe))
    known = [(recipe, parts_of[recipe.label]) for recipe in lost if recipe.label in parts_of]
    blamed = [pair for pair in known if pair[1].split.blamed is not None]
    reported = known[:1] + [pair for pair in blamed[:1] if pair is not known[0]]
    for recipe, parts in reported:
        yield causes_of_loss(recipe, parts, panel)


def causes_of_loss(recipe: RecipeResult, parts: RecipeParts, panel: PanelResult) -> str:
    """Return the sentence on the causes of one loss.

    The wording is cleared only by another part whose interval excludes zero.
    """
    split, second = parts.split, panel.second_reading
    drop_text = {"points": size(drop_of(recipe)), "name": names_of([recipe], panel)}
    if _above_zero(split.wording):
        if second is not None and recipe.label in second.recipes:
            return sentence("answer.by_reader", reader=second.reader, **drop_text)
        state = next((s for s in _UNREAD_VERBS if _above_zero(split.unrecovered[s])), None)
        because = ""
        if state is not None:
            because = sentence(
                "answer.because",
                part=_points_or_all(split.unrecovered[state], split.wording),
                why=_UNREAD_VERBS[state],
            )
        part = _points_or_all(split.wording, recipe.drop)
        part = part[0].upper() + part[1:]
        unsure = "" if panel.noise_floor else sentence("answer.not_asked_again")
        return sentence("answer.wording", part=part, unsure=unsure, because=because, **drop_text)
    if split.blamed is not None:
        part = size(getattr(split, split.blamed).low)
        return sentence("answer.blamed", part=part, kind=_BLAME_WORDS[split.blamed], **drop_text)
    return sentence("answer.unexplained", **drop_text)


def _points_or_all(part: Estimate, whole: Estimate) -> str:
    """Return the points of a part, or `all` if they are no less than the whole."""
    points = size(part.value or 0.0)
    return "all" if (part.value or 0.0) >= (whole.value or 0.0) - 5e-4 else points


def _above_zero(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.low > 0.0


def _noise_sentence(panels: Sequence[PanelResult]) -> str:
    floor = panels[0].noise_floor if len(panels) == 1 else None
    value = None if floor is None else floor.value
    name = {None: "noise_unknown", 0.0: "noise_none"}.get(value, "noise")
    items: dict[str, int] = {}
    for panel in panels:
        items[panel.panel.task] = max(panel.items, items.get(panel.panel.task, 0))
    shown = noun(sum(items.values()), "item")
    return sentence(f"answer.{name}", items=shown, share=n.percent(value))


def _evidence_sentence(counts: Counts, unparsed_count_as: str) -> str:
    """Return the sentence on failed requests, parsed responses, and the rule for the others."""
    answers = counts.answers
    failed = "No request failed"
    if counts.failed:
        failed = f"{noun(counts.failed, 'request')} failed and {left_out(counts.failed)}"
    if not answers:
        return sentence("answer.no_answers", failed=failed)
    if counts.unread == 0:
        every = "the one answer was" if answers == 1 else f"all {n.whole(answers)} answers were"
        return sentence("answer.every_read", failed=failed, every=every)
    return sentence(
        "answer.some_read",
        failed=failed,
        evidence=_unusable_text(counts),
        rule=_rule_text(counts, unparsed_count_as),
    )


def _unusable_text(counts: Counts) -> str:
    """Return `20 of 900 responses hold no usable answer (4 refused, 16 cut off)`."""
    replies = noun(counts.answers, "response")
    hold = "holds" if counts.unread == 1 else "hold"
    kinds = unusable(counts)
    return f"{n.whole(counts.unread)} of {replies} {hold} no usable answer ({kinds})"


def _rule_text(counts: Counts, unparsed_count_as: str) -> str:
    if unparsed_count_as == EXCLUDED:
        return left_out(counts.unread)
    return f"{'counts' if counts.unread == 1 else 'count'} as {unparsed_count_as}"


def _judge_sentence(counts: Counts) -> Iterator[str]:
    """Yield the sentence on the number of requests to a judge and of its empty responses."""
    sent, without_verdict = counts.cells - counts.missing, counts.unread + counts.failed
    if sent:
        read = "every reply held a verdict"
        if without_verdict:
            read = f"{n.whole(without_verdict)} of its replies held no verdict or never came"
        yield sentence("answer.judge", times=noun(sent, "time"), read=read)


def _overall_change(panel: PanelResult) -> str:
    if panel.has_no_baseline or not panel.recipes:
        return "no drops"
    counts = panel.verdicts
    if counts["degraded"]:
        return "lose"
    if counts["improved"]:
        return "gain"
    if moves_on_average(panel):
        return "lose" if (panel.micro.value or 0.0) > 0.0 else "gain"
    return "hold" if counts["equivalent"] == len(panel.recipes) else "open"


def _panel_changes(named: Named) -> Iterator[str]:
    """Yield the panels that lose or gain, tested simultaneously, with the largest changes."""
    panels = [panel for _, panel in named]
    models = noun(len({panel.panel.model.id for panel in panels}), "model")
    tasks = noun(len({panel.panel.task for panel in panels}), "task")
    all_panels = f"{noun(len(panels), 'panel')} ({models} on {tasks})"
    changed = _panels_shown_to_change(panels)
    for verb in ("lose", "gain"):
        moved_panels = [pair for pair, is_changed in zip(named, changed, strict=True)
                if is_changed and _overall_change(pair[1]) == verb]  # fmt: skip
        moved_panels.sort(key=lambda pair: -abs(_largest_change(pair[1])[0]))
        if moved_panels:
            yield sentence(
                "panels.found",
                count=n.whole(len(moved_panels)),
                panels=all_panels,
                verb=verb if len(moved_panels) > 1 else f"{verb}s",
                every=n.whole(len(panels)),
                names=listed_bounded(
                    [f"{title} ({size(_largest_change(p)[0])} points {_largest_change(p)[1]})"
                     for title, p in moved_panels], MAX_NAMED_PANELS, MAX_NAMED_PANELS,
                ),
            )  # fmt: skip
            all_panels = f"the {noun(len(panels), 'panel')}"
    if not any(changed):
        name = "hold" if all(_overall_change(panel) == "hold" for panel in panels) else "none"
        yield sentence(
            f"panels.{name}",
            panels=all_panels,
            margin=within_points(panels[0].margin),
            all=n.whole(len(panels)),
        )


def _panels_shown_to_change(panels: Sequence[PanelResult]) -> list[bool]:
    """Return for each panel True if it changes in a test of all panels at once."""
    return panels_rejected([panel.p_any for panel in panels], level=_level_of_panels(panels))


def _level_of_panels(panels: Sequence[PanelResult]) -> float:
    return panels[0].baseline.level


def _largest_change(panel: PanelResult) -> tuple[float, str]:
    """Return the largest shown change of a panel and its recipe, or the average change."""
    shown = [*of_verdict(panel, "degraded"), *of_verdict(panel, "improved")]
    if not shown:
        return panel.micro.value or 0.0, "on average"
    largest = max(shown, key=lambda recipe: abs(drop_of(recipe)))
    return drop_of(largest), f"under {largest.everyday or largest.name}"


def _limit_sentences_of_several(panels: Sequence[PanelResult], level: float) -> Iterator[str]:
    """Yield the number of panels that change only in their own test, and the undecided drops."""
    changed = _panels_shown_to_change(panels)
    only_in_own_test = sum(not is_changed and _overall_change(panel) in ("lose", "gain")
              for panel, is_changed in zip(panels, changed, strict=True))  # fmt: skip
    if only_in_own_test:
        yield sentence(
            "panels.own",
            count=n.whole(only_in_own_test),
            verb="does" if only_in_own_test == 1 else "do",
            chance=f"{(1.0 - level) * changed.count(False):.1g}",
            rest=noun(changed.count(False), "panel"),
        )
    panels = [panel for panel in panels if not panel.has_no_baseline]
    undecided = [recipe for panel in panels for recipe in of_verdict(panel, "undecided")]
    if not undecided:
        return
    total = sum(len(panel.recipes) for panel in panels)
    drops = f"{n.whole(len(undecided))} of {noun(total, 'drop')}"
    if len(undecided) == total:
        drops = f"All {noun(total, 'drop')}"
    name_counts = Counter(recipe.everyday or recipe.name for recipe in undecided)
    yield sentence(
        "answer.open",
        recipes=drops,
        are=are(len(undecided)),
        names=listed_bounded([name for name, _ in name_counts.most_common()]),
        bounds=_still_possible(undecided),
    )


def _sum_of_counts(every: Iterable[Counts]) -> Counts:
    counts = list(every)
    return Counts(**{f.name: sum(getattr(c, f.name) for c in counts) for f in fields(Counts)})


# The sentence about answers kept and meanings noticed


def keeping_sentence(title: str, panel: PanelResult) -> str:
    """Return the sentence on answers kept and meanings noticed; empty if they were not measured."""
    keeping = panel.keeping
    if keeping is None:
        return ""
    again = keeping.again.value if keeping.again is not None else None
    moved = 0.0 if again is None else 1.0 - again
    warning = sentence("keeping.restless", share=n.percent(moved)) if moved > RESTLESS else ""
    kept = _kept_sentence(title, keeping, again)
    if keeping.word == "not asked":
        kept = kept[:1].upper() + kept[1:]
    return (
        warning
        + sentence(
            f"keeping.{keeping.word.replace(' ', '_')}",
            keeps=kept,
            reads="" if keeping.reads is None else _share_text(keeping.reads),
            weakest=_weakest_sentence(keeping.weakest(control=False), panel),
            least=_least_sentence(keeping.weakest(control=True), panel),
            needed=""
            if keeping.needed is None
            else sentence("keeping.needed", items=n.whole(keeping.needed)),
        )
        + _deaf_to_sentence(keeping)
        + _keeping_lines_sentence(keeping)
    )


def _kept_sentence(title: str, keeping: KeepsAndReads, again: float | None) -> str:
    harmless = [c for c in keeping.conditions if not c.control]
    if not harmless or keeping.keeps.value is None:
        return sentence("keeping.no_change", panel=title)
    changes = noun(len(harmless), "harmless change")
    asked = "" if again is None else sentence("keeping.again", share=n.percent(again))
    return sentence(
        "keeping.keeps", changes=changes, panel=title, share=_share_text(keeping.keeps), again=asked
    )


def _share_text(share: Estimate) -> str:
    if share.low is None or share.high is None:
        return f"{n.percent(share.value)} %"
    value, low, high = (n.percent(max(0.0, v or 0.0)) for v in (share.value, share.low, share.high))
    return sentence("keeping.shared", value=value, low=low, high=high)


def _weakest_sentence(weakest: Condition | None, panel: PanelResult) -> str:
    if weakest is None or weakest.share.value is None or weakest.share.value == 1.0:
        return ""
    everyday = {r.label: r.everyday for r in panel.recipes}.get(weakest.label) or weakest.label
    return sentence("keeping.weakest", name=everyday, share=n.percent(weakest.share.value))


def _least_sentence(least: Condition | None, panel: PanelResult) -> str:
    if least is None or least.share.value is None or least.share.value == 1.0:
        return ""
    return sentence("keeping.least", name=least.label, count=least.count, items=least.items)


def _deaf_to_sentence(keeping: KeepsAndReads) -> str:
    ignored = [f"{c.label}, noticed in {c.count} of {c.items}" for c in keeping.deaf_to]
    if not ignored or keeping.word in ("deaf", "undecided"):
        return ""
    return sentence("keeping.deaf_to", names="; ".join(ignored))


def _keeping_lines_sentence(keeping: KeepsAndReads) -> str:
    if keeping.word == "not asked":
        return ""
    keep, read = (n.percent(line) for line in keeping.lines)
    return sentence("keeping.lines", keep=keep, read=read)
