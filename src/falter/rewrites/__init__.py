"""What models and people made of texts: read, put on sheets, compared."""
