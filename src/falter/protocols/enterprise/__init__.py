"""The protocol `enterprise`: does quality survive changes of prompt, format and language?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from falter.protocols.enterprise.figures import (
    main_figures,
    run_figures,
    sample_figures,
    size_figures,
    title_of,
)
from falter.protocols.enterprise.pairs import judged_task, main_results, max_calls
from falter.protocols.enterprise.parts import BASELINE, PRESETS, parts_of
from falter.protocols.enterprise.published import published_figures
from falter.protocols.enterprise.scores import MIN_SAME_ROUGE, Scores
from falter.protocols.enterprise.splits import split_figures, supplementary_figures
from falter.protocols.judging import VERSION
from falter.protocols.protocol import Part, PartResult, Protocol, UserSettings, protocols
from falter.protocols.tables import APPENDIX, chapter, counts_grid, figures_of, findings, grid_named
from falter.records import numbers as n
from falter.records.figures import Figure
from falter.records.types import Estimate
from falter.rewrites.agreement import Agreement
from falter.tasks.task import Task

declaration = figures_of("enterprise")


def notes_of(preset: str) -> tuple[str, ...]:
    """Return sentences on the settings of the preset, for the plan and the report."""
    chosen = PRESETS[preset]
    notes: tuple[str, ...] = declaration(
        "notes",
        quick=preset == "quick",
        items=chosen.items,
        translated=chosen.translated,
        languages=", ".join(chosen.multilingual),
        pairs=", ".join(f"{shown} and {wanted}" for shown, wanted in chosen.crosslingual),
        version=VERSION,
        alike=f"{MIN_SAME_ROUGE:g}",
    )["text"]
    return notes


MAX_ROWS = 6


class Enterprise(Protocol):
    """Summaries, answers and slots under wording, position, formats and languages; each reply is
    compared with the one to the clean prompt."""

    name = "enterprise"
    summary = "whether an application keeps its quality when wording, format and language change"
    presets = tuple(PRESETS)
    has_published_tables = True
    takes_judges = True
    takes_rubrics = True
    headline = ("answer", "robustness", "formats", "difficulty")

    def parts(self, settings: UserSettings) -> tuple[Part, ...]:
        return tuple(parts_of(settings))

    def judged(self, part: Part, results: Mapping[str, PartResult]) -> Task:
        return judged_task(part, results)

    def judge_calls(self, part: Part, cells: Mapping[tuple[str, str], int]) -> int:
        return max_calls(part, cells)

    def notes(self, preset: str) -> tuple[str, ...]:
        return notes_of(preset)

    def figures(
        self, results: Sequence[PartResult], ratings: Agreement | None
    ) -> tuple[Figure, ...]:
        """Return every table and chart that the parts allow, in reading order."""
        if not results:
            return ()
        analysis = results[0].analysis
        scores = Scores(results, analysis.level, analysis.seed)
        main, runs = main_figures(scores), [*run_figures(scores), *size_figures(scores)]
        counts = counts_grid(main_results(scores.by_name))
        return (
            findings(_answer_sentences(main), results, unparsed_count_as="changed"),
            *chapter("Robustness", main),
            *chapter("Formats, languages, tasks", split_figures(scores)),
            *chapter("Runs and sizes", runs),
            *chapter("Likeness and ratings", supplementary_figures(scores)),
            *chapter(APPENDIX, [*sample_figures(scores), counts], folded=True),
        )

    def published(self, results: Sequence[PartResult]) -> tuple[Figure, ...]:
        """Return the paper's tables of categories, formats and languages with the run's numbers."""
        analysis = results[0].analysis
        scores = Scores(results, analysis.level, analysis.seed)
        return chapter("The paper's tables", published_figures(scores))


def _answer_sentences(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield sentences per model: its robustness, strict and valid, and the weakest category."""
    grid = grid_named(figures, "robustness")
    for row in grid.rows[:MAX_ROWS] if grid is not None else ():
        whole, valid = row[1], row[3]
        known = [
            (value.value, value, column.name)
            for value, column in zip(row[4:], grid.columns[4:] if grid else (), strict=True)
            if isinstance(value, Estimate) and value.value is not None
        ]
        if not isinstance(whole, Estimate) or whole.value is None or not known:
            continue
        parsed = ""
        if isinstance(valid, Estimate) and valid.value is not None:
            retried = any(name == title_of(BASELINE) for _, _, name in known)
            kinds = ", and the repeated clean prompt among the kinds, as the paper counts,"
            parsed = (
                f"With the replies that could be read alone{kinds if retried else ''} it is "
                f"{n.shown(valid, 'percent').with_unit(' %')}."
            )
        least = _least_robust([one for one in known if one[2] != title_of(BASELINE)])
        yield (
            f"{row[0]} is robust in {n.shown(whole, 'percent').with_unit(' %')} of its replies, on "
            "average over the kinds of change: their content and quality did not both change."
        )
        unread = "A pair with a reply that could not be read counts as changed."
        yield " ".join(filter(None, (least, unread, parsed)))


def _least_robust(kinds: Sequence[tuple[float, Estimate, str]]) -> str:
    """Return a sentence on the category with the lowest robustness; empty for fewer than two.

    `kinds` are value, estimate and title per category. If the interval of the lowest one overlaps
    another, the sentence says that the order is undecided.
    """
    if len(kinds) < 2:
        return ""
    (_, least, name), *others = sorted(kinds, key=lambda one: one[0])
    value = n.shown(least, "percent").with_unit(" %")
    if least.value == others[-1][0]:
        return f"All kinds have the same value: {value}."
    ends = [other.low for _, other, _ in others]
    if least.high is None or any(low is None or low <= least.high for low in ends):
        return f"Which kind costs most is undecided; the lowest value is that of {name}: {value}."
    return f"The fewest are robust under {name}: {value}."


protocols.register("enterprise", Enterprise())
