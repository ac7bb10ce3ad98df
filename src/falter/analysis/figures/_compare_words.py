"""What a comparison says in words: who is better, under what, and what could not be paired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from falter.analysis._compare import CLEAN, ComparedPair, SidesCompared
from falter.analysis._panel_notes import MUCH_UNREAD
from falter.analysis._results import PanelResult
from falter.analysis.figures._phrases import listed, noun
from falter.figures import numbers as n
from falter.measures import ConditionDifference

__all__ = ["better_name", "less", "recipes_of", "unpaired", "verdict_line", "verdicts"]

MOST_NAMED = 5


def less(pair: ComparedPair) -> str:
    """`B less A`."""
    return f"{pair.later} less {pair.earlier}"


def better_name(pair: ComparedPair, one: ConditionDifference) -> str:
    """The better side's name, `alike` or `undecided`."""
    return {"later": pair.later, "earlier": pair.earlier}.get(one.better, one.better)


def recipes_of(result: SidesCompared) -> str:
    """`all 11 recipes`, `the one recipe`."""
    count = len(result.pairing.recipes)
    return "the one recipe" if count == 1 else f"all {n.whole(count)} recipes"


def verdict_line(result: SidesCompared) -> str:
    """The line to remember."""
    if len(result.pairs) == 1:
        (pair,) = result.pairs
        return f"{_overall(pair, result)}; {_under(pair, result)}."
    return _of_many(result)


def verdicts(result: SidesCompared) -> tuple[str, ...]:
    """What was not read, the line to remember, each pair of several, and who loses more."""
    sentences = [*_unread(result), verdict_line(result)]
    if len(result.pairs) > 1:
        sentences += [f"{_overall(p, result)}; {_under(p, result)}." for p in result.pairs]
    sides = {side.name: side.panel for side in result.sides}
    return (*sentences, *(_robust(pair, sides) for pair in result.pairs))


def _unread(result: SidesCompared) -> Iterator[str]:
    """The sides of which many answers could not be read: the difference may be one of reading."""
    for side in result.sides:
        counts = side.panel.counts
        if counts.unread > MUCH_UNREAD * counts.answers:
            yield (
                f"{n.whole(counts.unread)} of {noun(counts.answers, 'answer')} of {side.name} "
                "could not be read: look at them first, since a difference may be one of reading."
            )


def _interval(one: ConditionDifference) -> str:
    """`[1.2, 7.0]`, seen from the better side."""
    low, high = one.together.low, one.together.high
    if low is None or high is None:
        return ""
    if one.better == "earlier":
        low, high = -high, -low
    return f"[{n.decimal(100 * low)}, {n.decimal(100 * high)}]"


def _overall(pair: ComparedPair, result: SidesCompared) -> str:
    one, over = pair.overall, recipes_of(result)
    value = one.together.value
    if value is None:
        return f"Over {over} {pair.later} and {pair.earlier} cannot be compared: {one.why}"
    if one.better in ("later", "earlier"):
        ahead = better_name(pair, one)
        behind = pair.earlier if one.better == "later" else pair.later
        than = "" if len(result.pairs) == 1 else f" than {behind}"
        points = f"{n.decimal(abs(100 * value))} points {_interval(one)}"
        return f"{ahead} is better{than} by {points} over {over}"
    difference = f"{less(pair)} is {n.points(value)} points {_interval(one)}".rstrip()
    if one.better == "alike":
        margin = n.decimal(100 * result.margin)
        return (
            f"{pair.later} and {pair.earlier} are alike over {over}: {difference}, shown to be "
            f"within ±{margin}"
        )
    why = f" ({one.why})" if one.why else ""
    return (
        f"Over {over} it is not shown whether {pair.later} or {pair.earlier} is better: "
        f"{difference}{why}"
    )


def _under(pair: ComparedPair, result: SidesCompared) -> str:
    """`under typos and casing B is better, under the other 9 nothing is shown`."""
    said = []
    left = list(pair.conditions)
    for better in ("later", "earlier"):
        ahead = [one for one in pair.conditions if one.better == better]
        if ahead:
            left = [one for one in left if one not in ahead]
            said.append(f"{_named(ahead, result)} {better_name(pair, ahead[0])} is better")
    alike = [one for one in left if one.better == "alike"]
    if alike:
        left = [one for one in left if one not in alike]
        said.append(f"{_named(alike, result)} both are alike")
    if left:
        where = _named(left, result)
        recipes = [one for one in left if one.name != CLEAN]
        clean = f"with the {CLEAN} and " if len(recipes) < len(left) else ""
        if len(left) == len(pair.conditions):
            where = f"{clean}under each recipe by itself"
        elif len(recipes) > MOST_NAMED:
            where = f"{clean}under the other {len(recipes)}"
        said.append(f"{where} nothing is shown")
    return ", ".join(said)


def _named(conditions: Sequence[ConditionDifference], result: SidesCompared) -> str:
    """`with the clean prompt and under typos and split words`, the largest difference first."""
    recipes = [one for one in conditions if one.name != CLEAN]
    ranked = sorted(recipes, key=lambda one: -abs(one.together.value or 0.0))
    names = [result.everyday.get(one.name) or one.name for one in ranked]
    if len(set(names)) < len(names):
        names = [one.name for one in ranked]
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} more"]
    parts = [f"with the {CLEAN}"] if len(recipes) < len(conditions) else []
    parts += [f"under {listed(names)}"] if names else []
    return " and ".join(parts)


def _of_many(result: SidesCompared) -> str:
    """Who is shown to be better than all others, or that nobody is; with the ranks."""
    best = [name for name, (_, worst) in result.ranks.items() if worst == 1]
    ranks = listed([f"{name} {_rank(*rank)}" for name, rank in result.ranks.items()])
    over = recipes_of(result)
    if best:
        return f"{best[0]} is better than every other over {over}. Ranks: {ranks}."
    return f"Over {over} nobody is shown to be better than every other. Ranks: {ranks}."


def _rank(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}–{worst}"


def _robust(pair: ComparedPair, sides: Mapping[str, PanelResult]) -> str:
    """Who loses more to the recipes, unless there is nothing to lose."""
    drop, p = pair.numbers.drop, pair.numbers.adjusted["drop"]
    value = drop.value
    if value is None:
        return f"How much more {pair.later} loses to the recipes than {pair.earlier} is not known."
    if p is not None and p < 1.0 - drop.level and value != 0.0 and drop.low is not None:
        more, fewer = pair.later, pair.earlier
        if value < 0.0:
            more, fewer = fewer, more
        points = n.decimal(abs(100 * value))
        by = f"its average drop is {points} points smaller"
        shown = f"({less(pair)}: {n.shown(drop, 'points').text})"
        held = _nothing_to_lose(sides[fewer])
        if held:
            return f"{fewer} is not shown to be more robust: {by} {shown}, but {held}."
        return f"{fewer} is more robust than {more}: {by} {shown}{_less_to_lose(pair, fewer)}."
    return (
        f"Which of {pair.later} and {pair.earlier} is more robust is not shown: their average "
        f"drops differ by {n.shown(drop, 'points').text} points ({less(pair)})."
    )


def _nothing_to_lose(panel: PanelResult) -> str:
    """Why a small drop says nothing: a clean prompt brings no right answer, or guesses."""
    if panel.baseline.value == 0.0:
        return "no answer to its clean prompts is right, so it has nothing to lose"
    if panel.at_chance:
        return "its answers to clean prompts cannot be told from guessing"
    return ""


def _less_to_lose(pair: ComparedPair, fewer: str) -> str:
    """That the side which loses less is also shown to be right less often to begin with."""
    clean = next((one for one in pair.conditions if one.name == CLEAN), None)
    if clean is None or clean.better not in ("later", "earlier"):
        return ""
    ahead = better_name(pair, clean)
    value = abs(100 * (clean.together.value or 0.0))
    if ahead == fewer:
        return ""
    return f"; but it is right {n.decimal(value)} points less often as asked, and has less to lose"


def unpaired(result: SidesCompared) -> Iterator[str]:
    """What is left out because not every side has it, counted and named."""
    pairing = result.pairing
    paired = len(pairing.items)
    for side, keys in pairing.alone.items():
        yield (
            f"{noun(len(keys), 'item')} of {side} {'is' if len(keys) == 1 else 'are'} left "
            f"out, because another side lacks {'it' if len(keys) == 1 else 'them'}: "
            f"{_first(keys)}. {noun(paired, 'item')} {'is' if paired == 1 else 'are'} paired."
        )
    if pairing.other_text:
        keys = pairing.other_text
        yield (
            f"{noun(len(keys), 'item')} {'has' if len(keys) == 1 else 'have'} the same key and "
            f"other data in different runs, and {'is' if len(keys) == 1 else 'are'} left out: "
            f"{_first(keys)}."
        )
    for side, labels in pairing.recipes_alone.items():
        yield (
            f"{noun(len(labels), 'recipe')} of {side} {'is' if len(labels) == 1 else 'are'} "
            f"left out, because another side lacks {'it' if len(labels) == 1 else 'them'}: "
            f"{_first(labels)}."
        )
    for own in result.sides:
        if own.absent:
            yield (
                f"{own.name} lacks {noun(own.absent, 'answer')} that never came, which "
                f"{'is' if own.absent == 1 else 'are'} left out of the pairs."
            )


def _first(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED:
        return listed(names)
    return f"{', '.join(names[:MOST_NAMED])} and {n.whole(len(names) - MOST_NAMED)} more"
