"""Shared records and protocols, ids and seeds, rendering of requests, the registry, exceptions."""
