"""Floor 1: results that others produced, as cells: tables, and the logs of other tools."""
