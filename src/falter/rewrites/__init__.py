"""Texts written by models and people: rewrite stores, review sheets, ratings, agreement."""
