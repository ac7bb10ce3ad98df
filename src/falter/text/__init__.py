"""Floor ½: spans and edits, the protector, words and sentences."""

from falter.text.code import fenced_blocks, fences
from falter.text.meaning import (
    MeaningCheck,
    MeaningFlag,
    letter_symbols,
    meaning_flags,
    passive_auxiliaries,
)
from falter.text.names import (
    common_words,
    copied_words,
    mentioned_words,
    names,
)
from falter.text.protection import blocked, protect
from falter.text.relevance import relevance_map, relevant_sentences
from falter.text.spans import (
    Replacement,
    Segment,
    added,
    diff_spans,
    merged,
    overlaps,
    replace_spans,
    replaced,
    uncovered,
)
from falter.text.words import (
    KEPT_LANGUAGES,
    edit_distance,
    kept_words,
    natural_words,
    negations,
    number_words,
    quantifiers,
    sentences,
)

__all__ = [
    "KEPT_LANGUAGES",
    "MeaningCheck",
    "MeaningFlag",
    "Replacement",
    "Segment",
    "added",
    "blocked",
    "common_words",
    "copied_words",
    "diff_spans",
    "edit_distance",
    "fenced_blocks",
    "fences",
    "kept_words",
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
    "replaced",
    "sentences",
    "uncovered",
]
