"""Contracts of the blob, graph and vector stores, and sample data for tests on them."""
