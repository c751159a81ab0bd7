"""Scoring functions: fusion of ranked lists, coverage of the question's words, relevance."""
