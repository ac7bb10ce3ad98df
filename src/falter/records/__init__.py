"""Floor 0: records, protocols, ids and seeds, rendering, the registry, the exception tree."""
