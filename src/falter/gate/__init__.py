"""Floor 2: the rule of a gate: lines, looks, verdicts, and whether it can decide at all.

Arrays and margins in, verdicts out; nothing here knows a model or a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.core.lazy_room import door

if TYPE_CHECKING:
    from falter.gate._decide import decide, gate_verdict
    from falter.gate._feasibility import GatePlan, LinePlan, PlannedLine, plan_gate
    from falter.gate._lines import Line, LineKind, LineResult, LineVerdict
    from falter.gate._looks import ANYTIME
    from falter.gate._schedule import Schedule, schedule

__all__ = [
    "ANYTIME",
    "GatePlan",
    "Line",
    "LineKind",
    "LinePlan",
    "LineResult",
    "LineVerdict",
    "PlannedLine",
    "Schedule",
    "decide",
    "gate_verdict",
    "plan_gate",
    "schedule",
]

__getattr__ = door(__name__)
