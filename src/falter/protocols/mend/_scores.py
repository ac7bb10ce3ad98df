"""Scores with each remedy less those without it, item by item."""

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

__all__ = ["Cost", "PanelRemedies", "panels_of_remedies"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a call costs more with a remedy: characters of the prompt, and tokens.

    `tokens` are None where nobody counted them, or options were scored instead of replies written.
    """

    tokens: float | None
    characters: float


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
    """A result for each panel of the first part, which has no remedy."""
    first, *others = results
    names = model_names(first.tables)
    sizes = [_sizes(result) for result in results]
    return tuple(
        _panel(results, n, table, names[table.panel.model.id], sizes)
        for n, table in enumerate(first.tables)
        if others
    )


Sizes = Mapping[tuple[str, ...], tuple[float, float]]


def _panel(
    results: Sequence[PartResult], n: int, table: Table, model: str, sizes: Sequence[Sizes]
) -> PanelRemedies:
    first, *others = results
    analysis, panel = first.analysis, first.analysis.panels[n]
    strict = analysis.unparsed == "wrong"
    scores = {result.part.name: _less(table, result.tables[n], strict=strict) for result in others}
    result = confirmed_remedy(
        scores, table.items, seed=analysis.seed, clusters=table.clusters, level=analysis.level
    )

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
    key = _key(table)
    return PanelRemedies(
        model=model,
        task=table.panel.task,
        items=len(table.items),
        recipes=tuple(table.recipes[column].label for column in table.columns),
        loss=panel.micro,
        result=signed,
        costs={
            other.part.name: _cost(sizes[0][key], size[key])
            for other, size in zip(others, sizes[1:], strict=True)
        },
        remedies={other.part.name: str(other.part.experiment["remedy"]) for other in others},
    )


def _less(without: Table, with_remedy: Table, *, strict: bool) -> RemedyScores:
    """The scores with a remedy less those without, for the items of the table without one."""
    before = without.matrix(strict=strict)
    rows = {item: n for n, item in enumerate(with_remedy.item_ids)}
    places = [rows.get(item, -1) for item in without.item_ids]
    after = with_remedy.matrix(strict=strict)[places]
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


def _cost(without: tuple[float, float], with_remedy: tuple[float, float]) -> Cost:
    counted = without[0] > 0 and with_remedy[0] > 0
    return Cost(
        tokens=with_remedy[0] - without[0] if counted else None,
        characters=with_remedy[1] - without[1],
    )
