"""Summaries of communities: their evidence, the writing with and without a model, and their visible part."""
