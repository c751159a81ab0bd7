"""Synthetic questions of chunks: made by patterns or by a language model, and embedded."""
