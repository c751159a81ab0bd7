"""Dates and periods, in texts, in questions and in metadata."""
