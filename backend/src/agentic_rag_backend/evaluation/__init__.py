"""Measuring retrieval: data sets, metrics."""
