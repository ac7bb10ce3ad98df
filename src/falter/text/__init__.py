"""Floor ½: spans and edits, the protector, words and sentences."""
