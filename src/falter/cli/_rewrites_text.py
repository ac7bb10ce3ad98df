"""What `falter rewrites` prints: plain tables, and agreement in words."""

from __future__ import annotations

from collections.abc import Sequence

from falter.experiment import Opinions, StatusRow
from falter.rewrites import Calibration, Coefficient, Pair

__all__ = ["opinions_text", "status_text"]

STATUSES = ("ok", "refused", "empty", "identical", "cut", "broken", "rejected")


def status_text(rows: Sequence[StatusRow]) -> str:
    """One line a perturbation and author."""
    if not rows:
        return "no rewrites yet"
    head = ["perturbation", "author", "wanted", *STATUSES, "missing"]
    body = [
        [
            row.perturbation,
            row.author or "nobody",
            _count(row.wanted),
            *(_count(row.statuses.get(status, 0)) for status in STATUSES),
            _count(row.missing),
        ]
        for row in rows
    ]
    return _table([head, *body], left=2)


def opinions_text(found: Opinions) -> str:
    """Agreement and calibration, each number with its interval or the reason why it has none."""
    a = found.agreement
    lines = [
        f"{a.samples:,} rewrites rated by {len(a.raters)}: {', '.join(a.raters) or 'nobody'}; "
        f"{a.rated_twice:,} by two people or more",
    ]
    if a.rated_twice:
        lines += [
            f"weighted kappa          {_shown(a.kappa)}",
            f"Krippendorff's alpha    {_shown(a.alpha)}",
            f"all agree exactly       {_shown(a.exact)}",
        ]
    pairs = [*a.pairs, *a.judges]
    if pairs:
        head = ["", "", "rewrites", "kappa", "alpha", "exact", "mean difference", "Spearman"]
        lines += ["", _table([head, *map(_pair, pairs)], left=2)]
    damaged = [one for one in found.calibration if one.damaged]
    if damaged:
        head = ["rater", "mean rating", "of damaged rows", "damaged", "caught"]
        lines += ["", _table([head, *map(_calibration, damaged)], left=1)]
    return "\n".join(lines)


def _pair(pair: Pair) -> list[str]:
    numbers = (pair.kappa, pair.alpha, pair.exact, pair.difference, pair.spearman)
    return [pair.first, pair.second, _count(pair.items), *(_number(n.value) for n in numbers)]


def _calibration(one: Calibration) -> list[str]:
    share = "–" if one.share_caught is None else f"{one.share_caught:.0%}"
    caught = f"{one.caught:,} ({share})"
    return [one.rater, _number(one.mean), _number(one.damaged_mean), _count(one.damaged), caught]


def _shown(found: Coefficient) -> str:
    if found.value is None:
        return f"–  ({found.status.replace('_', ' ')})"
    if found.low is None or found.high is None:
        return _number(found.value)
    return f"{_number(found.value)}  [{_number(found.low)}, {_number(found.high)}]"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns as wide as their widest cell; the first ones to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n < left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
