"""Floor 3: reads scores, pairs them by item, calls measures; tidy export."""
