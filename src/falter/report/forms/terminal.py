"""A report in the terminal: tables that fit, heat maps as numbers, curves as small lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rich.console import Console

from falter.records import numbers as n
from falter.records.figures import (
    Breakdown,
    Examples,
    Figure,
    Forest,
    Headline,
    Side,
    Statement,
    Study,
)
from falter.report.drawing.axis import Scale, scales_of
from falter.report.escape import line
from falter.report.forms.printing import Printer
from falter.report.forms.terminal_figures import as_grid, forest_rows, grid_rows
from falter.report.marks import model_names, readable, warning
from falter.report.tables import word_diff
from falter.report.words import about, counted, dashes, facts, first_number, opened

WIDTH = 100
LONGEST_TEXT = 300


def terminal(study: Study, console: Console, names: Sequence[str] = ()) -> None:
    """Print the figures with these names, or else the main ones, and name the remaining ones.

    Text from outside is shown as it is, never as markup or a command.
    """
    chosen = set(names or study.headline or [figure.name for figure in study.figures])
    out = Printer(console)
    figures = readable(study)
    scales = scales_of(figures)
    out.heading(line(study.title, 200))
    if study.protocol:
        out.prose(facts(study), "dim")
        models = ", ".join(line(model, 100) for model in model_names(study))
        out.prose(f"Models: {models or 'none'}")
    out.prose(line(warning(study), 2_000), "bold yellow")
    section = study.title
    for place, figure in enumerate(figures, start=first_number(study)):
        if figure.name not in chosen:
            continue
        if figure.section and figure.section != section:
            out.blank()
            out.heading(line(figure.section, 200))
        section = figure.section or section
        number = f"{place}. " if study.protocol and place else ""
        _figure(figure, number, scales, out)
    _rest(study, chosen, out)
    _foot(study, out)


def terminal_figures(figures: Sequence[Figure], console: Console) -> None:
    """Print figures by themselves."""
    out = Printer(console)
    scales = scales_of(figures)
    for figure in figures:
        _figure(figure, "", scales, out)


def _figure(figure: Figure, number: str, scales: Mapping[str, Scale], out: Printer) -> None:
    if isinstance(figure, Statement):
        lead, style = ("Note: ", "yellow") if figure.kind in ("note", "warning") else ("", "")
        for place, words in enumerate(figure.text):
            bold = "bold" if figure.kind == "answer" and not place else style
            out.prose(f"{lead}{line(words, 1_000)}", bold)
        if figure.kind == "answer":
            out.blank()
        return
    if isinstance(figure, Headline):
        _headline(figure, out)
        return
    out.blank()
    out.heading(f"{number}{line(figure.title or figure.name, 160)}")
    if isinstance(figure, Forest):
        out.rows(forest_rows(figure, scales[figure.scale], out))
        out.blank()
    for words in figure.text:
        out.prose(line(words, 1_000))
    if isinstance(figure, Examples):
        _examples(figure, out)
    elif not isinstance(figure, Forest):
        out.prose(about(figure), "dim")
        _table(figure, out)
    if isinstance(figure, Breakdown):
        for row in figure.rows:
            for words in row.lines:
                out.prose(f"{line(row.label, 60)}: {line(words, 600)}")
    out.prose(dashes(figure), "dim")


def _headline(figure: Headline, out: Printer) -> None:
    """A line a number."""
    out.prose(line(" ".join(figure.text), 1_000), "dim")
    for number in figure.numbers:
        value = n.headline(number).replace(" ", "\xa0")  # stays on one line
        out.prose(f"{line(number.label, 60)} {value} {line(number.about, 200)}")
    out.prose(dashes(figure), "dim")


def _examples(figure: Examples, out: Printer) -> None:
    """Both prompts with their answers; the edits of the second are readable as in a word diff."""
    for example in figure.examples:
        where = f"{line(example.recipe, 60)} on item {line(example.item, 60)}"
        turned = "" if example.turned == "same" else f"{example.turned}: "
        out.prose(f"{turned}{where}", "bold")
        asked = "".join(segment.before for segment in example.segments)
        out.prose(f"as asked: {line(asked, LONGEST_TEXT)}")
        _side(example.baseline, out)
        if any(segment.kind == "edit" for segment in example.segments):
            out.prose(f"as changed: {line(word_diff(example.segments), LONGEST_TEXT)}")
            _side(example.perturbed, out)
        out.prose(f"expected: {line(example.expected, LONGEST_TEXT)}")


def _side(side: Side, out: Printer) -> None:
    out.prose(f"  {line(side.word, 60)}: {line(side.answer, LONGEST_TEXT)}")
    if side.reading:
        out.prose(f"  reading: {line(side.reading, LONGEST_TEXT)}")


def _table(figure: Figure, out: Printer) -> None:
    grid = as_grid(figure, out)
    if not grid.rows or not grid.columns:
        out.prose("Nothing was measured for this figure.")
        return
    for rows in grid_rows(grid, min(out.width, WIDTH), out):
        out.rows(rows)
        out.blank()


def _rest(study: Study, chosen: Collection[str], out: Printer) -> None:
    """The names of the figures that were not printed."""
    hidden = [figure.name for figure in study.figures if figure.name not in chosen]
    if hidden:
        out.blank()
        count = f"{len(hidden)} more figure{'' if len(hidden) == 1 else 's'}"
        out.prose(f"{count}: {line(', '.join(hidden), 4_000)}.", "dim")
        if study.protocol or study.parts:
            out.prose("'falter report' with --figure NAME prints one, --html draws all.", "dim")


def _foot(study: Study, out: Printer) -> None:
    if study.protocol and study.parts:
        out.blank()
        out.heading("Runs behind the figures")
        for part in study.parts:
            out.prose(f"{line(part.title or part.name, 160)}: {counted(part)}; {opened(part)}")
    for note in study.notes:
        out.prose(f"Note: {line(note, 1_000)}", "yellow")
    out.blank()
    out.prose(
        "Drops are in points, + is worse; brackets contain intervals over items. p is adjusted for "
        "all recipes of a panel. ● worse or better, ◎ the same within the margin, ○ undecided, "
        "◆ ◇ averages (◆ where that of all recipes excludes zero).",
        "dim",
    )
    if not study.protocol:
        out.prose(facts(study), "dim")
    if data := study.origin.get("data"):
        out.prose(f"Data: {line(data, 300)}", "dim")
