"""Spans and edits, the protector, words and sentences."""
