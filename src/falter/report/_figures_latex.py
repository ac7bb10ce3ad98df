"""A study, or a run, as one LaTeX file that compiles by itself with pdflatex.

It needs booktabs, colortbl, xcolor and pgfplots, and is plain ASCII whatever the names are.
"""

from __future__ import annotations

from collections.abc import Iterable

from falter.analysis import Analysis, PanelResult
from falter.core.ids import short
from falter.figures import Bars, Column, Curves, Figure, Grid, HeatMap, Strips, Study, Value
from falter.report import _numbers as n
from falter.report._escape import line
from falter.report._figure_marks import marked, model_names, warning
from falter.report._figure_tables import grids
from falter.report._figure_words import GUIDE, about, counted, dashes, facts, methods, opened
from falter.report._latex_plot import bar_plots, curve_plots, strip_plots
from falter.report._latex_table import grid_tables, heat_tables
from falter.report._latex_text import latex, words
from falter.report._words import footnotes, rule, title

__all__ = ["run_latex", "study_latex"]

_TOP = r"""% Compiles by itself: pdflatex FILE.tex
\documentclass[10pt,a4paper]{article}
\usepackage[table]{xcolor}
\usepackage{colortbl}
\usepackage{booktabs}
\usepackage{pgfplots}
\pgfplotsset{compat=1.13}
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
\definecolor{ka}{HTML}{C8540F}\definecolor{kb}{HTML}{1D74B4}\definecolor{kc}{HTML}{7D5BB5}
\definecolor{kd}{HTML}{977000}\definecolor{ke}{HTML}{2C7F6B}\definecolor{kf}{HTML}{66717D}
\definecolor{kitem}{HTML}{7A8796}\definecolor{alarm}{HTML}{FFF3D6}
\newcolumntype{L}[1]{>{\raggedright\arraybackslash\hspace{0pt}}p{#1}}
\newcommand{\faltercell}[2]{\raisebox{-0.45\height}{\shortstack{\strut #1\\{\tiny #2}}}%
\rule[-9pt]{0pt}{22pt}}
\newcommand{\falterneed}[1]{\par\begingroup\dimen0=\pagegoal\advance\dimen0-\pagetotal
\ifdim\pagetotal>0pt\ifdim\dimen0<#1\newpage\fi\fi\endgroup}
\newsavebox{\falterbox}
\newenvironment{falterfit}{\par\medskip\begin{lrbox}{\falterbox}\footnotesize}{\end{lrbox}%
\ifdim\wd\falterbox>\linewidth\resizebox{\linewidth}{!}{\usebox{\falterbox}}%
\else\usebox{\falterbox}\fi\par\medskip}
\pgfplotsset{falter/.style={scale only axis=false,tick align=outside,tick pos=left,
axis line style={gray},major grid style={gray!20},label style={font=\footnotesize},
tick label style={font=\scriptsize},title style={font=\footnotesize\bfseries},
scaled ticks=false,unbounded coords=jump}}
\begin{document}
"""


def study_latex(study: Study) -> str:
    """Every figure: booktabs tables, coloured heat maps, charts with tables of their numbers."""
    models = ", ".join(latex(model, 120) for model in model_names(study)) or "none"
    parts = [
        rf"\section*{{falter: {latex(study.protocol)}, {latex(study.preset)}}}",
        rf"{{\small {words(facts(study))}\par Models: {models}}}",
    ]
    if told := warning(study):
        parts.append(_alarm(told))
    for place, figure in enumerate(marked(study), start=1):
        parts += _figure(figure, place)
    parts += _foot(study)
    return _whole(parts)


def run_latex(analysis: Analysis) -> str:
    """The table of recipes of every panel: drop, p and accuracy."""
    parts = [
        r"\section*{falter report}",
        rf"{{\small {words(_facts(analysis))}}}",
    ]
    for panel in analysis.panels:
        parts += [
            rf"\subsection*{{{latex(title(panel), 200)}}}",
            rf"{{\small {words(_summary(panel))}}}",
            grid_tables(_recipes(panel)),
            *filter(None, [words(footnotes(panel))]),
            *(rf"\emph{{{latex(note, 1_000)}}}" for note in panel.notes),
        ]
    if not analysis.panels:
        parts.append("The run has no panel: no model was asked on any task.")
    return _whole(parts)


def _whole(parts: Iterable[str]) -> str:
    return _TOP + "\n\n".join(parts) + "\n\\end{document}\n"


def _alarm(told: str) -> str:
    box = r"\begin{minipage}{0.96\linewidth}\raggedright\bfseries "
    return rf"\fcolorbox{{kd}}{{alarm}}{{{box}{latex(told, 2_000)}\end{{minipage}}}}"


def _figure(figure: Figure, place: int) -> list[str]:
    told = [latex(text, 1_000) for text in figure.text]
    note = " ".join(filter(None, (about(figure), dashes(figure))))
    return [
        r"\falterneed{8cm}" if place > 1 else "",
        rf"\subsection*{{{place}. {latex(figure.title or figure.name, 200)}}}",
        *told,
        rf"{{\small {words(note)}}}" if note else "",
        *_picture(figure),
    ]


def _picture(figure: Figure) -> list[str]:
    """The picture; under a chart, the table of its numbers."""
    if isinstance(figure, Grid):
        return [grid_tables(figure)]
    if isinstance(figure, HeatMap):
        return [heat_tables(figure)]
    tables = [grid_tables(grid) for grid in grids(figure) if grid.rows and grid.columns]
    if isinstance(figure, Curves):
        return [curve_plots(figure), *tables]
    if isinstance(figure, Bars):
        return [bar_plots(figure), *tables]
    assert isinstance(figure, Strips)
    return [strip_plots(figure), *tables[:1]]


def _foot(study: Study) -> list[str]:
    parts = []
    if study.parts:
        rows = [
            (part.title or part.name, short(part.run), counted(part), opened(part))
            for part in study.parts
        ]
        names = ("Part", "Run", "Cells", "Open it with")
        parts += [r"\subsection*{Runs behind the figures}", grid_tables(_words(names, rows))]
    if study.notes:
        parts += [r"\subsection*{Notes}", *(latex(note, 2_000) for note in study.notes)]
    if found := methods(study):
        heads = ("Measure", "What it estimates", "Interval and test")
        parts += [r"\subsection*{Methods}", grid_tables(_words(heads, found))]
    guide = "\n".join(rf"\item {words(text)}" for text in GUIDE)
    listed = rf"\begin{{itemize}}\setlength{{\itemsep}}{{0pt}}{guide}\end{{itemize}}"
    return [*parts, r"\subsection*{How to read this}", rf"{{\small {listed}}}"]


def _words(names: Iterable[str], rows: Iterable[tuple[Value, ...]]) -> Grid:
    columns = tuple(Column(name=name) for name in names)
    return Grid(name="", title="", columns=columns, rows=tuple(rows), labels=len(columns))


def _facts(analysis: Analysis) -> str:
    return (
        f"{n.date(analysis.created_at)} · {n.level(analysis.level)} intervals · "
        f"{rule(analysis)} · run {line(short(analysis.run), 40)} · seed {analysis.seed} · "
        f"falter {line(analysis.version, 60)}"
    )


def _summary(panel: PanelResult) -> str:
    return (
        f"{n.whole(panel.items)} items · baseline accuracy "
        f"{n.shown(panel.baseline, 'percent').with_unit(' %')} · average drop "
        f"{n.shown(panel.micro, 'points').with_unit(' points')} · brittleness "
        f"{n.shown(panel.brittleness, 'percent').with_unit(' %')}"
    )


def _recipes(panel: PanelResult) -> Grid:
    columns = (
        Column(name="Recipe"),
        Column(name="Group"),
        Column(name="Drop, points", unit="points"),
        Column(name="p (Holm)", unit="p"),
        Column(name="Accuracy, %", unit="percent"),
    )
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (r.label, r.group, r.drop, n.p_value(r.p_holm), r.accuracy) for r in panel.recipes
    )
    return Grid(name="", title="", columns=columns, rows=rows)
