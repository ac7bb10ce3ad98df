"""Operating characteristics of a gate: errors, and decisions.

    python bench/gate.py                  both parts, about two minutes
    python bench/gate.py --part rule      the rule alone, on drawn outcomes
    python bench/gate.py --part engine    whole gates on the simulated model

Nothing changed: answers flip as often to the worse as to the better. At the margin: the drop is the
margin, which a gate must not pass. At twice the margin: it should fail.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from falter.gate.decision import Criterion, Schedule, decide, gate_verdict, schedule
from falter.gate.feasibility import PlannedCriterion, plan_gate
from falter.gate.preparation import read_gate
from falter.gate.run import run_gate

__all__ = ["Outcomes", "engine_rows", "gates_on_simulated", "planned_items", "rule_rows"]

FLIPS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The number of gates with each verdict, and their items on average."""

    what: str
    gates: int
    verdicts: Counter[str]
    items: float
    available: int

    def share(self, verdict: str) -> float:
        return self.verdicts[verdict] / self.gates

    @property
    def row(self) -> str:
        shares = "  ".join(f"{self.share(v):7.1%}" for v in ("pass", "fail", "undecided"))
        return f"{self.what:62} {self.gates:6,}  {shares}  {self.items:6.0f} of {self.available:,}"


HEAD = f"{'':62} {'gates':>6}  {'pass':>7}  {'fail':>7}  {'undec.':>7}  items asked"


# The rule alone


def planned_items(lines: int, margin: float, looks: Schedule, flips: float) -> int:
    """The number of items at which the whole gate is planned to pass."""
    items = 1_000_000
    planned = plan_gate(
        [
            PlannedCriterion(
                name=str(n), kind="drop", margin=margin, items=items, discordance=flips, source=""
            )
            for n in range(lines)
        ],
        looks,
        items=items,
    ).planned
    assert planned is not None
    return planned


def drawn_gates(
    gates: int,
    *,
    what: str,
    items: int,
    drops: tuple[float, ...],
    margin: float,
    looks: Schedule,
    flips: float = FLIPS,
    seed: int = 0,
) -> Outcomes:
    """Gates on trinomial outcomes for each criterion; the criteria of an item are correlated."""
    rng = np.random.Generator(np.random.PCG64(seed))
    verdicts: Counter[str] = Counter()
    asked = 0
    known: dict[tuple[int, int, int], Any] = {}
    for gate in range(gates):
        values = _drawn(rng, items, drops, flips)
        results: tuple[Any, ...] = ()
        for look in range(1, looks.looks + 1):
            count = looks.items(look, items)
            lines = [
                Criterion(name=str(n), kind="drop", margin=margin, values=values[:count, n])
                for n in range(len(drops))
            ]
            # A single criterion is decided by its counts, so that each need be looked at once.
            counts = lines[0].counts() or (0, 0, 0)
            key = (look, counts[0], counts[1])
            if len(drops) == 1:
                if key not in known:
                    known[key] = decide(lines, looks, look, limits=False)
                results = known[key]
            else:
                results = decide(lines, looks, look, before=results, limits=False, seed=gate)
            if all(result.verdict != "undecided" for result in results):
                break
        verdicts[gate_verdict(results)] += 1
        asked += count
    return Outcomes(what=what, gates=gates, verdicts=verdicts, items=asked / gates, available=items)


def _drawn(
    rng: np.random.Generator, items: int, drops: tuple[float, ...], flips: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Items x criteria of -1, 0, 1; half of the variance of what decides is the item's own."""
    own, shared = rng.normal(size=(items, len(drops))), rng.normal(size=(items, 1))
    u = 0.5 * (1.0 + _erf((own + shared) / 2.0))
    falls = (np.maximum(flips, np.array(drops)) + np.array(drops)) / 2.0
    rises = np.maximum(flips, np.array(drops)) - falls
    return np.where(u < falls, 1.0, np.where(u > 1.0 - rises, -1.0, 0.0))


_erf = np.vectorize(math.erf)


def rule_rows(gates: int = 4_000) -> Iterator[Outcomes]:
    """Nothing changed, at the margin, at twice the margin; one criterion and four; looks."""
    for lines, margin, kind, count in (
        (1, 0.05, 1, gates),
        (1, 0.05, 4, gates),
        (1, 0.1, 4, gates),
        (4, 0.05, 4, gates // 20),
    ):
        looks = schedule(kind)
        items = planned_items(lines, margin, looks, FLIPS)
        other = (0.0,) * (lines - 1)
        for words, drop in (
            ("nothing changed", 0.0),
            ("one criterion at the margin", margin),
            ("one criterion at twice the margin", 2.0 * margin),
        ):
            yield drawn_gates(
                count,
                what=f"criteria: {lines}, margin {100 * margin:g}, looks {kind}: {words}",
                items=items,
                drops=(drop, *other),
                margin=margin,
                looks=looks,
            )
    # Small numbers, where Wald's interval passes a drop at the margin 12.5 % of the time.
    for items, margin, flips in ((60, 0.05, 0.05), (40, 0.1, 0.1)):
        yield drawn_gates(
            gates,
            what=f"1 line, {items} items, margin {100 * margin:g}, looks 1: at the margin",
            items=items,
            drops=(margin,),
            margin=margin,
            looks=schedule(1),
            flips=flips,
        )


# The whole engine

ITEM_SD, OWN_SD, MEAN = 1.0, 0.23, 0.6


def gates_on_simulated(
    gates: int,
    *,
    what: str,
    items: int,
    margin: float,
    drop: float,
    looks: int = 1,
    folder: Path | None = None,
) -> Outcomes:
    """Whole gates, each with another simulated model, whose true drop is known."""
    verdicts: Counter[str] = Counter()
    asked = 0
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        data = place / f"items-{items}.jsonl"
        rows = ({"key": f"item-{n}", "question": f"Question {n}?", "answer": f"a{n}"}
                for n in range(items))  # fmt: skip
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        for gate in range(gates):
            result = run_gate(
                read_gate(
                    {
                        "data": {"path": str(data), "target": "answer", "key": "key"},
                        "template": "{question}",
                        "scorer": "exact",
                        "models": {
                            "name": f"simulated:{gate}",
                            "options": {
                                "seed": gate,
                                "mean": MEAN,
                                "item_sd": ITEM_SD,
                                "interaction_sd": OWN_SD,
                                "effects": {"persona": _effect(drop)},
                            },
                        },
                        "recipes": ["persona"],
                        "gate": {"max_drop": 100 * margin, "looks": looks},
                    }
                ),
                place / f"gate-{what[:12]}.db",
            )
            verdicts[result.verdict] += 1
            asked += result.items
    return Outcomes(what=what, gates=gates, verdicts=verdicts, items=asked / gates, available=items)


def _effect(drop: float) -> float:
    """The shift of the simulated model that costs so much: Φ(μ/s) − Φ((μ − e)/s) = drop."""
    from statistics import NormalDist

    standard, spread = NormalDist(), math.hypot(ITEM_SD, OWN_SD)
    return MEAN - spread * standard.inv_cdf(standard.cdf(MEAN / spread) - drop)


def engine_rows(gates: int = 200, margin: float = 0.1) -> Iterator[Outcomes]:
    """200 gates at the planned number of items without a change, and with one."""
    looks = 1
    items = planned_items(1, margin, schedule(looks), FLIPS)
    for words, drop, count in (
        ("nothing changed", 0.0, gates),
        ("at the margin", margin, gates // 2),
        ("at twice the margin", 2.0 * margin, gates // 2),
    ):
        yield gates_on_simulated(
            count, what=f"engine, margin {100 * margin:g}, looks {looks}: {words}",
            items=items, margin=margin, drop=drop, looks=looks,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", choices=("rule", "engine"))
    arguments = parser.parse_args()
    # A run collects and freezes what it holds; over hundreds of small ones that would be half of
    # the time, all of it spent on the modules that were imported.
    gc.collect()
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None
    started = time.process_time()
    print(HEAD)
    if arguments.part != "engine":
        for row in rule_rows():
            print(row.row, flush=True)
    if arguments.part != "rule":
        for row in engine_rows():
            print(row.row, flush=True)
    print(f"{time.process_time() - started:.0f} s of one core")


if __name__ == "__main__":
    main()
