"""Floor ½: spans and edits, the protector, words and sentences."""

from falter.text._edits import Replacement, Segment, blocked, diff_spans, replace_spans
from falter.text._protect import protect
from falter.text._spans import merged, overlaps, uncovered
from falter.text._words import natural_words, sentences

__all__ = [
    "Replacement",
    "Segment",
    "blocked",
    "diff_spans",
    "merged",
    "natural_words",
    "overlaps",
    "protect",
    "replace_spans",
    "sentences",
    "uncovered",
]
