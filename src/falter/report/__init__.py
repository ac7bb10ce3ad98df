"""Rendering of figures as an HTML page, in the terminal and as files. Estimates nothing."""
