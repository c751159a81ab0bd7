"""Generations of communities in the stores: written, restored, and rid of the words of documents that are gone."""
