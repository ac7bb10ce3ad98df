"""Studies made by hand, for looking at figures: an ordinary one, empty ones and hostile ones."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from falter.records.figures import (
    Bar,
    Bars,
    Breakdown,
    BreakdownRow,
    Column,
    Curve,
    Curves,
    Figure,
    Grid,
    HeatMap,
    Strip,
    Strips,
    Study,
    StudyPart,
    Unit,
)
from falter.records.types import Estimate, EstimateStatus

__all__ = ["HOSTILE", "empty", "estimate", "hostile", "ordinary", "undefined"]

HOSTILE = (
    "<script>document.title='pwned'</script>",
    "<img src=x onerror=\"document.title='pwned'\">",
    "\\write18{touch pwned}\\input{/etc/passwd}",
    "=cmd|' /C calc'!A0|\"x\"",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd",
    "n" * 300,
    "50 % & more_$x^2$ ~ #1 {a} \\ ``q'' -- ?` <<>> |",
    "a|b\nc\td \x1b[31mred \u4e2d\u6587 \U0001f600 caf\u00e9 na\u00efve \u0142\u00f3d\u017a \u03b1",
    "^^M %\n\\end{document} \\def\\x{\\x}\\x",
    "[x](http://e.example) `code` *y* www.e.example",
)

MODELS = ("SmolLM2-135M q8", "SmolLM2-135M q4", "sim-steady")
SIMULATED = ("sim-steady",)
GROUPS = {
    "word": ("typos", "misspellings", "capitals", "spacing", "word-drop", "synonyms"),
    "augmentation": ("persona", "emotion"),
    "padding": ("newlines", "quotes", "irrelevant"),
    "paraphrase": ("formal", "simple", "reordered"),
}
BASE = dict(zip(MODELS, (0.467, 0.433, 0.71), strict=True))


def estimate(
    value: float | None,
    error: float = 0.02,
    *,
    measure: str = "accuracy_drop",
    p: float | None = None,
    status: EstimateStatus = "ok",
    method: str = "t over items",
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Estimate:
    """A value with an interval of two errors to each side."""
    return Estimate(
        measure=measure,
        value=value,
        status=status,
        estimand="these conditions, items like these",
        low=None if value is None else max(bounds[0], value - 1.96 * error),
        high=None if value is None else min(bounds[1], value + 1.96 * error),
        p_value=p,
        method=method,
        items=60,
        conditions=2,
        excluded=1,
        seed=0,
        signature="falter 0.1.0 | basics@3f1c09ab | 60 items | seed 0",
    )


def _drops(seed: int) -> Iterator[Estimate]:
    draw = random.Random(seed)
    while True:
        value, error = draw.gauss(0.035, 0.045), draw.uniform(0.012, 0.03)
        yield estimate(value, error, p=math.erfc(abs(value) / error / math.sqrt(2)))


def drops() -> Grid:
    """Model × perturbation, with group averages: the wide one."""
    columns = [Column(name="Model"), Column(name="Baseline, %", unit="percent")]
    for group, names in GROUPS.items():
        columns += [Column(name=name, unit="points", over=group) for name in names]
    columns.append(Column(name="All", unit="points", over="mean"))
    rows = []
    for seed, model in enumerate(MODELS):
        found = _drops(seed)
        base = estimate(BASE[model], 0.05, measure="accuracy", method="Agresti-Coull")
        rows.append((model, base, *(next(found) for _ in range(15))))
    return Grid(
        name="drops",
        title="Drop by model and perturbation",
        columns=tuple(columns),
        rows=tuple(rows),
        text=("Multiple choice without demonstrations, 60 items of basics.",),
    )


def ranking() -> Grid:
    """Two label columns, words, counts, p-values, cells that do not apply."""
    columns = (
        Column(name="Task"), Column(name="Perturbation"),
        Column(name="Rank correlation", unit="coefficient"), Column(name="p", unit="p"),
        Column(name="Swaps", unit="count"), Column(name="Baseline, %", unit="percent"),
        Column(name="Score", unit="score"), Column(name="Verdict"),
    )  # fmt: skip
    rows = [
        (task, name, estimate(r, 0.2, measure="spearman"), p, swaps,
         estimate(0.5 + r / 10, 0.04, measure="accuracy", bounds=(0, 1)),
         None if swaps == 1 else estimate(0.684, 0.03, measure="judged"), told)
        for task, name, r, p, swaps, told in (
            ("basics", "typos", 0.5, 0.31, 1, "changed"),
            ("basics", "newlines", 1.0, 0.0004, 0, "same order"),
            ("arc_easy", "typos", -0.5, 0.072, 2, "changed"),
            ("arc_easy", "newlines", 0.87, 0.5, 1300, "same order"),
        )
    ]  # fmt: skip
    return Grid(
        name="ranking", title="Do the models keep their order?", columns=columns,
        rows=tuple(rows), labels=2,
        text=("Half of the cases change the order of the models.",
              "With three models a rank correlation says little: see the null."),
    )  # fmt: skip


def pairs(unit: Unit = "points") -> HeatMap:
    """Ordered pairs: A then B."""
    names = ("typos", "capitals", "spacing", "newlines", "quotes", "persona", "formal")
    found = _drops(7)
    if unit != "points":
        found = (estimate(abs(e.value or 0.0) * 9, 0.05, measure="agreement") for e in found)
    cells = tuple(
        tuple(None if a == b else next(found) for b in names) for a in names
    )  # fmt: skip
    return HeatMap(
        name="pairs" if unit == "points" else "agreement",
        title="Two perturbations in a row" if unit == "points" else "How alike they are",
        down="first", across="second", rows=names, columns=names, cells=cells, unit=unit,
        text=("Drop of SmolLM2-135M q8 when the second follows the first.",) * (unit == "points"),
    )  # fmt: skip


def curves() -> Curves:
    """Four facets, three models, seven doses."""
    draw = random.Random(3)
    out = []
    for facet, slope in (("typos", 0.07), ("spaces", 0.015), ("quotes", 0.03), ("newlines", 0.05)):
        for model in MODELS:
            points = []
            for rank, dose in enumerate((0, 1, 2, 4, 8, 16, 32)):
                value = BASE[model] - (slope if model not in SIMULATED else 0.4 * slope) * rank
                value = max(0.1, value + draw.gauss(0, 0.012) * (rank > 0))
                found = estimate(value, 0.045, measure="accuracy", bounds=(0, 1))
                points.append((float(dose), found))
            out.append(Curve(label=model, points=tuple(points), facet=facet))
    return Curves(
        name="intensity", title="Accuracy against the number of edits", down="accuracy",
        across="edits", curves=tuple(out),
    )  # fmt: skip


def bars() -> Bars:
    """Variance components and brittleness by model and task."""
    rows = []
    for model, parts in zip(
        MODELS, ((0.171, 0.073, 0.004), (0.152, 0.091, None), (0.188, 0.017, 0.0)), strict=True
    ):
        for task, scale in (("basics", 1.0), ("arc_easy", 0.8)):
            known = [p * scale for p in parts if p is not None]
            found = tuple(
                None if p is None else estimate(p * scale, 0.006, measure="plugin.part")
                for p in parts
            )
            share = estimate(known[1] / sum(known), 0.03, measure="brittleness", bounds=(0, 1))
            rows.append(Bar(label=f"{model} on {task}", parts=found, share=share))
    return Bars(
        name="brittleness", title="Where the variance comes from", across="variance",
        parts=("item difficulty", "perturbation", "repeats"), share="brittleness, %",
        bars=tuple(rows),
    )  # fmt: skip


def breakdown() -> Breakdown:
    """Drops in parts: one of reading alone, one with a part below zero, one with an exact zero."""
    zero = replace(estimate(0.0, method="none: nothing to correct"), low=None, high=None)
    unseen = estimate(None, status="not_identified", method="none: it was not looked at")
    rows = []
    for label, values in (
        ("typos", (0.081, 0.02, None, 0.012)),
        ("capitals", (-0.021, 0.0, 0.034, 0.09)),
        ("quotes", (0.0, 0.0, 0.0, -0.033)),
    ):
        parts = tuple(
            unseen if v is None else estimate(v, 0.015, measure="drop_parts.part") if v else zero
            for v in values
        )
        rows.append(
            BreakdownRow(
                label=label,
                whole=estimate(sum(v or 0.0 for v in values), 0.025),
                parts=parts,
                lines=("Of 60 items 9 were lost and 1 gained.", f"Look first at {label}."),
                cells=(9, 1.0, replace(estimate(3.4, 0.4, measure="churn.ratio",
                                                bounds=(0.0, 99.0)), high=None)),
            )
        )  # fmt: skip
    return Breakdown(
        name="parts", title="Of this drop, how much is real?", whole="drop", of="recipe",
        text=("The parts add up.",), parts=("reading", "meaning", "serving", "wording"),
        columns=(Column(name="lost", unit="count", over="Items"),
                 Column(name="gained", unit="count", over="Items"),
                 Column(name="Churn ratio", unit="coefficient")),
        rows=tuple(rows),
    )  # fmt: skip


def strips() -> Strips:
    """Accuracies as asked and as changed, model by model."""
    draw = random.Random(5)
    out = []
    names = [name for group in GROUPS.values() for name in group]
    for model in MODELS:
        base = BASE[model]
        out.append(Strip(label=model, kind="original",
                         values=tuple((f"repeat {r}", base + draw.gauss(0, 0.008))
                                      for r in range(5))))  # fmt: skip
        changed = tuple((n, base - abs(draw.gauss(0.03, 0.04))) for n in names)
        out.append(Strip(label=model, kind="perturbed", values=changed))
    return Strips(
        name="spread", title="Accuracy as asked and as changed", across="accuracy",
        strips=tuple(out),
    )  # fmt: skip


def ordinary() -> Study:
    """Every kind of figure, and one simulated model among three."""
    parts = (
        StudyPart(name="main", title="Perturbations", run="sha256:" + "3f" * 32,
                  cells=2_700, answered=2_690, failed=7, unparsed=3),
        StudyPart(name="pairs", title="Ordered pairs", run="sha256:" + "a1" * 32,
                  cells=2_520, answered=2_520),
    )  # fmt: skip
    return Study(
        title="brittlebench, preset quick",
        id="sha256:" + "0d" * 32, protocol="brittlebench", preset="quick", version="0.1.0",
        created_at=1_772_366_700.0, seed=0, level=0.95, unparsed="wrong", models=MODELS,
        simulated=SIMULATED, parts=parts,
        figures=(drops(), bars(), strips(), curves(), pairs(), pairs("percent"), breakdown(),
                 ranking()),
        notes=(
            "Sixty items per task, so intervals are wide; the paper uses whole benchmarks.",
            "sim-steady stands in for a model with a known brittleness.",
        ),
    )  # fmt: skip


def undefined() -> Study:
    """Every kind of figure, and no number in most of them."""
    none = estimate(None, status="insufficient_data")
    zero = estimate(None, status="undefined_zero_denominator")
    grid = replace(
        ranking(),
        rows=tuple(
            (*row[:2], none, None, 0, zero, estimate(0.4, math.inf), "–") for row in ranking().rows
        ),
    )
    heat = replace(pairs(), cells=tuple(tuple(none for _ in row) for row in pairs().cells))
    lines = tuple(
        replace(c, points=tuple((x, none if x == 4 or c.label == MODELS[0] else e)
                                for x, e in c.points))
        for c in curves().curves
    )  # fmt: skip
    stacks = tuple(
        replace(b, parts=(zero, None, estimate(-0.01, 0.01)), share=zero) for b in bars().bars
    )
    split = tuple(
        replace(row, whole=none, parts=(none, zero, estimate(-0.01, math.inf), none), cells=())
        for row in breakdown().rows
    )
    figures: tuple[Figure, ...] = (
        grid, heat, replace(curves(), curves=lines), replace(bars(), bars=stacks), strips(),
        replace(breakdown(), rows=split),
    )  # fmt: skip
    return replace(ordinary(), figures=figures, simulated=())


def empty() -> Study:
    """Every kind of figure with nothing in it, no model, no part."""
    figures: tuple[Figure, ...] = (
        replace(drops(), rows=()),
        Grid(name="none", title="No column", columns=(), rows=(), labels=0),
        replace(pairs(), rows=(), columns=(), cells=()),
        replace(curves(), curves=()),
        replace(curves(), name="pointless", curves=(Curve(label="x", points=()),)),
        replace(bars(), bars=()),
        replace(breakdown(), rows=()),
        replace(strips(), strips=()),
        replace(strips(), name="bare", strips=(Strip(label="x", kind="y", values=()),)),
    )
    return replace(ordinary(), figures=figures, models=(), simulated=(), parts=(), notes=())


def hostile() -> Study:
    """Names, titles, texts and labels that try to act wherever they stand."""
    e, h = estimate(0.1, 0.01, p=0.001), HOSTILE
    odd = replace(e, measure=h[0], method=h[2], estimand=h[6], signature=h[3])
    figures: tuple[Figure, ...] = (
        Grid(
            name=h[0], title=h[2], labels=1, text=h,
            columns=(Column(name=h[0]), Column(name=h[2], unit="points", over=h[6]),
                     Column(name=h[5], unit="percent", over=h[6]), Column(name=h[3])),
            rows=tuple((text, e, odd, text) for text in h),
        ),
        HeatMap(name=h[0], title=h[6], down=h[4], across=h[2], rows=h, columns=h,
                cells=tuple(tuple(odd for _ in h) for _ in h), text=h),
        Curves(name="a b", title=h[1], down=h[6], across=h[2], text=h,
               curves=tuple(Curve(label=label, facet=facet, points=((0.0, e), (1e9, odd)))
                            for label in h for facet in (h[2], h[6]))),
        Bars(name=h[2], title=h[8], across=h[2], parts=h[:4], share=h[6], text=h,
             bars=tuple(Bar(label=text, parts=(e, odd, None, e), share=odd) for text in h)),
        Breakdown(name=h[4], title=h[8], whole=h[2], of=h[1], parts=h[:4], text=h,
                  columns=(Column(name=h[3]),),
                  rows=tuple(BreakdownRow(label=text, whole=odd, parts=(e, odd, odd, e),
                                          lines=h, cells=(text,)) for text in h)),
        Strips(name="", title="", across=h[6], text=h,
               strips=tuple(Strip(label=text, kind=kind, values=((text, 0.5), (kind, math.nan)))
                            for text in h for kind in (h[2], h[6]))),
    )  # fmt: skip
    parts = (StudyPart(name=h[0], title=h[2], run=h[6], cells=1, answered=0, failed=1, unparsed=1),)
    return replace(
        ordinary(), protocol=h[0], preset=h[2], version=h[6], models=h, simulated=(h[0], h[5]),
        parts=parts, figures=figures, notes=h, id=h[3],
    )  # fmt: skip
