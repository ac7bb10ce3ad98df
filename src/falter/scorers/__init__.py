"""Floor 1: answer extraction and comparison. A scorer judges one response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from falter.records.lazy_room import door

if TYPE_CHECKING:
    from falter.scorers._aligned_json import AlignedScore, json_rouge, json_similarity
    from falter.scorers._base import TextScorer, after_reasoning, scorers, second_reader
    from falter.scorers._choosing import (
        ScorerNames,
        are_labels,
        named_scorers,
        usual_reason,
        usual_scorer,
    )
    from falter.scorers._entities import EntityMatch, entity_match
    from falter.scorers._keyed import answer_parts
    from falter.scorers._reply import without_sequel
    from falter.scorers._rouge import Overlap, rouge, rouge_tokens
    from falter.scorers._semantic import (
        TokenMatch,
        bertscore,
        semantic_similarities,
        semantic_similarity,
    )
    from falter.text.relevance import relevance_map

__all__ = [
    "AlignedScore",
    "EntityMatch",
    "Overlap",
    "ScorerNames",
    "TextScorer",
    "TokenMatch",
    "after_reasoning",
    "answer_parts",
    "are_labels",
    "bertscore",
    "entity_match",
    "json_rouge",
    "json_similarity",
    "named_scorers",
    "relevance_map",
    "rouge",
    "rouge_tokens",
    "scorers",
    "second_reader",
    "semantic_similarities",
    "semantic_similarity",
    "usual_reason",
    "usual_scorer",
    "without_sequel",
]

__getattr__ = door(__name__)
