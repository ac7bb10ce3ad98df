"""Sentences added to a prompt: a persona, an emotional plea, or unrelated sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import islice, pairwise

from falter.perturbations.additions import HEADING, ends_in_space, framed, prose_at, with_sentence
from falter.perturbations.base import has_body, prompt_perturbation, protected_spans, with_section
from falter.perturbations.vocabulary import lines, user_lines
from falter.records.chats import target_texts
from falter.records.lazy_regex import named_regex
from falter.records.rng import Rng
from falter.records.types import Prompt, Section
from falter.text.meaning import meaning_flags
from falter.text.names import copied_words
from falter.text.spans import overlaps, replace_spans
from falter.text.words import kept_words, sentences

_bundled_regex = partial(named_regex, "perturbations")


def _sentences_of_kind(kind: str, file: str | None, language: str) -> tuple[str, ...]:
    """Return the sentences of a kind, bundled ones or those in the user's file."""
    bundled = f"{kind.partition('_')[0]}s_{language}.txt"
    return lines(bundled) if file is None else user_lines(f"{kind}.file", file)


def _can_add(
    kind: str, prompt: Prompt, file: str | None, language: str, place: str | None = None
) -> bool:
    return bool(_sentences_of_kind(kind, file, language)) and has_body(prompt)


def _with_persona(prompt: Prompt, rng: Rng, file: str | None, language: str) -> Prompt:
    """Put a persona before the prompt.

    An item gets the same persona for all of its options and for every model.
    """
    chosen = rng.choice(_sentences_of_kind("persona", file, language))
    return framed(prompt, "persona", before=f"{chosen}\n")


def _with_emotion(prompt: Prompt, rng: Rng, place: str, file: str | None, language: str) -> Prompt:
    chosen = rng.choice(_sentences_of_kind("emotion", file, language))
    if place == "cue":
        return with_sentence(prompt, "emotion", chosen)
    gap = "" if ends_in_space(prompt) else " "
    return framed(prompt, "emotion", after=gap + chosen)


prompt_perturbation("persona", eligible=partial(_can_add, "persona"))(_with_persona)
prompt_perturbation("emotion", eligible=partial(_can_add, "emotion"))(_with_emotion)


# Sentences that have nothing to do with the question, in the middle of it or around it

# If the task is about the text itself, another sentence in it changes the answer.
_ABOUT_THE_TEXT = _bundled_regex("about_the_text")
_WITH_A_TEXT = _bundled_regex("with_a_text")
# Saves time: a text without any of these stems is not searched for the two patterns above.
_TEXT_TASK_STEMS = (
    "abstract", "characters ", "classif", "complete", "continue", "correct ", "draft", "finish",
    "following ", "generate", "headline", "letters ", "passage", "phras", "proofread", "review",
    "reword", "rewrit", "sentences ", "sentiment", "shorten", "summar", "syllables ", "title",
    "tone", "translat", "vowels ", "words ", "write",
)  # fmt: skip
_POINTS_BACK = _bundled_regex("points_back")
# Points that the question asks about: a sentence among or after them would read as a point.
_POINT = re.compile(r"(?:\A|\s)(?:\(?(?:\d{1,2}|[a-hA-H]|[ivx]{1,4})[.)]\s|[-*•]\s|Statement \d)")
# A pronoun at the start of the input would refer to a sentence that is put before it.
_OPENS_WITH_PRONOUN = _bundled_regex("opens_with_pronoun")
_MIN_WORDS = 4  # words of a sentence; fewer may be the number of a list
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")


def about_the_text(prompt: Prompt) -> bool:
    """Return True if the task works on the text itself.

    Additional text would then change the correct answer.
    """
    kinds = ("system", "instruction", "output_format", "input", "cue")
    for section in prompt.sections:
        text = section.text
        if section.kind in kinds and any(map(text.casefold().__contains__, _TEXT_TASK_STEMS)):
            if _ABOUT_THE_TEXT.search(text):
                return True
            if section.kind == "input" and _WITH_A_TEXT.search(text):
                return True
    return False


@lru_cache(maxsize=64)
def _pool(file: str | None, language: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the sentences without numbers, negations and quantifiers, each with its stems."""
    return tuple(
        (sentence, stems(sentence))
        for sentence in _sentences_of_kind("distractor_context", file, language)
        if not meaning_flags("", sentence, language)
        and kept_words(language).isdisjoint(sentence.lower().split())
    )


def stems(text: str) -> frozenset[str]:
    """Return the first five letters of each word of four letters or more, in lower case.

    So *planted* and *planting* have the same stem.
    """
    return frozenset(word[:5] for word in _LONG_WORD.findall(text.lower()))


def contains_answer(sentence: str, prompt: Prompt) -> bool:
    """Return True if the sentence contains an answer of the prompt: its target or an option."""
    return bool(copied_words(sentence, _answer_texts(prompt), each_word=True))


def _answer_texts(prompt: Prompt) -> tuple[str, ...]:
    target = prompt.target if isinstance(prompt.target, str) else ""
    called = target_texts(target)
    return (*prompt.choices, target) if called is None else tuple(called)


def _unrelated_sentences(prompt: Prompt, file: str | None, language: str) -> Sequence[str]:
    """Return the sentences that share no stem with the prompt and contain none of its answers."""
    answers = _answer_texts(prompt)
    texts = [s.text for s in prompt.sections if s.kind in ("input", "document", "choices")]
    said = stems("\n".join((*texts, *answers)))
    left = [sentence for sentence, stems in _pool(file, language) if stems.isdisjoint(said)]
    if copied_words("\n".join(left), answers, each_word=True):
        left = [sentence for sentence in left if not contains_answer(sentence, prompt)]
    return left


def _sentence_gaps(prompt: Prompt, section: Section) -> list[int]:
    """Return the offsets in the text at which a new sentence may begin.

    The sentence before the offset ends on the same line. The sentence after it contains no word
    such as *he* or *another*, which would then refer to the new sentence.
    """
    text = section.text
    found = [
        start
        for (before, end), (start, last) in pairwise(sentences(text))
        if text[start - 1] == " "
        and text[end - 1] in ".!?"
        and len(text[before:end].split()) >= _MIN_WORDS
        and not _POINTS_BACK.search(text, start, last)
    ]
    closed = protected_spans(prompt, section) if found else ()
    return [start for start in found if not overlaps(closed, start - 1, start + 1)]


def _insertion_places(prompt: Prompt, at: int, place: str) -> list[tuple[str, int]]:
    """Return the places at which the sentences may be put, each with its offset in the section."""
    section = prompt.sections[at]
    text = section.text
    found: list[tuple[str, int]] = []
    points = len(_POINT.findall(text)) > 1
    opens = _OPENS_WITH_PRONOUN.match(text) or HEADING.match(text)
    if place in ("any", "before") and not opens:
        found.append(("before", len(text) - len(text.lstrip())))
    if place in ("any", "after") and text.rstrip()[-1] in ("?" if points else ".?!"):
        found.append(("after", len(text.rstrip())))
    gaps = _sentence_gaps(prompt, section) if place in ("any", "between") and not points else []
    if gaps:
        found += [("between", gap) for gap in (gaps if place == "between" else gaps[-1:])]
    return found


def _insertion(
    prompt: Prompt, place: str, file: str | None, language: str
) -> tuple[int, list[tuple[str, int]], Sequence[str]] | None:
    """Return the index of the section that sentences may be put into, the places and the sentences.

    None if there is no such section, place or sentence.
    """
    at = prose_at(prompt)
    if at is None:
        return None
    places = _insertion_places(prompt, at, place)
    unrelated = _unrelated_sentences(prompt, file, language) if places else ()
    return (at, places, unrelated) if unrelated else None


def _can_distract(
    prompt: Prompt, place: str, sentences: int, file: str | None, language: str
) -> bool:
    return _insertion(prompt, place, file, language) is not None


@prompt_perturbation("distractor_context", eligible=_can_distract, unless=about_the_text)
def distractor_context(
    prompt: Prompt, rng: Rng, place: str, sentences: int, file: str | None, language: str
) -> Prompt:
    """Puts sentences into the input that have nothing to do with it.

    None holds the target or an option, a number, a negation or a quantifier, or shares a longer
    word with the prompt. The words of the input stay as they are.
    """
    found = _insertion(prompt, place, file, language)
    if found is None:
        return prompt
    at, places, unrelated = found
    order = rng.order(len(unrelated))
    text = " ".join(unrelated[n] for n in islice(order, sentences))
    where, offset = rng.choice(places)
    new = f" {text}" if where == "after" else f"{text} "
    return with_section(prompt, at, replace_spans(prompt.sections[at], [(offset, offset, new)]))
