"""Floor ½: spans and edits, the protector, words and sentences."""

from falter.text._edits import Replacement, Segment, blocked, diff_spans, replace_spans
from falter.text._functions import docstring_prose
from falter.text._kept import KEPT_LANGUAGES, kept_words, negations, number_words, quantifiers
from falter.text._meaning import MeaningCheck, MeaningFlag, meaning_flags
from falter.text._names import (
    common_words,
    copied_words,
    mentioned_words,
    names,
)
from falter.text._protect import protect
from falter.text._relations import letter_symbols, passive_auxiliaries
from falter.text._relevance import relevance_map, relevant_sentences
from falter.text._spans import merged, overlaps, uncovered
from falter.text._spelling import LetterEdit, edit_distance, letter_edits
from falter.text._words import natural_words, sentences

__all__ = [
    "KEPT_LANGUAGES",
    "LetterEdit",
    "MeaningCheck",
    "MeaningFlag",
    "Replacement",
    "Segment",
    "blocked",
    "common_words",
    "copied_words",
    "diff_spans",
    "docstring_prose",
    "edit_distance",
    "kept_words",
    "letter_edits",
    "letter_symbols",
    "meaning_flags",
    "mentioned_words",
    "merged",
    "names",
    "natural_words",
    "negations",
    "number_words",
    "overlaps",
    "passive_auxiliaries",
    "protect",
    "quantifiers",
    "relevance_map",
    "relevant_sentences",
    "replace_spans",
    "sentences",
    "uncovered",
]
