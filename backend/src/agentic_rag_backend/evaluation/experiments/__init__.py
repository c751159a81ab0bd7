"""Experiments: two configurations compared on the requests of callers."""
