"""Generated programs run in a locked process and judged from outside."""
