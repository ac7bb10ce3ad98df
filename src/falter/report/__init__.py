"""Figures on screen, as a page or as a file. Estimates nothing."""
