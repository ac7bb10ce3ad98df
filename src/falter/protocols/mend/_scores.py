"""Scores with each remedy less those without it, item by item; votes are counted here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from falter.analysis import Table, model_names
from falter.core.records import Estimate
from falter.core.render import plain
from falter.measures import ConfirmedRemedy, RemedyEffect, RemedyScores, confirmed_remedy
from falter.protocols._protocol import PartResult
from falter.protocols.mend._vote import Ballot, ballots_of, voted_matrix, voters_of

__all__ = ["Cost", "PanelRemedies", "panels_of_remedies"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an answer costs more with a remedy: characters of its prompts, tokens, and its calls.

    `tokens` are None where nobody counted them, or options were scored instead of replies written.
    """

    tokens: float | None
    characters: float
    calls: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRemedies:
    """One model on one task: how much it loses as it is, and what every remedy does about it."""

    model: str
    task: str
    items: int
    recipes: tuple[str, ...]
    loss: Estimate | None
    result: ConfirmedRemedy
    costs: Mapping[str, Cost]
    remedies: Mapping[str, str]

    @property
    def title(self) -> str:
        """`smollm2 on basics`."""
        return f"{self.model} on {self.task}"


def panels_of_remedies(results: Sequence[PartResult]) -> tuple[PanelRemedies, ...]:
    """A result for each panel of the first part, which has no remedy.

    What is confirmed in several panels is confirmed for all of them at once.
    """
    first, *others = results
    if not others:
        return ()
    names = model_names(first.tables)
    arms = _arms(results)
    scores = [_scores(arms, n, first) for n in range(len(first.tables))]
    alone = [_confirmed(first, n, of_panel) for n, of_panel in enumerate(scores)]
    picked = sum(result.picked is not None for result in alone)
    together = [_confirmed(first, n, of_panel, picked) for n, of_panel in enumerate(scores)]
    return tuple(
        _panel(first, n, arms, names[table.panel.model.id], together[n])
        for n, table in enumerate(first.tables)
    )


Sizes = Mapping[tuple[str, ...], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class _Arm:
    """A remedy with the parts whose answers it takes: one, or those of several that vote."""

    name: str
    remedy: str
    parts: tuple[PartResult, ...]
    sizes: tuple[Sizes, ...]
    base: Sizes
    ballots: tuple[Mapping[tuple[str, ...], Ballot], ...] = ()

    def scores(self, n: int, *, strict: bool) -> tuple[Table, Floats]:
        """The table of the n-th panel, and the scores by item and recipe."""
        table = self.parts[0].tables[n]
        if not self.ballots:
            return table, table.matrix(strict=strict)
        cast = [ballots.get(_key(table), {}) for ballots in self.ballots]
        return table, voted_matrix(table, cast, strict=strict)

    def cost(self, key: tuple[str, ...]) -> Cost:
        """What an answer costs more than without the remedy."""
        tokens, sizes = zip(*(size[key] for size in self.sizes), strict=True)
        base_tokens, base_size = self.base[key]
        counted = base_tokens > 0 and all(tokens)
        return Cost(
            tokens=sum(tokens) - base_tokens if counted else None,
            characters=sum(sizes) - base_size,
            calls=len(self.parts),
        )


def _arms(results: Sequence[PartResult]) -> list[_Arm]:
    """The remedies in their order; a vote that lacks a voter is left out."""
    first = results[0]
    sizes = {result.part.name: _sizes(result) for result in results}
    base = sizes[first.part.name]
    by_name = {result.part.name: result for result in results}
    arms = []
    for result in results[1:]:
        name = result.part.name
        voters = voters_of(name)
        remedy = str(result.part.experiment.get("remedy", name))
        parts: tuple[PartResult, ...] = (result,)
        if voters is not None:
            if not all(voter in by_name for voter in voters):
                continue
            parts = (first, *(by_name[voter] for voter in voters))
        arms.append(
            _Arm(
                name=name,
                remedy=remedy,
                parts=parts,
                sizes=tuple(sizes[part.part.name] for part in parts),
                base=base,
                ballots=() if voters is None else tuple(map(ballots_of, parts)),
            )
        )
    return arms


def _scores(arms: Sequence[_Arm], n: int, first: PartResult) -> dict[str, RemedyScores]:
    strict = first.analysis.unparsed == "wrong"
    table = first.tables[n]
    return {arm.name: _less(table, *arm.scores(n, strict=strict), strict=strict) for arm in arms}


def _confirmed(
    first: PartResult, n: int, scores: Mapping[str, RemedyScores], together: int = 1
) -> ConfirmedRemedy:
    table, analysis = first.tables[n], first.analysis
    return confirmed_remedy(
        scores,
        table.items,
        seed=analysis.seed,
        clusters=table.clusters,
        level=analysis.level,
        together=max(1, together),
    )


def _panel(
    first: PartResult, n: int, arms: Sequence[_Arm], model: str, result: ConfirmedRemedy
) -> PanelRemedies:
    table, analysis = first.tables[n], first.analysis
    panel = analysis.panels[n]

    def sign(name: str, effect: RemedyEffect, half: str) -> RemedyEffect:
        group = {"task": table.panel.task, "model": model, "remedy": name, "items": half}

        def stamped(estimate: Estimate) -> Estimate:
            return replace(estimate, group=group, seed=analysis.seed, signature=panel.signature)

        return RemedyEffect(gain=stamped(effect.gain), clean=stamped(effect.clean))

    second = result.on_second
    signed = replace(
        result,
        effects={name: sign(name, e, "all") for name, e in result.effects.items()},
        on_first={name: sign(name, e, "first half") for name, e in result.on_first.items()},
        on_second=None if second is None else sign(result.picked or "", second, "second half"),
    )
    return PanelRemedies(
        model=model,
        task=table.panel.task,
        items=len(table.items),
        recipes=tuple(table.recipes[column].label for column in table.columns),
        loss=panel.micro,
        result=signed,
        costs={arm.name: arm.cost(_key(table)) for arm in arms},
        remedies={arm.name: arm.remedy for arm in arms},
    )


def _less(without: Table, with_remedy: Table, scores: Floats, *, strict: bool) -> RemedyScores:
    """The scores with a remedy less those without, for the items of the table without one."""
    before = without.matrix(strict=strict)
    rows = {item: n for n, item in enumerate(with_remedy.item_ids)}
    places = [rows.get(item, -1) for item in without.item_ids]
    after = scores[places]
    after[[place < 0 for place in places]] = np.nan
    more = after - before
    gain = np.where(without.changed(), more, np.nan)[:, without.columns]
    return RemedyScores(gain=gain, clean=more[:, 0])


def _key(table: Table) -> tuple[str, ...]:
    return table.panel.task, table.panel.model.id, table.panel.scorer


def _sizes(result: PartResult) -> Sizes:
    """Tokens of a call and characters of a prompt by panel, in the mean."""
    totals: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for scored in result.cells():
        response = scored.cell.response
        if response is None:
            continue
        panel = scored.panel
        total = totals[panel.task, panel.model.id, panel.scorer]
        total[0] += 1
        if not response.scores:  # of options that are scored, some engines count no prompt
            total[1] += response.usage.prompt_tokens + response.usage.completion_tokens
        total[2] += len(plain(scored.cell.variant.prompt))
    return {key: (tokens / n, size / n) for key, (n, tokens, size) in totals.items()}
