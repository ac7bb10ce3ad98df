"""What brittlebench takes from its paper, and what is our choice where the paper is silent."""

from __future__ import annotations

from falter.protocols.brittlebench._parts import FOURTEEN, PRESETS

__all__ = ["notes_of"]

_PAPER = (
    "From the paper: the fourteen perturbations and their four groups, the tasks, zero-shot and "
    "few-shot, options scored by log-likelihood, temperature 0, plug-in variance components "
    "summed over tasks and then divided, counts of typos and padding for the curves, MMLU for the "
    "pairs, typos, dropped stop words and runs of spaces for the chain of thought.",
    "Our choice where the paper does not say: {shots} demonstrations, drawn with the seed and the "
    "same for every item; doses {typos} for typos and {pads} for padding; the strength of each "
    "perturbation as on its documentation page; pairs of {pairs} perturbations; options shown "
    "under letters for the options table, and answered with a letter for the chain of thought.",
    "Unlike the paper: drops are over the items that a perturbation really changed; answers that "
    "cannot be read are counted in both arms instead of left out of both; every number has an "
    "interval; the ranking table shows what chance alone gives.",
)


def notes_of(preset: str) -> tuple[str, ...]:
    """In sentences, for the plan and the report."""
    p = PRESETS[preset]
    numbers = {
        "shots": p.demonstrations,
        "typos": ", ".join(map(str, p.typos)),
        "pads": ", ".join(map(str, p.pads)),
        "pairs": len(p.pairs),
    }
    notes = [text.format(**numbers) for text in _PAPER]
    if preset == "quick":
        notes.insert(
            0,
            f"Preset quick: the same {len(FOURTEEN)} perturbations and every table, on a few items "
            "of falter's own small tasks. Intervals are wide; the preset paper has the paper's "
            "benchmarks.",
        )
    return tuple(notes)
