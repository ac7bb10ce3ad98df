"""Analysis of texts: spans, edits, protected spans, code, words, names and sentences."""
