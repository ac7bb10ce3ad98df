"""Answer extraction: each function returns an answer and its tier, or the reason for none."""
