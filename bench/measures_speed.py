"""How fast are the measures? One command, three tables:

    python bench/measures_speed.py [--quick]

A study of 8 models x 7 tasks x 1,000 items x 16 conditions, every interval from 2,000 draws of the
items; one matrix of ten million cells with its peak memory; and how time grows with the items. The
plain way is what one writes in an afternoon: a pandas analysis of variance, and a loop that draws
rows, copies them and takes means. `--quick` does a tenth of everything.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from falter.measures.brittleness import brittleness_by_model, brittleness_by_task
from falter.measures.consistency import (
    capability,
    consistency_curve,
    item_std,
    output_consistency,
    steadiness,
)
from falter.measures.drops import paired_drops
from falter.measures.rankings import rank_agreement, ranking_changed, ranking_survival
from falter.measures.variance import variance_components

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "support")]
from probit import ProbitModel, simulate_outcomes  # noqa: E402

Floats = NDArray[np.float64]
Steps = list[tuple[str, Callable[[], Any]]]
MODELS, TASKS, ITEMS, CONDITIONS, DRAWS = 8, 7, 1_000, 16, 2_000
EFFECTS = tuple(0.02 * k for k in range(CONDITIONS))


def outcomes(items: int, seed: int, ability: float = 0.6) -> Floats:
    """Items x conditions of a probit model with a drop for every condition."""
    model = ProbitModel(ability=ability, effects=EFFECTS, interaction=0.6)
    return np.asarray(simulate_outcomes(model, items, seed=seed))


def study(items: int) -> dict[str, dict[str, Floats]]:
    """Models -> tasks -> items x conditions."""
    return {
        f"model {m}": {
            f"task {t}": outcomes(items, 100 * m + t, 0.3 + 0.1 * m) for t in range(TASKS)
        }
        for m in range(MODELS)
    }


def study_steps(tables: dict[str, dict[str, Floats]]) -> Steps:
    """All that a report of the study needs."""
    matrices = [cells for row in tables.values() for cells in row.values()]
    names = list(next(iter(tables.values())))
    by_task = {name: np.stack([row[name] for row in tables.values()], axis=1) for name in names}
    codes = [cells.astype(np.int32) for cells in matrices]
    return [
        (
            "variance components, both methods",
            lambda: [
                variance_components(cells, method)
                for cells in matrices
                for method in ("plugin", "crossed")
            ],
        ),
        ("paired drops, max-t bootstrap", lambda: [paired_drops(cells) for cells in matrices]),
        (
            "brittleness by model and by task",
            lambda: (brittleness_by_model(tables), brittleness_by_task(tables)),
        ),
        ("rank agreement, bootstrap and swaps", lambda: rank_agreement(by_task)),
        ("ranking changed, with its nulls", lambda: ranking_changed(by_task)),
        (
            "rank survival and rank sets",
            lambda: [ranking_survival(cells) for cells in by_task.values()],
        ),
        (
            "output consistency and its curve",
            lambda: [(output_consistency(c, c), consistency_curve(c)) for c in codes],
        ),
    ]


def large_steps(cells: Floats) -> Steps:
    """Return the computations on one large matrix."""
    codes = cells.astype(np.int32)
    return [
        ("variance components, plug-in", lambda: variance_components(cells)),
        ("variance components, crossed", lambda: variance_components(cells, "crossed")),
        ("paired drops, max-t bootstrap", lambda: paired_drops(cells)),
        ("brittleness", lambda: brittleness_by_model({"m": {"t": cells}})),
        (
            "output consistency and its curve",
            lambda: (output_consistency(codes), consistency_curve(codes)),
        ),
        ("capability, item standard deviations", lambda: (capability(cells), item_std(cells))),
        ("steadiness", lambda: steadiness(cells)),
    ]


def plain_anova(cells: Floats) -> tuple[float, float]:
    """The plug-in decomposition with pandas, from a long table."""
    items, width = cells.shape
    frame = pd.DataFrame({"item": np.repeat(np.arange(items), width), "y": cells.ravel()})
    groups = frame.groupby("item")["y"]
    return float(groups.var(ddof=0).mean()), float(groups.mean().var(ddof=0))


def plain_bootstrap(cells: Floats, draws: int) -> Floats:
    """Drops of resampled rows, one resample after the other."""
    rng = np.random.default_rng(0)
    found = np.empty((draws, cells.shape[1] - 1))
    for place in range(draws):
        drawn = cells[rng.integers(len(cells), size=len(cells))]
        found[place] = drawn[:, 0].mean() - drawn[:, 1:].mean(axis=0)
    return np.asarray(np.quantile(found, [0.025, 0.975], axis=0))


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timed(steps: Steps) -> list[tuple[str, float, float]]:
    """Name, seconds, and seconds of all cores together, of every step."""
    found = []
    for name, work in steps:
        busy = time.process_time()
        took = seconds(work)
        found.append((name, took, time.process_time() - busy))
    return found


def figures(took: list[tuple[str, float, float]]) -> list[tuple[str, str]]:
    whole = ("all of it", sum(t for _, t, _ in took), sum(c for _, _, c in took))
    return [
        (name, f"{wall:8.2f} s  ({cpu:.2f} s of processor)") for name, wall, cpu in [*took, whole]
    ]


def table(title: str, rows: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in rows)
    print(f"\n{title}")
    for name, figure in rows:
        print(f"  {name:<{width}}  {figure}")


def report_study(items: int) -> None:
    tables = study(items)
    cells = tables["model 0"]["task 0"]
    matrices = MODELS * TASKS
    rows = figures(timed(study_steps(tables)))
    anova = seconds(lambda: plain_anova(cells)) * matrices
    loop = seconds(lambda: plain_bootstrap(cells, DRAWS)) * matrices
    rows.append(("plain way: plug-in variances alone (one of 56, x 56)", f"{anova:8.2f} s"))
    rows.append(("plain way: bootstrap of drops alone (one of 56, x 56)", f"{loop:8.2f} s"))
    table(f"{MODELS} models x {TASKS} tasks x {items:,} items x {CONDITIONS} conditions", rows)


def large(items: int, queue: Any) -> None:
    cells = outcomes(items, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = timed(large_steps(cells))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queue.put((took, before / 1e6, peak / 1e6))


def report_large(items: int) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=large, args=(items, queue))
    process.start()
    took, before, peak = queue.get()
    process.join()
    rows = figures(took)
    rows.append(("peak memory (making the matrix took)", f"{peak:8.2f} GB ({before:.2f} GB)"))
    cells = outcomes(items, 1)
    draws = 20
    loop = seconds(lambda: plain_bootstrap(cells, draws)) * DRAWS / draws
    rows.append((f"plain way: bootstrap of drops alone ({draws} draws, scaled)", f"{loop:8.2f} s"))
    rows.append(
        ("plain way: plug-in variances alone", f"{seconds(lambda: plain_anova(cells)):8.2f} s")
    )
    table(f"one matrix of {items * CONDITIONS:,} cells", rows)


def report_growth(sizes: tuple[int, ...]) -> None:
    rows = []
    for items in sizes:
        cells = outcomes(items, 2)
        codes = cells.astype(np.int32)
        own = [
            seconds(lambda c=cells: variance_components(c, "crossed")),  # type: ignore[misc]
            seconds(lambda c=cells: paired_drops(c)),  # type: ignore[misc]
            seconds(lambda c=codes: consistency_curve(c)),  # type: ignore[misc]
        ]
        rows.append((f"{items:>9,} items", "".join(f"{s:10.3f} s" for s in own)))
    table("seconds by items: crossed components, drops, consistency curve", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    quick = parser.parse_args().quick
    scale = 10 if quick else 1
    variance_components(outcomes(50, 0), "crossed")
    report_study(ITEMS // scale)
    report_large(625_000 // scale)
    report_growth(tuple(n // scale for n in (1_000, 10_000, 100_000, 625_000)))


if __name__ == "__main__":
    main()
