"""Contracts of embedders and language models, and a scripted model server."""
