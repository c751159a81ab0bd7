"""Generators: they turn a brief into an answer."""
