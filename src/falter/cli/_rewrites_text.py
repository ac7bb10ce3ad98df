"""What `falter rewrites` prints: plain tables, and agreement in words."""

from __future__ import annotations

from collections.abc import Sequence

from falter.engine import Opinions, StatusRow
from falter.rewrites import Calibration, Coefficient, Pair

__all__ = ["opinions_text", "status_text"]

STATUSES = ("ok", "refused", "empty", "identical", "cut", "broken", "rejected")


def status_text(rows: Sequence[StatusRow]) -> str:
    """One line for each perturbation and author."""
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


def opinions_text(ratings: Opinions) -> str:
    """Agreement and calibration, each number with its interval or the reason why it has none."""
    a = ratings.agreement
    lines = [
        f"{a.samples:,} rewrites rated by {len(a.raters)}: {', '.join(a.raters) or 'nobody'}; "
        f"{a.rated_twice:,} by two people or more",
    ]
    if a.rated_twice:
        lines += [
            f"weighted kappa          {_with_interval(a.kappa)}",
            f"Krippendorff's alpha    {_with_interval(a.alpha)}",
            f"all agree exactly       {_with_interval(a.exact)}",
        ]
    pairs = [*a.pairs, *a.judges]
    if pairs:
        head = ["", "", "rewrites", "kappa", "alpha", "exact", "mean difference", "Spearman"]
        lines += ["", _table([head, *map(_pair, pairs)], left=2)]
    damaged = [calibration for calibration in ratings.calibration if calibration.damaged]
    if damaged:
        head = ["rater", "mean rating", "of damaged rows", "damaged", "caught"]
        lines += ["", _table([head, *map(_calibration, damaged)], left=1)]
    return "\n".join(lines)


def _pair(pair: Pair) -> list[str]:
    numbers = (pair.kappa, pair.alpha, pair.exact, pair.difference, pair.spearman)
    return [pair.first, pair.second, _count(pair.items), *(_number(n.value) for n in numbers)]


def _calibration(rater: Calibration) -> list[str]:
    share = "–" if rater.share_caught is None else f"{rater.share_caught:.0%}"
    return [
        rater.rater,
        _number(rater.mean),
        _number(rater.damaged_mean),
        _count(rater.damaged),
        f"{rater.caught:,} ({share})",
    ]


def _with_interval(number: Coefficient) -> str:
    if number.value is None:
        return f"–  ({number.status.replace('_', ' ')})"
    if number.low is None or number.high is None:
        return _number(number.value)
    return f"{_number(number.value)}  [{_number(number.low)}, {_number(number.high)}]"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _table(rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns as wide as their widest cell; the first `left` of them left-aligned, others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n < left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
