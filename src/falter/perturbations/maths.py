"""Maths: numbers and expressions written in another way, with the same value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from falter.core.records import Prompt, Span
from falter.core.rng import Rng
from falter.perturbations._base import SitePerturbation, perturbations, summary_of
from falter.perturbations._expressions import Term, terms
from falter.perturbations._own import own_blocked
from falter.text import Replacement, overlaps

__all__ = ["latexify", "symmetric_addition", "symmetric_multiplication"]

_FAMILY = _GROUP = "math"
Write = Callable[[str, Term, Rng], Replacement | None]


class _Arithmetic(SitePerturbation):
    """Edits arithmetic, which is protected from all other perturbations.

    A parser of its own finds the terms. Text that the section itself protects, the user's patterns
    and earlier edits block them.
    """

    def _find_sites(
        self, prompt: Prompt, full: Mapping[str, Any], own: dict[str, Any]
    ) -> list[tuple[int, Sequence[Term]]]:
        sites_by_section: list[tuple[int, Sequence[Term]]] = []
        for at, section in enumerate(prompt.sections):
            if section.kind in full["scope"] and section.text:
                sites: Sequence[Term] = self._sites(section.text, ())
                blocked = own_blocked(section, full["protect"]) if sites else ()
                if blocked:
                    sites = [s for s in sites if not overlaps(blocked, s.left, s.right)]
                sites_by_section.append((at, sites))
        return sites_by_section


def _terms(text: str, blocked: Sequence[Span]) -> Sequence[Term]:
    return terms(text)


def _arithmetic(name: str, title: str) -> Callable[[Write], SitePerturbation]:
    """Register a function that rewrites one term."""

    def register(write: Write) -> SitePerturbation:
        perturbation = _Arithmetic(
            name,
            _terms,
            write,
            default_rate=1.0,
            parameters=(),
            scope=("input",),
            family=_FAMILY,
            group=_GROUP,
            version=2,
            summary=summary_of(write),
            title=title,
            invariants=("target", "choices", "lines", "code", "negations"),
            languages=None,
        )
        perturbations.register(name, perturbation)
        return perturbation

    return register


@_arithmetic("symmetric_addition", "an added zero")
def symmetric_addition(text: str, site: Term, rng: Rng) -> Replacement | None:
    """Adds (1-1)+ to a number or an expression.

    A number that is joined to its unit (*30mph*), and one that belongs to a name, stays. A single
    number gets brackets, so that nothing around it binds tighter; in an equation the left
    side changes.
    """
    if _joined(text, site):
        return None
    body = text[site.start : site.end]
    zero = "(1-1)" if body[0] in "+-−" else "(1-1)+"
    if site.kind in ("sum", "product"):
        return site.start, site.end, zero + body
    return site.start, site.end, f"({zero}{body})"


@_arithmetic("symmetric_multiplication", "a factor of one")
def symmetric_multiplication(text: str, site: Term, rng: Rng) -> Replacement | None:
    """Multiplies a number or an expression by 1.

    Numbers in names, and those joined to a unit, stay. Sums, signed and mixed numbers get brackets
    first; in an equation the left side changes.
    """
    if _joined(text, site):
        return None
    body = text[site.start : site.end]
    times = "×" if "×" in body else "*"
    if site.kind == "product":
        return site.start, site.end, f"1{times}{body}"
    if site.kind == "sum":
        return site.start, site.end, f"1{times}({body})"
    if site.kind == "mixed" or body[0] in "+-−":
        body = f"({body})"
    return site.start, site.end, f"(1{times}{body})"


def _joined(text: str, site: Term) -> bool:
    """Whether letters or a degree sign are joined to the number."""
    after = text[site.end : site.end + 1]
    return after.isalpha() or after in ("°", "º")


_DOLLAR_APART = re.compile(r"\$\s\Z")
_POWER = re.compile(r"\s*(?:\^|\*\*)\s*([-−+]?\d+(?:\.\d+)?)")
_POWER_OF_BRACKET = re.compile(r"(?:\^|\*\*)\s*[-+−]?\(")
_SYMBOLS = {"*": r"\times", "×": r"\times", "÷": r"\div", "·": r"\cdot"}
_SYMBOL = re.compile(r"\s*([*×÷·])\s*")


@_arithmetic("latexify", "numbers in LaTeX")
def latexify(text: str, site: Term, rng: Rng) -> Replacement | None:
    r"""Writes numbers and expressions as LaTeX between dollar signs.

    Fractions become `\frac`, multiplication and division signs become commands; a dollar or percent
    sign is included and escaped.
    """
    body = text[site.start : site.end]
    if _POWER_OF_BRACKET.search(body) or _DOLLAR_APART.search(
        text[max(0, site.left - 2) : site.left]
    ):
        return None  # "$ 350": a dollar sign beside a formula's would open another formula
    before, after = text[site.left : site.start], text[site.end : site.right]
    inner = _latex(body, site)
    if before == "$" or after in ("$", "%"):
        escaped = before.replace("$", r"\$"), after.replace("$", r"\$").replace("%", r"\%")
        before, after, inner = "", "", escaped[0] + inner + escaped[1]
    return site.left, site.right, f"{before}${inner}${after}"


def _latex(body: str, site: Term) -> str:
    body = re.sub(r"(?<=\d),(?=\d)", "{,}", body.replace("−", "-"))
    if site.kind in ("mixed", "fraction"):
        whole, _, part = body.rpartition(" ")
        above, _, below = part.partition("/")
        sign = above[:1] if above[:1] in "+-" else ""
        return rf"{whole}{sign}\frac{{{above.removeprefix(sign)}}}{{{below}}}"
    body = re.sub(r"(?<=\d)[ \u00a0\u202f](?=\d)", r"\\,", body)
    body = _POWER.sub(lambda match: f"^{{{match[1]}}}", body)
    body = body.replace("$", r"\$").replace("%", r"\%")
    return _SYMBOL.sub(lambda match: f" {_SYMBOLS[match[1]]} ", body)
