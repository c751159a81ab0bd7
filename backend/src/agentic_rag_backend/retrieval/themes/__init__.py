"""Themes that bear on a question: found, rated by a model, chosen over the hierarchy, backed by passages."""
