"""What a study would still ask, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from falter.experiment._execute import planned_cost
from falter.experiment._resolve import PanelPlan
from falter.experiment._study import ResolvedStudy
from falter.planning import Cost
from falter.protocols import Part
from falter.store import Store

__all__ = ["planned_prompts", "planned_study"]


def planned_study(
    study: ResolvedStudy, store: Store | None
) -> Iterator[tuple[Part, list[tuple[PanelPlan, Cost]]]]:
    """What is still to be asked for each part. Sends nothing, writes nothing."""
    for part, resolved in study.parts:
        yield part, planned_cost(resolved, store)


def planned_prompts(study: ResolvedStudy, items: int) -> list[dict[str, Any]]:
    """What would be sent for the first `items` of each part's first panel, as plain data."""
    return [
        {
            "part": part.name,
            "model": panel.panel.model.label,
            "task": panel.panel.task,
            "item": request.variant.item.key,
            "recipe": request.variant.recipe.label,
            "draw": request.variant.draw,
            "status": request.variant.status,
            "messages": [{"role": role, "content": text} for role, text in request.messages],
            "context": request.context,
            "continuations": list(request.continuations),
        }
        for part, resolved in study.parts
        for panel in resolved.panels[:1]
        for request in panel.requests(resolved.run.draws, items=items)
    ]
