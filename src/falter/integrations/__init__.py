"""Adapters to other tools and libraries, each behind an extra or an entry point."""
