"""Searches of one kind that strategies combine: embeddings, words, questions, facts, an engine for graphs."""
