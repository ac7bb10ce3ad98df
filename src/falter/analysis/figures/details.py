"""Of this drop, how much is real: the parts of each recipe's drop, and its churn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from falter.analysis.meaning_checks import MEANING_CHECKS
from falter.analysis.results import Meaning, NotAsked, PanelResult, RecipeParts
from falter.records import numbers as n
from falter.records.figures import (
    VERDICT_WORDS,
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

PARTS = "parts"
NOT_THE_WORDING = "not-the-wording"
_NAMES = ("reading", "meaning", "serving", "wording")
_LOOK = {
    "reading": "how the answers are read",
    "meaning": "the prompts that say something else now",
    "serving": "who served the answers",
}


def parts_figures(panel: PanelResult) -> Iterator[Figure]:
    """The sentences of the recipes whose drop is not shown to be the wording's, then all parts."""
    split = [parts for parts in panel.parts if parts.split.drop.value is not None]
    split.sort(key=lambda parts: -_value(parts.split.drop))
    everyday = {recipe.label: recipe.everyday for recipe in panel.recipes}
    if not split:
        return
    found = [sentence for parts in split for sentence in _not_the_wording(parts)]
    if found:
        yield Statement(
            name=NOT_THE_WORDING, title="Not shown to be the wording", text=tuple(found)
        )
    yield Breakdown(
        name=PARTS,
        title="Of this drop, how much is real?",
        text=(_conclusion(split), _about(split)),
        whole="drop",
        of="recipe",
        parts=_NAMES,
        columns=(
            *(Column(name=name, unit="count", over="Items corrected") for name in _NAMES[:3]),
            Column(name="lost", unit="count", over="Items", about="their answer turned wrong"),
            Column(name="gained", unit="count", over="Items", about="their answer turned right"),
            Column(name="each way when asked again", unit="count", over="Items"),
            Column(name="Churn ratio", unit="coefficient",
                   about="what turns under the recipe for each that turns when asked again"),
        ),
        rows=tuple(_row(parts, everyday.get(parts.label, "")) for parts in split),
    )  # fmt: skip


def _conclusion(split: Sequence[RecipeParts]) -> str:
    """How many of the clear changes are left when only the wording counts."""
    doubtful = sum(parts.split.not_the_wording for parts in split)
    clear = sum(parts.split.leaves_out_zero for parts in split)
    if not clear:
        return "No drop leaves out zero by itself, so there is nothing to put down to the wording."
    if not doubtful and all(p.split.wording_known for p in split if p.split.leaves_out_zero):
        subject = "The one drop that leaves" if clear == 1 else "Every drop that leaves"
        return f"{subject} out zero by itself still does when only the wording is counted."
    if not doubtful:
        return "How much of the drops that leave out zero is the wording cannot be said for all."
    changes = "change" if doubtful == 1 else "changes"
    return f"{n.whole(doubtful)} clear {changes} cannot be put down to the wording alone."


def _about(split: Sequence[RecipeParts]) -> str:
    """What the parts are; who read again."""
    reader = split[0].reader
    reread = (
        f"when {reader} reads them again, or both sides are left out where it cannot either"
        if reader
        else "when both sides of them are left out"
    )
    return (
        "The drop counts unread answers as wrong and every answer as it was served. Reading is "
        f"what goes away of cut, unread and badly read answers {reread}; meaning, what goes away "
        "without the items whose changed prompt fails a check of its meaning; serving, without "
        "answers of another server or model version than the baseline's. Wording is what is left. "
        "The parts add up to the drop; the order of the corrections is averaged out."
    )


def _row(parts: RecipeParts, everyday: str) -> BreakdownRow:
    split, churn = parts.split, parts.churn
    return BreakdownRow(
        label=parts.label,
        everyday=everyday,
        whole=split.drop,
        parts=split.parts,
        cells=(*split.corrected, churn.lost, churn.gained, churn.again, churn.ratio),
        lines=tuple(
            filter(None, (_corrected(parts), _turned(parts), " ".join(_not_the_wording(parts))))
        ),
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
        f"Nothing to correct: {', '.join(idle)}." if idle and done else "",
        "Nothing to correct." if idle and not done else "",
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


def _not_the_wording(parts: RecipeParts) -> Iterator[str]:
    """The sentence of a recipe whose drop is clear and whose wording part is not."""
    split = parts.split
    if not split.not_the_wording:
        return
    largest = max(_LOOK, key=lambda name: abs(_value(getattr(split, name))))
    kind = "drop" if _value(split.drop) > 0 else "gain"
    yield (
        f"The {kind} of {n.shown(split.drop, 'points').text} points under {parts.label} is not "
        f"shown to come from its wording, which is left with "
        f"{n.shown(split.wording, 'points').text}: look first at {_LOOK[largest]} "
        f"({n.shown(getattr(split, largest), 'points').text})."
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
    encoder = f"Encoder: {', '.join(encoders)}." if encoders else "No encoder was used."
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
                "On a sample of the items. The counts are checks: 'word' is a word that became "
                "another, 'relation' who does what in a passive. The cosine of whole prompts "
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
    """Every verdict with its numbers, and the largest drop; details, so they are folded."""
    if panel.has_no_baseline or not panel.recipes:
        return
    worst = "at worst, whatever the missing answers are"
    every, missing = "All together", "With what is missing"
    adjusted = "adjusted for all recipes compared here"
    two_tests = "of two one-sided tests, for all together"
    yield grid(
        panel.recipes,
        (Column(name="Recipe"), lambda r: r.name),
        (Column(name="Verdict"), lambda r: VERDICT_WORDS[r.verdict]),
        (Column(name="Drop, points", unit="points", over=every), lambda r: r.together),
        (Column(name="p", unit="p", over=every, about=adjusted), lambda r: r.together.p_value),
        (Column(name="p, equivalence", about=two_tests), lambda r: _equivalence(r.p_equivalent)),
        (
            Column(name="at least", unit="points", over=missing, about=worst),
            lambda r: r.bounds.low if r.bounds else None,
        ),
        (
            Column(name="at most", unit="points", over=missing, about=worst),
            lambda r: r.bounds.high if r.bounds else None,
        ),
        (Column(name="Why there is no interval"), lambda r: r.why_undecided),
        name="verdicts",
        title="Every verdict",
        text=(
            "The interval of all together holds for every recipe at once; worse and better "
            "are those where it leaves out zero.",
        ),
        folded=True,
    )
    if panel.worst is not None:
        row: tuple[Value, ...] = (panel.worst.recipe, panel.worst.drop, panel.worst.observed)
        yield Grid(
            name="largest-drop",
            title="The largest drop",
            columns=(
                Column(name="Recipe"),
                Column(name="As it is likely to be, points", unit="points"),
                Column(name="As it was seen, points", unit="points"),
            ),
            rows=(row,),
            text=(
                "The largest of several drops is too large, because it was picked for its size. "
                "The first number is drawn towards the mean of all (James and Stein); its interval "
                "allows for the picking.",
            ),
            folded=True,
        )


def _equivalence(p: float | None) -> str:
    """A p-value of two one-sided tests, which is not followed beyond one half."""
    return "≥0.5" if p is not None and p >= 0.5 else n.p_value(p)
