"""Caches of one process: vectors of questions, and results of searches."""
