"""Formats of a report other than the page: terminal, Markdown, LaTeX, JSON, CSV and Parquet."""
