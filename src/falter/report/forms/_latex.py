"""A report as one LaTeX file that compiles by itself with pdflatex.

It needs booktabs, colortbl, graphicx and xcolor, and is plain ASCII whatever the names are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from falter.core.ids import short
from falter.figures import (
    Breakdown,
    Column,
    Examples,
    Figure,
    Grid,
    Headline,
    HeatMap,
    Statement,
    Strips,
    Study,
    Value,
)
from falter.report._marks import model_names, readable, warning
from falter.report._tables import grids
from falter.report._words import (
    about,
    counted,
    dashes,
    facts,
    first_number,
    guide,
    methods,
    opened,
    origin,
)
from falter.report.forms._latex_grid import NOTHING, grid_tables, heat_tables
from falter.report.forms._latex_text import latex, words

__all__ = ["as_latex"]

_TOP = r"""% Compiles by itself: pdflatex FILE.tex
\documentclass[10pt,a4paper]{article}
\usepackage[table]{xcolor}
\usepackage{colortbl}
\usepackage{booktabs}
\usepackage{graphicx}
\setlength{\textwidth}{17.4cm}\setlength{\oddsidemargin}{-0.74cm}
\setlength{\textheight}{25cm}\setlength{\topmargin}{-1.6cm}
\setlength{\parindent}{0pt}\setlength{\parskip}{5pt plus 1pt}
\setlength{\emergencystretch}{3em}\raggedbottom
\definecolor{worse}{HTML}{B5450B}\definecolor{better}{HTML}{0A62A9}
\definecolor{heatz}{HTML}{F1F3F5}
\definecolor{heatw1}{HTML}{FDE6D3}\definecolor{heatw2}{HTML}{FBCDA8}
\definecolor{heatw3}{HTML}{F5AD77}\definecolor{heatw4}{HTML}{E58A4A}
\definecolor{heatw5}{HTML}{B9500F}\definecolor{heatw6}{HTML}{8C3403}
\definecolor{heatb1}{HTML}{DCEAF7}\definecolor{heatb2}{HTML}{B9D5EF}
\definecolor{heatb3}{HTML}{8FBAE3}\definecolor{heatb4}{HTML}{629DD2}
\definecolor{heatb5}{HTML}{2B6FB3}\definecolor{heatb6}{HTML}{0B4A84}
\definecolor{heatn1}{HTML}{E6EAEE}\definecolor{heatn2}{HTML}{CDD5DD}
\definecolor{heatn3}{HTML}{AAB6C2}\definecolor{heatn4}{HTML}{8291A0}
\definecolor{heatn5}{HTML}{55636F}\definecolor{heatn6}{HTML}{333F4A}
\definecolor{kd}{HTML}{6B5B4B}\definecolor{alarm}{HTML}{FFF3D6}
\newcolumntype{L}[1]{>{\raggedright\arraybackslash\hspace{0pt}}p{#1}}
\newcommand{\faltercell}[2]{\raisebox{-0.45\height}{\shortstack{\strut #1\\{\tiny #2}}}%
\rule[-9pt]{0pt}{22pt}}
\newcommand{\falterneed}[1]{\par\begingroup\dimen0=\pagegoal\advance\dimen0-\pagetotal
\ifdim\pagetotal>0pt\relax\ifdim\dimen0<#1\relax\newpage\fi\fi\endgroup}
\newsavebox{\falterbox}
\newenvironment{falterfit}{\par\medskip\begin{lrbox}{\falterbox}\footnotesize}{\end{lrbox}%
\ifdim\wd\falterbox>\linewidth\resizebox{\linewidth}{!}{\usebox{\falterbox}}%
\else\usebox{\falterbox}\fi\par\medskip}
\begin{document}
"""


def as_latex(study: Study) -> str:
    """Return every figure as booktabs tables, heat maps in colour. Charts are written as SVG."""
    models = ", ".join(latex(model, 120) for model in model_names(study)) or "none"
    parts = [
        rf"\section*{{falter: {latex(study.title)}}}",
        rf"{{\small {words(facts(study))}\par Models: {models}"
        + (rf"\par {latex(known, 700)}}}" if (known := origin(study)) else "}"),
    ]
    if text := warning(study):
        parts.append(_alarm(text))
    figures = readable(study)
    section = ""
    for place, figure in enumerate(figures, start=first_number(study)):
        if figure.section and figure.section != section:
            parts.append(rf"\section*{{{latex(figure.section, 200)}}}")
        section = figure.section
        number = f"{place}. " if study.protocol and place else ""
        parts += _figure(figure, number, place > 1)
    parts += _foot(study)
    return _TOP + "\n\n".join(filter(None, parts)) + "\n\\end{document}\n"


def _alarm(text: str) -> str:
    box = r"\begin{minipage}{0.96\linewidth}\raggedright\bfseries "
    return rf"\fcolorbox{{kd}}{{alarm}}{{{box}{latex(text, 2_000)}\end{{minipage}}}}"


def _figure(figure: Figure, number: str, later: bool) -> Iterator[str]:
    if not isinstance(figure, Headline | Statement) and later:
        yield r"\falterneed{8cm}"
    if not isinstance(figure, Headline):
        yield rf"\subsection*{{{number}{latex(figure.title or figure.name, 200)}}}"
    yield from (latex(text, 1_000) for text in figure.text)
    if note := " ".join(filter(None, (about(figure), dashes(figure)))):
        yield rf"{{\small {words(note)}}}"
    yield from _tables(figure)


def _tables(figure: Figure) -> Iterator[str]:
    """The figure's numbers; of strips only the summary of each."""
    if isinstance(figure, Grid):
        yield grid_tables(figure)
    elif isinstance(figure, HeatMap):
        yield heat_tables(figure)
    elif isinstance(figure, Examples):
        yield from _examples(figure)
    else:
        tables = [grid_tables(grid) for grid in grids(figure) if grid.rows and grid.columns]
        yield from tables[:1] if isinstance(figure, Strips) else tables
        if not tables and not isinstance(figure, Headline | Statement):
            yield NOTHING
    if isinstance(figure, Breakdown):
        yield from _lines(figure)
    if isinstance(figure, Headline) and figure.signature:
        yield rf"{{\scriptsize {latex(figure.signature, 1_000)}}}"


def _lines(figure: Breakdown) -> Iterator[str]:
    """What is read below each row."""
    for row in figure.rows:
        if row.lines:
            yield rf"{{\small \textbf{{{latex(row.label)}}} {latex(' '.join(row.lines), 1_000)}}}"


def _examples(figure: Examples) -> Iterator[str]:
    for example in figure.examples:
        lines = [rf"\textbf{{{latex(example.recipe)}}} on item {latex(example.item)}"]
        for title, side, which in (
            ("As asked", example.baseline, "before"),
            ("As changed", example.perturbed, "after"),
        ):
            prompt = "".join(getattr(segment, which) for segment in example.segments)
            lines.append(
                rf"{title}: {latex(prompt, 600)} \emph{{{latex(side.word, 60)}}}: "
                rf"{latex(side.answer, 300)}"
            )
        yield r"\par ".join(lines)


def _foot(study: Study) -> list[str]:
    parts = []
    if study.parts and study.protocol:
        rows = [
            (part.title or part.name, short(part.run), counted(part), opened(part))
            for part in study.parts
        ]
        names = ("Part", "Run", "Cells", "Open it with")
        parts += [r"\subsection*{Runs behind the figures}", grid_tables(_words(names, rows))]
    if study.notes:
        parts += [r"\subsection*{Notes}", *(latex(note, 2_000) for note in study.notes)]
    if listed := methods(study):
        heads = ("Measure", "What it estimates", "Interval and test")
        parts += [r"\subsection*{Methods}", grid_tables(_words(heads, listed))]
    items = "\n".join(rf"\item {words(text)}" for text in guide(study))
    listing = rf"\begin{{itemize}}\setlength{{\itemsep}}{{0pt}}{items}\end{{itemize}}"
    return [*parts, r"\subsection*{How to read this}", rf"{{\small {listing}}}"]


def _words(names: Iterable[str], rows: Iterable[tuple[Value, ...]]) -> Grid:
    columns = tuple(Column(name=name) for name in names)
    return Grid(name="", title="", columns=columns, rows=tuple(rows), labels=len(columns))
