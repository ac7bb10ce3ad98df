"""Rule-based changes of wording: learners' mistakes, dialects, tones, chats, names, dictation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from falter.perturbations.additions import HEADING, prose_at
from falter.perturbations.augmentation import about_the_text
from falter.perturbations.base import (
    prompt_perturbation,
    protected_spans,
    site_perturbation,
    with_changes,
    with_section,
)
from falter.perturbations.letters import lowered_words
from falter.perturbations.spacing import loose_marks
from falter.perturbations.vocabulary import proper_names, table
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Prompt, Section, Span
from falter.text.meaning import letter_symbols, passive_auxiliaries
from falter.text.names import mentioned_words, names
from falter.text.protection import blocked as closed_spans
from falter.text.spans import Replacement, merged, overlaps, replace_spans
from falter.text.words import sentences, word_set

_bundled_regex = partial(named_regex, "perturbations")

_WORD = re.compile("[a-z]+")


class _Rule(NamedTuple):
    """A rewrite rule: the pattern, and replacements of the words in its group `word`.

    Every match contains one of the triggers, words in small letters, so a text without triggers is
    not searched.
    """

    pattern: re.Pattern[str]
    words: Mapping[str, str]
    triggers: frozenset[str]


def _pattern(pieces: str | Sequence[str], **named: str) -> re.Pattern[str]:
    """Return the compiled pattern of a data file, in which long patterns are in pieces.

    `named` are patterns to put in place of their names.
    """
    whole = "".join(pieces)
    for name, pattern in named.items():
        whole = whole.replace(name, pattern)
    return re.compile(whole)


def _rule(entry: Mapping[str, Any]) -> _Rule:
    """Return the rule of an entry in a data file."""
    words: dict[str, str] = entry["words"]
    either = "|".join(sorted(words, key=len, reverse=True))
    triggers = (max(_WORD.findall(key.lower()), key=len) for key in words)
    return _Rule(_pattern(entry["find"], WORD=f"(?P<word>{either})"), words, frozenset(triggers))


def _rule_places(text: str, blocked: Sequence[Span], rules: Iterable[_Rule]) -> list[Replacement]:
    """Return the replacements that the rules make in a text; none overlaps another.

    Names, mentioned words and symbols stay.
    """
    present = frozenset(_WORD.findall(text.lower()))
    found: list[Replacement] = []
    for pattern, words, triggers in rules:
        if not present.isdisjoint(triggers):
            for match in pattern.finditer(text):
                head, tail = text[match.start() : match.start("word")], match.end("word")
                new = head + words[match["word"]] + text[tail : match.end()]
                found.append((*match.span(), new))
    if not found:
        return []
    found.sort()
    closed = merged((*blocked, *names(text), *mentioned_words(text), *letter_symbols(text)))
    taken: list[Replacement] = []
    for start, end, new in found:
        after_last = not taken or start >= taken[-1][1]
        if after_last and text[start:end] != new and not overlaps(closed, start, end):
            taken.append((start, end, new))
    return taken


# A learner's English, and features of dialects


@cache
def _learner_rules() -> tuple[_Rule, ...]:
    return tuple(map(_rule, table("learner_en.json")))


def _error_sites(text: str, blocked: Sequence[Span], language: str) -> list[Replacement]:
    return _rule_places(text, blocked, _learner_rules())


@site_perturbation("learner", sites=_error_sites)
def learner(text: str, site: Replacement, rng: Rng, language: str) -> Replacement:
    """Makes mistakes that learners of English make: articles, agreement, set prepositions.

    Only mistakes that leave one way to understand the sentence; names, numbers, negations and
    letters that are symbols stay.
    """
    return site


# The names are those of the Electronic World Atlas of Varieties of English, from memory.
_FEATURES: dict[str, list[Mapping[str, Any]]] = table("dialect_en.json")


@cache
def _dialect_rules(feature: str) -> tuple[_Rule, ...]:
    chosen = _FEATURES.values() if feature == "any" else (_FEATURES[feature],)
    return tuple(_rule(entry) for entries in chosen for entry in entries)


def _dialect_sites(
    text: str, blocked: Sequence[Span], feature: str, language: str
) -> list[Replacement]:
    found = _rule_places(text, blocked, _dialect_rules(feature))
    if not any(new.startswith("ain") for _, _, new in found):
        return found
    passives = {start for start, _ in passive_auxiliaries(text, language)}
    return [site for site in found if site[0] not in passives or not site[2].startswith("ain")]


@site_perturbation("dialect", sites=_dialect_sites)
def dialect(text: str, site: Replacement, rng: Rng, feature: str, language: str) -> Replacement:
    """Writes features that many dialects of English share: *them birds*, *she don't*.

    They are no portrait of a dialect, and need a speaker's review.
    """
    return site


# The tone of a request

TONES = ("casual", "chatty", "formal", "impatient", "polite")


@cache
def _phrases() -> dict[str, dict[str, list[str]]]:
    phrases: dict[str, dict[str, list[str]]] = table("tones_en.json")
    return phrases


# If the task works on a text, it would also work on words added around that text.
_TEXT_AS_OBJECT = _bundled_regex("text_as_object")
# "Go.", 'Go!"'; not "Go".
_SENTENCE_ENDS = re.compile(r"[.?!][\"'”’)\]]?\Z")
_RULE_KINDS = ("system", "instruction", "output_format", "cue")


def _can_tone(prompt: Prompt, **params: str) -> bool:
    at = prose_at(prompt)
    text = "" if at is None else prompt.sections[at].text.rstrip()
    return at is not None and not (HEADING.match(text) and not _SENTENCE_ENDS.search(text))


def _works_on_a_text(prompt: Prompt) -> bool:
    return any(s.kind in _RULE_KINDS and _TEXT_AS_OBJECT.search(s.text) for s in prompt.sections)


@prompt_perturbation("tone_rules", eligible=_can_tone, unless=_works_on_a_text)
def tone_rules(prompt: Prompt, rng: Rng, tone: str, language: str) -> Prompt:
    """Puts polite, casual, formal, impatient or chatty words around the input, by rule.

    The input itself stays as it is, word for word.
    """
    return _with_phrases(prompt, rng, _phrases()[rng.choice(TONES) if tone == "any" else tone])


def _with_phrases(prompt: Prompt, rng: Rng, phrases: Mapping[str, Sequence[str]]) -> Prompt:
    """Return the prompt with a phrase before its prose, and one after it if it ends a sentence."""
    at = prose_at(prompt)
    if at is None:
        return prompt
    before, after = rng.choice(phrases["before"]), rng.choice(phrases["after"])
    section = prompt.sections[at]
    start, end = len(section.text) - len(section.text.lstrip()), len(section.text.rstrip())
    changes: list[Replacement] = []
    if before and not HEADING.match(section.text):
        changes.append((start, start, f"{before} "))
    if after and _SENTENCE_ENDS.search(section.text, start, end):
        changes.append((end, end, f" {after}"))
    return with_section(prompt, at, replace_spans(section, changes))


_GREETINGS: dict[str, list[dict[str, list[str]]]] = table("greetings.json")


@prompt_perturbation("code_switch", eligible=_can_tone, unless=_works_on_a_text)
def code_switch(prompt: Prompt, rng: Rng, greeting: str, language: str) -> Prompt:
    """Greets and thanks in another language around the input, which stays as it is."""
    spoken = rng.choice(tuple(_GREETINGS)) if greeting == "any" else greeting
    return _with_phrases(prompt, rng, rng.choice(_GREETINGS[spoken]))


# Chats


@cache
def _chat_rules() -> tuple[_Rule, ...]:
    return tuple(map(_rule, table("chat_speak_en.json")))


def _short_sites(text: str, blocked: Sequence[Span], language: str) -> list[Replacement]:
    """Return the replacements of words by their short forms.

    *u* and *r* are not written if the text uses single letters as symbols.
    """
    found = _rule_places(text, blocked, _chat_rules())
    symbols = bool(letter_symbols(text))
    return [s for s in found if not symbols or all(len(word) > 1 for word in s[2].split())]


@site_perturbation("chat_speak", sites=_short_sites)
def chat_speak(text: str, site: Replacement, rng: Rng, language: str) -> Replacement:
    """Writes words as chats shorten them: *pls*, *u*, *tmrw*, *asap*, *gonna*."""
    return site


_EMOJI = {"before": [""], "after": ["🙂", "😊", "🙏", "✨", "💬", "📩"]}


def _ends_in_prose(prompt: Prompt, language: str) -> bool:
    at = prose_at(prompt)
    return at is not None and bool(_SENTENCE_ENDS.search(prompt.sections[at].text.rstrip()))


@prompt_perturbation(
    "emoji",
    eligible=_ends_in_prose,
    unless=lambda prompt: about_the_text(prompt) or _works_on_a_text(prompt),
)
def emoji(prompt: Prompt, rng: Rng, language: str) -> Prompt:
    """Puts an emoji behind the last sentence of the input."""
    return _with_phrases(prompt, rng, _EMOJI)


# Other first names

# No full name: neither *Anna Smith* nor *Otto von Bismarck* nor *Peter the Great*.
_FIRST_NAME = re.compile(
    r"(?<![\w@.#/’'-])[A-Z][a-z]+(?![\w@-]| [A-Z]"
    r"| (?:von|van|de|del|della|da|di|du|den|der|le|la|the|of|bin|al)\b)"
)
_NAME_BEFORE = re.compile(r"([A-Z]\w*)[ ]\Z")
_OPENERS = word_set("sentence_openers") | {"dear", "hello", "hey", "hi", "thanks"}


def _persons(prompt: Prompt) -> dict[str, list[str]]:
    """Return the first names that may be swapped, each with the names that may replace it.

    A name stays if it occurs in the answer, next to a surname, in code or in another spelling.
    """
    text = "\n".join(s.text for s in prompt.sections).lower()
    words = Counter(re.findall(r"[^\W\d_]+", text))
    told = "\n".join((str(prompt.target), *prompt.choices)).lower()
    found: Counter[str] = Counter()
    for section in prompt.sections:
        closed = (*closed_spans(section), *mentioned_words(section.text))
        for match in _FIRST_NAME.finditer(section.text):
            start, end = match.span()
            before = _NAME_BEFORE.search(section.text, max(0, start - 20), start)
            alone = before is None or before[1].lower() in _OPENERS
            found[match[0]] += alone and not overlaps(closed, start, end)
    own = {name: n for name, n in found.items() if n == words[name.lower()]}
    return {
        name: sorted(new for new in kind if new.lower() not in words)
        for kind in proper_names()[:2]
        for name in own
        if name in kind and name.lower() not in told and set(map(str.lower, kind)) - set(words)
    }


@prompt_perturbation(
    "swap_names", eligible=lambda prompt, language: bool(_persons(prompt)), unless=about_the_text
)
def swap_names(prompt: Prompt, rng: Rng, language: str) -> Prompt:
    """Gives people other first names, each the same one in the whole prompt.

    Women get names of women and men those of men. Full names and names in the answer stay.
    """
    pairs: dict[str, str] = {}
    for name, others in _persons(prompt).items():
        if free := [other for other in others if other not in pairs.values()]:
            pairs[name] = rng.choice(free)
    pattern = re.compile(rf"\b(?:{'|'.join(pairs)})\b")
    changes = {
        at: [(*match.span(), pairs[match[0]]) for match in pattern.finditer(section.text)]
        for at, section in enumerate(prompt.sections)
    }
    return with_changes(prompt, changes)


# Speech

_FILLERS = ("um", "uh", "er", "you know")
_SOUNDS = _FILLERS[:-1]
# Elsewhere *you know* may read as a question or a claim: *did you know*, *what you know*.
_ASIDE = _bundled_regex("aside")
# A blank between two words, where a filler may stand. "a b"; not "a, b", "a 1".
_GAP = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")
_MEAN_FILLER_WORDS = 9  # words between two fillers, on average
_MIN_FILLER_DISTANCE = 12  # characters between two fillers, at least


def _can_dictate(
    prompt: Prompt, scope: Sequence[str], protect: Sequence[str], language: str
) -> bool:
    return prompt.program is None and any(
        section.kind in scope
        and any(True for _ in _dictation_changes(prompt, section, protect, Rng(0)))
        for section in prompt.sections
    )


def _dictation_changes(
    prompt: Prompt, section: Section, protect: Sequence[str], rng: Rng
) -> Iterator[Replacement]:
    """Yield the replacements of a dictation: no punctuation, small letters, fillers."""
    text, closed = section.text, protected_spans(prompt, section, protect)
    yield from ((start, end, "") for start, end in loose_marks(text, closed))
    yield from ((a, b, text[a:b].lower()) for a, b in lowered_words(text, closed))
    closed = merged((*closed, *names(text), *mentioned_words(text)))
    last = -_MIN_FILLER_DISTANCE
    for gap in _GAP.finditer(text):
        inside = overlaps(closed, gap.start(), gap.end())
        if (
            rng.random() * _MEAN_FILLER_WORDS < 1
            and not inside
            and gap.end() - last >= _MIN_FILLER_DISTANCE
        ):
            last = gap.end()
            aside = _ASIDE.match(text, last)
            yield last, last, f"{rng.choice(_FILLERS if aside else _SOUNDS)} "


@prompt_perturbation("voice", eligible=_can_dictate)
def voice(
    prompt: Prompt, rng: Rng, scope: Sequence[str], protect: Sequence[str], language: str
) -> Prompt:
    """Writes the input as a dictation has it: small letters, no punctuation, fillers.

    Numbers stay in figures, as dictation writes them; names lose their capitals.
    """
    sections = list(prompt.sections)
    for at, section in enumerate(sections):
        if section.kind in scope and section.text:
            changes = sorted(set(_dictation_changes(prompt, section, protect, rng)))
            sections[at] = replace_spans(section, changes)
    return prompt.with_sections(tuple(sections))


# Questions in other words

Form = tuple[Replacement, ...]


class _QuestionRule(NamedTuple):
    """A kind of sentence, and its other forms: new texts for groups of the pattern."""

    pattern: re.Pattern[str]
    forms: Sequence[Mapping[str, str]]


@cache
def _question_rules() -> tuple[_QuestionRule, ...]:
    entries = table("questions_en.json")
    return tuple(_QuestionRule(_pattern(entry["find"]), entry["forms"]) for entry in entries)


def _question_forms(text: str, start: int, end: int) -> Iterator[Form]:
    """Yield the other forms of a sentence, each as a few replacements."""
    for pattern, forms in _question_rules():
        match = pattern.match(text, start, end)
        if match is not None:
            words = {name: (part or "").lower() for name, part in match.groupdict().items()}
            for form in forms:
                yield tuple((*match.span(name), new.format(**words)) for name, new in form.items())


def _question_sites(text: str, blocked: Sequence[Span], language: str) -> list[tuple[Form, ...]]:
    """Return the sentences that rules can rephrase, each as its allowed forms."""
    sites: list[tuple[Form, ...]] = []
    closed = (*blocked, *mentioned_words(text))
    for start, end in sentences(text):
        forms = tuple(
            form
            for form in _question_forms(text, start, end)
            if not any(overlaps(closed, a, b) for a, b, _ in form)
        )
        if forms:
            sites.append(forms)
    return sites


@site_perturbation("paraphrase_rules", sites=_question_sites)
def paraphrase_rules(text: str, site: Sequence[Form], rng: Rng, language: str) -> list[Replacement]:
    """Asks a question in other words where a rule surely fits: *Tell me what the capital is.*

    Requests for questions, active and passive, other question words. Every other word stays.
    """
    return list(rng.choice(site))
