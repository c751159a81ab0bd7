"""Rerankers: the port, the registry, and the rerankers that need the tenant's graph or vectors, or the text of candidates."""
