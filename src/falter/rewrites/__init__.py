"""Rewrites by models and judgements of people: read, put on sheets, compared."""
