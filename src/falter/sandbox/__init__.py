"""Floor 1: generated programs run in a locked process and judged from outside."""
