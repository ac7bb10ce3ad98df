"""Results that others produced, as cells: tables, and the logs of other tools."""
