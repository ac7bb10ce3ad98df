"""Figures of a panel's details: parts of drops, budgets, meaning checks, verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.analysis.declared import Cell, Declared
from falter.analysis.figures.answer import causes_of_loss
from falter.analysis.meaning_checks import MEANING_CHECKS
from falter.analysis.results import Meaning, PanelResult, RecipeParts, RecipeResult
from falter.measures.drop_decomposition import BLAMES
from falter.records import numbers as n
from falter.records.figures import Breakdown, BreakdownRow, Column, Figure, Grid, Statement, Value
from falter.records.types import Estimate
from falter.stats.multiplicity import benjamini_hochberg

declaration = Declared("falter.analysis")
PARTS = "parts"
_PART_NAMES = (*BLAMES, "wording")
_ANSWER_STATES = ("another", "unparsed", "truncated", "refused")


def parts_figures(panel: PanelResult) -> Iterator[Figure]:
    """Yield the decomposition of every drop: effects of the test, and states of the responses."""
    recipes = {recipe.label: recipe for recipe in panel.recipes}
    decomposed = [parts for parts in panel.parts if parts.split.drop.value is not None]
    decomposed = sorted(
        (parts for parts in decomposed if parts.label in recipes),
        key=lambda parts: -_value_or_zero(parts.split.drop),
    )
    if not decomposed:
        return
    lost = [parts for parts in decomposed if recipes[parts.label].verdict == "degraded"]
    second = panel.second_reading
    scores_note = "" if second is None or not second.matters else (
        f" The parts use the scores of the run for the {n.whole(second.different)} replies that "
        f"{second.reader} would judge differently, unless they were unread."
    )  # fmt: skip
    about = declaration(
        PARTS,
        text=[causes_of_loss(recipes[p.label], p, panel) for p in lost],
        reading=f"right answers that only {second.reader} finds in them" if second else "no reader",
        scored=scores_note,
    )
    rows = tuple(_breakdown_row(parts, recipes[parts.label]) for parts in decomposed)
    yield Breakdown(rows=rows, folded=not lost, **about)


def _breakdown_row(parts: RecipeParts, recipe: RecipeResult) -> BreakdownRow:
    split, churn = parts.split, parts.churn
    states = (split.states[name] for name in _ANSWER_STATES)
    # An equal number gets the interval of the other figures. The numbers differ if unparsed answers
    # are excluded there.
    same_drop = recipe.together.value == split.drop.value
    return BreakdownRow(
        label=parts.label,
        everyday=recipe.everyday,
        whole=recipe.together if same_drop else split.drop,
        parts=split.parts,
        cells=(*states, *split.corrected, churn.lost, churn.gained, churn.again, churn.ratio),
        lines=tuple(filter(None, (_corrections_text(parts), _churn_sentence(parts)))),
    )


def _corrections_text(parts: RecipeParts) -> str:
    """Return the items that each correction touched, and the idle and unmeasured corrections."""
    split = parts.split
    named = list(zip(_PART_NAMES, split.parts, split.corrected, strict=False))
    unknown = [name for name, part, _ in named if part.status == "not_identified"]
    idle = [name for name, _, count in named if not count and name not in unknown]
    touched = [f"{name} {n.whole(count)}" for name, _, count in named if count]
    sentences = [
        f"Items corrected: {', '.join(touched)}." if touched else "",
        f"No item to correct: {', '.join(idle)}." if idle else "",
        f"Not measured, so part of wording: {', '.join(unknown)}." if unknown else "",
    ]
    return " ".join(filter(None, sentences))


def _churn_sentence(parts: RecipeParts) -> str:
    """Return the sentence on churn: items lost and gained, and flips on repetition."""
    churn = parts.churn
    flipped = (
        f"Of {n.whole(churn.items)} items {n.count(churn.lost)} were lost and "
        f"{n.count(churn.gained)} gained"
    )
    if churn.again.value is None:
        return f"{flipped}; no prompt was sent twice, so it is unknown how many are chance."
    if churn.ratio.value is None:
        return f"{flipped}; sending the same prompt again flipped none."
    again = n.shown(churn.again, "count")
    ratio = n.shown(churn.ratio, "coefficient")
    flips = f"sending the same prompt again flips {again.text} in each direction"
    return f"{flipped}; {flips}. Churn ratio {ratio.text}."


def _value_or_zero(estimate: Estimate) -> float:
    return estimate.value if estimate.value is not None else 0.0


# Cells that a budget left out, and estimates for all cells.


def not_asked_figures(panel: PanelResult) -> Iterator[Figure]:
    """Yield the table of sent cells with promised and achieved half-widths, if a budget is set."""
    asked = panel.not_asked
    if asked is None:
        return
    rows: list[tuple[Value, ...]] = [
        _asked_row("all recipes: average drop", None, None, asked.average,
             asked.promised.get("average")),
        _asked_row("brittleness, %", None, None, asked.brittleness,
             asked.promised.get("brittleness")),
    ]  # fmt: skip
    rows += [
        _asked_row(r.label, r.asked, r.not_asked, r.drop, asked.promised.get("recipe"))
        for r in asked.recipes
    ]
    low, high = asked.per_item
    about = declaration(
        "not-asked",
        cells=n.whole(asked.cells),
        of=n.whole(asked.of),
        share=100 * asked.cells / asked.of,
        items_asked=n.whole(asked.items_asked),
        items=n.whole(asked.items),
        recipes=n.whole(low) if low == high else f"{n.whole(low)} or {n.whole(high)}",
        every=n.whole(len(asked.recipes)),
    )
    yield Grid(rows=tuple(rows), **about)


def _asked_row(
    label: str,
    asked: int | None,
    not_asked: int | None,
    estimate: Estimate,
    promised: float | None,
) -> tuple[Value, ...]:
    low, high = estimate.low, estimate.high
    half = None if low is None or high is None else (high - low) / 2.0
    return (label, asked, not_asked, estimate, promised, half)


# Meaning checks of the recipes.


def meaning_grid(meanings: Sequence[Meaning]) -> tuple[Figure, ...]:
    """Return the table of every recipe's checks and cosine, and the table of items with losses.

    Several parts of a study may hold the same row, which is shown once.
    """
    rows: dict[tuple[Value, ...], None] = {}
    failing: dict[tuple[Value, ...], None] = {}
    encoders: dict[str, None] = {}
    for m in meanings:
        if m.encoder:
            encoders[m.encoder] = None
        lost = (m.lost[check] for check in MEANING_CHECKS)
        rows[m.task, m.recipe, m.texts, m.share_changed, m.edits_per_100_words, *lost,
             m.cosine, m.cosine_low] = None  # fmt: skip
        for item, check, text in m.failing:
            failing[m.task, m.recipe, item, check, text] = None
    if not rows:
        return ()
    encoder = "No encoder was used."
    if encoders:
        cosines = max(m.compared for m in meanings)
        encoder = f"Encoder: {', '.join(encoders)}, for at most {cosines:,} texts a recipe."
    sample = f"{max(m.texts for m in meanings):,}"
    over = "Changed texts that lost a"
    columns = [Column(name=check, unit="count", over=over) for check in MEANING_CHECKS]
    words = declaration("meaning", columns, encoder=encoder, sample=sample)
    figures = [Grid(rows=tuple(rows), **words)]
    if failing:
        figures.append(Grid(rows=tuple(failing), **declaration("meaning-failing")))
    return tuple(figures)


def meaning_losses(meanings: Sequence[Meaning]) -> tuple[Figure, ...]:
    """Return a warning with a sentence for each recipe with losses or shared prompts."""
    text = []
    for m in meanings:
        lost = ", ".join(f"a {check} in {count:,}" for check, count in m.lost.items() if count)
        if lost:
            text.append(f"{m.recipe} lost {lost} of {m.changed:,} changed prompts of {m.task}.")
        text += [
            f"{m.recipe} produces the same prompt as {earlier} in {count:,} of {m.changed:,} "
            f"changed prompts of {m.task}."
            for earlier, count in m.same.items()
        ]
    return (Statement(text=tuple(text), **declaration("meaning-lost")),) if text else ()


def verdict_figures(panel: PanelResult) -> Iterator[Figure]:
    """Yield the evidence for the verdicts and the largest drop, folded as details."""
    if panel.has_no_baseline or not panel.recipes:
        return
    labels, p_values = zip(*((r.label, r.drop.p_value) for r in panel.recipes), strict=True)
    q_values = dict(zip(labels, benjamini_hochberg(p_values), strict=True))
    cells: dict[str, Cell] = {
        "largest": lambda r: panel.worst if r is panel.largest else None,
        "equivalence": lambda r: _equivalence_text(r.p_equivalent),
        "q": lambda r: q_values[r.label],
    }
    yield declaration.grid("verdicts", panel.recipes, cells)


def _equivalence_text(p: float | None) -> str:
    """Return the p-value of two one-sided tests as text; it is not followed above 0.5."""
    return "≥0.5" if p is not None and p >= 0.5 else n.p_value(p)
