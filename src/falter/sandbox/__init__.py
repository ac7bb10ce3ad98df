"""Sandbox for generated programs: a locked process runs them, another process judges them."""
