"""The registry of perturbations and the two decorators that fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import floor
from typing import Any, TypeVar

from falter.core.errors import InvalidValue
from falter.core.interfaces import Parameter, Perturbation
from falter.core.records import Prompt, Section, SectionKind, Span
from falter.core.registry import Registry
from falter.core.rng import Rng
from falter.perturbations._parameters import (
    COUNT,
    PROTECT,
    checked_parameters,
    language_parameter,
    rate_parameter,
    scope_parameter,
)
from falter.text import Replacement, blocked, copied_words, merged, replace_spans

__all__ = [
    "Described",
    "PromptPerturbation",
    "SitePerturbation",
    "answers_in",
    "closed_spans",
    "has_body",
    "perturbations",
    "prompt_perturbation",
    "site_perturbation",
    "summary_of",
]

perturbations: Registry[Perturbation] = Registry("perturbation", "falter.perturbations")

S = TypeVar("S")
FindSites = Callable[..., Sequence[S]]
EditSite = Callable[..., Replacement | list[Replacement] | None]
ChangePrompt = Callable[..., Prompt]


def summary_of(function: Callable[..., Any]) -> str:
    """The first line of a function's description."""
    return (function.__doc__ or "").strip().partition("\n")[0]


class Described:
    """The description of a perturbation: name, family, parameters, invariants.

    `title` is what people call it, as it stands after "under": `split words`, `a persona in front`.
    Without one it is the name, with spaces.
    """

    def __init__(
        self,
        name: str,
        *,
        family: str,
        group: str,
        version: int,
        summary: str,
        scope: tuple[SectionKind, ...],
        parameters: tuple[Parameter, ...],
        invariants: Iterable[str],
        languages: Iterable[str] | None,
        title: str = "",
        reply_tokens: int = 0,
        output_format: str | None = None,
        reasons: bool = False,
    ) -> None:
        if reasons and not reply_tokens:
            raise InvalidValue(
                f"reply_tokens of '{name}'", reply_tokens, "enough tokens for the reasoning",
                hint="for example reply_tokens=512",
            )  # fmt: skip
        self.name = name
        self.family = family
        self.group = group
        self.version = version
        self.summary = summary
        self.title = title or name.replace("_", " ")
        self.scope = scope
        self.invariants = frozenset(invariants)
        self.languages = None if languages is None else frozenset(languages)
        self.needs_model = False
        self.reply_tokens = reply_tokens
        self.output_format = output_format
        self.reasons = reasons
        language = () if self.languages is None else (language_parameter(sorted(self.languages)),)
        self.parameters = (*parameters, *language)

    def __repr__(self) -> str:
        return f"<perturbation {self.name} v{self.version}>"


class SitePerturbation(Described):
    """Edits a share or a number of eligible places.

    The places of all sections in scope share one seeded order. They are edited in that order until
    there are enough edits, so that a weaker dose is part of a stronger one. A place whose edit is
    None is skipped.
    """

    def __init__(
        self,
        name: str,
        sites: FindSites[Any],
        edit: EditSite,
        *,
        default_rate: float,
        parameters: tuple[Parameter, ...],
        scope: tuple[SectionKind, ...],
        edit_draws: bool = True,
        **described: Any,
    ) -> None:
        shared = (rate_parameter(default_rate), COUNT, PROTECT, scope_parameter(scope))
        super().__init__(name, scope=scope, parameters=(*shared, *parameters), **described)
        self._own = tuple(p.name for p in self.parameters[len(shared) :])
        self._sites = sites
        self._edit = edit
        self._edit_draws = edit_draws

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        own = {name: full[name] for name in self._own}
        sites_by_section = self._find_sites(prompt, full, own)
        places: list[Any] = []
        section_of: list[int] = []
        for at, sites in sites_by_section:
            places += sites
            section_of += [at] * len(sites)
        edits_left = _dose(len(places), full["rate"], full["count"])
        edits: dict[int, list[Replacement]] = {at: [] for at, _ in sites_by_section}
        texts = [section.text for section in prompt.sections]
        edit = self._edit
        if edits_left:
            needs_order = self._edit_draws or edits_left < len(places)
            for i in rng.order(len(places)) if needs_order else range(len(places)):
                at = section_of[i]
                change = edit(texts[at], places[i], rng, **own)
                if change is None:
                    continue
                if isinstance(change, list):
                    edits[at] += change
                else:
                    edits[at].append(change)
                edits_left -= 1
                if not edits_left:
                    break
        return self.edited(prompt, {at: changes for at, changes in edits.items() if changes})

    @staticmethod
    def edited(prompt: Prompt, edits: dict[int, list[Replacement]]) -> Prompt:
        """The prompt with replacements in its sections, by their places."""
        return _edited(prompt, edits)

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Whether any section in scope has an eligible place."""
        full = checked_parameters(self, params)
        own = {name: full[name] for name in self._own}
        return any(sites for _, sites in self._find_sites(prompt, full, own))

    def _find_sites(
        self, prompt: Prompt, full: Any, own: dict[str, Any]
    ) -> list[tuple[int, Sequence[Any]]]:
        scope, protect = full["scope"], full["protect"]
        return [
            (at, self._sites(section.text, closed_spans(prompt, section, protect), **own))
            for at, section in enumerate(prompt.sections)
            if section.kind in scope and section.text
        ]


def closed_spans(prompt: Prompt, section: Section, patterns: Sequence[str] = ()) -> Sequence[Span]:
    """Where no noise may write: what is blocked, and words that the answer may have to copy."""
    closed = blocked(section, patterns)
    if section.kind == "choices" or (prompt.target is None and not prompt.choices):
        return closed
    copied = answers_in(prompt, section.text)
    return merged((*closed, *copied)) if copied else closed


def answers_in(prompt: Prompt, text: str) -> Sequence[Span]:
    """Where the target stands in a text, or an option: whoever copies it must find it whole."""
    if prompt.choices:
        return copied_words(text, prompt.choices, each_word=False)
    target = "" if prompt.target is None else str(prompt.target)
    return copied_words(text, (target,), each_word=True)


def _dose(places: int, rate: float | None, count: int | None) -> int:
    """How many edits: the count, or the rounded share of places, at least one for any share."""
    if count is not None:
        return min(count, places)
    if not rate or not places:
        return 0
    return max(1, floor(rate * places + 0.5))


def _edited(prompt: Prompt, edits: dict[int, list[Replacement]]) -> Prompt:
    if not edits:
        return prompt
    sections = list(prompt.sections)
    for at, changes in edits.items():
        sections[at] = replace_spans(sections[at], sorted(changes))
    return prompt.with_sections(tuple(sections))


class PromptPerturbation(Described):
    """Changes the prompt as a whole."""

    def __init__(
        self,
        name: str,
        change: ChangePrompt,
        *,
        eligible: Callable[..., bool],
        asks_itself: bool = False,
        **described: Any,
    ) -> None:
        super().__init__(name, **described)
        self._change = change
        self._eligible = eligible
        self._asks_itself = asks_itself

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        if self._asks_itself or self._eligible(prompt, **full):
            return self._change(prompt, rng, **full)
        return prompt

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Whether the prompt has what this changes."""
        return self._eligible(prompt, **checked_parameters(self, params))


def site_perturbation(
    name: str,
    *,
    sites: FindSites[S],
    family: str = "custom",
    group: str = "custom",
    version: int = 1,
    title: str = "",
    scope: tuple[SectionKind, ...] = ("input",),
    default_rate: float = 1.0,
    parameters: tuple[Parameter, ...] = (),
    invariants: Iterable[str] = (),
    languages: Iterable[str] | None = None,
    edit_draws: bool = True,
) -> Callable[[EditSite], SitePerturbation]:
    """Register a function that edits one place as a perturbation.

    `sites(text, blocked, **own)` finds the places, outside the blocked spans; the decorated
    `edit(text, site, rng, **own)` returns `(start, end, new text)`, a list of several, or None to
    skip the place. `own` are `parameters` (and `language` where there are `languages`). Edits of
    different places must not overlap, except for deletions. Where an edit leaves `rng` alone,
    `edit_draws=False` saves the seeding when every place is edited.

        @site_perturbation("shout", sites=natural_words, default_rate=0.2)
        def shout(text, site, rng):
            "Puts words in capitals."
            start, end = site
            return start, end, text[start:end].upper()
    """

    def register(edit: EditSite) -> SitePerturbation:
        perturbation = SitePerturbation(
            name,
            sites,
            edit,
            default_rate=default_rate,
            parameters=parameters,
            scope=scope,
            edit_draws=edit_draws,
            family=family,
            group=group,
            version=version,
            summary=summary_of(edit),
            title=title,
            invariants=invariants,
            languages=languages,
        )
        perturbations.register(name, perturbation)
        return perturbation

    return register


def prompt_perturbation(
    name: str,
    *,
    family: str = "custom",
    group: str = "custom",
    version: int = 1,
    title: str = "",
    scope: tuple[SectionKind, ...] = (),
    parameters: tuple[Parameter, ...] = (),
    invariants: Iterable[str] = (),
    languages: Iterable[str] | None = None,
    eligible: Callable[..., bool] | None = None,
    asks_itself: bool = False,
    reply_tokens: int = 0,
    output_format: str | None = None,
    reasons: bool = False,
) -> Callable[[ChangePrompt], PromptPerturbation]:
    """Register `(prompt, rng, **parameters) -> prompt` as a perturbation.

    `eligible(prompt, **parameters)` says whether there is anything to change; by default, whether
    there is a section besides the system message. With `asks_itself` the function is called on
    all prompts, and gives back those that it cannot change. `reply_tokens`, for perturbations that
    need a written answer, is its length in tokens. `output_format` is the form that the answer
    should have. `reasons` says that the prompt asks for reasoning first, so that a reply is
    read from its end.
    """

    def register(change: ChangePrompt) -> PromptPerturbation:
        perturbation = PromptPerturbation(
            name,
            change,
            eligible=eligible or has_body,
            asks_itself=asks_itself,
            family=family,
            group=group,
            version=version,
            summary=summary_of(change),
            title=title,
            scope=scope,
            parameters=parameters,
            invariants=invariants,
            languages=languages,
            reply_tokens=reply_tokens,
            output_format=output_format,
            reasons=reasons,
        )
        perturbations.register(name, perturbation)
        return perturbation

    return register


def has_body(prompt: Prompt, **params: Any) -> bool:
    """Whether the prompt has a section besides the system message."""
    return any(section.kind != "system" for section in prompt.sections)
