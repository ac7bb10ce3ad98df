"""One SQLite file with items, variants, responses and runs; it is also the cache."""
