"""Commands that measure and tune: evaluation, tuning, diversity of results."""
