"""Readers of results from other tools: tables and logs, converted to cells."""
