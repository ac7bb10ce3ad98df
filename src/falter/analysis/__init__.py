"""Reads scores, pairs them by item, calls measures; tidy export."""
