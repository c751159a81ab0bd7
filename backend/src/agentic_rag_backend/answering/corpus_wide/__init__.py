"""Answers to questions about the whole corpus: partial answers of themes, merged into one answer."""
