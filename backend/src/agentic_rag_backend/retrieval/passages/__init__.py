"""Passages of results: their texts, parents, paths, features and contradictions."""
