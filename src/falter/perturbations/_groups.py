"""Sets of recipes under one name, so that nobody has to choose from seventy."""

from __future__ import annotations

__all__ = ["DEFAULT_RECIPES", "RECIPE_SETS"]

RECIPE_SETS: dict[str, tuple[str, ...]] = {
    "brittlebench": (
        "typos", "drop_stop_words", "punctuation_spaces", "space_sequences", "word_split",
        "word_merge", "persona", "emotion", "pad_quotes", "pad_spaces", "pad_newlines", "identity",
    ),
    "context": (
        "reorder_documents", "move_context", "demonstration_order", "demonstration_delimiter",
        "distractor_context", "role_placement", "sharded_turns", "ignore_above", "identity",
    ),
    "everyday": (
        "human_typos", "autocorrect", "casing", "punctuation", "whitespace", "voice", "learner",
        "tone_rules", "paraphrase_rules", "identity",
    ),
    "format": (
        "input_format", "format_json", "format_yaml", "format_xml", "format_markdown",
        "format_html", "format_text", "identity",
    ),
    "quick": (
        "human_typos", "casing", "input_format", "shuffle_choice_order", "pad_newlines", "identity",
    ),
}  # fmt: skip
"""What each name stands for, where it stands alone among the recipes."""

DEFAULT_RECIPES = RECIPE_SETS["brittlebench"]
