"""Synthetic questions by patterns of English sentences and of rows: the method `patterns`."""
