"""Themes for a question: search, rating by a model, selection over the hierarchy, and the passages that support them."""
