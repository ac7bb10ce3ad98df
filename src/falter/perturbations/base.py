"""Registry of perturbations, the decorators that fill it, and the parameters of perturbations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from importlib.resources import files
from math import floor
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack, get_args

from falter.records.chats import is_chat, is_json, last_turn, target_texts
from falter.records.errors import InvalidValue, UnknownName
from falter.records.interfaces import Parameter, Perturbation, declared_parameter, parameter_value
from falter.records.registry import Registry
from falter.records.rng import Rng
from falter.records.types import Effect, Prompt, Section, SectionKind, Span
from falter.text.names import copied_words
from falter.text.protection import blocked, matched_spans
from falter.text.spans import Replacement, merged, replace_spans

perturbations: Registry[Perturbation] = Registry("perturbation", "falter.perturbations")

S = TypeVar("S")
P = TypeVar("P", bound=Perturbation)
FindSites = Callable[..., Sequence[S]]
EditSite = Callable[..., Replacement | list[Replacement] | None]
ChangePrompt = Callable[..., Prompt]

# Parameters: filled in, checked, normalised

COUNT = Parameter(
    name="count", type=int, default=None, low=0, help="exactly this many edits; replaces the rate"
)
PROTECT = Parameter(
    name="protect", type=tuple, default=(), help="regular expressions for text to leave alone"
)


def rate_parameter(default: float) -> Parameter:
    """Return the parameter `rate`: the share of eligible places to edit."""
    return Parameter(
        name="rate", type=float, default=default, low=0, high=1, help="share of places to edit"
    )


def scope_parameter(default: tuple[SectionKind, ...]) -> Parameter:
    """Return the parameter `scope`: the kinds of section to edit."""
    help, kinds = "kinds of section to edit", get_args(SectionKind)
    return Parameter(name="scope", type=tuple, default=default, help=help, options=kinds)


def language_parameter(languages: Sequence[str]) -> Parameter:
    """Return the parameter `language`, whose options are `languages`.

    The default is English, or the first language if English is not available.
    """
    default = "en" if "en" in languages else languages[0]
    about, options = "language of the text", tuple(languages)
    return Parameter(name="language", type=str, default=default, help=about, options=options)


def checked_parameters(perturbation: Perturbation, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return every parameter with its value, in the order of declaration. Do not change the result.

    Numbers are converted to the declared type, so that 1 and 1.0 are one value. A count sets the
    rate to None.

    Raise `UnknownName` for an undeclared parameter. Raise `InvalidValue` for an invalid value, and
    for a rate together with a count.
    """
    try:
        return _cached_parameters(perturbation, **params)  # type: ignore[arg-type]
    except TypeError:  # a list among the values cannot be a cache key
        return _filled_parameters(perturbation, params)


@lru_cache(maxsize=512, typed=True)
def _cached_parameters(perturbation: Perturbation, /, **params: Any) -> Mapping[str, Any]:
    return _filled_parameters(perturbation, params)


def _filled_parameters(perturbation: Perturbation, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return every parameter with its value, as `checked_parameters` does, without a cache."""
    name = perturbation.name
    declared = {parameter.name: parameter for parameter in perturbation.parameters}
    full = {key: p.default for key, p in declared.items()}
    for key, value in params.items():
        if key not in declared:
            raise UnknownName(f"parameter of {name}", key, declared)
        is_empty_rate = key == "rate" and value is None
        full[key] = (
            None if is_empty_rate else parameter_value(f"{name}.{key}", declared[key], value)
        )
    if "rate" in full and "count" in full:
        _settle_dose(name, full, params)
    return full


def _settle_dose(name: str, full: dict[str, Any], params: Mapping[str, Any]) -> None:
    """Set the rate to None if there is a count.

    Raise `InvalidValue` if rate and count are both given, or if both are None.
    """
    if full["count"] is None:
        if full["rate"] is None:
            raise InvalidValue(f"{name}.rate", None, "a number from 0 to 1, or a count")
    elif params.get("rate") is not None:
        raise InvalidValue(
            f"{name}.count", full["count"], f"no count together with rate={full['rate']!r}",
            hint="give a rate (share of places) or a count (number of edits), not both",
        )  # fmt: skip
    else:
        full["rate"] = None


# Perturbations


class Description(TypedDict, total=False):
    """Keyword arguments that describe a perturbation; see `docs/extending.md`."""

    family: str
    group: str
    version: int
    title: str
    scope: tuple[SectionKind, ...]
    parameters: tuple[Parameter, ...]
    invariants: Iterable[str]
    languages: Iterable[str] | None
    reply_tokens: int
    output_format: str | None
    reasons: bool
    effect: Effect


class OfSites(Description):
    """Keyword arguments of `site_perturbation`."""

    sites: FindSites[Any]
    closed: NotRequired[Callable[[Prompt, Section, Sequence[str]], Sequence[Span]] | None]
    default_rate: NotRequired[float]
    edit_draws: NotRequired[bool]


class OfPrompts(Description, total=False):
    """Keyword arguments of `prompt_perturbation`."""

    eligible: Callable[..., bool]
    asks_itself: bool
    whole: bool
    unless: Callable[[Prompt], bool] | None


def summary_of(function: Callable[..., Any]) -> str:
    """Return the first line of a function's docstring, or an empty string."""
    return (function.__doc__ or "").strip().partition("\n")[0]


class Described:
    """The description of a perturbation: name, family, parameters, invariants.

    `title` is its everyday name, as used after "under": `split words`, `a persona in front`. The
    default title is the name with spaces. `effect="change"` marks a control: it changes the
    meaning, so that the correct answer changes.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        *,
        family: str = "custom",
        group: str = "custom",
        version: int = 1,
        title: str = "",
        scope: tuple[SectionKind, ...] = (),
        parameters: tuple[Parameter, ...] = (),
        invariants: Iterable[str] = (),
        languages: Iterable[str] | None = None,
        reply_tokens: int = 0,
        output_format: str | None = None,
        reasons: bool = False,
        effect: Effect = "keep",
    ) -> None:
        if reasons and not reply_tokens:
            raise InvalidValue(
                f"reply_tokens of '{name}'", reply_tokens, "enough tokens for the reasoning",
                hint="for example reply_tokens=512",
            )  # fmt: skip
        self.name, self.family, self.group, self.version = name, family, group, version
        self.summary = summary
        self.title = title or name.replace("_", " ")
        self.scope = scope
        self.invariants = frozenset(invariants)
        self.languages = None if languages is None else frozenset(languages)
        self.needs_model = False
        self.reply_tokens, self.output_format, self.reasons = reply_tokens, output_format, reasons
        self.effect = effect
        language = () if self.languages is None else (language_parameter(sorted(self.languages)),)
        self.parameters = (*parameters, *language)

    def __repr__(self) -> str:
        return f"<perturbation {self.name} v{self.version}>"


class SitePerturbation(Described):
    """A perturbation that edits a share or a number of eligible places.

    The places of all sections in scope are put into one seeded order. They are edited in that order
    until there are enough edits, so that a weaker dose is part of a stronger one. A place whose
    edit is None is skipped.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        edit: EditSite,
        *,
        sites: FindSites[Any],
        closed: Callable[[Prompt, Section, Sequence[str]], Sequence[Span]] | None = None,
        default_rate: float = 1.0,
        edit_draws: bool = True,
        **described: Unpack[Description],
    ) -> None:
        described.setdefault("scope", ("input",))
        super().__init__(name, summary, **described)
        shared = (rate_parameter(default_rate), COUNT, PROTECT, scope_parameter(self.scope))
        self._own_names = tuple(p.name for p in self.parameters)
        self.parameters = (*shared, *self.parameters)
        self._sites, self._edit, self._edit_draws = sites, edit, edit_draws
        self._find_closed = closed or protected_spans

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        own = {name: full[name] for name in self._own_names}
        sites_by_section = self._find_sites(prompt, full, own)
        places: list[Any] = []
        section_of: list[int] = []
        for at, sites in sites_by_section:
            places += sites
            section_of += [at] * len(sites)
        edits_left = _edit_count(len(places), full["rate"], full["count"])
        edits: dict[int, list[Replacement]] = {at: [] for at, _ in sites_by_section}
        if edits_left:
            texts, edit = [section.text for section in prompt.sections], self._edit
            needs_order = self._edit_draws or edits_left < len(places)
            for i in rng.order(len(places)) if needs_order else range(len(places)):
                at = section_of[i]
                change = edit(texts[at], places[i], rng, **own)
                if change is None:
                    continue
                edits[at] += change if isinstance(change, list) else (change,)
                edits_left -= 1
                if not edits_left:
                    break
        return with_changes(prompt, {at: made for at, made in edits.items() if made})

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Return True if any section in scope has an eligible place."""
        full = checked_parameters(self, params)
        own = {name: full[name] for name in self._own_names}
        return any(sites for _, sites in self._find_sites(prompt, full, own))

    def _find_sites(
        self, prompt: Prompt, full: Mapping[str, Any], own: dict[str, Any]
    ) -> list[tuple[int, Sequence[Any]]]:
        scope, protect = full["scope"], full["protect"]
        return [
            (at, self._sites(section.text, self._find_closed(prompt, section, protect), **own))
            for at, section in enumerate(prompt.sections)
            if section.kind in scope and section.text
        ]


def _edit_count(places: int, rate: float | None, count: int | None) -> int:
    """Return the number of edits: the count, or the rounded share of places but at least one.

    Zero if there are no places, or if the rate is zero.
    """
    if count is not None:
        return min(count, places)
    if not rate or not places:
        return 0
    return max(1, floor(rate * places + 0.5))


class PromptPerturbation(Described):
    """A perturbation that changes the prompt as a whole.

    In a conversation it changes the last turn of the user, or with `whole` the entire conversation.
    If `unless(prompt)` is true for the whole prompt, system message included, nothing changes.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        change: ChangePrompt,
        *,
        eligible: Callable[..., bool] | None = None,
        asks_itself: bool = False,
        whole: bool = False,
        unless: Callable[[Prompt], bool] | None = None,
        **described: Unpack[Description],
    ) -> None:
        super().__init__(name, summary, **described)
        self._change, self._asks_itself, self._whole = change, asks_itself, whole
        self._exclude = unless
        self._eligible = eligible or has_body

    def __call__(self, prompt: Prompt, rng: Rng, **params: Any) -> Prompt:
        full = checked_parameters(self, params)
        inner = prompt if self._whole else last_turn_of(prompt)
        if self._exclude is not None and self._exclude(prompt):
            return prompt
        if self._asks_itself or self._eligible(inner, **full):
            return with_last_turn(prompt, inner, self._change(inner, rng, **full))
        return prompt

    def applies(self, prompt: Prompt, **params: Any) -> bool:
        """Return True if the prompt has something that this perturbation changes."""
        inner = prompt if self._whole else last_turn_of(prompt)
        barred = self._exclude is not None and self._exclude(prompt)
        return not barred and self._eligible(inner, **checked_parameters(self, params))


def register_all(table: Iterable[Perturbation]) -> None:
    """Register perturbations under their names."""
    for perturbation in table:
        perturbations.register(perturbation.name, perturbation)


def site_perturbation(
    name: str, **described: Unpack[OfSites]
) -> Callable[[EditSite], SitePerturbation]:
    """Register a function that edits one place as a perturbation.

    `sites(text, blocked, **own)` returns the places, outside the blocked spans. The decorated
    `edit(text, site, rng, **own)` returns `(start, end, new text)`, a list of such replacements, or
    None to skip the place. `own` are the `parameters`, and `language` if there are `languages`.
    `closed(prompt, section, patterns)` returns the blocked spans; the default is `protected_spans`.

    Edits of different places must not overlap, except for deletions. If `edit` does not use `rng`,
    `edit_draws=False` saves the seeding when every place is edited.

        @site_perturbation("shout", sites=natural_words, default_rate=0.2)
        def shout(text, site, rng):
            "Puts words in capitals."
            start, end = site
            return start, end, text[start:end].upper()
    """

    return partial(_register_decorated, SitePerturbation, name, described)


def prompt_perturbation(
    name: str, **described: Unpack[OfPrompts]
) -> Callable[[ChangePrompt], PromptPerturbation]:
    """Register `(prompt, rng, **parameters) -> prompt` as a perturbation.

    - `eligible(prompt, **parameters)`: True if there is something to change. By default, True if
      there is a section besides the system message.
    - `asks_itself`: the function is called on all prompts, and returns unchanged those prompts that
      it cannot change.
    - `reply_tokens`: length in tokens of the written answer that the perturbation needs.
    - `output_format`: the form that the answer should have.
    - `reasons`: the prompt asks for reasoning first, so that a response is read from its end.
    - `whole`: the function gets a whole conversation, not only the last turn of the user.
    - `unless(prompt)`: if true for the whole prompt, nothing is changed.
    """

    return partial(_register_decorated, PromptPerturbation, name, described)


def _register_decorated(
    make: Callable[..., P], name: str, described: Mapping[str, Any], function: Callable[..., Any]
) -> P:
    """Register the perturbation that `make` builds from a function and its declaration."""
    # A user's function does not get the bundled declaration of a perturbation of the same name.
    is_bundled = getattr(function, "func", function).__module__.startswith("falter.")
    bundled = declared(name) if is_bundled else {}
    stated = {"summary": summary_of(function), **bundled, **described}
    perturbation = make(name, stated.pop("summary"), function, **stated)
    perturbations.register(name, perturbation)
    return perturbation


@cache
def _declarations() -> Mapping[str, Mapping[str, Any]]:
    """Return the declarations of all bundled perturbations by name, merged with their block."""
    file = files("falter.perturbations").joinpath("data", "perturbations.json")
    blocks: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    named = [(block.pop("perturbations"), block) for block in blocks]
    return {name: {**block, **own} for names, block in named for name, own in names.items()}


def declared(name: str) -> dict[str, Any]:
    """Return a perturbation's declaration in `data/perturbations.json`; empty for an unknown name.

    The parameters *protect* and *scope* in it are replaced by the shared parameters of these names.
    """
    stated = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in _declarations().get(name, {}).items()
    }
    if "parameters" in stated:
        shared = {"protect": PROTECT, "scope": scope_parameter(stated.get("scope", ("input",)))}
        stated["parameters"] = tuple(
            shared[p] if isinstance(p, str) else declared_parameter(**p)
            for p in stated["parameters"]
        )
    return stated


# Conversations: a perturbation of a whole prompt changes the last turn of the user


def last_turn_of(prompt: Prompt) -> Prompt:
    """Return the last turn of the user as a prompt.

    A prompt that is no conversation is returned unchanged.
    """
    if not is_chat(prompt.sections):
        return prompt
    start, end = last_turn(prompt.sections)
    opened = prompt.sections[start:end]
    return prompt.with_sections(tuple(replace(s, opens=False) if s.opens else s for s in opened))


def with_last_turn(prompt: Prompt, before: Prompt, after: Prompt) -> Prompt:
    """Return the conversation with its last turn changed from `before` to `after`.

    If `before` is the whole prompt, `after` is returned.
    """
    if before is prompt:
        return after
    if after == before:
        return prompt
    start, end = last_turn(prompt.sections)
    first, *rest = after.sections
    new = (replace(first, opens=True), *rest)
    return after.with_sections((*prompt.sections[:start], *new, *prompt.sections[end:]))


# Prompts and their sections


def has_body(prompt: Prompt, **params: Any) -> bool:
    """Return True if the prompt has a section besides the system message."""
    return any(section.kind != "system" for section in prompt.sections)


def with_changes(prompt: Prompt, changes: Mapping[int, Sequence[Replacement]]) -> Prompt:
    """Return the prompt with replacements in its sections, given by section index.

    The section of a tool stays unchanged if its text would no longer be JSON.
    """
    if not changes:
        return prompt
    sections = list(prompt.sections)
    for at, replacements in changes.items():
        new = replace_spans(sections[at], sorted(replacements))
        if new.kind != "tool" or is_json(new.text):
            sections[at] = new
    return prompt.with_sections(tuple(sections))


def with_section(prompt: Prompt, at: int, section: Section) -> Prompt:
    """Return the prompt with another section at index `at`."""
    sections = (*prompt.sections[:at], section, *prompt.sections[at + 1 :])
    return prompt.with_sections(sections)


def protected_spans(
    prompt: Prompt, section: Section, patterns: Sequence[str] = ()
) -> Sequence[Span]:
    """Return the spans that noise must not edit: blocked spans, and words an answer may copy."""
    closed = blocked(section, patterns)
    if section.kind == "choices" or (prompt.target is None and not prompt.choices):
        return closed
    copied = _answers_in(prompt, section.text)
    return merged((*closed, *copied)) if copied else closed


def _answers_in(prompt: Prompt, text: str) -> Sequence[Span]:
    """Return the spans of the target or the options in a text, since an answer may copy them."""
    if prompt.choices:
        return copied_words(text, prompt.choices, each_word=False)
    called = target_texts(prompt.target)
    if called is not None:
        return copied_words(text, called, each_word=True)
    target = "" if prompt.target is None else str(prompt.target)
    return copied_words(text, (target,), each_word=True)


def locked_spans(section: Section, patterns: Sequence[str] = ()) -> tuple[Span, ...]:
    """Return the section's protected spans, earlier edits, and matches of the user's patterns.

    Unlike `falter.text.protection.blocked`, the result does not include code and arithmetic.
    """
    if not patterns and not section.protected and not section.edits:
        return ()
    spans = [(edit.new_start, edit.new_end) for edit in section.edits]
    spans += matched_spans(section.text, patterns)
    return merged((*spans, *section.protected))
