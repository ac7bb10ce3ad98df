"""McNemar's test on the two discordant counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from falter.core.errors import InvalidValue

__all__ = ["McNemar", "mcnemar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """The four usual forms. The chi-squares are None when no pair disagrees.

    `exact_p` never rejects too often; `mid_p` is the one to use by default.
    """

    b: int
    c: int
    chi2: float | None
    chi2_p: float | None
    corrected_chi2: float | None
    corrected_p: float | None
    exact_p: float
    mid_p: float


def mcnemar(b: int, c: int) -> McNemar:
    """Whether two paired 0/1 outcomes differ, from b pairs that fell and c that rose.

        χ² = (b − c)²/(b + c)        corrected: max(|b − c| − 1, 0)²/(b + c)
        exact p = 2 P(X <= k)        mid-p = P(T > t) + P(T = t)/2

    with X from Binomial(b + c, 1/2), k the smaller count, and T = |X − (b + c)/2|: 2 P(X <= k) −
    P(X = k) where b and c differ, and 1 − P(X = k)/2, below 1, where they are equal. With b + c = 0
    the chi-squares are None and both exact p-values are 1. The correction is cut at 0 where b = c;
    statsmodels 0.15 returns 1/(b + c) there.
    Source: McNemar (1947); Fagerland, Lydersen and Laake (2013) for the mid-p.
    """
    from scipy.special import bdtr, erfc

    for name, count in (("b", b), ("c", c)):
        if count < 0 or count != int(count):
            raise InvalidValue(name, count, "a count of discordant pairs, zero or more")
    total = b + c
    if total == 0:
        return McNemar(
            b=0,
            c=0,
            chi2=None,
            chi2_p=None,
            corrected_chi2=None,
            corrected_p=None,
            exact_p=1.0,
            mid_p=1.0,
        )
    chi2 = (b - c) ** 2 / total
    corrected = max(abs(b - c) - 1, 0) ** 2 / total
    k = min(b, c)
    tail = float(bdtr(k, total, 0.5))
    # P(X = k) by hand: `scipy.stats` takes half a second to import.
    log = math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1)
    point = math.exp(log - total * math.log(2.0))
    return McNemar(
        b=b,
        c=c,
        chi2=chi2,
        chi2_p=float(erfc((chi2 / 2.0) ** 0.5)),
        corrected_chi2=corrected,
        corrected_p=float(erfc((corrected / 2.0) ** 0.5)),
        exact_p=min(1.0, 2.0 * tail),
        # Where b = c the two tails share the middle term, which counts half, once.
        mid_p=1.0 - point / 2.0 if b == c else min(1.0, 2.0 * tail - point),
    )
