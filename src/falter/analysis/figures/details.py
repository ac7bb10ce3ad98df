"""Of this drop, how much is real: the parts of each recipe's drop, and its churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.analysis.figures.answer import points_went
from falter.analysis.meaning_checks import MEANING_CHECKS
from falter.analysis.results import Meaning, NotAsked, PanelResult, RecipeParts, RecipeResult
from falter.measures.drop_decomposition import BLAMES
from falter.records import numbers as n
from falter.records.figures import (
    Breakdown,
    BreakdownRow,
    Column,
    Figure,
    Grid,
    Statement,
    Value,
    grid,
)
from falter.records.types import Estimate
from falter.stats.multiplicity import benjamini_hochberg

PARTS = "parts"
_NAMES = (*BLAMES, "wording")
_STATES = {
    "another": "another answer",
    "unparsed": "unreadable",
    "truncated": "cut off",
    "refused": "refused",
}


def parts_figures(panel: PanelResult) -> Iterator[Figure]:
    """Of every drop, what may be blamed on the test, and in which state its points ended."""
    recipes = {recipe.label: recipe for recipe in panel.recipes}
    split = [parts for parts in panel.parts if parts.split.drop.value is not None]
    split = sorted(
        (parts for parts in split if parts.label in recipes),
        key=lambda parts: -_value(parts.split.drop),
    )
    if not split:
        return
    lost = [parts for parts in split if recipes[parts.label].verdict == "degraded"]
    yield Breakdown(
        name=PARTS,
        title="Where did the points go?",
        text=(*(points_went(recipes[p.label], p, panel) for p in lost), _about(panel)),
        whole="drop",
        of="recipe",
        parts=_NAMES,
        columns=(
            *(Column(name=name, unit="points", over="Points lost to replies that are")
              for name in _STATES.values()),
            *(Column(name=name, unit="count", over="Items corrected") for name in BLAMES),
            Column(name="lost", unit="count", over="Items", about="their answer turned wrong"),
            Column(name="gained", unit="count", over="Items", about="their answer turned right"),
            Column(name="each way when asked again", unit="count", over="Items"),
            Column(name="Churn ratio", unit="coefficient",
                   about="what turns under the recipe for each that turns when asked again"),
        ),
        rows=tuple(_row(parts, recipes[parts.label]) for parts in split),
        folded=not lost,
    )  # fmt: skip


def _about(panel: PanelResult) -> str:
    """Explain the parts, the second reader, and the replies that they leave as scored."""
    again = panel.second_reading
    reading = f"right answers that only {again.reader} finds in them" if again else "no reader"
    scored = "" if again is None or not again.matters else (
        f" The parts take the {n.whole(again.different)} replies that {again.reader} would judge "
        "otherwise as they were scored, unless they were unread."
    )  # fmt: skip
    return (
        "Replies without a usable answer count as wrong, and every answer as it was served. "
        f"Reading: {reading}. Meaning: what items whose changed prompt fails a check of its "
        "meaning add. Serving: what items answered by another server or model version than their "
        "clean prompt add. Wording: the drop of all other items, with refused and cut off replies."
        f"{scored}"
    )


def _row(parts: RecipeParts, recipe: RecipeResult) -> BreakdownRow:
    split, churn = parts.split, parts.churn
    states = (split.states[name] for name in _STATES)
    # The same number has the same interval everywhere; without unread answers it is another.
    same = recipe.together.value == split.drop.value
    return BreakdownRow(
        label=parts.label,
        everyday=recipe.everyday,
        whole=recipe.together if same else split.drop,
        parts=split.parts,
        cells=(*states, *split.corrected, churn.lost, churn.gained, churn.again, churn.ratio),
        lines=tuple(filter(None, (_corrected(parts), _turned(parts)))),
    )


def _corrected(parts: RecipeParts) -> str:
    """How many items each correction touched; which had nothing to do, which were not made."""
    split = parts.split
    named = list(zip(_NAMES, split.parts, split.corrected, strict=False))
    unknown = [name for name, part, _ in named if part.status == "not_identified"]
    idle = [name for name, _, count in named if not count and name not in unknown]
    done = [f"{name} {n.whole(count)}" for name, _, count in named if count]
    sentences = [
        f"Items corrected: {', '.join(done)}." if done else "",
        f"No item to correct: {', '.join(idle)}." if idle else "",
        f"Not looked at, so part of wording: {', '.join(unknown)}." if unknown else "",
    ]
    return " ".join(filter(None, sentences))


def _turned(parts: RecipeParts) -> str:
    """The churn line."""
    churn = parts.churn
    turned = (
        f"Of {n.whole(churn.items)} items {n.count(churn.lost)} were lost and "
        f"{n.count(churn.gained)} gained"
    )
    if churn.again.value is None:
        return f"{turned}; nothing was asked twice, so how many of them are chance is not known."
    if churn.ratio.value is None:
        return f"{turned}; asking again turned none."
    again = n.shown(churn.again, "count")
    ratio = n.shown(churn.ratio, "coefficient")
    return (
        f"{turned}; asking again by itself turns {again.text} each way. Churn ratio {ratio.text}."
    )


def _value(estimate: Estimate) -> float:
    return estimate.value if estimate.value is not None else 0.0


# What a budget left out, said on the page: which cells, and what the others say about all.


def not_asked_figures(panel: PanelResult) -> Iterator[Figure]:
    """The table of what was asked, with the promise beside what came; nothing without a budget."""
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
    yield Grid(
        name="not-asked",
        title="What was not asked",
        text=tuple(_words(asked)),
        columns=(
            Column(name="Number"),
            Column(name="asked", unit="count", over="Items"),
            Column(name="not asked", unit="count", over="Items"),
            Column(name="All items, points", unit="points",
                   about="what the whole table would say, estimated from the cells asked"),
            Column(name="promised ±", unit="percent", over="Half-width, points"),
            Column(name="came out ±", unit="percent", over="Half-width, points"),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _words(asked: NotAsked) -> Iterator[str]:
    low, high = asked.per_item
    recipes = n.whole(low) if low == high else f"{n.whole(low)} or {n.whole(high)}"
    share = 100 * asked.cells / asked.of
    yield (
        f"{n.whole(asked.cells)} of {n.whole(asked.of)} cells were asked ({share:.0f} %), as the "
        f"budget says: of {n.whole(asked.items_asked)} of {n.whole(asked.items)} items the clean "
        f"prompt, and {recipes} of {n.whole(len(asked.recipes))} recipes, chosen by the seed. "
        "The other cells were not asked, and nothing is filled in for them."
    )
    yield (
        "Every other number of this report is about items like these. This table is about exactly "
        f"these {n.whole(asked.items)} items, a recipe's over all of them: where it left a prompt "
        "as it was, the drop is none. Promised is what was expected before anything was asked, if "
        "a changed prompt turned one answer in ten and 70 % were right."
    )


def _asked_row(
    label: str,
    asked: int | None,
    left: int | None,
    estimate: Estimate,
    promised: float | None,
) -> tuple[Value, ...]:
    low, high = estimate.low, estimate.high
    half = None if low is None or high is None else (high - low) / 2.0
    return (label, asked, left, estimate, promised, half)


# Whether the recipes kept what the prompts say.


SECTION = "What the recipes did to the words"


def meaning_grid(meanings: Sequence[Meaning]) -> tuple[Figure, ...]:
    """The checks of every recipe, the cosine that describes it, and the items that lost something.

    Several parts may hold the same row: it is shown once.
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
    sample = max(m.texts for m in meanings)
    figures: list[Figure] = [
        Grid(
            name="meaning",
            title="Is the meaning kept?",
            section=SECTION,
            columns=(
                Column(name="Task"),
                Column(name="Recipe"),
                Column(name="Texts", unit="count"),
                Column(name="Changed, %", unit="percent", about="texts that really changed"),
                Column(name="Edits per 100 words", unit="coefficient"),
                *(Column(name=check, unit="count", over="Changed texts that lost a")
                  for check in MEANING_CHECKS),
                Column(name="mean", unit="coefficient", over="Cosine"),
                Column(name="lowest tenth", unit="coefficient", over="Cosine"),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                f"On a sample of {sample:,} items of a task. The counts are checks: 'word' is a word "
                "that became another, 'relation' who does what in a passive. The cosine of whole prompts "
                "is only a description: it says how alike a small encoder finds them. It hardly "
                "notices a line break or a lost 'not', and does not tell how strong a recipe is. "
                f"{encoder}",
            ),
            folded=True,
        )
    ]  # fmt: skip
    if failing:
        figures.append(
            Grid(
                name="meaning-failing",
                title="Prompts that lost something",
                section=SECTION,
                columns=tuple(
                    Column(name=name) for name in ("Task", "Recipe", "Item", "Lost a", "namely")
                ),
                rows=tuple(failing),
                labels=3,
                folded=True,
            )
        )
    return tuple(figures)


def meaning_losses(meanings: Sequence[Meaning]) -> tuple[Figure, ...]:
    """One sentence for each recipe that lost something."""
    text = []
    for m in meanings:
        lost = ", ".join(f"a {check} in {count:,}" for check, count in m.lost.items() if count)
        if lost:
            text.append(f"{m.recipe} lost {lost} of {m.changed:,} changed prompts of {m.task}.")
        text += [
            f"{m.recipe} makes the same prompt as {earlier} in {count:,} of {m.changed:,} changed "
            f"prompts of {m.task}."
            for earlier, count in m.same.items()
        ]
    if not text:
        return ()
    return (
        Statement(
            name="meaning-lost",
            title="Meaning that may have been lost",
            section=SECTION,
            text=tuple(text),
            kind="warning",
        ),
    )


def verdict_figures(panel: PanelResult) -> Iterator[Figure]:
    """Yield the evidence for the verdicts and the largest drop, folded as details."""
    if panel.has_no_baseline or not panel.recipes:
        return
    worst = "at worst, whatever the missing answers are"
    missing, two_tests = "With what is missing", "of two one-sided tests, for all together"
    discoveries = "of the recipes with a q up to this one, the share that costs or gains nothing"
    labels, own = zip(*((r.label, r.drop.p_value) for r in panel.recipes), strict=True)
    q_values = dict(zip(labels, benjamini_hochberg(own), strict=True))
    yield grid(
        panel.recipes,
        (Column(name="Recipe"), lambda r: r.name),
        (
            Column(name="Largest, points", unit="points", about="drawn towards the others"),
            lambda r: panel.worst if r is panel.largest else None,
        ),
        (Column(name="p, equivalence", about=two_tests), lambda r: _equivalence(r.p_equivalent)),
        (Column(name="q", unit="p", about=discoveries), lambda r: q_values[r.label]),
        (
            Column(name="at least", unit="points", over=missing, about=worst),
            lambda r: r.bounds.low if r.bounds else None,
        ),
        (
            Column(name="at most", unit="points", over=missing, about=worst),
            lambda r: r.bounds.high if r.bounds else None,
        ),
        (Column(name="Why it is undecided"), lambda r: r.why_undecided),
        name="verdicts",
        title="What stands behind the verdicts",
        text=(
            "The largest of several drops is too large, because it was picked for its size. It is "
            "drawn towards the mean of all here (James and Stein), as it is likely to be. For a "
            "long list there is q beside p: it bounds the share of false discoveries (Benjamini "
            "and Hochberg) instead of the chance of any, and no verdict reads it.",
        ),
        folded=True,
    )


def _equivalence(p: float | None) -> str:
    """A p-value of two one-sided tests, which is not followed beyond one half."""
    return "≥0.5" if p is not None and p >= 0.5 else n.p_value(p)
