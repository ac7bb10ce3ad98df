"""Forms as text: the terminal, Markdown, LaTeX, and plain data."""
