"""Summaries of tree nodes: their evidence, their text, and the removal of words of a deleted document."""
