"""Grades of results: how likely each of them helps to answer the question."""
