"""What an analysis says across its panels, as rows; every form of report is made from these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

from falter.analysis import Across, Consistency, PanelResult, Pooled, Verdict, Worst
from falter.core.records import Estimate
from falter.report import _numbers as n

__all__ = [
    "VERDICTS",
    "Fact",
    "PanelSummary",
    "across_estimates",
    "baseless",
    "changed_text",
    "concordance_text",
    "facts",
    "failures_text",
    "left_out",
    "ranks_text",
    "shown_pools",
    "summaries",
    "verdict_text",
]

VERDICTS = ("degraded", "equivalent", "undecided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One number across panels: which, about what, and in which words (a verdict, a rank)."""

    section: str
    estimate: Estimate
    model: str = ""
    task: str = ""
    recipe: str = ""
    against: str = ""
    told: str = ""


def facts(found: Across) -> Iterator[Fact]:
    """Every number, in the order in which a reader wants them."""
    yield from _by_panel(found)
    for kind, pools in (("model", found.by_model), ("task", found.by_task)):
        for one in pools:
            about = {"model": one.name} if kind == "model" else {"task": one.name}
            yield Fact(section=f"brittleness_by_{kind}", estimate=one.brittleness, **about)
    yield from _of_rankings(found)


def _by_panel(found: Across) -> Iterator[Fact]:
    for v in found.verdicts:
        yield Fact(section="verdict", estimate=v.drop, model=v.model, task=v.task,
                   recipe=v.recipe, told=v.verdict or "")  # fmt: skip
    for w in found.worst:
        yield Fact(section="worst", estimate=w.drop, model=w.model, task=w.task,
                   recipe=w.recipe or "")  # fmt: skip
    for o in found.omnibus:
        yield Fact(section="omnibus", estimate=o.q, model=o.model, task=o.task)
    for f in found.failures:
        yield Fact(section="failure_shift", estimate=f.difference, model=f.model, task=f.task,
                   recipe=f.recipe)  # fmt: skip
    for c in found.consistency:
        for field in fields(c):
            value = getattr(c, field.name)
            if isinstance(value, Estimate):
                section = f"consistency.{field.name}"
                yield Fact(section=section, estimate=value, model=c.model, task=c.task)


def _of_rankings(found: Across) -> Iterator[Fact]:
    for r in found.rankings:
        yield Fact(section="rank_agreement", estimate=r.agreement, recipe=r.recipe)
        yield Fact(section="rank_agreement.noise", estimate=r.noise, recipe=r.recipe)
    if found.changed is not None:
        for field in fields(found.changed):
            estimate = getattr(found.changed, field.name)
            yield Fact(section=f"ranking_changed.{field.name}", estimate=estimate)
    for rank in found.ranks:
        yield Fact(section="rank", estimate=rank.mean, model=rank.model, task=rank.task,
                   told=ranks_text(rank.best, rank.worst))  # fmt: skip
    for w in found.concordance:
        yield Fact(section="concordance", estimate=w.w, task=w.task)
    for s in found.survival:
        yield Fact(section="survival", estimate=s.survival, model=s.better, against=s.worse,
                   task=s.task)  # fmt: skip
    if found.neighbours is not None:
        yield Fact(section="neighbours", estimate=found.neighbours)


def across_estimates(found: Across | None) -> Iterator[Estimate]:
    """Every estimate across panels."""
    if found is not None:
        yield from (fact.estimate for fact in facts(found))


def ranks_text(best: int, worst: int) -> str:
    """`2`, or `2–4` where more than one rank is left."""
    return str(best) if best == worst else f"{best}–{worst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelSummary:
    """One panel's line in the section across panels."""

    model: str
    task: str
    verdicts: Counter[str]
    worst: Worst | None
    omnibus: Estimate | None
    consistency: Consistency | None

    @property
    def name(self) -> str:
        return f"{self.model} on {self.task}"


def summaries(found: Across) -> list[PanelSummary]:
    """A line for every panel about which anything is said."""
    parts: tuple[Iterable[Verdict | Worst | Consistency], ...] = (
        found.verdicts,
        found.worst,
        found.consistency,
    )
    keys = dict.fromkeys((one.model, one.task) for part in parts for one in part)
    keys |= dict.fromkeys((one.model, one.task) for one in found.omnibus)
    return [_summary(found, model, task) for model, task in keys]


def _summary(found: Across, model: str, task: str) -> PanelSummary:
    about = (model, task)
    verdicts = [v.verdict or "unknown" for v in found.verdicts if (v.model, v.task) == about]
    return PanelSummary(
        model=model,
        task=task,
        verdicts=Counter(verdicts),
        worst=next((w for w in found.worst if (w.model, w.task) == about), None),
        omnibus=next((o.q for o in found.omnibus if (o.model, o.task) == about), None),
        consistency=next((c for c in found.consistency if (c.model, c.task) == about), None),
    )


def verdict_text(found: Across) -> str:
    """What the three verdicts mean here."""
    if not found.verdicts:
        return ""
    level = n.level(found.verdicts[0].drop.level)
    return (
        f"Equivalent: the {level} interval of the drop lies within "
        f"±{n.decimal(100 * found.margin)} points; degraded: it lies above zero and not within; "
        "undecided: neither was shown. The largest drop has an interval that pays for having "
        "picked it."
    )


def changed_text(found: Across) -> str:
    """How often a recipe gave another ranking, and how often nothing would have."""
    one = found.changed
    if one is None or one.share.value is None:
        return ""
    nulls = [
        f"{name} {n.shown(e, 'percent').with_unit(' %')}"
        for name, e in (
            ("swapping prompts at random", one.null_swap),
            ("other items of the kind", one.null_items),
        )
        if e.value is not None
    ]
    if one.null_repeat.value is not None:
        nulls.append(f"asking again {n.percent(one.null_repeat.value)} %")
    cases = _counted(one.share.conditions, "case")
    return (
        f"The ranking of the models differs from the baseline's in {n.percent(one.share.value)} % "
        f"of {cases}; without any effect of the prompt it would in: "
        f"{', '.join(nulls)}."
    )


def _counted(count: int, noun: str) -> str:
    return f"{n.whole(count)} {noun}{'' if count == 1 else 's'}"


def concordance_text(found: Across) -> str:
    """Kendall's W, task by task."""
    known = [one for one in found.concordance if one.w.value is not None]
    if not known:
        return ""
    told = ", ".join(f"{n.coefficient(one.w.value)} on {one.task}" for one in known)
    return f"Kendall's W of the models' rankings over conditions (1: always the same): {told}."


def failures_text(found: Across, level: float) -> str:
    """Whether recipes make answers unreadable, the clearest first."""
    if not found.failures:
        return ""
    alpha = round(1.0 - level, 10)
    clear = [f for f in found.failures if (f.difference.p_value or 1.0) < alpha]
    if not clear:
        return (
            f"In {_counted(len(found.failures), 'comparison')} some answers could not be read; "
            "nowhere do the shares differ beyond chance."
        )
    clear.sort(key=lambda f: f.difference.p_value or 1.0)
    told = "; ".join(
        f"{f.recipe} ({f.model} on {f.task}) {n.shown(f.difference, 'points').text}"
        for f in clear[:5]
    )
    more = f" and {len(clear) - 5} more" if len(clear) > 5 else ""
    return f"The share of answers that cannot be read changes, in points: {told}{more}."


def left_out(one: Pooled) -> str:
    """The panels that a pooled number had to leave out, or that add nothing to it."""
    parts = [f"{name}: every outcome the same" for name in one.null]
    parts += [f"{name}: {why.replace('_', ' ')}" for name, why in one.left_out.items()]
    return "; ".join(parts)


def baseless(panel: PanelResult) -> bool:
    """Whether a panel has no baseline to take drops from."""
    return bool(panel.recipes) and all(r.lost is None for r in panel.recipes)


def shown_pools(found: Across) -> Sequence[tuple[str, Pooled]]:
    """Models first, then tasks."""
    return [
        *(("over tasks", one) for one in found.by_model),
        *(("over models", one) for one in found.by_task),
    ]
