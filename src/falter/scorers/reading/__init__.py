"""Readers of replies: each returns an answer with the way it was found."""
