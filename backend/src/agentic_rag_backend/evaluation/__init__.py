"""Evaluation of retrieval: data sets and metrics."""
