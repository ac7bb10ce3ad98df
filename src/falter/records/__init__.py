"""Records, protocols, ids and seeds, rendering, the registry, the exception tree."""
