"""Viewer of all responses of a run in a browser: a local server, and the same page as files."""
