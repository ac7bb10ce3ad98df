"""Floor 1: figures on screen, as a page or as a file. Estimates nothing."""
