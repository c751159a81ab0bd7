"""Judges whether passages answer a question, and which of their sentences do. No language model is called."""
