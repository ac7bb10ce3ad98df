"""Floor 3: what models and people made of texts: read, put on sheets, compared."""
