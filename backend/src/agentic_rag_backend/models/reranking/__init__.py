"""Models that score passages for a question."""
