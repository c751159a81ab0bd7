"""Retrieval strategies, one per module. `retrieval.registry` lists them."""
