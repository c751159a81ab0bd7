"""Models that read whether one text follows from another."""
